"""Arrays with one row per step, with rows of any shape."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from ..._errors import FormatError

_NAMED = 2048  # most channels that get names
_MOST = 1 << 16  # numbers per row
_PICTURE = 3  # axes of a row of uint8


def channel_names(shape: Sequence[int]) -> tuple[str, ...] | None:
    """Return names such as "[2][0]" for rows with several axes; None for vectors and long rows."""
    if len(shape) < 2 or math.prod(shape) > _NAMED:
        return None
    places = itertools.product(*(range(extent) for extent in shape))
    return tuple("".join(f"[{i}]" for i in place) for place in places)


def is_number(dtype: Any) -> bool:
    """Whether streams and tracks can hold a dtype: no complex numbers, no floats over 64 bits."""
    return dtype.kind in "fiub" and dtype.itemsize <= 8


def is_picture(shape: Sequence[int], dtype: Any) -> bool:
    """Whether rows are too large for channels, as pictures and large clouds are."""
    row = tuple(shape[1:])
    return math.prod(row) > _MOST or (dtype.kind == "u" and len(row) >= _PICTURE)


def stamps(array: Any, path: str, place: str) -> Any:
    """Return times as int64 or float64."""
    import numpy as np

    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        at = int(np.argmax(array > np.iinfo(np.int64).max))
        reason = f"is {array[at]}, expected a time of at most {np.iinfo(np.int64).max} (2^63 - 1)"
        raise FormatError(path, f"{place}, row {at}", reason)
    return np.array(array, np.float64 if array.dtype.kind == "f" else np.int64)


def clock_rows(lengths: Any, rate: float | None) -> Any:
    """Return times of episodes from a rate, each beginning at 0; None without a rate."""
    import numpy as np

    if rate is None:
        return None
    if not 0 < rate < float("inf"):
        raise ValueError(f"rate: is {rate}, expected a finite number above 0")
    begins = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return (np.arange(int(lengths.sum())) - begins) / rate
