"""One stream of episodes, as input of windows."""

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
    """One stream of E episodes, and the rows around an anchor that :func:`windows` returns.

    Like a :class:`Stream`, it keeps references, not copies, is immutable, and may be used in any
    number of calls and threads.

    Parameters
    ----------
    values : array [n,D], or None
        The rows of all episodes, one episode after the other. Floats; without ``method`` also
        integers and bool. None, such as for a video: the results are row numbers, int64.
    offsets : array or list [O]
        Offsets of the rows of a window from its anchor: ints, such as ``[-1, 0]`` or ``range(50)``.
        With ``method``, offsets in time, in the dtype and unit of ``times``. They may be in any
        order and may repeat.
    episode_offsets : array or list [E+1] of int32 or int64
        Where each episode begins in ``values``, and where the last ends. All streams have the same
        E.
    times : array [n], or None
        float32, float64 or int64, or with a unit, ascending in each episode. Needed for streams of
        different rates; without times, row i of all streams has the same time.
    method
        None: rows are copied. Otherwise values are interpolated at the anchor's time plus each
        offset, by a method or by methods for groups of channels, as for :func:`resample`.
    outside
        Result for rows before the begin and past the end of the episode: "hold" repeats its first
        or last row, "fill" writes ``fill_value``, "neutral" is as "hold" before the begin and
        writes ``neutral`` past the end.
    fill_value
        Written where there is no valid value; it is not normalized.
    neutral, neutral_channels
        With ``outside="neutral"``: numbers [D'] or [O,D'], which are not normalized (None: 0), and
        bools [D'] of the channels that get them (None: all).
    transforms
        :class:`Transform` objects for some channels; the others are copied. The result has D'
        channels.
    normalization
        :class:`Normalization` for each channel, or for each step and channel, applied after the
        transforms.
    max_gap, tolerance
        As for :func:`resample`, with ``method``.
    sample_mask : array [n] of bool or uint8
        Rows with 0 are missing: they are invalid, and not used for interpolation.
    missing
        "nan": rows with a NaN are missing.
    arrivals : array [n]
        When each row had arrived, with the dtype and the unit of ``times``, as for
        :func:`resample`: a window has the rows that a robot sees when it computes the window at its
        time + ``lag`` of :func:`windows`. Without ``method``, the anchor is the last row that
        exists at the anchor's time, and earlier rows of the window are valid if they exist then.
        With it, each offset sees what exists at its own time. Offsets are then 0 or less: actions
        are streams without arrivals.
    causal, max_age
        As for :func:`resample`, with ``method``.
    clock_offset
        As for a :class:`Stream`: a row at t is at t + ``clock_offset`` on the common clock.
    accumulator, accumulate
        A :class:`StatisticsAccumulator` that adds the rows of windows, after the transforms and
        before normalization: with D' channels for all offsets together, or with O D' channels for
        each offset separately. The rows that count: "all" rows with a value, "valid" rows, or rows
        of "whole" windows, which are completely inside their episode.
    dtype
        Dtype of the result. None: as ``values``, or float32 where integers are transformed,
        normalized or interpolated.
    output
        Whether :func:`windows` returns the rows. None: only without an accumulator. False: for
        streams that are only accumulated or referred to.

    Raises
    ------
    ValueError
        A name is unknown, transforms overlap or exceed the channels, or a normalization has a
        different number of channels. The message begins with the argument's name.
    TypeError
        An argument is not an array, or has a wrong type.

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
    arrivals: Times | None
    causal: bool
    max_age: Duration | None

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
        arrivals: Any = None,
        causal: bool = False,
        max_age: Any = None,
    ) -> None:
        arguments = dict(locals())
        for name in ("self", "__class__"):
            arguments.pop(name, None)
        self.__dict__.update(arguments)
        self.__dict__["transforms"] = checked_transforms(transforms, None)
        self.__dict__["_opened"] = opened(arguments)

    @property
    def _opened(self) -> Opened:
        """The converted arguments."""
        made: Opened = self.__dict__["_opened"]
        return made

    def _require_plain(self, name: str) -> None:
        """Refuse a stream that the plain operation does not support; overridden in torch."""

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
    """Return a stream of a track's arrays. The track knows the unit of its times."""
    arguments = {
        **_DEFAULTS,
        "values": track.values,
        "offsets": list(offsets),
        "episode_offsets": track.episode_offsets,
        "times": track.times,
        "arrivals": track.arrivals,
        **options,
    }
    stream: WindowStream[Any] = object.__new__(WindowStream)
    stream.__setstate__((arguments, track._unit))
    return stream
