"""The first and the last steps of every operation.

``begin`` finds the library, the context and the stream; ``array_of`` converts the other arguments;
``writable`` checks the arrays to write to; ``finished`` converts the results.
"""

from __future__ import annotations

from typing import Any

from .. import _core
from .._library.context import CPU, DEFAULTS, Context, choose, default_context
from .._library.dtypes import dtype_name
from .arrays import LIBRARY_TYPES, SEQUENCES, dtype_of, examine, examine_output, framework_of
from .frameworks import Framework

_ABSENT: Any = object()


# ---- the prologue -------------------------------------------------------------------------------


def begin(
    array: Any, name: str, backend: Any, times: Any = _ABSENT, query_times: Any = None
) -> tuple[Framework, Context, bool, Any]:
    """Return what the first array of an operation determines.

    That is its library; the context; whether results are ordered before the work that their readers
    enqueue (otherwise ``finished`` waits); and, for an operation with times, the query times as an
    array.
    """
    kind = type(array)
    framework = LIBRARY_TYPES.get(kind)
    if framework is None:
        framework = framework_of(array, name)
    if times is _ABSENT:
        device_id = CPU if framework.is_numpy else framework.device(array, name)
    elif type(times) is not kind or type(query_times) is not kind:
        device_id = framework.device(array, name)
        query_times = queries(framework, query_times, times, array)
    elif framework.is_numpy:
        device_id = CPU
    else:
        device_id = framework.device_with_times(array, name, times, query_times)

    if backend is None:
        context = DEFAULTS.contexts.get(device_id)
    else:
        context = backend if type(backend) is Context else None
    if context is None:
        context = choose(backend, device_id)
    ordered = context._device_id == CPU or not context._follows or follow(context, framework, array)
    return framework, context, ordered, query_times


def follow(context: Context, framework: Framework, array: Any) -> bool:
    """Move to the framework's current stream; return False if the caller must wait instead.

    Without a current stream, the legacy stream is used: the last one may no longer exist.
    """
    current = framework.stream(array, context._device_id)
    stream = 0 if current is None else current
    if stream != context._stream:
        _core.rbc_context_set_cuda_stream(context._handle, stream)
        context._stream = stream
    return current is not None


def joined(context: Context, framework: Framework, array: Any) -> bool:
    """Order arrays that the framework made for a call on CUDA before the call.

    Return False if the result must be waited for: the context has its own stream, which the
    framework does not use.
    """
    if context._follows:
        return True
    own = default_context(context._device_id)
    if follow(own, framework, array):
        own.synchronize()
    return False


def array_of(
    framework: Framework, argument: Any, name: str, like: Any, dtype: str = "int64"
) -> Any:
    """Return an argument as an array: a list becomes one of ``dtype`` on the device of ``like``."""
    kind = type(argument)
    if kind in SEQUENCES:
        return framework.sequence(argument, name, dtype, like)
    own = LIBRARY_TYPES.get(kind)
    if own is None:
        examine(argument, name)
    elif not own.is_numpy:
        own.examine(argument, name)
    return argument


def queries(framework: Framework, query_times: Any, times: Any, values: Any) -> Any:
    """Examine times and query times; return the latter as an array of the dtype of ``times``."""
    own = LIBRARY_TYPES.get(type(times))
    if own is None:
        examine(times, "times")
    elif not own.is_numpy:
        own.examine(times, "times")
    if type(query_times) in SEQUENCES:
        return framework.sequence(query_times, "query_times", dtype_of(times, "times"), values)
    return array_of(framework, query_times, "query_times", values)


def arrivals_like(framework: Framework, arrivals: Any, times: Any, values: Any) -> Any:
    """Return arrivals as an array of the dtype of ``times``."""
    if type(arrivals) in SEQUENCES:
        return framework.sequence(arrivals, "arrivals", dtype_of(times, "times"), values)
    return array_of(framework, arrivals, "arrivals", values)


# ---- the epilogue -------------------------------------------------------------------------------


def writable(array: Any, name: str, dtype: Any = None) -> Framework:
    """Return the library of an array to write to. Its dtype must be ``dtype``, if that is given."""
    owner = LIBRARY_TYPES.get(type(array))
    if owner is None:
        owner = examine_output(array, name)
    elif not owner.is_numpy:
        owner.examine_output(array, name)
    if dtype is not None and dtype_name(dtype) != dtype_of(array, name):
        raise TypeError(f"dtype: is {dtype_name(dtype)}, but {name} is {dtype_of(array, name)}")
    return owner


def finished(
    framework: Framework,
    context: Context,
    ordered: bool,
    name: str,
    owner: Framework | None,
    result: Any,
    extra: Any = None,
) -> Any:
    """Return the result as the caller gets it, or a tuple of it and ``extra``.

    ``framework`` is the library of the argument ``name``; ``owner`` is the library of a result that
    the caller passed, or None. If the result is a tuple of new arrays, each is converted.
    """
    if not ordered:
        context.synchronize()
    if owner is not None:
        owner.written(result)
    elif framework.converts:
        if type(result) is tuple:
            own = [array if array is None else framework.finish(array, name) for array in result]
            result = tuple(own)
        else:
            result = framework.finish(result, name)
    if extra is None:
        return result
    return result, framework.finish(extra, name) if framework.converts else extra
