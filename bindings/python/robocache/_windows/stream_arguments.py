"""Conversion of the arguments of a stream of windows to the arrays and the struct of a call."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .. import _core
from .._arguments.arrays import SEQUENCES, dtype_of, framework_of, shape_of
from .._arguments.call import array_of, arrivals_like
from .._arguments.coerce import arrivals_of, sampled, ticks_or_numbers
from .._arguments.frameworks import Framework
from .._arguments.missing import is_masked, mask_of, taken_apart
from .._arguments.options import code_of, struct_of
from .._arguments.resample_params import rules
from .._arguments.time_units import Unit, not_whole, ticks_of
from .._arguments.times import times_of
from .._arguments.to_numpy import on_host
from .._library.dtypes import dtype_name
from .._library.errors import REFUSALS, blamed, shown
from .._operations.stream import offsets_of
from .._printable import kind_of
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
_new, _set_mode, _set_offset, _set_ticks, _set_flags = struct_of(
    "WindowsStream", "mode", "clock_offset", "clock_offset_ticks", "flags"
)
_new_outputs, _set_accumulate, _set_accumulator = struct_of(
    "WindowsOutputs", "accumulate", "accumulator"
)

# Indices of the operands that a call adds; the order is that of rbcWindowsStream.
TRANSFORMS, SCALES = 6, slice(7, 12)


@dataclass(frozen=True)
class Opened:
    """A stream with converted arguments."""

    framework: Framework
    base: Any  # the array that determines the device and the CUDA stream
    unit: Unit | None  # of its times
    times: Any
    operands: list[Any]  # as the extension takes them
    outputs: Any  # the struct of what the call writes
    rule: dict[str, Any]  # arguments other than arrays, in ticks if times have a unit
    transforms: tuple[Transform, ...]
    num_offsets: int
    out_channels: int | None  # D'; None: the results are row numbers
    requested_dtype: str | None  # of the result
    dtype: str  # of the result, if none is requested
    accumulator: StatisticsAccumulator | None
    normalization: Normalization | None
    writes: bool  # whether the call returns the rows

    @property
    def device(self) -> int:
        """The id of the CUDA device, or CPU."""
        return self.framework.device(self.base, "values")

    @property
    def divides(self) -> bool:
        """Whether the normalization divides."""
        return self.normalization is not None and self.normalization.divides

    def set_scales(self, arrays: list[Any], divides: bool) -> None:
        """Set a normalization as arrays on the device: shift, scale, bias, low and high."""
        self.operands[SCALES] = arrays
        _set_flags(self.operands[0], _core.WINDOWS_FLAG_SCALE_DIVIDES if divides else 0)

    def sequence(self, numbers: Any, name: str) -> Any:
        """Return NumPy numbers as an array of this library, on this device."""
        return self.framework.sequence(numbers, name, "int64", self.base)


def opened(arguments: dict[str, Any], unit: Unit | None = None) -> Opened:
    """Convert the arguments of a :class:`robocache.WindowStream`.

    ``unit`` is the unit of times that have none of their own.
    """
    values, times, mask = arguments["values"], arguments["times"], arguments["sample_mask"]
    method = arguments["method"]
    if values is not None and is_masked(values):
        values, mask = taken_apart(values, mask)
    if times is not None:
        values_or_times = times if values is None else values
        values_or_times, times, own = sampled(values_or_times, times)
        unit = own or unit
        values = None if values is None else values_or_times
    elif values is not None:
        values, _, _ = sampled(values, [])
    base = values if values is not None else arguments["episode_offsets"]
    if type(base) in SEQUENCES:
        import numpy as np

        base = np.asarray(base)
    framework = framework_of(base, "episode_offsets" if values is None else "values")
    framework.examine(base, "values")
    channels = None if values is None else _channels(values)
    transforms = checked_transforms(arguments["transforms"], channels)
    out = None if channels is None else out_channels(channels, transforms)
    _refuse_inapplicable(arguments, values, times, method, transforms)

    offsets, num_offsets = _offsets(framework, arguments["offsets"], times, unit, method, base)
    gap, tolerance, max_age = ticks_or_numbers(
        unit,
        max_gap=arguments["max_gap"],
        tolerance=arguments["tolerance"],
        max_age=arguments["max_age"],
    )
    params, groups = rules(
        "linear" if method is None else method,
        arguments["outside"],
        arguments["fill_value"],
        gap,
        tolerance,
        False,
        times,
        values,
        codes_of_outside=_OUTSIDE,
        causal=arguments["causal"],
        max_age=max_age,
    )
    arrivals = arguments["arrivals"]
    if arrivals is not None:
        _, own = times_of(arrivals, "arrivals")
        given = arrivals_of(arrivals, unit if own is not None else None, "times")
        arrivals = arrivals_like(framework, given, times, base)
    if mask is not None or arguments["missing"] is not None:
        mask = mask_of(framework, values, mask, arguments["missing"])
    made = _new()
    _set_mode(made, _core.WINDOWS_MODE_GATHER if method is None else _core.WINDOWS_MODE_INTERPOLATE)
    outputs = _new_outputs()
    _set_accumulate(outputs, code_of(_ACCUMULATES, arguments["accumulate"], "accumulate"))
    clock_offset = arguments["clock_offset"]
    if times is not None:
        if unit is not None:
            clock_offset = ticks_of(clock_offset, "clock_offset", unit)
        offset, ticks = offsets_of(clock_offset, "clock_offset", times)
        _set_offset(made, offset)
        _set_ticks(made, ticks)

    def floats(array: Any, name: str) -> Any:
        return _per_channel(framework, array, name, "float64", num_offsets, out, base)

    accumulator = arguments["accumulator"]
    if accumulator is not None:
        _set_accumulator(outputs, accumulator._handle)
        accumulator._handle.acquire()  # the setter took it over
    normalization = arguments["normalization"]
    scales = [None] * len(_PARAMETERS)
    if normalization is not None:
        scales = [floats(getattr(normalization, name), "normalization") for name in _PARAMETERS]
        _set_flags(made, _core.WINDOWS_FLAG_SCALE_DIVIDES if normalization.divides else 0)
    neutral, neutral_channels = arguments["neutral"], arguments["neutral_channels"]
    operands = [
        made,
        values,
        array_of(framework, arguments["episode_offsets"], "episode_offsets", base),
        None if times is None else array_of(framework, times, "times", base),
        offsets,
        (params, None, mask, None, None, None, None, groups, arrivals),
        None,  # transforms
        *scales,
        None if neutral is None else floats(neutral, "neutral"),
        None
        if neutral_channels is None
        else _per_channel(framework, neutral_channels, "neutral_channels", "bool", None, out, base),
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
            "outside": arguments["outside"],
            "fill_value": arguments["fill_value"],
            "max_gap": gap,
            "tolerance": tolerance,
            "clock_offset": clock_offset,
            "causal": bool(arguments["causal"]),
            "max_age": max_age,
        },
        transforms=transforms,
        num_offsets=num_offsets,
        out_channels=out,
        requested_dtype=None if arguments["dtype"] is None else dtype_name(arguments["dtype"]),
        dtype=_dtype(values, method, transforms, normalization),
        accumulator=accumulator,
        normalization=normalization,
        writes=accumulator is None if arguments["output"] is None else bool(arguments["output"]),
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


def _refuse_inapplicable(
    arguments: dict[str, Any], values: Any, times: Any, method: Any, transforms: Any
) -> None:
    if values is None:
        for name in ("method", "normalization", "missing", "dtype", "accumulator", "neutral"):
            if arguments[name] is not None:
                raise ValueError(f"{name}: only valid for a stream with values")
        if transforms:
            raise ValueError("transforms: only valid for a stream with values")
    if method is None:
        for name in ("max_gap", "tolerance", "max_age"):
            if arguments[name] is not None:
                raise ValueError(f"{name}: only valid with a method, such as method='linear'")
        if arguments["causal"]:
            raise ValueError("causal: only valid with a method, such as method='linear'")
    elif times is None:
        raise ValueError("times: required when method is given")
    if times is None and arguments["arrivals"] is not None:
        raise ValueError("arrivals: only valid for a stream with times")
    offset = arguments["clock_offset"]
    if times is None and not (isinstance(offset, numbers.Real) and offset == 0):
        raise ValueError("clock_offset: only valid for a stream with times")
    if arguments["outside"] != "neutral":
        for name in ("neutral", "neutral_channels"):
            if arguments[name] is not None:
                raise ValueError(f"{name}: only valid with outside='neutral'")
    for name, kind in (
        ("normalization", Normalization),
        ("accumulator", StatisticsAccumulator),
    ):
        if arguments[name] is not None and not isinstance(arguments[name], kind):
            raise TypeError(
                f"{name}: is {kind_of(arguments[name])}, expected a robocache.{kind.__name__}"
            )


# ---- offsets ------------------------------------------------------------------------------------


def _offsets(
    framework: Framework, offsets: Any, times: Any, unit: Unit | None, method: Any, base: Any
) -> tuple[Any, int]:
    """Return offsets as an array on the device of ``base``, and their number."""
    if method is None:
        if type(offsets) in SEQUENCES or _is_numpy(offsets):
            array = framework.sequence(_rows(offsets), "offsets", "int64", base)
        else:
            array = array_of(framework, offsets, "offsets", base)
    else:
        array = _time_offsets(framework, offsets, times, unit, base)
    shape = shape_of(array, "offsets")
    if len(shape) != 1:
        raise ValueError(f"offsets: shape is {list(shape)}, expected [O]")
    return array, int(shape[0])


def _rows(offsets: Any) -> Any:
    """Return offsets in rows as a NumPy array. Each must fit into int64."""
    import numpy as np

    try:
        array = np.asarray(offsets)
    except REFUSALS as error:  # rows of different lengths
        raise blamed(error, "offsets") from None
    if array.dtype.kind in "uO":
        for each in array.ravel().tolist():
            if isinstance(each, int) and not -(2**63) <= each < 2**63:
                raise ValueError(f"offsets: has {each}, which does not fit into int64")
    return array


def _time_offsets(
    framework: Framework, offsets: Any, times: Any, unit: Unit | None, base: Any
) -> Any:
    ticks, own = times_of(offsets, "offsets")
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
                    f"offsets: is {float(tick):g} ticks of {unit}, expected whole ticks"
                )
        ticks = [int(tick) for tick in ticks]
    elif kind == "int64" and (type(ticks) in SEQUENCES or _is_numpy(ticks)):
        for tick in ticks:
            if isinstance(tick, float):
                raise TypeError(not_whole(float(tick), "offsets", unit))
    if type(ticks) in SEQUENCES or _is_numpy(ticks):
        return framework.sequence(ticks, "offsets", kind, base)
    return array_of(framework, ticks, "offsets", base)


def _is_numpy(array: Any) -> bool:
    return hasattr(array, "__dlpack__") and framework_of(array, "offsets").is_numpy


# ---- numbers of channels ------------------------------------------------------------------------


def _per_channel(
    framework: Framework,
    value: Any,
    name: str,
    dtype: str,
    num_offsets: int | None,
    channels: int | None,
    base: Any,
) -> Any:
    """Return a value that broadcasts to [D'] or [O,D'] as an array on the device of ``base``.

    None is returned unchanged.
    """
    import numpy as np

    if value is None:
        return None
    try:
        host = np.asarray(on_host(value, name) if hasattr(value, "__dlpack__") else value)
    except REFUSALS as error:
        raise blamed(error, name) from None
    if host.dtype.kind not in ("biu" if dtype == "bool" else "iuf"):
        raise TypeError(f"{name}: is {shown(value)}, expected {dtype}")
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
