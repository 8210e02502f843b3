"""The process that reads HDF5 files for its parent.

A damaged file can crash the HDF5 library, or keep it in an endless loop. Here this ends a process
that does nothing else. It receives requests from a socket, each a list of steps, and sends an
answer to each step. The system ends it if a step takes more processor time than is allowed.
"""

from __future__ import annotations

import bisect
import contextlib
import errno
import json
import math
import mmap
import os
import re
import resource
import signal
import socket
import time
from collections import Counter, OrderedDict
from typing import Any

import h5py
import numpy as np

from ..._errors import raise_shortage
from . import netcdf_arrays as netcdf
from .links import Below, LeadsNowhere, below, item_of, names_in, require_inside
from .messages import HEAD, attributes_of, encoded

_TRAJECTORY = re.compile(r"traj_\d+")  # a group of ManiSkill
_SHOWN = 3  # ranges of rows in a message
_KEPT = 32  # data sets, whose chunks need not be listed again


class Rows:
    def __init__(self, dataset: Any) -> None:
        plist = dataset.get_create_plist()
        require_inside(plist)
        self.dataset = dataset
        self.shape, self.dtype = dataset.shape, dataset.dtype.newbyteorder("=")
        self.repeated = 0  #: chunks that the index lists more than once
        #: Ranges of rows that hold a chunk that was never written, in order.
        self.unwritten: list[tuple[int, int]] = []
        #: Ranges in which no chunk was written: HDF5 need not search for chunks there.
        self.empty: list[tuple[int, int]] = []
        self.fill = np.zeros((), self.dtype)
        if math.prod(self.shape) == 0:
            return
        if plist.get_layout() == h5py.h5d.CHUNKED:
            self._look_at_chunks(plist.get_chunk())
        elif plist.get_layout() == h5py.h5d.CONTIGUOUS and dataset.get_offset() is None:
            self.unwritten = self.empty = [(0, self.shape[0])]
        if self.unwritten and plist.fill_value_defined() != h5py.h5d.FILL_VALUE_UNDEFINED:
            plist.get_fill_value(self.fill)

    def _look_at_chunks(self, chunk: tuple[int, ...]) -> None:
        rows, step = self.shape[0], chunk[0]
        each = math.prod(-(-n // c) for n, c in zip(self.shape[1:], chunk[1:]))
        offsets = set()
        listed = 0
        for offset in _offsets(self.dataset):
            if all(0 <= at < extent for at, extent in zip(offset, self.shape)):
                listed += 1
                offsets.add(offset)
        self.repeated = listed - len(offsets)
        present = Counter(offset[0] // step for offset in offsets)
        whole = sorted(row for row, count in present.items() if count >= each)
        self.unwritten = list(_between(whole, step, rows))
        self.empty = list(_between(sorted(present), step, rows))

    def first_unwritten(self, begin: int, end: int) -> int | None:
        """Return the first of some rows that lacks a chunk, or None."""
        first = bisect.bisect_right(self.unwritten, (begin, begin))
        for a, b in self.unwritten[max(0, first - 1) :]:
            if a >= end:
                return None
            if b > begin:
                return max(a, begin)
        return None

    def unwritten_text(self) -> str:
        """Return for example "rows 500 to 999 were never written, and read as 0.0", or ""."""
        if not self.unwritten:
            return ""
        shown = [f"{a} to {b - 1}" for a, b in self.unwritten[:_SHOWN]]
        more = len(self.unwritten) - _SHOWN
        if more > 0:
            total = sum(b - a for a, b in self.unwritten)
            shown.append(f"in {more} more ranges, {total} rows in all,")
        return f"rows {', '.join(shown)} were never written, and read as {self.fill[()]}"

    def read(self, begin: int, end: int, into: Any) -> None:
        """Read some rows into an array of their shape."""
        found = (self.shape[1:], self.dtype)
        if found != (into.shape[1:], into.dtype) or end > self.shape[0]:
            raise ValueError(
                f"has dtype {found[1]} and shape {list(self.shape)}, but had dtype {into.dtype} "
                f"and rows {list(into.shape[1:])}: it changed after it was opened"
            )
        if into.size == 0:
            return
        if self.unwritten:
            into[...] = self.fill  # HDF5 writes nothing there if no fill value is defined
        at = begin
        first = bisect.bisect_right(self.empty, (begin, begin))
        for a, b in self.empty[max(0, first - 1) :]:
            if a >= end:
                break
            if at < a:
                self._read(at, a, into[at - begin : a - begin])
            at = max(at, b)
        if at < end:
            self._read(at, end, into[at - begin :])

    def _read(self, begin: int, end: int, into: Any) -> None:
        if (begin, end) == (0, self.shape[0]):
            self.dataset.read(h5py.h5s.ALL, h5py.h5s.ALL, into)
            return
        chosen = self.dataset.get_space()
        chosen.select_hyperslab((begin, *(0 for _ in self.shape[1:])), into.shape)
        self.dataset.read(h5py.h5s.create_simple(into.shape), chosen, into)


def _offsets(dataset: Any) -> Any:
    """Return the first element of each stored chunk."""
    if not hasattr(dataset, "chunk_iter"):  # before HDF5 1.14
        return [dataset.get_chunk_info(i).chunk_offset for i in range(dataset.get_num_chunks())]
    found: list[tuple[int, ...]] = []
    dataset.chunk_iter(lambda info: found.append(info.chunk_offset))
    return found


def _between(present: list[int], step: int, rows: int) -> Any:
    """Yield ranges of rows before, between and after present blocks of ``step`` rows."""
    at = 0
    for block in present:
        if at < block * step:
            yield at, block * step
        at = (block + 1) * step
    if at < rows:
        yield at, rows


_ROOM = 256 << 20  # bytes of memory that a step may use for a file of any size


class Allowance:
    """The limits of a step: memory and processor time. Beyond the latter, the process is ended."""

    def __init__(self) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        # Values pass through a file in memory, which must not be subject to a file size limit.
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        self.memory = resource.getrlimit(resource.RLIMIT_AS)
        self.seconds = 0.0
        self.since = 0.0

    def begin(self, seconds: float) -> None:
        """Allow a step ``seconds`` of processor time from now on."""
        self.seconds, self.since = seconds, time.process_time()
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        end = int(self.since + seconds) + 1
        end = end if hard == resource.RLIM_INFINITY else min(end, hard)
        resource.setrlimit(resource.RLIMIT_CPU, (end, hard))

    def progressed(self) -> None:
        """Restart the time of a step: it made progress, so it is not in an endless loop."""
        if time.process_time() - self.since > self.seconds / 4:
            self.begin(self.seconds)

    def set_memory(self, size: int) -> None:
        """Allow a step to allocate ``2 * size`` bytes, and some room, in addition to now."""
        try:
            with open("/proc/self/statm", "rb") as file:
                now = int(file.read().split()[0]) * mmap.PAGESIZE
        except OSError:  # no /proc
            return
        most = now + 2 * size + _ROOM
        most = min((most, *(each for each in self.memory if each != resource.RLIM_INFINITY)))
        resource.setrlimit(resource.RLIMIT_AS, (most, self.memory[1]))

    def is_short(self, size: int) -> bool:
        """Whether memory is short even for what a step may use."""
        resource.setrlimit(resource.RLIMIT_AS, self.memory)
        try:
            mmap.mmap(-1, 2 * size + _ROOM).close()
        except (OSError, MemoryError):
            return True
        return False


class Worker:
    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.allowance = Allowance()
        self.files: dict[int, Any] = {}
        self.tops: dict[int, Any] = {}  # root groups
        self.group: tuple[Any, Any] = (None, None)  # the last one: file and name, and itself
        #: The data sets that were read last, by file, group and name.
        self.rows: OrderedDict[tuple[int, str, str], Rows] = OrderedDict()
        self.shared: mmap.mmap | None = None

    def serve(self) -> None:
        self.send(json.dumps({"ready": True}))
        while True:
            head = self.received(HEAD.size)
            if head is None:
                return
            text = self.received(HEAD.unpack(head)[0])
            if text is None:
                return
            request = json.loads(text)
            self.allowance.set_memory(request["allowed"])
            for step in request["steps"]:
                self.allowance.begin(request["seconds"])
                self.send(*self.answered(step, request))

    def received(self, size: int) -> bytes | None:
        """Receive ``size`` bytes from the parent process; None if it has ended."""
        parts = bytearray()
        while len(parts) < size:
            part = self.channel.recv(size - len(parts))
            if not part:
                return None
            parts += part
        return bytes(parts)

    def send(self, answer: str, values: Any = b"") -> None:
        text = answer.encode()
        self.channel.sendall(HEAD.pack(len(text), len(values)) + text)
        if len(values):
            self.channel.sendall(values)

    def answered(self, step: dict[str, Any], request: dict[str, Any]) -> tuple[Any, ...]:
        """Return the answer to a step as JSON, also if it fails."""
        try:
            answer, *values = getattr(self, step["do"])(step)
            return (json.dumps(answer), *values)
        except Exception as error:  # h5py raises many kinds for damage
            return (json.dumps(self._failed(error, request)),)

    def _failed(self, error: Exception, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a step that failed with the current error."""
        try:
            raise_shortage(request["path"])
        except MemoryError:
            is_short = self.allowance.is_short(request["allowed"])
            self.allowance.set_memory(request["allowed"])
            return {"short": 0, "failed": _line(error)} if is_short else {"too much": True}
        except OSError as short:
            return {"short": short.errno}
        text = _line(error)
        if "filter returned failure" in text and self.allowance.is_short(request["allowed"]):
            return {"short": 0, "failed": text}
        self.allowance.set_memory(request["allowed"])
        return {"failed": text}

    # ---- steps ----------------------------------------------------------------------------------

    def share(self, step: dict[str, Any]) -> tuple[Any, ...]:
        """Take a file in memory for passing values; without bytes, release it."""
        self.shared = None
        if step["bytes"]:
            _, descriptors, _, _ = socket.recv_fds(self.channel, 1, 1)
            try:
                os.ftruncate(descriptors[0], step["bytes"])
                self.shared = mmap.mmap(descriptors[0], step["bytes"])
            except OSError:
                return ({"shared": False},)
            finally:
                os.close(descriptors[0])
        return ({"shared": True},)

    def open(self, step: dict[str, Any]) -> tuple[Any, ...]:
        """Open a file under a number."""
        try:
            file = h5py.File(step["path"], "r")
        except OSError as error:
            text = str(error)
            if "unable to lock" not in text:
                raise
            if error.errno in (None, errno.EAGAIN, errno.EACCES):
                return ({"failed": _line(error), "locked": True},)
            file = h5py.File(step["path"], "r", locking=False)  # the file system has no locks
        self.files[step["file"]] = file
        self.tops[step["file"]] = h5py.h5g.open(file.id, b"/")
        return ({},)

    def close(self, step: dict[str, Any]) -> tuple[Any, ...]:
        self.group = (None, None)
        for key in [key for key in self.rows if key[0] == step["file"]]:
            del self.rows[key]
        self.tops.pop(step["file"], None)
        file = self.files.pop(step["file"], None)
        if file is not None:
            file.close()
        return ({},)

    def top(self, step: dict[str, Any]) -> tuple[Any, ...]:
        """Return the groups of episodes, or None: those in ``data``, or ManiSkill's traj_0, ..."""
        file = self.tops[step["file"]]
        data, found, prefix = None, Below(), "data/"
        groups: list[str] = []
        names = list(names_in(file))
        if "data" in names:
            data = item_of(file, "data")
        if isinstance(data, h5py.h5g.GroupID):
            others = [name for name in names if name != "data"]
            episodes = list(names_in(data))
        else:
            data, prefix = file, ""
            others = [name for name in names if not _TRAJECTORY.fullmatch(name)]
            episodes = [name for name in names if _TRAJECTORY.fullmatch(name)]
        known = bool(prefix or episodes)
        for name in episodes:
            self.allowance.progressed()
            try:
                if isinstance(item_of(data, name), h5py.h5g.GroupID):
                    groups.append(prefix + name)
            except LeadsNowhere as error:
                found.leave_out(f"{prefix}{name}", error)
        return (
            {
                "groups": groups if known else None,
                "others": others if known else [],
                "omitted": found.left_out,
                "damaged": found.damaged,
            },
        )

    def attributes(self, step: dict[str, Any]) -> tuple[Any, ...]:
        """Return all attributes of a group."""
        answer, values = attributes_of(h5py.Group(self._group(step)), self.allowance.progressed)
        return answer, values

    def look(self, step: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arrays of an episode, and the attribute with its length."""
        group = self._group(step)
        found = below(group, self.allowance.progressed)
        arrays = {}
        for name, (dataset, plist) in found.arrays.items():
            self.allowance.progressed()
            try:
                arrays[name] = _described(dataset, plist)
            except (TypeError, ValueError) as error:
                found.left_out[name] = f"has a type that NumPy lacks: {_line(error)}"
        stated = None
        if h5py.h5a.exists(group, b"num_samples"):
            stated, _ = encoded(h5py.Group(group).attrs["num_samples"])
        return (
            {
                "arrays": arrays,
                "stated": stated,
                "omitted": found.left_out,
                "damaged": found.damaged,
                "names": found.names,
                "refusal": found.refusal,
            },
        )

    def dimensions(self, step: dict[str, Any]) -> tuple[Any, ...]:
        """Return the dimensions, labels and attributes of each array of a NetCDF file."""
        found = below(self._group(step), self.allowance.progressed)
        arrays = {}
        for name, (dataset, _) in found.arrays.items():
            self.allowance.progressed()
            arrays[name] = netcdf.facts_of(name, dataset)
        return ({"arrays": arrays},)

    def read(self, step: dict[str, Any]) -> tuple[Any, ...]:
        """Read rows of an array, into the file in memory or into the answer."""
        key = (step["file"], step["group"], step["name"])
        rows = self.rows.pop(key, None)
        if rows is None:
            if len(self.rows) >= _KEPT:
                self.rows.popitem(last=False)
            rows = Rows(item_of(self._group(step), step["name"]))
        self.rows[key] = rows
        shape, dtype = (step["end"] - step["begin"], *step["shape"]), np.dtype(step["dtype"])
        if self.shared is None:
            values = np.empty(shape, dtype)
        else:
            values = np.ndarray(shape, dtype, self.shared, step["at"])
        rows.read(step["begin"], step["end"], values)
        answer = {
            "unwritten": rows.unwritten_text(),
            "repeated": rows.repeated,
            "first_unwritten": rows.first_unwritten(step["begin"], step["end"]),
        }
        if self.shared is None:
            return (answer, values.reshape(-1).view(np.uint8).data)
        return (answer,)

    def _group(self, step: dict[str, Any]) -> Any:
        key = (step["file"], step["group"])
        if self.group[0] != key:
            self.group = (None, None)
            self.group = (key, item_of(self.tops[step["file"]], step["group"]))
        return self.group[1]


def _described(dataset: Any, plist: Any) -> dict[str, Any]:
    """Return facts about an array that do not need its values."""
    dtype = dataset.dtype
    null = dataset.get_space().get_simple_extent_type() == h5py.h5s.NULL
    facts: dict[str, Any] = {
        "shape": None if null else dataset.shape,
        "dtype": dtype.str if dtype.names is None and dtype.subdtype is None else "",
        "type": str(dtype)[:100],
        "chunk": None,
        "lacking": [],
    }
    if plist.get_layout() == h5py.h5d.CHUNKED:
        facts["chunk"] = plist.get_chunk()
        filters = [plist.get_filter(i) for i in range(plist.get_nfilters())]
        if filters:
            facts["unpacked"] = math.prod(facts["chunk"]) * dtype.itemsize
            facts["lacking"] = [_filter_name(each) for each in filters if not _available(each[0])]
    return facts


def _available(number: int) -> bool:
    if h5py.h5z.filter_avail(number):
        return True
    with contextlib.suppress(ImportError):  # it has filters that HDF5 lacks
        import hdf5plugin  # noqa: F401
    return bool(h5py.h5z.filter_avail(number))


def _filter_name(filter_facts: tuple[Any, ...]) -> str:
    number, name = filter_facts[0], filter_facts[-1]
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
    return f"{text} ({number})" if text else str(number)


def _line(error: BaseException) -> str:
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    return str(text).partition("\n")[0] or type(error).__name__


def main() -> None:
    """Serve the process at the other end of standard input, which is a socket."""
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)  # the other process may ignore or block it
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    channel = socket.socket(fileno=os.dup(0))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 2):  # libraries may write there when they crash
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    Worker(channel).serve()
    os._exit(0)  # there is nothing to flush, and HDF5's own cleanup may crash after damage
