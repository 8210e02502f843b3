"""One window of a specification: rows of a track, and their transforms."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._arguments.options import ZERO
from .._library.errors import REFUSALS, shown
from .._operations.stream import array_text
from .._statistics.normalization import Normalization
from .._typing import Duration, Indices, Method, Missing, Numbers, WindowOutside
from .images import Images
from .transform import Transform, checked_transforms


@dataclass(frozen=True, init=False, repr=False)
class Window:
    """One output of a :class:`WindowSpec`: rows of a track, and their transforms.

    Parameters
    ----------
    offsets
        Offsets from the anchor: rows, such as ``[-1, 0]`` or ``range(50)``, or durations with
        ``method``.
    track
        Name of the track. None: the name of the window.
    method, outside, fill_value, neutral, neutral_channels, transforms, normalization
    max_gap, tolerance, missing, clock_offset, dtype, causal, max_age
        As for :class:`WindowStream`. The reference of a transform is the name of a window, and the
        index of one of its offsets.
    output
        False: the window is not returned, but transforms may refer to it.
    label
        True: the window sees its whole episode, also rows of the track that arrive later. For
        actions, and other targets of a policy.
    images
        :class:`Images` of a camera: the window is then images [O,C,h,w] of the frames at its rows.
        With ``outside="fill"``, images outside of the episode are padding. Only ``offsets``,
        ``track`` and ``outside`` are valid with it.

    Raises
    ------
    ValueError
        A name is unknown, or transforms overlap.
    TypeError
        An argument has a wrong type.

    Examples
    --------
    >>> import robocache as rbc
    >>> rbc.Window(range(50), outside="fill")
    Window(range(0, 50), outside='fill')
    """

    offsets: tuple[Any, ...]
    track: str | None
    method: Method | None
    outside: WindowOutside
    fill_value: float
    neutral: Any
    neutral_channels: Any
    transforms: tuple[Transform, ...]
    normalization: Normalization | None
    max_gap: Duration | None
    tolerance: Duration | None
    missing: Missing | None
    clock_offset: Duration
    dtype: Any
    output: bool
    causal: bool
    max_age: Duration | None
    label: bool
    images: Images | None

    def __init__(
        self,
        offsets: Indices | Sequence[Any],
        *,
        track: str | None = None,
        method: Method | None = None,
        outside: WindowOutside = "hold",
        fill_value: float = ZERO,
        neutral: Numbers | Sequence[Sequence[float]] | None = None,
        neutral_channels: Sequence[bool] | None = None,
        transforms: Sequence[Transform] | Transform = (),
        normalization: Normalization | None = None,
        max_gap: Duration | None = None,
        tolerance: Duration | None = None,
        missing: Missing | None = None,
        clock_offset: Duration = 0,
        dtype: Any = None,
        output: bool = True,
        causal: bool = False,
        max_age: Duration | None = None,
        label: bool = False,
        images: Images | None = None,
    ) -> None:
        self.__dict__.update(
            offsets=_listed(offsets, "offsets"),
            track=track,
            method=method if method is None or isinstance(method, str) else tuple(method),
            outside=outside,
            fill_value=fill_value,
            neutral=None if neutral is None else _listed(neutral, "neutral"),
            neutral_channels=(
                None if neutral_channels is None else _listed(neutral_channels, "neutral_channels")
            ),
            transforms=checked_transforms(transforms, None),
            normalization=normalization,
            max_gap=max_gap,
            tolerance=tolerance,
            missing=missing,
            clock_offset=clock_offset,
            dtype=dtype,
            output=output,
            causal=causal,
            max_age=max_age,
            label=label,
            images=images,
        )
        if method is None and any(isinstance(each, float) for each in self.offsets):
            raise TypeError(
                f"offsets: are {offsets_text(self.offsets)}, expected whole rows; durations need "
                "a method, such as method='linear'"
            )
        if images is not None:
            self._require_only_images()

    def _require_only_images(self) -> None:
        if not isinstance(self.images, Images):
            raise TypeError(f"images: is {shown(self.images)}, expected a robocache.Images")
        for field in dataclasses.fields(self)[2:-1]:
            if field.name != "outside" and not _is_default(self, field.name):
                raise ValueError(f"{field.name}: is not valid with images")
        if self.outside not in ("hold", "fill"):
            raise ValueError(f"outside: is {shown(self.outside)}, expected 'hold' or 'fill'")

    @classmethod
    def from_seconds(
        cls, seconds: Sequence[float], rate: float, *, tolerance: float = 1e-4, **options: Any
    ) -> Window:
        """Create a window from offsets in seconds, as in LeRobot, for a track of a fixed rate.

        Parameters
        ----------
        seconds
            Offsets: whole multiples of the time between rows.
        rate
            Rows per second.
        tolerance
            Largest distance of an offset from a multiple, in seconds.
        options
            As for the class.

        Raises
        ------
        ValueError
            An offset is not a multiple of the time between rows.
        """
        rows = []
        for i, each in enumerate(seconds):
            row = round(each * rate)
            if abs(row - each * rate) > tolerance * rate:
                raise ValueError(
                    f"seconds[{i}]: is {each}, which is {each * rate:g} rows at {rate:g} Hz, "
                    "expected whole rows; for a track with times, use method='linear'"
                )
            rows.append(row)
        return cls(rows, **options)

    def __repr__(self) -> str:
        parts = [offsets_text(self.offsets)]
        for field in dataclasses.fields(self)[1:]:
            if not _is_default(self, field.name):
                parts.append(f"{field.name}={array_text(getattr(self, field.name))}")
        return f"Window({', '.join(parts)})"


_DEFAULTS = dict(Window.__init__.__kwdefaults__ or {})


def _is_default(window: Window, name: str) -> bool:
    value, default = getattr(window, name), _DEFAULTS[name]
    plain = isinstance(value, (str, int, float))  # arrays compare element by element
    return value is default or (plain and value == default) or (value == () and default == ())


def replaced(window: Window, **changed: Any) -> Window:
    made = object.__new__(Window)
    made.__dict__.update({**window.__dict__, **changed})
    return made


def _listed(values: Any, name: str) -> tuple[Any, ...]:
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{name}: is {shown(values)}, expected numbers")
    try:
        items = values.tolist() if hasattr(values, "tolist") and _is_plain(values) else list(values)
    except REFUSALS:
        raise TypeError(f"{name}: is {shown(values)}, expected numbers") from None
    return tuple(tuple(item) if isinstance(item, list) else item for item in items)


def _is_plain(array: Any) -> bool:
    """Whether an array has numbers without a unit, not datetime64 or timedelta64."""
    return getattr(array.dtype, "kind", "") not in ("m", "M")


def offsets_text(offsets: tuple[Any, ...]) -> str:
    if len(offsets) > 2 and all(isinstance(each, int) for each in offsets):
        step = offsets[1] - offsets[0]
        if step and offsets == tuple(
            range(offsets[0], offsets[-1] + (1 if step > 0 else -1), step)
        ):
            last = offsets[-1] + (1 if step > 0 else -1)
            return repr(range(offsets[0], last, step))
    return f"[{', '.join(map(_offset_text, offsets))}]"


def _offset_text(offset: Any) -> str:
    if isinstance(offset, datetime.timedelta):
        return f"{offset.total_seconds():g} s"
    return repr(offset) if isinstance(offset, (int, float)) else str(offset)
