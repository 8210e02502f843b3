"""One window of a specification: which rows of a track, and what becomes of them."""

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
from .transform import Transform, checked_transforms


@dataclass(frozen=True, init=False, repr=False)
class Window:
    """One output of a :class:`WindowSpec`: which rows of a track, and what becomes of them.

    Parameters
    ----------
    offsets
        Rows from the anchor, such as ``[-1, 0]`` or ``range(50)``; with ``method`` lengths of time.
    track
        The name of the track; None: that of the window.
    method, outside, fill_value, neutral, neutral_channels, transforms, normalization
    max_gap, tolerance, missing, clock_offset, dtype
        As for :class:`WindowStream`. A reference of a transform is the name of a window, and the
        index of one of its offsets.
    output
        False: it is there to be referred to alone.

    Raises
    ------
    ValueError
        A name is unknown, or transforms overlap.
    TypeError
        An argument is of another kind.

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
        )

    @classmethod
    def from_seconds(
        cls, seconds: Sequence[float], rate: float, *, tolerance: float = 1e-4, **options: Any
    ) -> Window:
        """Rows at lengths of time from the anchor, of a track of this rate, as LeRobot has them.

        Parameters
        ----------
        seconds
            Whole multiples of the time between rows.
        rate
            Rows a second.
        tolerance
            How far off a multiple each may be, in seconds.
        options
            As for the class.

        Raises
        ------
        ValueError
            One is no multiple of the time between rows.
        """
        rows = []
        for i, each in enumerate(seconds):
            row = round(each * rate)
            if abs(row - each * rate) > tolerance * rate:
                raise ValueError(
                    f"seconds[{i}]: is {each}, which is {each * rate:g} rows at {rate:g} Hz, "
                    "expected whole ones; a track with times takes it with method='linear'"
                )
            rows.append(row)
        return cls(rows, **options)

    def __repr__(self) -> str:
        parts = [offsets_text(self.offsets)]
        for field in dataclasses.fields(self)[1:]:
            value, default = getattr(self, field.name), _DEFAULTS[field.name]
            plain = isinstance(value, (str, int, float))  # arrays compare element by element
            if value is not default and not (plain and value == default):
                parts.append(f"{field.name}={array_text(value)}")
        return f"Window({', '.join(parts)})"


_DEFAULTS = dict(Window.__init__.__kwdefaults__ or {})


def replaced(window: Window, **changed: Any) -> Window:
    made = object.__new__(Window)
    made.__dict__.update({**window.__dict__, **changed})
    return made


def _listed(given: Any, name: str) -> tuple[Any, ...]:
    if isinstance(given, (str, bytes)):
        raise TypeError(f"{name}: is {shown(given)}, expected numbers")
    try:
        items = given.tolist() if hasattr(given, "tolist") and _is_plain(given) else list(given)
    except REFUSALS:
        raise TypeError(f"{name}: is {shown(given)}, expected numbers") from None
    return tuple(tuple(item) if isinstance(item, list) else item for item in items)


def _is_plain(array: Any) -> bool:
    """Whether the numbers of an array say all: those of times have a unit."""
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
