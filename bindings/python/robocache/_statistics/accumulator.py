"""Exact statistics of arrays, and of data that arrive in pieces."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from .. import _core
from .._arguments.arrays import LIBRARY_TYPES, framework_of, shape_of
from .._arguments.call import array_of, begin, finished
from .._arguments.options import count, number, struct_of
from .._arguments.samples import array_in, samples_of
from .._arguments.shapes import batch_of
from .._library.context import CPU, choose, default_context
from .._library.errors import REFUSALS, shown
from .._text_table import html_table
from .result import StatisticsResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._arguments.frameworks import Framework
    from .._episodes.track import Track
    from .._library.context import Context
    from .._typing import Indices, SupportsDLPack
    from ..data._point_clouds import PointCloud
    from ..data._recording import RecordedStream

QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99)
_NAMES = ("count", "nonfinite", "min", "max", "mean", "std")
_new_params, _set_flags, _set_ddof = struct_of("StatisticsParams", "flags", "ddof")
(_new_outputs,) = struct_of("StatisticsOutputs")
(_new_update,) = struct_of("AccumulatorUpdateParams")
_new_accumulator, _set_channels, _set_accumulator_ddof = struct_of(
    "AccumulatorParams", "num_channels", "ddof"
)
(_new_info,) = struct_of("AccumulatorInfo")


def statistics(
    values: SupportsDLPack | RecordedStream | Track | PointCloud,
    *,
    lengths: Indices | None = None,
    batch_offsets: Indices | None = None,
    sample_mask: SupportsDLPack | None = None,
    quantiles: Sequence[float] = QUANTILES,
    per_row: bool = False,
    ddof: int = 0,
    backend: str | Context | None = None,
) -> StatisticsResult:
    """Compute count, range, mean, standard deviation and quantiles of each channel, exactly.

    ``mean`` and ``std`` are the exact results, rounded once to float64. They do not depend on the
    order of the samples, on batches, on threads or on the GPU. Quantiles equal ``numpy.quantile``
    of the values as float64, bit for bit. NaN and infinite values are counted in ``nonfinite`` and
    ignored otherwise.

    Arrays may come from any library with ``__dlpack__`` and have any strides; none is copied.

    Parameters
    ----------
    values : array [B,S,D], [S,D], [B,...,D], or packed [N,D]
        Any dtype; 64-bit integers are rounded to float64. All axes between the first and the last
        are samples, such as the pixels of images [B,H,W,C]. Or a
        :class:`robocache.data.RecordedStream`, a :class:`robocache.data.PointCloud`, or a
        :class:`Track`, whose rows of the batch are its episodes.
    lengths : array or list [B] of int32 or int64
        Number of valid samples in each padded row. None: all. Verified on the CPU.
    batch_offsets : array or list [B+1] of int32 or int64
        Where each row begins in packed ``values``, and where the last ends.
    sample_mask : array or list of bool or uint8
        Mask in the shape of ``values`` without its last axis: samples with 0 are ignored.
    quantiles
        Levels from 0 to 1, at most 64.
    per_row
        Compute separate statistics for each row of the batch, such as an episode.
    ddof
        0 or 1: the variance is divided by n - ``ddof``.
    backend
        Device to compute on. None: the device of the arrays. "cpu", "cuda" and "cuda:N"
        require the arrays to be there; a :class:`Context` is used directly.

    Returns
    -------
    StatisticsResult
        Arrays [D], or [B,D] per row, and quantiles [Q,D] or [B,Q,D], from the library of
        ``values``, on its device. Without values, the counts are 0 and the other results NaN.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid. The message begins with the argument's name.
    TypeError
        A dtype is not supported, or an argument is not an array.
    MemoryError
        Not enough memory.
    RoboCacheError
        The device is not available, or a CUDA error occurred.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> grip = np.array([[500.01, 0.0], [499.99, 0.0], [500.01, 0.08], [499.99, 0.08]], np.float32)
    >>> print(rbc.statistics(grip, quantiles=[0.5]))
    channel  count  nonfinite     min     max  mean        std   q50
    0            4          0  499.99  500.01   500  0.0100098   500
    1            4          0       0    0.08  0.04       0.04  0.04
    """
    values, batch_offsets = _held(values, batch_offsets)
    framework, context, ordered, _ = begin(values, "values", backend)
    shape = shape_of(values, "values", context)
    indexes = _indexes(framework, values, lengths, batch_offsets, sample_mask)
    levels = _levels(quantiles)
    ddof = _ddof(ddof)
    params = _new_params()
    if per_row:
        _set_flags(params, _core.STATISTICS_FLAG_PER_ROW)
    if ddof:
        _set_ddof(params, ddof)

    rows: tuple[int, ...] = ()
    if per_row:
        packed = indexes[2] is not None
        if not packed and len(shape) < 3:
            raise ValueError("per_row: needs values [B,S,D] or batch_offsets")
        rows = batch_of(shape, indexes[2], context) if packed else tuple(shape[:1])
    channels = tuple(shape[-1:])
    arrays = [
        framework.empty(values, (*rows, *channels), "int64" if i < 2 else "float64", context)
        for i in range(len(_NAMES))
    ]
    of_levels = (*rows, len(levels), *channels)
    arrays.append(framework.empty(values, of_levels, "float64", context))
    _core.rbc_statistics(
        context._handle, values, (_new_outputs(), *arrays), (params, *indexes, levels)
    )
    filled = finished(framework, context, ordered, "values", None, tuple(arrays))
    return _result(filled, tuple(levels.tolist()), ddof)


class StatisticsAccumulator:
    """Statistics of data that arrive in pieces, equal to :func:`statistics` of all data at once.

    Pieces may arrive in any order, in any process, on any device: accumulators can be merged, and
    their bytes are the same for the same samples. Everything except the quantiles is exact after
    one pass over the data. The quantiles are then accurate to 1 part in 128; they become exact
    after the additional passes that ``next_pass`` requests (one for float32).

    Parameters
    ----------
    channels
        Number of channels D.
    quantiles
        Levels from 0 to 1, at most 64; () for none.
    ddof
        0 or 1: the variance is divided by n - ``ddof``.
    backend
        Device of the state and of all values: "cpu" or None, "cuda", "cuda:N" or a
        :class:`Context`.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> episodes = [np.random.default_rng(i).normal(size=(300, 2)).astype("f4") for i in range(20)]
    >>> accumulator = rbc.StatisticsAccumulator(2)
    >>> more = True
    >>> while more:
    ...     for episode in episodes:
    ...         accumulator.update(episode)
    ...     more = accumulator.next_pass()
    >>> whole = rbc.statistics(np.concatenate(episodes))
    >>> bool((accumulator.result().quantiles == whole.quantiles).all())
    True
    """

    __slots__ = ("_channels", "_context", "_ddof", "_handle", "_levels")

    def __init__(
        self,
        channels: int,
        quantiles: Sequence[float] = QUANTILES,
        ddof: int = 0,
        backend: str | Context | None = None,
    ) -> None:
        params = _new_accumulator()
        _set_channels(params, count(channels, "channels"))
        _set_accumulator_ddof(params, _ddof(ddof))
        context = _context_of(backend)
        handle = _core.rbc_accumulator_create(context._handle, (params, _levels(quantiles), None))
        self._adopt(context, handle)

    def _adopt(self, context: Context, handle: Any) -> None:
        info = _new_info()
        _core.rbc_accumulator_get_info(handle, info)
        self._context = context
        self._handle = handle
        self._channels: int = _core.AccumulatorInfo_num_channels_get(info)
        self._ddof: int = _core.AccumulatorInfo_ddof_get(info)
        self._levels: tuple[float, ...] = _core.rbc_accumulator_get_levels(
            handle, _core.AccumulatorInfo_num_levels_get(info)
        )

    def update(
        self,
        values: SupportsDLPack | RecordedStream | Track | PointCloud,
        *,
        lengths: Indices | None = None,
        batch_offsets: Indices | None = None,
        sample_mask: SupportsDLPack | None = None,
    ) -> None:
        """Add samples. The arguments are as for :func:`statistics`; all samples have one dtype.

        In a pass after the first, add the samples of the first pass again, in any order. If Ctrl-C
        interrupts it, the accumulator can no longer be used, and raises errors.

        Raises
        ------
        ValueError
            A shape or a device is invalid, or there are no more passes.
        TypeError
            A dtype is not supported, or an argument is not an array.
        """
        values, batch_offsets = _held(values, batch_offsets)
        framework = framework_of(values, "values")
        begin(values, "values", self._context)
        indexes = _indexes(framework, values, lengths, batch_offsets, sample_mask)
        _core.rbc_accumulator_update(
            self._context._handle, self._handle, values, (_new_update(), *indexes)
        )

    def merge(self, other: StatisticsAccumulator) -> StatisticsAccumulator:
        """Add the samples of another accumulator, which is not changed; return this one.

        In a pass after the first, both must be copies of one accumulator, made by
        :meth:`from_bytes`.

        Raises
        ------
        ValueError
            The channels, quantiles, ``ddof`` or passes of the two differ.
        TypeError
            The dtypes differ, or ``other`` is not an accumulator.
        """
        if not isinstance(other, StatisticsAccumulator):
            raise TypeError(f"other: is {shown(other)}, expected a StatisticsAccumulator")
        if other._context is not self._context:
            other = self.from_bytes(other.to_bytes(), backend=self._context)
        _core.rbc_accumulator_merge(self._handle, other._handle)
        return self

    def next_pass(self) -> bool:
        """End a pass over the data; return True if the quantiles need another pass.

        Raises
        ------
        ValueError
            There are no samples, or they differ from the samples of the first pass.
        """
        more: int = _core.rbc_accumulator_next_pass(self._handle)
        return more == 1

    def result(self) -> StatisticsResult:
        """Return the statistics of all samples so far, as NumPy arrays.

        Before the last pass, the quantiles are approximate.

        Raises
        ------
        ValueError
            A pass after the first does not have all samples yet.
        """
        import numpy as np

        arrays = [
            np.empty(self._channels, np.int64 if i < 2 else np.float64) for i in range(len(_NAMES))
        ]
        arrays.append(np.empty((len(self._levels), self._channels)))
        _core.rbc_accumulator_get_result(
            self._context._handle, self._handle, (_new_outputs(), *arrays)
        )
        return _result(arrays, self._levels, self._ddof)

    def to_bytes(self) -> bytes:
        """Return the state, for :meth:`from_bytes` in any process, on any device and machine."""
        data: bytes = _core.rbc_accumulator_export(self._handle)
        return data

    @classmethod
    def from_bytes(
        cls, data: bytes, *, backend: str | Context | None = None
    ) -> StatisticsAccumulator:
        """Create an accumulator from the result of :meth:`to_bytes`.

        Raises
        ------
        ValueError
            The bytes are not a state, or they are truncated or corrupted.
        TypeError
            ``data`` is not bytes.
        RoboCacheError
            The state was written by a newer release.
        """
        if not isinstance(data, bytes):
            raise TypeError(f"data: is {shown(data)}, expected bytes")
        context = _context_of(backend)
        made = cls.__new__(cls)
        made._adopt(context, _core.rbc_accumulator_import(context._handle, data))
        return made

    def _facts(self) -> dict[str, Any]:
        info = _new_info()
        _core.rbc_accumulator_get_info(self._handle, info)
        number = _core.AccumulatorInfo_current_pass_get(info)
        return {"channels": self._channels, "pass": number, "quantiles": list(self._levels)}

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value}" for name, value in self._facts().items())
        return f"StatisticsAccumulator({facts})"

    def _repr_html_(self) -> str:
        rows = [(name, str(value)) for name, value in self._facts().items()]
        return html_table([("StatisticsAccumulator", ""), *rows])

    def __reduce__(self) -> tuple[Any, ...]:
        return StatisticsAccumulator.from_bytes, (self.to_bytes(),)


def _result(arrays: Sequence[Any], levels: tuple[float, ...], ddof: int) -> StatisticsResult:
    tallied, nonfinite, low, high, mean, std, quantiles = arrays
    return StatisticsResult(tallied, nonfinite, low, high, mean, std, quantiles, levels, ddof)


def _held(values: Any, batch_offsets: Any) -> tuple[Any, Any]:
    """Return the values and the offsets of a recorded stream, a track or a point cloud."""
    if type(values) in LIBRARY_TYPES:
        return values, batch_offsets
    samples = samples_of(values)
    if samples is None:
        return array_in(values), batch_offsets
    if samples.batch_offsets is None:
        return samples.values, batch_offsets
    if batch_offsets is not None:
        raise ValueError(f"batch_offsets: {samples.what} has its own; do not pass others")
    return samples.values, samples.batch_offsets


def _context_of(backend: Any) -> Context:
    return default_context(CPU) if backend is None else choose(backend, CPU)


def _indexes(
    framework: Framework, values: Any, lengths: Any, batch_offsets: Any, sample_mask: Any
) -> Any:
    if lengths is not None:
        lengths = array_of(framework, lengths, "lengths", values)
    if batch_offsets is not None:
        batch_offsets = array_of(framework, batch_offsets, "batch_offsets", values)
    if sample_mask is not None:
        sample_mask = array_of(framework, sample_mask, "sample_mask", values, "bool")
    return lengths, sample_mask, batch_offsets


def _levels(quantiles: Any) -> Any:
    import numpy as np

    try:
        numbers = [number(level, "quantiles") for level in quantiles]
    except TypeError:
        raise TypeError(f"quantiles: is {shown(quantiles)}, expected levels from 0 to 1") from None
    for level in numbers:
        if not 0 <= level <= 1:
            raise ValueError(f"quantiles: level is {shown(level)}, expected 0 to 1")
    return np.array(numbers, np.float64)


def _ddof(value: Any) -> int:
    try:
        whole = operator.index(value)
    except REFUSALS:
        raise TypeError(f"ddof: is {shown(value)}, expected 0 or 1") from None
    if whole not in (0, 1):
        raise ValueError(f"ddof: is {shown(value)}, expected 0 or 1")
    return whole
