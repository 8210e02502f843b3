"""The shapes of results."""

from __future__ import annotations

from typing import Any

from .._library.context import Context
from .arrays import LIBRARY_TYPES, shape_of


def out_shape(
    values: Any, query_times: Any, batch_offsets: Any, context: Context
) -> tuple[int, ...]:
    """Return [B,T,D] or [T,D]; if a rank is wrong, the library raises the error."""
    try:
        if type(values) not in LIBRARY_TYPES or type(query_times) not in LIBRARY_TYPES:
            raise AttributeError  # shape_of handles other types
        rows, ticks = values.shape, query_times.shape
    except (AttributeError, RuntimeError):
        rows = shape_of(values, "values", context)
        ticks = shape_of(query_times, "query_times", context)
    rank = len(rows)
    if not 2 <= rank <= 3 or not ticks:
        return (0,)
    if batch_offsets is None:  # in torch an index is faster than a slice
        return (rows[0], ticks[-1], rows[2]) if rank == 3 else (ticks[-1], rows[1])
    return (*batch_of(rows, batch_offsets, context), ticks[-1], rows[-1])


def batch_of(shape: tuple[int, ...], batch_offsets: Any, context: Context) -> tuple[int, ...]:
    """Return (B,), or () without batch, for rows of this shape."""
    if batch_offsets is None:
        return tuple(shape[:-2])  # not a torch.Size
    extents = shape_of(batch_offsets, "batch_offsets", context)
    if len(extents) != 1:
        raise ValueError(f"batch_offsets: rank is {len(extents)}, expected 1")
    return (max(0, extents[0] - 1),)
