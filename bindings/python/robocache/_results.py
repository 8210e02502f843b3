"""What the operations give back in common: arrays of the library that the arguments come from."""

from __future__ import annotations

from typing import Any

from ._context import Context
from ._frameworks import (
    LIBRARY_TYPES,
    Framework,
    dtype_name,
    dtype_of,
    examine_output,
    shape_of,
)


def out_shape(values: Any, query_times: Any, offsets: Any, context: Context) -> tuple[int, ...]:
    """[B,T,D] or [T,D]; anything where the ranks are wrong, of which the library tells."""
    try:
        if type(values) not in LIBRARY_TYPES or type(query_times) not in LIBRARY_TYPES:
            raise AttributeError  # which shape_of knows to handle
        rows, ticks = values.shape, query_times.shape
    except (AttributeError, RuntimeError):
        rows = shape_of(values, "values", context)
        ticks = shape_of(query_times, "query_times", context)
    rank = len(rows)
    if not 2 <= rank <= 3 or not ticks:
        return (0,)
    if offsets is None:  # torch takes an extent faster than a slice of them
        return (rows[0], ticks[-1], rows[2]) if rank == 3 else (ticks[-1], rows[1])
    return (*batch_of(rows, offsets, context), ticks[-1], rows[-1])


def batch_of(shape: tuple[int, ...], offsets: Any, context: Context) -> tuple[int, ...]:
    """(B,), or () without batch, for rows of this shape."""
    if offsets is None:
        return tuple(shape[:-2])  # of torch's own Size
    extents = shape_of(offsets, "offsets", context)
    if len(extents) != 1:
        raise ValueError(f"offsets: rank is {len(extents)}, expected 1")
    return (max(0, extents[0] - 1),)


def require_out(out: Any, dtype: Any) -> Framework:
    """The library of ``out``, which has to have the dtype that is given beside it."""
    owner = examine_output(out, "out")
    if dtype is not None and dtype_name(dtype) != dtype_of(out, "out"):
        raise TypeError(f"dtype: is {dtype_name(dtype)}, but out is {dtype_of(out, 'out')}")
    return owner


def finished(
    framework: Framework, result: Any, owner: Framework | None, beside: Any, name: str = "values"
) -> Any:
    """The result, or a tuple of it and what is asked for beside, as the library's own arrays.

    ``owner`` is the library of an ``out`` that was given, ``framework`` that of the argument of
    this name.
    """
    if owner is None:
        result = framework.finish(result, name)
    else:
        owner.written(result)
    return result if beside is None else (result, framework.finish(beside, name))
