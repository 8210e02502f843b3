"""Contexts: a device and a stream, with the threads and the workspace that operations use."""

from __future__ import annotations

import operator
import os
import threading
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from .. import _abi as _abi  # adds destructors to the extension's objects
from .. import _core
from .._printable import kind_of
from .errors import REFUSALS, in_python, shown, with_python_names

if TYPE_CHECKING:
    from types import TracebackType

_SIMD = {
    "auto": _core.SIMD_AUTO,
    "portable": _core.SIMD_PORTABLE,
    "avx2": _core.SIMD_AVX2,
    "avx512": _core.SIMD_AVX512,
    "neon": _core.SIMD_NEON,
}
_SIMD_NAMES = {level: name for name, level in _SIMD.items()}

_FACTS = {  # fields of rbcContextInfo, with their getters
    name: getattr(_core, f"ContextInfo_{name}_get")
    for name in (
        "backend",
        "device_id",
        "num_threads",
        "simd",
        "compute_capability",
        "num_multiprocessors",
        "built_with_cuda",
        "workspace_bytes",
        "total_memory_bytes",
        "device_name",
        "cuda_unavailable",
        "last_launch",
    )
}
_MOST_BYTES = 2**63 - 1  # the largest int64
_MOST_THREADS = 2**31 - 1

CPU = -1  # the device id of the CPU; CUDA devices count from 0

# The thread in which Python runs signal handlers. In a forked child it is the thread that forked.
_core.handle_signals_on(threading.main_thread().ident)
os.register_at_fork(after_in_child=lambda: _core.handle_signals_on(threading.get_ident()))


@dataclass(frozen=True)
class ContextInfo:
    """Properties of a :class:`Context`; properties that do not apply to its backend are None."""

    backend: str  #: "cpu" or "cuda"
    device: str  #: "cpu", "cuda:0", ...
    device_name: str
    num_threads: int | None  #: CPU threads that a call may use
    simd: str | None  #: "portable", "avx2", "avx512" or "neon"
    compute_capability: tuple[int, int] | None
    num_multiprocessors: int | None
    workspace_bytes: int  #: size of the workspace now
    total_memory_bytes: int  #: memory of the device or the machine, in bytes
    built_with_cuda: bool
    #: why an "auto" context is not on CUDA; "" if it is, or if another device was requested
    cuda_unavailable: str
    last_launch: str  #: the kernel of the last operation; "" before the first


class Context:
    """A device and a stream, with the threads and the workspace that operations use.

    Without ``backend``, operations use a default context for each thread and device. Create a
    context to choose the number of threads, the vector instructions or the stream, or to reserve
    workspace before a stream is captured. Use a context from one thread at a time. It is closed by
    :meth:`close`, at the end of a ``with`` block, or when it is garbage collected.

    Parameters
    ----------
    device
        "auto" (CUDA if it is usable, else the CPU), "cpu", "cuda" or "cuda:N".
    threads
        Number of CPU threads that a call may use. None: one for each CPU that this process may run
        on.
    simd
        "portable", "avx2", "avx512" or "neon". None: the best that this machine supports.
    stream
        The CUDA stream to enqueue on: a handle as an int, or a stream of torch or CuPy, which must
        outlive the context. None: each call uses the current stream of the library of its first
        argument.

    Raises
    ------
    ValueError
        An argument is invalid.
    TypeError
        ``threads`` is not an int, or ``stream`` is not a stream.
    RoboCacheError
        There is no such device, no usable driver, or the build has no CUDA; the message says which.

    Examples
    --------
    >>> import robocache as rbc
    >>> with rbc.Context("cpu", threads=1) as context:
    ...     context.info.num_threads
    1
    """

    __slots__ = ("__weakref__", "_device_id", "_follows", "_handle", "_stream")

    def __init__(
        self,
        device: str = "auto",
        *,
        threads: int | None = None,
        simd: str | None = None,
        stream: Any = None,
    ) -> None:
        self._handle: Any = None
        params = _core.new_ContextParams()
        backend, device_id = _parse_device(device)
        _core.ContextParams_backend_set(params, backend)
        _core.ContextParams_device_id_set(params, device_id)
        if threads is not None:
            _core.ContextParams_num_threads_set(params, _thread_count(threads))
        if simd is not None:
            if not isinstance(simd, str) or simd not in _SIMD:
                raise ValueError(
                    f"simd: is {shown(simd)}, expected one of {', '.join(map(repr, _SIMD))}"
                )
            _core.ContextParams_simd_set(params, _SIMD[simd])
        self._follows = stream is None
        self._stream = 0 if stream is None else _stream_handle(stream)
        _core.ContextParams_cuda_stream_set(params, self._stream)
        try:
            self._handle = _core.rbc_context_create(params)
        except (TypeError, ValueError) as error:
            raise with_python_names(error) from error.__cause__
        _core.watch_signals(self._handle)
        info = self._raw_info()
        self._device_id = info.device_id if info.backend == _core.BACKEND_CUDA else CPU

    @property
    def info(self) -> ContextInfo:
        """Properties of the device and the context.

        Raises
        ------
        ValueError
            The context is closed.
        """
        raw = self._raw_info()
        cuda = raw.backend == _core.BACKEND_CUDA
        return ContextInfo(
            backend="cuda" if cuda else "cpu",
            device=self.device,
            device_name=raw.device_name,
            num_threads=None if cuda else raw.num_threads,
            simd=None if cuda else _SIMD_NAMES[raw.simd],
            compute_capability=divmod(raw.compute_capability, 10) if cuda else None,
            num_multiprocessors=raw.num_multiprocessors if cuda else None,
            workspace_bytes=raw.workspace_bytes,
            total_memory_bytes=raw.total_memory_bytes,
            built_with_cuda=bool(raw.built_with_cuda),
            cuda_unavailable=raw.cuda_unavailable,
            last_launch=in_python(raw.last_launch),
        )

    @property
    def device(self) -> str:
        """Name of the device: "cpu" or "cuda:N"."""
        return "cpu" if self._device_id == CPU else f"cuda:{self._device_id}"

    def synchronize(self) -> None:
        """Wait for all work that was enqueued on the context's stream.

        Raises
        ------
        ValueError
            The context is closed.
        RoboCacheError
            A CUDA error occurred, possibly in work that was enqueued earlier, or this process was
            forked after the context was created.
        """
        _core.rbc_context_synchronize(self._handle)

    def reserve(self, num_bytes: int) -> None:
        """Grow the workspace to ``num_bytes``, so that calls that need no more allocate nothing.

        Raises
        ------
        ValueError
            The context is closed, or ``num_bytes`` is negative.
        TypeError
            ``num_bytes`` is not an int.
        MemoryError
            Not enough memory.
        RoboCacheError
            A CUDA error occurred.
        """
        count = operator.index(num_bytes)
        if count < 0:
            raise ValueError(f"num_bytes: is {count}, expected 0 or more")
        _core.rbc_context_reserve(self._handle, min(count, _MOST_BYTES))

    def warm_up(self) -> None:
        """Start the CPU threads now rather than on first use.

        On CUDA with a driver of CUDA 12.4 or later, everything is loaded already.

        Raises
        ------
        ValueError
            The context is closed.
        RoboCacheError
            The system refused some of the threads. Calls work with the others, and the next
            ``warm_up`` tries again.
        """
        _core.rbc_context_warm_up(self._handle)

    def close(self) -> None:
        """Release the resources of the context, after enqueued work. It may be called twice.

        If another thread is in a call with this context, the resources are released after that
        call.
        """
        self._handle = None  # its destructor destroys the context, once no call holds it

    def __enter__(self) -> Context:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("context: cannot be pickled or copied; create one where it is needed")

    def __repr__(self) -> str:
        return f"<robocache.Context {self.device}{'' if self._handle is not None else ', closed'}>"

    def _raw_info(self) -> Any:
        info = _core.new_ContextInfo()
        _core.rbc_context_get_info(self._handle, info)
        return SimpleNamespace(**{name: read(info) for name, read in _FACTS.items()})


class _Defaults(threading.local):
    def __init__(self) -> None:
        self.contexts: dict[int, Context] = {}


DEFAULTS = _Defaults()


def default_context(device_id: int) -> Context:
    """Return the default context of this thread and a device."""
    contexts = DEFAULTS.contexts
    context = contexts.get(device_id)
    if context is None:
        context = contexts[device_id] = Context("cpu" if device_id == CPU else f"cuda:{device_id}")
    return context


def choose(backend: Any, device_id: int) -> Context:
    """Return the context for an operation on arrays of ``device_id``."""
    if backend is None:
        return default_context(device_id)
    if isinstance(backend, Context):
        return backend
    if not isinstance(backend, str):
        raise TypeError(f"backend: is {kind_of(backend)}, expected None, a string or a Context")
    kind, wanted = _parse_device(backend, "backend")
    if kind == _core.BACKEND_CPU:
        return default_context(CPU)
    if kind == _core.BACKEND_AUTO or (backend == "cuda" and device_id != CPU):
        wanted = device_id
    return default_context(wanted)


def _parse_device(device: Any, name: str = "device") -> tuple[int, int]:
    if isinstance(device, str):
        if device == "auto":
            return _core.BACKEND_AUTO, 0
        if device == "cpu":
            return _core.BACKEND_CPU, 0
        kind, colon, number = device.partition(":")
        if kind == "cuda" and (
            not colon or (number.isascii() and number.isdigit() and len(number) < 10)
        ):
            return _core.BACKEND_CUDA, int(number or 0)
    raise ValueError(f"{name}: is {shown(device)}, expected 'auto', 'cpu', 'cuda' or 'cuda:N'")


def _thread_count(threads: Any) -> int:
    try:
        count = operator.index(threads)
    except REFUSALS:
        raise TypeError(f"threads: is {shown(threads)}, expected an int") from None
    if not 1 <= count <= _MOST_THREADS:
        raise ValueError(f"threads: is {count}, expected 1 or more, up to 2^31 - 1")
    return count


def _stream_handle(stream: Any) -> int:
    for attribute in ("cuda_stream", "ptr"):  # torch, CuPy
        stream = getattr(stream, attribute, stream)
    if not isinstance(stream, int):
        raise TypeError(
            f"stream: is {kind_of(stream)}, expected an int or a stream of torch or CuPy"
        )
    if not 0 <= stream < 2**64:
        raise ValueError(f"stream: is {stream}, expected a handle in 64 bits")
    return stream
