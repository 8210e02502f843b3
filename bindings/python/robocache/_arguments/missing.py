"""Missing samples: given by a mask, by NaN values, or by NumPy's masked arrays.

All of these become the array ``sample_mask`` that the library takes: False for a missing sample.
"""

from __future__ import annotations

from typing import Any

from .._library.dtypes import dtype_name
from .._library.errors import REFUSALS, shown
from .call import array_of
from .frameworks import Framework
from .tables import library_of
from .values import numbers_of


def mask_of(framework: Framework, values: Any, sample_mask: Any, missing: Any) -> Any:
    """Return ``sample_mask`` as an array, False also for rows with a NaN if ``missing`` is "nan".

    The result is None if no sample can be missing.
    """
    mask = None
    if sample_mask is not None:
        if library_of(sample_mask):
            sample_mask = numbers_of(sample_mask, "sample_mask")
        mask = array_of(framework, sample_mask, "sample_mask", values, "bool")
    require_missing(missing)
    if missing is None or not _may_be_nan(values):
        return mask
    try:
        there = ~(values != values).any(-1)
    except REFUSALS:
        raise TypeError(
            f"missing: not supported for arrays of {type(values).__module__.partition('.')[0]}; "
            "pass sample_mask"
        ) from None
    if mask is not None:
        return there & (mask != 0)
    return None if framework.is_numpy and there.all() else there


def require_missing(missing: Any) -> None:
    if missing is not None and missing != "nan":
        raise ValueError(f"missing: is {shown(missing)}, expected None or 'nan'")


def _may_be_nan(values: Any) -> bool:
    try:
        return "float" in dtype_name(values.dtype)
    except (AttributeError, TypeError):  # the library raises the error
        return False


def is_masked(array: Any) -> bool:
    """Whether an object is a masked array of NumPy. This does not import NumPy."""
    for base in type(array).__mro__:
        if base.__module__.startswith("numpy.ma"):
            return True
    return False


def taken_apart(values: Any, sample_mask: Any) -> tuple[Any, Any]:
    """Return the data of a masked array, and ``sample_mask`` without rows with masked elements."""
    import numpy as np

    data = np.asarray(values.data)
    mask = np.ma.getmask(values)
    if mask is np.ma.nomask or data.ndim < 2 or not mask.any():
        return data, sample_mask
    there = ~mask.any(axis=-1)
    if sample_mask is not None:
        there &= np.asarray(sample_mask) != 0
    return data, there
