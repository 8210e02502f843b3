"""Reading of HDF5 files in a separate process, the worker, which a damaged file may crash.

The first file starts the worker, which then serves all files. It ends with this process, or if a
file makes it crash or run forever; then the next step starts a new one. The worker runs the
module ``worker``.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import importlib.util
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable

from ..._errors import FormatError, needed, raise_shortage
from ..._file_access import Limit, require_regular
from .messages import HEAD

SECONDS = "ROBOCACHE_HDF5_SECONDS"  # environment variable
_SECONDS = 3.0  # of processor time per step
_MOST_SECONDS = 60.0  # per step, not counting the values that it reads
_SCAN, _UNPACK = 64 << 20, 8 << 20  # bytes per second, at the slowest
_SLOT = 4 << 20  # bytes of values per batch of steps
_ALIGN = 64  # bytes
_STEPS, _LETTERS = 256, 8 << 10  # steps per batch, and letters in their names
_SHARED = 2 * (_SLOT + _ALIGN * _STEPS)  # bytes of shared memory that are kept
_AHEAD = 64 << 10  # bytes of a request that is sent before the previous one is answered
_STRIKES = 8  # crashes per file; then the rest of it is not read
_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL)


@dataclass(frozen=True)
class Failure:
    """The reason why a step failed because of the file."""

    reason: str
    locked: bool = False  #: another program writes the file


@dataclass(frozen=True)
class Piece:
    """Rows of an array that are read in one step."""

    group: str
    name: str
    begin: int
    end: int
    shape: tuple[int, ...]  #: shape of a row
    dtype: Any  #: native
    owner: Any = None  #: data of the caller

    @property
    def bytes(self) -> int:
        return (self.end - self.begin) * int(self.dtype.itemsize * _product(self.shape))


class _Ended(Exception):
    """The worker ended; ``code`` is the return code of Popen."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class _Worker:
    """The worker process, and the connection to it."""

    def __init__(self) -> None:
        import multiprocessing.spawn

        executable = multiprocessing.spawn.get_executable()
        if not executable:
            raise RuntimeError(
                "HDF5: no Python interpreter is known for the reading process; set one with "
                "multiprocessing.set_executable"
            )
        start = _START % ([each for each in sys.path if isinstance(each, str)], _PACKAGES)
        here, there = socket.socketpair()
        with there:
            try:
                self.process = subprocess.Popen(
                    [os.fsdecode(executable), "-S", "-c", start],
                    stdin=there.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
                    start_new_session=True,  # Ctrl-C goes to this process, which ends the worker
                )
            except BaseException:
                here.close()
                raise
        self.channel = here
        self.shared: mmap.mmap | None = None
        try:
            self.receive()
        except _Ended as ended:
            assert self.process.stderr is not None
            text = self.process.stderr.read().decode("utf-8", "replace").strip()
            self.end()
            last = text.rpartition("\n")[2]
            last = last or f"it ended with code {ended.code}"
            raise RuntimeError(f"the process that reads HDF5 files cannot start: {last}") from None
        except BaseException:
            self.end()
            raise
        assert self.process.stderr is not None
        self.process.stderr.close()

    def send(self, request: Mapping[str, Any]) -> None:
        self.send_text(json.dumps(request).encode())

    def send_text(self, text: bytes) -> None:
        try:
            self.channel.sendall(HEAD.pack(len(text), 0) + text)
        except (BrokenPipeError, ConnectionResetError):
            raise _Ended(self.process.wait()) from None

    def receive(self) -> tuple[dict[str, Any], bytearray]:
        size, extra = HEAD.unpack(self._received(HEAD.size))
        answer = json.loads(self._received(size))
        return answer, self._received(extra)

    def _received(self, size: int) -> bytearray:
        made = bytearray(size)
        left = memoryview(made)
        while left:
            try:
                count = self.channel.recv_into(left)
            except ConnectionResetError:
                count = 0
            if count == 0:
                raise _Ended(self.process.wait())
            left = left[count:]
        return made

    def share(self, size: int) -> None:
        """Share ``size`` bytes of memory for values; 0: release it. Without it, values are sent."""
        self.shared = None
        if not hasattr(os, "memfd_create"):
            return
        descriptor = -1
        if size:
            descriptor = os.memfd_create("robocache", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            request = {"seconds": _SECONDS, "allowed": size, "path": ""}
            self.send({"steps": [{"do": "share", "bytes": size}], **request})
            if size:
                socket.send_fds(self.channel, [b"\0"], [descriptor])
            done = self.receive()[0].get("shared")
            if size and done:
                fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
                self.shared = mmap.mmap(descriptor, size, prot=mmap.PROT_READ)
        finally:
            if size:
                os.close(descriptor)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.forget()

    def forget(self) -> None:
        """Close this end of the connection without ending the process."""
        self.shared = None
        self.channel.close()
        if self.process.stderr is not None:
            self.process.stderr.close()


_DATA = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Stand-ins for the packages, whose own imports would take longer than the import of HDF5.
_PACKAGES = {"robocache": os.path.dirname(_DATA), "robocache.data": _DATA}
_START = """
import sys
sys.path[:] = %r
import types
for name, folder in %r.items():
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [folder]
from robocache.data._formats.hdf5.worker import main
main()
"""

_lock = threading.RLock()
_worker: _Worker | None = None
_numbers = 0  # of opened files
_exchanges = 0  # with the worker that are not finished
_unused: list[File] = []  # that are open, and whose owners were deleted


def _running() -> _Worker:
    global _worker
    if _worker is not None and _worker.process.poll() is not None:
        _worker.forget()  # the system ended it between two steps
        _worker = None
    if _worker is None:
        if importlib.util.find_spec("h5py") is None:
            needed("h5py", "hdf5", "an HDF5 file")
        _worker = _Worker()
    return _worker


def _end() -> None:
    global _worker
    worker, _worker = _worker, None
    if worker is not None:
        worker.end()


@contextlib.contextmanager
def _talking() -> Iterator[None]:
    """Keep other threads, and the end of unused files, from the worker during an exchange."""
    global _exchanges
    with _lock:
        _exchanges += 1
        try:
            yield
        finally:
            _exchanges -= 1
        _close_unused()


def close_unused(files: Iterable[File]) -> None:
    """Close files at any time, as in the middle of an exchange when an object is deleted."""
    _unused.extend(files)
    _close_unused()


def _close_unused() -> None:
    if not _lock.acquire(blocking=False):
        return  # another thread closes them after its exchange
    try:
        while _unused and not _exchanges:
            with contextlib.suppress(Exception):
                _unused.pop().__exit__()
    finally:
        _lock.release()


def _after_fork() -> None:
    """Forget the worker, which belongs to the parent."""
    global _worker, _lock, _exchanges
    worker, _worker = _worker, None
    _lock, _exchanges = threading.RLock(), 0
    _unused.clear()
    if worker is not None:
        worker.process.returncode = 0  # not a child of this process: there is nothing to wait for
        worker.forget()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_end)


def _seconds() -> float:
    text = os.environ.get(SECONDS, "")
    try:
        seconds = float(text) if text else _SECONDS
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e9:
        raise ValueError(f"{SECONDS}: is {text!r}, expected a number of seconds above 0")
    return seconds


class File:
    """An HDF5 file, open within ``with``."""

    def __init__(self, path: str, limit: Limit) -> None:
        global _numbers
        self.path = path
        self.limit = limit
        with _lock:
            _numbers += 1
            self.number = _numbers
        self.opened_by: _Worker | None = None
        self.strikes = 0
        self.size = 0
        self.stamp: tuple[int, ...] = ()

    def __enter__(self) -> File:
        require_regular(self.path)
        self.stamp = self._stamp()
        self.size = self.stamp[1]
        with _talking(), self._named():
            self._open()
        return self

    def __exit__(self, *_: object) -> None:
        with _talking():
            if self.opened_by is not None and self.opened_by is _worker:
                try:
                    self.opened_by.send(self._request([{"do": "close", "file": self.number}]))
                    self.opened_by.receive()
                except _Ended:
                    _end()
                except BaseException:
                    _end()
                    raise

    def require_unchanged(self) -> None:
        """Refuse data that were read while another program wrote the file."""
        if self._stamp() != self.stamp:
            raise FormatError(self.path, "", "changed while it was read: read it again")

    def _stamp(self) -> tuple[int, ...]:
        found = os.stat(self.path)
        return found.st_ino, found.st_size, found.st_mtime_ns

    # ---- steps ----------------------------------------------------------------------------------

    def step(self, name: str, **arguments: Any) -> tuple[dict[str, Any], bytearray] | Failure:
        """Run one step and return its answer."""
        answers: list[Any] = []
        step = {"do": name, "file": self.number, **arguments}
        self._run([([step], 0)], lambda i, answer: answers.append(answer))
        return answers[0]  # type: ignore[no-any-return]

    def steps(
        self,
        name: str,
        groups: Sequence[str],
        take: Callable[[str, dict[str, Any] | Failure], None],
    ) -> None:
        """Run the same step for many groups: ``take`` gets each answer."""
        made = [{"do": name, "file": self.number, "group": group} for group in groups]
        batches = [(part, 0) for part in _parts(made, lambda step: (0, len(step["group"])))]

        def took(i: int, answer: Any) -> None:
            take(groups[i], answer if isinstance(answer, Failure) else answer[0])

        self._run(batches, took)

    def read(
        self, pieces: Sequence[Piece], take: Callable[[Piece, Any, dict[str, Any]], None]
    ) -> None:
        """Read rows of arrays: ``take`` gets each piece, its values or a Failure, and facts.

        The values are valid until ``take`` returns.
        """
        import numpy as np

        slot = max([_SLOT, *(piece.bytes for piece in pieces)]) + _ALIGN * _STEPS
        places = []
        batches = []
        parts = _parts(pieces, lambda piece: (piece.bytes, len(piece.group) + len(piece.name)))
        for number, part in enumerate(parts):
            at = number % 2 * slot  # the worker fills one slot while the other is emptied
            steps = []
            for piece in part:
                places.append(at)
                steps.append(self._read_step(piece, at))
                at += piece.bytes + -piece.bytes % _ALIGN
            batches.append((steps, max(piece.bytes for piece in part)))

        def took(i: int, answer: Any) -> None:
            piece = pieces[i]
            if isinstance(answer, Failure):
                take(piece, answer, {})
                return
            facts, values = answer
            count = (piece.end - piece.begin) * _product(piece.shape)
            assert _worker is not None
            if _worker.shared is not None:
                made = np.frombuffer(_worker.shared, piece.dtype, count, places[i])
            else:
                made = np.frombuffer(values, piece.dtype, count)
            take(piece, made.reshape(-1, *piece.shape) if count else made, facts)

        self._run(batches, took, max(_SHARED, min(2, len(batches)) * slot))

    def _read_step(self, piece: Piece, at: int) -> dict[str, Any]:
        return {
            "do": "read",
            "file": self.number,
            "group": piece.group,
            "name": piece.name,
            "begin": piece.begin,
            "end": piece.end,
            "shape": piece.shape,
            "dtype": piece.dtype.str,
            "at": at,
        }

    # ---- execution ------------------------------------------------------------------------------

    def _run(
        self,
        batches: Sequence[tuple[list[dict[str, Any]], int]],
        take: Callable[[int, Any], None],
        shared: int = 0,
    ) -> None:
        """Run batches of steps, each with the bytes of its largest: ``take`` gets each answer."""
        with _talking(), self._named():
            waiting = deque(_numbered(batches))
            sent: deque[tuple[deque[tuple[int, dict[str, Any]]], int]] = deque()
            while waiting or sent:
                try:
                    if not sent:  # else keep the worker that has the steps, even if it has ended
                        worker = self._ready(shared)
                    while waiting and len(sent) < 2:
                        steps, size = waiting[0]
                        request = self._request([step for _, step in steps], size)
                        text = json.dumps(request).encode()
                        if sent and len(text) > _AHEAD:
                            break  # avoid a deadlock of both processes waiting to send
                        worker.send_text(text)
                        sent.append(waiting.popleft())
                    answer = worker.receive()
                except _Ended as ended:
                    self._struck(ended, sent, waiting, take)
                    continue
                except BaseException:
                    _end()
                    raise
                steps, _ = sent[0]
                number, _ = steps.popleft()
                if not steps:
                    sent.popleft()
                try:
                    take(number, self._checked(answer))
                except FormatError:
                    self._drop(worker, sum(len(steps) for steps, _ in sent))
                    raise
                except BaseException:
                    _end()
                    raise
            if shared > _SHARED:
                self._run([([{"do": "share", "bytes": 0}], 0)], lambda number, answer: None)
                if _worker is not None:
                    _worker.shared = None

    def _drop(self, worker: _Worker, count: int) -> None:
        """Receive answers that are no longer needed."""
        try:
            for _ in range(count):
                worker.receive()
        except _Ended:
            _end()
        except BaseException:
            _end()
            raise

    def _ready(self, shared: int) -> _Worker:
        """Return the worker with this file open in it."""
        worker = _running()
        if self.opened_by is not worker:
            self._open()
            worker = _running()
        if shared and (worker.shared is None or len(worker.shared) < shared):
            worker.share(shared)
        return worker

    def _open(self) -> None:
        try:
            worker = _running()
        except OSError as error:  # of the worker, for example no descriptor is left
            raise OSError(error.errno, error.strerror, self.path) from error
        step = {"do": "open", "file": self.number, "path": os.path.abspath(self.path)}
        try:
            worker.send(self._request([step]))
            answer = self._checked(worker.receive())
        except _Ended as ended:
            _end()
            self.opened_by = None
            raise FormatError(self.path, "", self._reason(ended)) from None
        except FormatError:
            raise
        except BaseException:
            _end()
            raise
        if isinstance(answer, Failure):
            raise FormatError(self.path, "", _why_not_open(answer))
        self.opened_by = worker

    def _request(self, steps: list[dict[str, Any]], size: int = 0) -> dict[str, Any]:
        seconds = _seconds()
        seconds += min(self.size / _SCAN, _MOST_SECONDS) + size / _UNPACK
        allowed = self.limit.allowed(self.size)
        return {"steps": steps, "seconds": seconds, "allowed": allowed, "path": self.path}

    def _checked(self, answer: tuple[dict[str, Any], bytearray]) -> Any:
        """Return an answer, or a Failure; raise a lack of memory or descriptors."""
        fields = answer[0]
        if "short" in fields:
            if not fields["short"]:
                raise MemoryError(f"{self.path}: {fields['failed']}: out of memory")
            raise OSError(fields["short"], os.strerror(fields["short"]), self.path)
        if "too much" in fields:
            allowed = self.limit.allowed(self.size)
            return Failure(
                f"needs more memory than allowed for a file of {self.size:,} bytes: at most "
                f"{allowed:,} bytes; if this is expected, open it with a larger max_unpacked"
            )
        if "failed" in fields:
            return Failure(fields["failed"], fields.get("locked", False))
        return answer

    def _struck(self, ended: _Ended, sent: Any, waiting: Any, take: Callable[..., None]) -> None:
        """Continue after the first step without an answer, which ended the worker."""
        _end()
        self.opened_by = None
        reason = self._reason(ended)
        if not sent:
            raise FormatError(self.path, "", reason)
        number, _ = sent[0][0].popleft()
        left = [batch for batch in (*sent, *waiting) if batch[0]]
        sent.clear()
        waiting.clear()
        waiting.extend(left)
        take(number, Failure(reason))
        self.strikes += _STRIKES if ended.code == -signal.SIGXCPU else 1
        if self.strikes >= _STRIKES:
            waiting.clear()
            for steps, _ in left:
                for other, _ in steps:
                    take(other, Failure(f"the data before it {reason}"))

    def _reason(self, ended: _Ended) -> str:
        """Return why the worker ended, if the file is the cause.

        Raises
        ------
        MemoryError
            The system ended it, as it does if memory is short.
        OSError
            Something else ended it.
        """
        if ended.code == -signal.SIGXCPU:
            return (
                "keeps the HDF5 library busy without an end, possibly due to damage; for an intact "
                f"but slow file, set {SECONDS} to more than {_seconds():g}"
            )
        if ended.code in [-each for each in _CRASHES]:
            return f"crashed the HDF5 library ({signal.Signals(-ended.code).name})"
        if ended.code == 0:  # something else in this process waits for its children
            return "crashed the HDF5 library, or kept it busy without an end"
        if ended.code == -signal.SIGKILL:
            raise MemoryError(
                f"{self.path}: the process that read it was killed, as the system does if memory "
                "is short"
            )
        text = f"the process that read it ended with code {ended.code}"
        raise OSError(errno.EIO, text, self.path)

    @contextlib.contextmanager
    def _named(self) -> Any:
        """Raise a lack of memory, descriptors or processes with the name of the file."""
        try:
            yield
        except (OSError, MemoryError, RuntimeError):
            raise_shortage(self.path)
            raise


def _why_not_open(failure: Failure) -> str:
    text = failure.reason
    if failure.locked:
        return "another program has the file open for writing: close it there"
    if "consistency flags" in text or "already open for" in text:
        return (
            "another program has the file open for writing, or died while writing: close it "
            "there, or clear its mark in a copy with h5clear -s"
        )
    begin = text.find("(")
    what = text[begin + 1 :].removesuffix(")") if begin >= 0 else text
    return f"is damaged or truncated: {what}"


def _numbered(batches: Iterable[tuple[list[Any], int]]) -> Any:
    count = 0
    for steps, size in batches:
        yield deque(enumerate(steps, count)), size
        count += len(steps)


def _parts(items: Sequence[Any], weight: Callable[[Any], tuple[int, int]]) -> list[list[Any]]:
    """Divide items into parts of at most a request's size, with at least one item each."""
    parts: list[list[Any]] = []
    size = letters = 0
    for item in items:
        own, names = weight(item)
        full = size + own > _SLOT or letters + names > _LETTERS
        if not parts or full or len(parts[-1]) >= _STEPS:
            parts.append([])
            size = letters = 0
        parts[-1].append(item)
        size, letters = size + own, letters + names
    return parts


def _product(shape: Sequence[int]) -> int:
    made = 1
    for extent in shape:
        made *= extent
    return made
