"""Conversion of the mean and the std of channels; the library takes the reciprocal of the std."""

from __future__ import annotations

from typing import Any

from .._library.context import CPU
from .._library.errors import REFUSALS, blamed
from .arrays import SEQUENCES, framework_of
from .frameworks import Framework


def mean_of(framework: Framework, mean: Any, values: Any) -> Any:
    """Return the means as an array."""
    if type(mean) in SEQUENCES:
        return framework.sequence(mean, "mean", "float64", values)
    framework_of(mean, "mean").examine(mean, "mean")
    return mean


def inverse_of(framework: Framework, std: Any, values: Any) -> Any:
    """Return 1 / std as an array: in float64 for sequences and NumPy, else by its own library."""
    if type(std) in SEQUENCES:
        numbers = Framework.sequence(framework, std, "std", "float64", values)
        _require_no_zero(numbers)
        return framework.sequence(1.0 / numbers, "std", "float64", values)
    own = framework_of(std, "std")
    on_cpu = own.device(std, "std") == CPU
    try:
        return _reciprocal(own, std, on_cpu)
    except REFUSALS as error:
        if str(error).startswith("std: "):
            raise
        raise blamed(error, "std") from error


def _reciprocal(own: Framework, std: Any, on_cpu: bool) -> Any:
    if on_cpu:
        import numpy as np

        _require_no_zero(std)
        if own.is_numpy:
            std = np.asarray(std, np.float64)
    return 1.0 / std


def _require_no_zero(std: Any) -> None:
    import numpy as np

    zeros = np.flatnonzero(np.asarray(std == 0))
    if len(zeros) > 0:
        raise ValueError(f"std: channel {zeros[0]} is 0; use 1 for a constant channel")
