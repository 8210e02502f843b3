"""What the operations give back in common: arrays of the library that the arguments come from."""

from __future__ import annotations

from typing import Any

from . import _core
from ._context import Context
from ._frameworks import Framework, dtype_name, dtype_of, examine, written


def shape_of(array: Any, name: str, context: Context) -> Any:
    try:
        return array.shape
    except AttributeError:
        return _core.Tensor_describe(_core.new_Tensor(array, name, context._handle))[4]


def out_shape(values: Any, query_times: Any, offsets: Any, context: Context) -> tuple[int, ...]:
    """[B,T,D] or [T,D]; anything where the ranks are wrong, of which the library tells."""
    values = shape_of(values, "values", context)
    query_times = shape_of(query_times, "query_times", context)
    if not 2 <= len(values) <= 3 or len(query_times) == 0:
        return (0,)
    if offsets is None:  # torch takes an extent faster than a slice of them
        if len(values) == 3:
            return values[0], query_times[-1], values[2]
        return query_times[-1], values[1]
    return (*batch_of(values, offsets, context), query_times[-1], values[-1])


def batch_of(shape: tuple[int, ...], offsets: Any, context: Context) -> tuple[int, ...]:
    """(B,), or () without batch, for rows of this shape."""
    if offsets is None:
        return shape[:-2]
    return (max(0, sum(shape_of(offsets, "offsets", context)) - 1),)


def require_out(out: Any, dtype: Any) -> None:
    """``out`` has to be what can be written to, with the dtype that is given beside it."""
    examine(out, "out")
    if dtype is not None and dtype_name(dtype) != dtype_of(out, "out"):
        raise TypeError(f"dtype: is {dtype_name(dtype)}, but out is {dtype_of(out, 'out')}")


def finished(framework: Framework, result: Any, out: Any, beside: Any) -> Any:
    """The result, or a tuple of it and what is asked for beside, as the library's own arrays."""
    if out is None:
        result = framework.finish(result)
    else:
        written(out)
    return result if beside is None else (result, framework.finish(beside))
