"""What windows take of one stream of the episodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, overload

from .._arguments.options import ZERO
from .._operations.stream import array_text
from .._statistics.accumulator import StatisticsAccumulator
from .._statistics.normalization import Normalization
from .._typing import (
    Accumulate,
    Array_co,
    Duration,
    Indices,
    Method,
    Missing,
    Numbers,
    SampleMask,
    Table,
    Times,
    WindowOutside,
)
from .stream_arguments import Opened, opened
from .transform import Transform, checked_transforms

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .._arguments.time_units import Unit
    from .._episodes.track import Track
    from .._typing import WindowOptions


@dataclass(frozen=True, eq=False, init=False, repr=False)
class WindowStream(Generic[Array_co]):
    """One stream of E episodes, and the rows around an anchor that :func:`windows` takes of it.

    As a :class:`Stream` it keeps references, not copies, cannot be changed, and serves any number
    of calls and threads.

    Parameters
    ----------
    values : array [n,D], or None
        The rows of all episodes, one episode after the other. Floats; without ``method`` also
        integers and bool. None: there are none, as of a video, and windows are of the numbers of
        rows, int64.
    offsets : array or list [O]
        Which rows a window has, counted from its anchor: ints, such as ``[-1, 0]`` or
        ``range(50)``. With ``method`` they are times, in the dtype and unit of ``times``. In any
        order, also repeated.
    episode_offsets : array or list [E+1] of int32 or int64
        Where each episode begins in ``values``, and where the last ends. E is that of all streams.
    times : array [n], or None
        float32, float64 or int64, or with a unit, ascending in each episode. They tell streams of
        different rates from each other; without them row i of all streams is of one time.
    method
        None: rows are taken as they are. Else values are interpolated at the anchor's time plus
        each offset, by the rules of :func:`resample`: a name, or groups of channels.
    outside
        What stands for rows before the episode begins and past its end: "hold", its first or last
        row; "fill", ``fill_value``; "neutral", as "hold", but past the end ``neutral``.
    fill_value
        What is written where there is nothing valid to write, not normalized.
    neutral, neutral_channels
        With ``outside="neutral"``: numbers [D'] or [O,D'], not normalized (None: 0), and bools
        [D'], which channels have them (None: all).
    transforms
        :class:`Transform` of channels relative to others; the rest is copied. They give D'.
    normalization
        :class:`Normalization`, of one channel each, or one step and channel, after the transforms.
    max_gap, tolerance
        As for :func:`resample`, with ``method``.
    sample_mask : array [n] of bool or uint8
        Rows with 0 are missing: invalid, or not interpolated from.
    missing
        "nan": rows that hold a NaN are missing.
    clock_offset
        As of a :class:`Stream`: a row at t lies at t + ``clock_offset`` on the clock of all.
    accumulator, accumulate
        A :class:`StatisticsAccumulator` that takes the rows of windows, after the transforms and
        before normalization: of D' channels for all offsets together, or of O D' for each by
        itself. Which ones: "all" that have a value, "valid" ones, or those of "whole" windows,
        which lie in their episode.
    dtype
        Of the result. None: that of ``values``; float32 where integers are transformed, normalized
        or interpolated.
    output
        Whether :func:`windows` gives the rows. None: unless there is an accumulator. False: for
        streams that are counted, or that others refer to, alone.

    Raises
    ------
    ValueError
        A name is unknown, transforms overlap or lie outside of the channels, or a normalization is
        of other channels. The message begins with the argument's name.
    TypeError
        An argument is no array, or of another kind.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> arm = np.zeros((900, 7), np.float32)
    >>> rbc.WindowStream(arm, [-1, 0], episode_offsets=[0, 400, 900])
    WindowStream(values=<float32 [900,7]>, offsets=[-1, 0], episode_offsets=[0, 400, 900])
    """

    values: Array_co | None
    offsets: Any
    episode_offsets: Indices
    times: Times | None
    method: Method | None
    outside: WindowOutside
    fill_value: float
    neutral: Numbers | Sequence[Sequence[float]] | None
    neutral_channels: SampleMask | None
    transforms: tuple[Transform, ...]
    normalization: Normalization | None
    max_gap: Duration | None
    tolerance: Duration | None
    sample_mask: SampleMask | None
    missing: Missing | None
    clock_offset: Duration
    accumulator: StatisticsAccumulator | None
    accumulate: Accumulate
    dtype: Any
    output: bool | None

    @overload
    def __init__(
        self: WindowStream[NDArray[Any]],
        values: None,
        offsets: Indices | Sequence[Any],
        *,
        episode_offsets: Indices,
        **options: Unpack[WindowOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        values: Array_co,
        offsets: Indices | Sequence[Any],
        *,
        episode_offsets: Indices,
        **options: Unpack[WindowOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: WindowStream[NDArray[Any]],
        values: Table,
        offsets: Indices | Sequence[Any],
        *,
        episode_offsets: Indices,
        **options: Unpack[WindowOptions],
    ) -> None: ...
    def __init__(
        self,
        values: Any,
        offsets: Any,
        *,
        episode_offsets: Any,
        times: Any = None,
        method: Any = None,
        outside: Any = "hold",
        fill_value: float = ZERO,
        neutral: Any = None,
        neutral_channels: Any = None,
        transforms: Any = (),
        normalization: Normalization | None = None,
        max_gap: Any = None,
        tolerance: Any = None,
        sample_mask: Any = None,
        missing: Any = None,
        clock_offset: Any = 0,
        accumulator: StatisticsAccumulator | None = None,
        accumulate: Any = "all",
        dtype: Any = None,
        output: bool | None = None,
    ) -> None:
        given = dict(locals())
        for name in ("self", "__class__"):
            given.pop(name, None)
        self.__dict__.update(given)
        self.__dict__["transforms"] = checked_transforms(transforms, None)
        self.__dict__["_opened"] = opened(given)

    @property
    def _opened(self) -> Opened:
        """The arguments as `windows` takes them."""
        made: Opened = self.__dict__["_opened"]
        return made

    def _require_plain(self, name: str) -> None:
        """Refuse what the plain operation would not carry through."""

    def __repr__(self) -> str:
        parts = []
        for field in dataclasses.fields(self):
            value, default = getattr(self, field.name), _DEFAULTS.get(field.name, ...)
            if type(value) is not type(default) or value != default:
                parts.append(f"{field.name}={array_text(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def __getstate__(self) -> tuple[dict[str, Any], Unit | None]:
        arguments = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return arguments, self.__dict__["_opened"].unit

    def __setstate__(self, state: tuple[dict[str, Any], Unit | None]) -> None:
        arguments, unit = state
        self.__dict__.update(arguments)
        self.__dict__["_opened"] = opened(arguments, unit)


_DEFAULTS = dict(WindowStream.__init__.__kwdefaults__ or {})


def stream_of(track: Track, offsets: Sequence[Any], options: dict[str, Any]) -> WindowStream[Any]:
    """A stream of a track's arrays, whose times may have a unit that they do not tell."""
    arguments = {
        **_DEFAULTS,
        "values": track.values,
        "offsets": list(offsets),
        "episode_offsets": track.episode_offsets,
        "times": track.times,
        **options,
    }
    stream: WindowStream[Any] = object.__new__(WindowStream)
    stream.__setstate__((arguments, track._unit))
    return stream
