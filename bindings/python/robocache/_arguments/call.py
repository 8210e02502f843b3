"""How every operation begins and ends.

``begin`` finds the library, the context and the stream; ``array_of`` takes the arguments beside the
first; ``writable`` takes the arrays to write to, ``finished`` gives all of them back.
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
    """What the first array of an operation decides, ahead of all else.

    Its library; the context; whether results are ordered before what their readers enqueue, which
    else has to be waited for; and the query times as an array, for an operation that has times.
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
        device_id = framework.device_beside(array, name, times, query_times)

    if backend is None:
        context = DEFAULTS.contexts.get(device_id)
    else:
        context = backend if type(backend) is Context else None
    if context is None:
        context = choose(backend, device_id)
    ordered = context._device_id == CPU or not context._follows or follow(context, framework, array)
    return framework, context, ordered, query_times


def follow(context: Context, framework: Framework, array: Any) -> bool:
    """Move to the framework's current stream; False if it has to be waited for instead.

    Of a framework that tells none it is the legacy stream: the last one may be gone.
    """
    told = framework.stream(array, context._device_id)
    stream = 0 if told is None else told
    if stream != context._stream:
        _core.rbc_context_set_cuda_stream(context._handle, stream)
        context._stream = stream
    return told is not None


def joined(context: Context, framework: Framework, array: Any) -> bool:
    """Have ready what the library made for a call on CUDA; False if that has to be waited for.

    That is so on a stream of one's own, of which the library knows nothing.
    """
    if context._follows:
        return True
    beside = default_context(context._device_id)
    if follow(beside, framework, array):
        beside.synchronize()
    return False


def array_of(framework: Framework, given: Any, name: str, beside: Any, dtype: str = "int64") -> Any:
    """An argument as an array: a list becomes one of this dtype on the device of ``beside``."""
    kind = type(given)
    if kind in SEQUENCES:
        return framework.sequence(given, name, dtype, beside)
    own = LIBRARY_TYPES.get(kind)
    if own is None:
        examine(given, name)
    elif not own.is_numpy:
        own.examine(given, name)
    return given


def queries(framework: Framework, given: Any, times: Any, values: Any) -> Any:
    """Query times as an array of the dtype of ``times``. Both are examined."""
    own = LIBRARY_TYPES.get(type(times))
    if own is None:
        examine(times, "times")
    elif not own.is_numpy:
        own.examine(times, "times")
    if type(given) in SEQUENCES:
        return framework.sequence(given, "query_times", dtype_of(times, "times"), values)
    return array_of(framework, given, "query_times", values)


# ---- the epilogue -------------------------------------------------------------------------------


def writable(array: Any, name: str, dtype: Any = None) -> Framework:
    """The library of an array to write to, which has to have the dtype that is given beside it."""
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
    beside: Any = None,
) -> Any:
    """The result, or a tuple of it and what is asked for beside, as their reader gets them.

    ``framework`` is the library of the argument of this name, ``owner`` that of a result that was
    given, or None. Of a tuple of arrays that were made each is finished.
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
    if beside is None:
        return result
    return result, framework.finish(beside, name) if framework.converts else beside
