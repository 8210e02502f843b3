"""Which samples are missing: by a mask, by values that are NaN, by NumPy's masked arrays.

What comes of each is the array ``sample_mask`` that the library takes: False where one is missing.
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
    """What the library is given: ``sample_mask`` as an array, without the rows that hold a NaN.

    None where no sample can be missing.
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
            f"missing: is not known of arrays of {type(values).__module__.partition('.')[0]}; "
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
    except (AttributeError, TypeError):  # which the library refuses, and says why
        return False


def is_masked(array: Any) -> bool:
    """Whether it is a masked array of NumPy, which is not imported for that."""
    for base in type(array).__mro__:
        if base.__module__.startswith("numpy.ma"):
            return True
    return False


def taken_apart(values: Any, sample_mask: Any) -> tuple[Any, Any]:
    """The data of a masked array, and ``sample_mask`` without rows that have a masked element."""
    import numpy as np

    data = np.asarray(values.data)
    mask = np.ma.getmask(values)
    if mask is np.ma.nomask or data.ndim < 2 or not mask.any():
        return data, sample_mask
    there = ~mask.any(axis=-1)
    if sample_mask is not None:
        there &= np.asarray(sample_mask) != 0
    return data, there
