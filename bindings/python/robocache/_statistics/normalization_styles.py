"""The normalizations that training projects compute from statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .._arguments.to_numpy import on_host
from .._library.errors import shown
from .._printable import kind_of
from .._typing import Numbers
from .result import StatisticsResult

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    F64 = NDArray[np.float64]

Mode = Literal["mean_std", "min_max", "quantiles", "quantile10", "gaussian"]
Style = Literal["lerobot", "openpi", "gr00t", "openvla", "octo", "diffusion_policy", "robomimic"]

# Treatment of divisors that are 0 or small:
_ADD = "add"  # epsilon is added to all divisors
_REPLACE = "replace"  # epsilon replaces 0
_CENTER = "center"  # a channel below epsilon is only shifted
_CLOSE = "close"  # the result is 0 where max is close to min
_KEEP = "keep"  # a channel with 0 is unchanged


@dataclass(frozen=True)
class _Rule:
    rule: str
    epsilon: float = 0.0
    levels: tuple[float, float] | None = None  # of quantiles used instead of min and max
    reach: float = 1.0  # the result for max
    clip: bool | None = False  # None: depends on the use in the project
    ddof: int = 0
    zero_constant: bool = False  # the result is 0 where min equals max
    plain_inverse: bool = False  # the inverse has no epsilon
    multiplies: bool = False  # by the reciprocal of the divisor
    in_double: bool = False  # also if the values are float32


_Q99, _Q90 = (0.01, 0.99), (0.1, 0.9)

_SPREAD = ("mean_std", "gaussian")  # modes that use mean and std; the others use a range

_STYLES: dict[str, dict[str, _Rule]] = {
    "lerobot": {
        "mean_std": _Rule(_ADD, 1e-8, plain_inverse=True),
        "min_max": _Rule(_REPLACE, 1e-8),
        "quantiles": _Rule(_REPLACE, 1e-8, _Q99),
        "quantile10": _Rule(_REPLACE, 1e-8, _Q90),
    },
    "openpi": {
        "mean_std": _Rule(_ADD, 1e-6, in_double=True),
        "quantiles": _Rule(_ADD, 1e-6, _Q99, in_double=True),
    },
    "gr00t": {
        "mean_std": _Rule(_KEEP, clip=None),
        "min_max": _Rule(_CLOSE, clip=True),
        "quantiles": _Rule(_CLOSE, levels=_Q99, clip=True),
    },
    "openvla": {
        "mean_std": _Rule(_ADD, 1e-8),
        "min_max": _Rule(_ADD, 1e-8, clip=True, zero_constant=True),
        "quantiles": _Rule(_ADD, 1e-8, _Q99, clip=True, zero_constant=True),
    },
    "octo": {
        "mean_std": _Rule(_ADD, 1e-8),
        "quantiles": _Rule(_ADD, 1e-8, _Q99, clip=True),
    },
    "diffusion_policy": {
        "min_max": _Rule(_CENTER, 1e-4, multiplies=True),
        "gaussian": _Rule(_CENTER, 1e-4, ddof=1, multiplies=True),
    },
    "robomimic": {
        "mean_std": _Rule(_ADD, 1e-3),
        "min_max": _Rule(_CENTER, 1e-4, reach=0.999999),
        "gaussian": _Rule(_CENTER, 1e-6),
    },
}
_MASKED = ("octo", "openvla")
_NONE = -0.0  # a bias that changes no number, not even -0


def parameters(
    result: StatisticsResult,
    mode: str,
    style: str,
    mask: Sequence[bool] | Numbers | None,
    clip: bool | None,
    epsilon: float | None,
    dtype: str,
) -> dict[str, Any]:
    """Return the arguments of a Normalization."""
    import numpy as np

    if not isinstance(result, StatisticsResult):
        raise TypeError(f"result: is {kind_of(result)}, expected a StatisticsResult")
    rule = _rule_of(style, mode)
    if clip is None:
        clip = rule.clip
        if clip is None:
            raise ValueError(
                f"clip: is None, expected True or False; with {mode}, {style} clips actions but "
                "not states"
            )
    epsilon = _epsilon_of(rule, style, mode, epsilon)
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype: is {shown(dtype)}, expected float32 or float64")
    kind = np.dtype("float64" if rule.in_double else dtype)
    make = _by_spread if mode in _SPREAD else _by_range
    numbers = make(result, rule, kind.type(epsilon), kind)
    low = np.full(numbers["shift"].shape, -1.0)

    kept = None if mask is None else ~_mask_of(mask, style, numbers["shift"].shape)
    if kept is not None:
        for name, value in (("shift", 0.0), ("scale", 1.0), ("bias", _NONE)):
            numbers[name] = np.where(kept, value, numbers[name])
        low[kept] = -np.inf
    if rule.zero_constant:
        minimum, maximum = _known(result, "min", kind), _known(result, "max", kind)
        constant = minimum == maximum
        numbers["shift"] = np.where(constant, minimum, numbers["shift"])
        numbers["scale"] = np.where(constant, np.inf, numbers["scale"])
        numbers["bias"] = np.where(constant, 0.0, numbers["bias"])
    if clip:
        numbers.update(low=low, high=-low)
    if rule.multiplies:
        numbers["scale"] = _reciprocal(numbers["scale"])
    return {**numbers, "divides": not rule.multiplies}


# The parameters, with the divisor as `scale`, computed in the dtype `kind`.
def _by_spread(result: StatisticsResult, rule: _Rule, epsilon: Any, kind: Any) -> dict[str, Any]:
    import numpy as np

    mean, std = _known(result, "mean", kind), _std_of(result, rule.ddof, kind)
    numbers = {"shift": mean, "scale": std, "bias": np.full_like(mean, _NONE)}
    if rule.rule == _ADD:
        numbers["scale"] = std + epsilon
        if rule.plain_inverse:
            numbers["inverse_scale"] = std
    elif rule.rule == _CENTER:
        numbers["scale"] = np.where(std < epsilon, kind.type(1), std)
    else:
        zero = std == 0
        numbers["scale"] = np.where(zero, kind.type(1), std)
        numbers["shift"] = np.where(zero, kind.type(0), mean)
    return numbers


def _by_range(result: StatisticsResult, rule: _Rule, epsilon: Any, kind: Any) -> dict[str, Any]:
    import numpy as np

    if rule.levels is None:
        low, high = _known(result, "min", kind), _known(result, "max", kind)
    else:
        low, high = (_known(result, "quantiles", kind, level) for level in rule.levels)
    with np.errstate(over="ignore"):
        span = high - low
    if np.isinf(span).any():
        raise ValueError(f"result: a channel's range exceeds {kind}")
    bias = np.full_like(low, -rule.reach)
    if rule.rule == _ADD:
        scale = _part(span + epsilon, rule)
    elif rule.rule == _REPLACE:
        scale = _part(np.where(span == 0, epsilon, span), rule)
    elif rule.rule == _CENTER:
        small = span < epsilon
        scale = np.where(small, kind.type(1), _part(np.where(small, kind.type(1), span), rule))
        bias = np.where(small, kind.type(_NONE), bias)
    else:
        close = np.isclose(high.astype(np.float64), low.astype(np.float64))
        part = _part(np.where(close, kind.type(1), span), rule)
        scale = np.where(close, kind.type(np.inf), part)
        bias = np.where(close, kind.type(0), bias)
    return {"shift": low, "scale": scale, "bias": bias}


def _part(span: Any, rule: _Rule) -> Any:
    """Return the divisor that maps a range to [-reach, reach]."""
    import numpy as np

    with np.errstate(under="ignore"):
        part = span / span.dtype.type(2 * rule.reach)
    # Projects compute 2 x / span. Half of a range has the same quotient, unless it loses a bit.
    _require_divisor((part * 2 != span) if rule.reach == 1 else part == 0, span)
    return part


def _rule_of(style: str, mode: str) -> _Rule:
    modes = _STYLES.get(style) if isinstance(style, str) else None
    if modes is None:
        raise ValueError(f"style: is {shown(style)}, expected one of {', '.join(_STYLES)}")
    rule = modes.get(mode) if isinstance(mode, str) else None
    if rule is None:
        raise ValueError(f"mode: is {shown(mode)}, expected one of {', '.join(modes)} for {style}")
    return rule


def _epsilon_of(rule: _Rule, style: str, mode: str, epsilon: float | None) -> float:
    if epsilon is None:
        return rule.epsilon
    if rule.epsilon == 0:
        raise ValueError(f"epsilon: not supported by {style} with {mode}")
    if not (isinstance(epsilon, (int, float)) and 0 < epsilon < float("inf")):
        raise ValueError(f"epsilon: is {shown(epsilon)}, expected a number above 0")
    return float(epsilon)


def _mask_of(mask: Any, style: str, shape: tuple[int, ...]) -> Any:
    import numpy as np

    if style not in _MASKED:
        raise ValueError(f"mask: not supported by {style}, only by {' and '.join(_MASKED)}")
    array = np.asarray(on_host(mask, "mask") if hasattr(mask, "dtype") else mask)
    if array.dtype != np.bool_:
        raise TypeError(f"mask: dtype is {array.dtype}, expected bool")
    if array.shape != shape[-1:]:
        raise ValueError(f"mask: shape is {list(array.shape)}, expected {list(shape[-1:])}")
    return np.broadcast_to(array, shape)


def _known(result: StatisticsResult, name: str, kind: Any, level: float | None = None) -> Any:
    """Return an array of the statistics in the dtype ``kind``. It must have numbers only."""
    import numpy as np

    value = getattr(result, name) if level is None else result.quantile(level)
    title = f"result.{name}" if level is None else f"result.quantile({level})"
    array: F64 = np.asarray(on_host(value, title), np.float64)
    wrong = ~np.isfinite(array)
    if wrong.any():
        index = [int(i) for i in np.argwhere(wrong)[0]]
        raise ValueError(
            f"{title}: is {array[tuple(index)]} at {index}, expected a number; the channel has no "
            "finite value, or the file does not contain this number"
        )
    with np.errstate(over="ignore", under="ignore"):
        rounded = array.astype(kind)
    infinite = np.isinf(rounded)
    if infinite.any():
        index = [int(i) for i in np.argwhere(infinite)[0]]
        raise ValueError(f"{title}: is {array[tuple(index)]} at {index}, which exceeds {kind}")
    return rounded


def _std_of(result: StatisticsResult, ddof: int, kind: Any) -> Any:
    """Return the standard deviation for ``ddof``."""
    import numpy as np

    if result.ddof == ddof:
        return _known(result, "std", kind)
    std = _known(result, "std", np.dtype(np.float64))
    count = np.asarray(on_host(result.count, "result.count"), np.float64)
    if (count <= max(ddof, result.ddof)).any():
        raise ValueError(
            f"result.count: is {int(count.min())}, expected at least {max(ddof, result.ddof) + 1}, "
            f"to convert the std from ddof {result.ddof} to {ddof}"
        )
    return (std * np.sqrt((count - result.ddof) / (count - ddof))).astype(kind)


def _reciprocal(divisor: Any) -> Any:
    import numpy as np

    with np.errstate(over="ignore", divide="ignore"):
        quotient = 1 / divisor
    _require_divisor(~np.isfinite(quotient), divisor)
    return quotient


def _require_divisor(lost: Any, number: Any) -> None:
    """Refuse the first divisor where ``lost`` is True."""
    import numpy as np

    if not lost.any():
        return
    index = [int(i) for i in np.argwhere(lost)[0]]
    raise ValueError(
        f"result: the std or the range at {index} is {number[tuple(index)]}, too small for a "
        "division"
    )
