"""What the extension takes of a stream of windows: its arguments as arrays and a struct."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .. import _core
from .._arguments.arrays import SEQUENCES, dtype_of, framework_of, shape_of
from .._arguments.call import array_of
from .._arguments.coerce import limits_of, sampled
from .._arguments.frameworks import Framework
from .._arguments.missing import is_masked, mask_of, taken_apart
from .._arguments.options import code_of, struct_of
from .._arguments.resample_params import rules
from .._arguments.time_units import Unit, not_whole, ticks_of
from .._arguments.times import times_of
from .._arguments.to_numpy import on_host
from .._library.dtypes import dtype_name
from .._library.errors import REFUSALS, blamed, shown
from .._operations.stream import clock_offsets
from .._statistics.accumulator import StatisticsAccumulator
from .._statistics.normalization import Normalization
from .transform import Transform, checked_transforms, out_channels

_OUTSIDE = {
    "hold": _core.OUTSIDE_HOLD,
    "fill": _core.OUTSIDE_FILL,
    "neutral": _core.OUTSIDE_NEUTRAL,
}
_ACCUMULATES = {
    "all": _core.WINDOWS_ACCUMULATE_ALL,
    "valid": _core.WINDOWS_ACCUMULATE_VALID,
    "whole": _core.WINDOWS_ACCUMULATE_WHOLE,
}
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_PARAMETERS = ("shift", "scale", "bias", "low", "high")
_new, _set_mode, _set_offset, _set_ticks = struct_of(
    "WindowsStream", "mode", "clock_offset", "clock_offset_ticks"
)
_new_outputs, _set_accumulate, _set_accumulator = struct_of(
    "WindowsOutputs", "accumulate", "accumulator"
)

# The places of what a call adds in the tuple for the extension, whose order is rbcWindowsStream's.
TRANSFORMS, SCALES = 6, slice(7, 12)


@dataclass(frozen=True)
class Opened:
    """A stream as `windows` takes it."""

    framework: Framework
    base: Any  # the array whose device and CUDA stream are those of the stream
    unit: Unit | None  # of its times
    times: Any
    operands: list[Any]  # as the extension takes them
    outputs: Any  # the struct of what is written
    rule: dict[str, Any]  # what is no array, in ticks where times have a unit
    transforms: tuple[Transform, ...]
    num_offsets: int
    out_channels: int | None  # D'; None: row numbers
    asked: str | None  # the dtype of the result
    dtype: str  # and where none is asked for
    accumulator: StatisticsAccumulator | None
    writes: bool

    @property
    def device(self) -> int:
        """That of CUDA, or the CPU."""
        return self.framework.device(self.base, "values")

    def set_scales(self, arrays: list[Any]) -> None:
        """A normalization as arrays of the device: shift, scale, bias, low and high."""
        self.operands[SCALES] = arrays

    def sequence(self, numbers: Any, name: str) -> Any:
        """Numbers of NumPy in this library, on this device."""
        return self.framework.sequence(numbers, name, "int64", self.base)


def opened(given: dict[str, Any], unit: Unit | None = None) -> Opened:
    """Of the arguments of a :class:`robocache.WindowStream`; the unit of times that tell none."""
    values, times, mask = given["values"], given["times"], given["sample_mask"]
    method = given["method"]
    if values is not None and is_masked(values):
        values, mask = taken_apart(values, mask)
    if times is not None:
        values_or_times = times if values is None else values
        values_or_times, times, own = sampled(values_or_times, times)
        unit = own or unit
        values = None if values is None else values_or_times
    elif values is not None:
        values, _, _ = sampled(values, [])
    base = values if values is not None else given["episode_offsets"]
    if type(base) in SEQUENCES:
        import numpy as np

        base = np.asarray(base)
    framework = framework_of(base, "episode_offsets" if values is None else "values")
    framework.examine(base, "values")
    channels = None if values is None else _channels(values)
    transforms = checked_transforms(given["transforms"], channels)
    out = None if channels is None else out_channels(channels, transforms)
    _refuse_what_does_not_apply(given, values, times, method, transforms)

    offsets, num_offsets = _offsets(framework, given["offsets"], times, unit, method, base)
    gap, tolerance = limits_of(given["max_gap"], given["tolerance"], unit)
    params, groups = rules(
        "linear" if method is None else method,
        given["outside"],
        given["fill_value"],
        gap,
        tolerance,
        False,
        times,
        values,
        codes_of_outside=_OUTSIDE,
    )
    if mask is not None or given["missing"] is not None:
        mask = mask_of(framework, values, mask, given["missing"])
    made = _new()
    _set_mode(made, _core.WINDOWS_MODE_GATHER if method is None else _core.WINDOWS_MODE_INTERPOLATE)
    outputs = _new_outputs()
    _set_accumulate(outputs, code_of(_ACCUMULATES, given["accumulate"], "accumulate"))
    clock_offset = given["clock_offset"]
    if times is not None:
        if unit is not None:
            clock_offset = ticks_of(clock_offset, "clock_offset", unit)
        offset, ticks = clock_offsets(clock_offset, times)
        _set_offset(made, offset)
        _set_ticks(made, ticks)

    def floats(array: Any, name: str) -> Any:
        return _per_channel(framework, array, name, "float64", num_offsets, out, base)

    accumulator = given["accumulator"]
    if accumulator is not None:
        _set_accumulator(outputs, accumulator._handle)
        accumulator._handle.acquire()  # which the struct would have taken over
    normalization = given["normalization"]
    scales = [None] * len(_PARAMETERS)
    if normalization is not None:
        scales = [floats(getattr(normalization, name), "normalization") for name in _PARAMETERS]
    neutral, which = given["neutral"], given["neutral_channels"]
    operands = [
        made,
        values,
        array_of(framework, given["episode_offsets"], "episode_offsets", base),
        None if times is None else array_of(framework, times, "times", base),
        offsets,
        (params, None, mask, None, None, None, None, groups),
        None,  # transforms
        *scales,
        None if neutral is None else floats(neutral, "neutral"),
        None
        if which is None
        else _per_channel(framework, which, "neutral_channels", "bool", None, out, base),
    ]
    return Opened(
        framework=framework,
        base=base,
        unit=unit,
        times=times,
        operands=operands,
        outputs=outputs,
        rule={
            "method": method if method is None or isinstance(method, str) else tuple(method),
            "outside": given["outside"],
            "fill_value": given["fill_value"],
            "max_gap": gap,
            "tolerance": tolerance,
            "clock_offset": clock_offset,
        },
        transforms=transforms,
        num_offsets=num_offsets,
        out_channels=out,
        asked=None if given["dtype"] is None else dtype_name(given["dtype"]),
        dtype=_dtype(values, method, transforms, normalization),
        accumulator=accumulator,
        writes=accumulator is None if given["output"] is None else bool(given["output"]),
    )


def _channels(values: Any) -> int:
    shape = shape_of(values, "values")
    if len(shape) != 2:
        advice = "; pass values[:, None]" if len(shape) == 1 else ""
        raise ValueError(f"values: shape is {list(shape)}, expected [n,D]{advice}")
    return int(shape[1])


def _dtype(values: Any, method: Any, transforms: Any, normalization: Any) -> str:
    if values is None:
        return "int64"
    name = dtype_of(values, "values")
    if name in _FLOATS or (method is None and not transforms and normalization is None):
        return name
    return "float32"


def _refuse_what_does_not_apply(
    given: dict[str, Any], values: Any, times: Any, method: Any, transforms: Any
) -> None:
    if values is None:
        for name in ("method", "normalization", "missing", "dtype", "accumulator", "neutral"):
            if given[name] is not None:
                raise ValueError(f"{name}: is given, but the stream has no values")
        if transforms:
            raise ValueError("transforms: are given, but the stream has no values")
    if method is None:
        for name in ("max_gap", "tolerance"):
            if given[name] is not None:
                raise ValueError(
                    f"{name}: is given, but rows are taken as they are; "
                    "pass a method to interpolate, such as 'linear'"
                )
    elif times is None:
        raise ValueError("times: are missing, between which values are to be interpolated")
    offset = given["clock_offset"]
    if times is None and not (isinstance(offset, numbers.Real) and offset == 0):
        raise ValueError("clock_offset: is given, but the stream has no times")
    if given["outside"] != "neutral":
        for name in ("neutral", "neutral_channels"):
            if given[name] is not None:
                raise ValueError(f"{name}: is given, but only outside='neutral' takes it")
    for name, kind in (
        ("normalization", Normalization),
        ("accumulator", StatisticsAccumulator),
    ):
        if given[name] is not None and not isinstance(given[name], kind):
            raise TypeError(
                f"{name}: is a {type(given[name]).__name__}, expected a robocache.{kind.__name__}"
            )


# ---- offsets ------------------------------------------------------------------------------------


def _offsets(
    framework: Framework, given: Any, times: Any, unit: Unit | None, method: Any, base: Any
) -> tuple[Any, int]:
    """Offsets as an array beside ``base``, and how many there are."""
    if method is None:
        if type(given) in SEQUENCES or _is_numpy(given):
            array = framework.sequence(_rows(given), "offsets", "int64", base)
        else:
            array = array_of(framework, given, "offsets", base)
    else:
        array = _time_offsets(framework, given, times, unit, base)
    shape = shape_of(array, "offsets")
    if len(shape) != 1:
        raise ValueError(f"offsets: shape is {list(shape)}, expected [O]")
    return array, int(shape[0])


def _rows(given: Any) -> Any:
    """Offsets in rows, which int64 holds."""
    import numpy as np

    try:
        array = np.asarray(given)
    except REFUSALS as error:  # rows of different lengths
        raise blamed(error, "offsets") from None
    if array.dtype.kind in "uO":
        for each in array.ravel().tolist():
            if isinstance(each, int) and not -(2**63) <= each < 2**63:
                raise ValueError(f"offsets: holds {each}, which int64 does not")
    return array


def _time_offsets(
    framework: Framework, given: Any, times: Any, unit: Unit | None, base: Any
) -> Any:
    ticks, own = times_of(given, "offsets")
    kind = dtype_of(times, "times")
    if own is not None:
        if unit is None:
            raise TypeError(
                f"offsets: is {own}, but times have no unit; pass times as datetime64 or "
                "timedelta64, or offsets as numbers"
            )
        ratio = Fraction(own.length, unit.length)
        ticks = [int(tick) * ratio for tick in ticks]
        for tick in ticks:
            if tick.denominator != 1:
                raise ValueError(
                    f"offsets: is {float(tick):g} ticks of {unit}, expected whole ones"
                )
        ticks = [int(tick) for tick in ticks]
    elif kind == "int64" and (type(ticks) in SEQUENCES or _is_numpy(ticks)):
        for tick in ticks:
            if isinstance(tick, float):
                raise TypeError(not_whole(float(tick), "offsets", unit))
    if type(ticks) in SEQUENCES or _is_numpy(ticks):
        return framework.sequence(ticks, "offsets", kind, base)
    return array_of(framework, ticks, "offsets", base)


def _is_numpy(given: Any) -> bool:
    return hasattr(given, "__dlpack__") and framework_of(given, "offsets").is_numpy


# ---- numbers of channels ------------------------------------------------------------------------


def _per_channel(
    framework: Framework,
    given: Any,
    name: str,
    dtype: str,
    num_offsets: int | None,
    channels: int | None,
    base: Any,
) -> Any:
    """[D'], or [O,D'], beside ``base``, of what broadcasts to that; None stays."""
    import numpy as np

    if given is None:
        return None
    try:
        host = np.asarray(on_host(given, name) if hasattr(given, "__dlpack__") else given)
    except REFUSALS as error:
        raise blamed(error, name) from None
    if host.dtype.kind not in ("biu" if dtype == "bool" else "iuf"):
        raise TypeError(f"{name}: is {shown(given)}, expected {dtype}")
    shapes: list[Any] = [(channels,)]
    if num_offsets is not None:
        shapes.append((num_offsets, channels))
    if host.ndim == 2 and host.shape[0] == 1:
        host = host[0]
    for shape in shapes:
        if host.ndim <= len(shape) and all(
            mine in (1, extent) for mine, extent in zip(host.shape[::-1], shape[::-1])
        ):
            full = np.ascontiguousarray(np.broadcast_to(host, shape)).astype(dtype)
            return framework.sequence(full, name, dtype, base)
    expected = " or ".join(str(list(shape)) for shape in shapes)
    raise ValueError(f"{name}: shape is {list(host.shape)}, expected {expected}")
