"""Contexts: one device and one stream, with the threads and the workspace that operations use."""

from __future__ import annotations

import operator
import os
import threading
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from .. import _abi as _abi  # which gives the extension's objects their destructors
from .. import _core
from .errors import REFUSALS, as_given, in_python, shown

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

_FACTS = {  # of rbcContextInfo, and what reads them
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
_MOST_BYTES = 2**63 - 1  # more than there are
_MOST_THREADS = 2**31 - 1

CPU = -1  # the device id of the CPU, beside those of CUDA from 0

# Where Python runs handlers of signals. In a forked child it is the thread that forked.
_core.handle_signals_on(threading.main_thread().ident)
os.register_at_fork(after_in_child=lambda: _core.handle_signals_on(threading.get_ident()))


@dataclass(frozen=True)
class ContextInfo:
    """The facts of a :class:`Context`; what its backend does not have is None."""

    backend: str  #: "cpu" or "cuda"
    device: str  #: "cpu", "cuda:0", ...
    device_name: str
    num_threads: int | None  #: CPU threads that a call may use
    simd: str | None  #: "portable", "avx2", "avx512" or "neon"
    compute_capability: tuple[int, int] | None
    num_multiprocessors: int | None
    workspace_bytes: int  #: held now
    total_memory_bytes: int  #: of the device or the machine, in bytes
    built_with_cuda: bool
    cuda_unavailable: (
        str  #: why an "auto" context is not on CUDA; "" if it is, or was not asked for
    )
    last_launch: str  #: the kernel of the last operation; "" before the first


class Context:
    """One device and one stream at a time, with the threads and the workspace that operations use.

    Operations make their own, one per thread and device, where no ``backend`` is given. Make one to
    choose the number of threads, the vector instructions or the stream, or to reserve workspace
    before a stream is captured. Use a context from one thread at a time. It closes when it is
    garbage, at the end of a ``with`` block, or by :meth:`close`.

    Parameters
    ----------
    device
        "auto" (CUDA if it is usable, else the CPU), "cpu", "cuda" or "cuda:N".
    threads
        CPU threads that a call may use; None for all CPUs that this process may run on.
    simd
        "portable", "avx2", "avx512" or "neon"; None for the best that this machine has.
    stream
        The CUDA stream to enqueue on: a handle as an int, or a stream of torch or CuPy, which has
        to outlive the context. None follows, call by call, the current stream of the library that
        the first argument comes from.

    Raises
    ------
    ValueError
        An argument has no such value.
    TypeError
        ``threads`` is no int, or ``stream`` no stream.
    RoboCacheError
        No such device, no usable driver, or a build without CUDA: the message says which.

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
            raise as_given(error) from error.__cause__
        _core.watch_signals(self._handle)
        info = self._raw_info()
        self._device_id = info.device_id if info.backend == _core.BACKEND_CUDA else CPU

    @property
    def info(self) -> ContextInfo:
        """What the context runs on.

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
        """ "cpu" or "cuda:N"."""
        return "cpu" if self._device_id == CPU else f"cuda:{self._device_id}"

    def synchronize(self) -> None:
        """Wait for all that was enqueued on the context's stream.

        Raises
        ------
        ValueError
            The context is closed.
        RoboCacheError
            A CUDA error, of what was enqueued before as well, or this process was forked since.
        """
        _core.rbc_context_synchronize(self._handle)

    def reserve(self, num_bytes: int) -> None:
        """Grow the workspace to ``num_bytes``: calls that need no more then allocate nothing.

        Raises
        ------
        ValueError
            The context is closed, or ``num_bytes`` is negative.
        TypeError
            ``num_bytes`` is no int.
        MemoryError
            There is not so much memory.
        RoboCacheError
            A CUDA error.
        """
        count = operator.index(num_bytes)
        if count < 0:
            raise ValueError(f"num_bytes: is {count}, expected 0 or more")
        _core.rbc_context_reserve(self._handle, min(count, _MOST_BYTES))

    def warm_up(self) -> None:
        """Start the CPU threads now rather than on first use.

        On CUDA all is loaded already, if the driver is that of CUDA 12.4 or later.

        Raises
        ------
        ValueError
            The context is closed.
        RoboCacheError
            The system refused some of the threads. Calls work with those that there are, and the
            next warm-up tries the rest again.
        """
        _core.rbc_context_warm_up(self._handle)

    def close(self) -> None:
        """Give back what the context holds. Enqueued work completes. Again: does nothing.

        A call that is under way, which another thread may have made, completes and gives it back.
        """
        self._handle = None  # the object behind it destroys the context, once no call has it

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
        raise TypeError("context: cannot be pickled or copied; make another where it is needed")

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
    """The one of this thread and device, which operations make for themselves."""
    contexts = DEFAULTS.contexts
    context = contexts.get(device_id)
    if context is None:
        context = contexts[device_id] = Context("cpu" if device_id == CPU else f"cuda:{device_id}")
    return context


def choose(backend: Any, device_id: int) -> Context:
    """The context for an operation on arrays of ``device_id``."""
    if backend is None:
        return default_context(device_id)
    if isinstance(backend, Context):
        return backend
    if not isinstance(backend, str):
        raise TypeError(
            f"backend: is a {type(backend).__name__}, expected None, a string or a Context"
        )
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
            f"stream: is a {type(stream).__name__}, expected an int or a stream of torch or CuPy"
        )
    if not 0 <= stream < 2**64:
        raise ValueError(f"stream: is {stream}, expected a handle in 64 bits")
    return stream
