"""Names and codes of the supported dtypes."""

from __future__ import annotations

import functools
from typing import Any

from .. import _core
from .errors import REFUSALS, shown

# Name -> (DLPack code, bits)
DTYPES = {
    "float16": (_core.DTYPE_FLOAT, 16),
    "bfloat16": (_core.DTYPE_BFLOAT, 16),
    "float32": (_core.DTYPE_FLOAT, 32),
    "float64": (_core.DTYPE_FLOAT, 64),
    "int8": (_core.DTYPE_INT, 8),
    "int16": (_core.DTYPE_INT, 16),
    "int32": (_core.DTYPE_INT, 32),
    "int64": (_core.DTYPE_INT, 64),
    "uint8": (_core.DTYPE_UINT, 8),
    "uint16": (_core.DTYPE_UINT, 16),
    "uint32": (_core.DTYPE_UINT, 32),
    "uint64": (_core.DTYPE_UINT, 64),
    "bool": (_core.DTYPE_BOOL, 8),
}
NAME_OF_PAIR = {pair: name for name, pair in DTYPES.items()}


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype: a string, or a dtype of any framework."""
    try:
        return _dtype_name(dtype)
    except REFUSALS:
        raise TypeError(
            f"dtype: is {shown(dtype)}, expected a float, integer or bool dtype, such as 'float32'"
        ) from None


@functools.lru_cache(maxsize=256)
def _dtype_name(dtype: Any) -> str:
    name = dtype if isinstance(dtype, str) else str(dtype)
    if name.startswith("torch."):
        name = name[len("torch.") :]
    if name not in DTYPES:
        try:
            import numpy as np

            name = np.dtype(dtype).name
        except (ImportError, *REFUSALS):
            pass
    if name not in DTYPES:
        raise TypeError
    return name


def refuse_dtype(array: Any, name: str) -> None:
    try:
        dtype = str(array.dtype).rpartition(".")[2]
    except REFUSALS:
        dtype = "unknown"
    raise TypeError(f"{name}: dtype is {dtype}, expected a float, integer or bool dtype")
