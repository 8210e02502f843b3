"""A folder of entries, as the C library opens it: entries, their tensors as arrays, and writers."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .. import _abi as _abi  # adds destructors to the extension's objects
from .. import _core
from .._library.context import CPU, default_context
from .._library.dtypes import DTYPES, NAME_OF_PAIR
from .._library.errors import RoboCacheError, Status

VERIFY = {
    "open": _core.STORE_VERIFY_OPEN,
    "first": _core.STORE_VERIFY_FIRST,
    "none": _core.STORE_VERIFY_NONE,
}
ACCESS = {
    "auto": _core.STORE_ACCESS_AUTO,
    "map": _core.STORE_ACCESS_MAP,
    "read": _core.STORE_ACCESS_READ,
}
MOST_TRUSTED = _core.STORE_MAX_TRUSTED
_AT_ONCE = 64 << 20  # bytes of a tensor that are written or gathered together


class Item(NamedTuple):
    """An entry in the list of a store."""

    key: bytes
    complete: bool
    locked: bool
    num_segments: int
    num_bytes: int
    last_use_ns: int


class Verified(NamedTuple):
    """Result of the comparison of all sums of an entry."""

    num_blocks: int
    num_damaged_blocks: int
    first_segment: int
    first_block: int


class Pruned(NamedTuple):
    """Counts of what was removed from a store, or with ``dry_run`` would be."""

    num_removed: int  #: complete entries
    num_incomplete: int  #: incomplete entries
    num_leftovers: int  #: temporary files, locks and times of use
    num_removed_bytes: int  #: of everything that was removed
    num_kept: int  #: complete entries that stay
    num_kept_bytes: int  #: of everything that stays


class Store:
    """One folder of entries."""

    def __init__(
        self,
        path: str,
        *,
        read_only: bool = False,
        verify: str = "open",
        access: str = "auto",
        trust: Sequence[int] = (),
        min_free_bytes: int | None = None,
    ) -> None:
        self.path, self._verify = path, verify
        params = _core.new_StoreParams()
        _core.StoreParams_flags_set(params, _core.STORE_FLAG_READ_ONLY if read_only else 0)
        _core.StoreParams_verify_set(params, VERIFY[verify])
        _core.StoreParams_access_set(params, ACCESS[access])
        if min_free_bytes is not None:
            _core.StoreParams_min_free_bytes_set(params, min_free_bytes)
        _core.StoreParams_trust(params, list(trust))
        self._handle = _core.rbc_store_open(os.fsencode(path), params)

    def find(self, key: bytes) -> Entry | None:
        """Return an entry; None if it is absent.

        Raises
        ------
        RoboCacheError
            It is damaged, or cannot be read.
        """
        try:
            return Entry(_with_status(_core.rbc_store_find, self._handle, key), self._verify)
        except RoboCacheError as error:
            if error.status == Status.NOT_FOUND:
                return None
            raise

    def lock(
        self,
        key: bytes,
        segment: int,
        *,
        episodes: int = 1,
        rows: int = 0,
        first_episode: int = 0,
        first_row: int = 0,
        wait_ms: int = 0,
    ) -> Writer | None:
        """Begin to build a segment of whole episodes; None if it is there already.

        Raises
        ------
        RoboCacheError
            Another process builds it (``Status.BUSY``), or the folder cannot be written.
        """
        params = _core.new_SegmentParams()
        _core.SegmentParams_segment_set(params, segment)
        _core.SegmentParams_num_episodes_set(params, episodes)
        _core.SegmentParams_num_rows_set(params, rows)
        _core.SegmentParams_first_episode_set(params, first_episode)
        _core.SegmentParams_first_row_set(params, first_row)
        lock = _core.rbc_store_lock_segment
        handle = _with_status(lock, self._handle, key, params, wait_ms)
        return None if handle is None else Writer(handle)

    def publish(self, key: bytes, segments: int, offsets: Any, about: str) -> None:
        """Write the index of an entry whose segments are all there."""
        publish = _core.rbc_store_publish_entry
        _with_status(publish, self._handle, key, segments, offsets, about)

    def items(self) -> list[Item]:
        """Return all entries, the least recently used first."""
        return [
            Item(key, bool(complete), bool(locked), segments, size, used)
            for key, complete, locked, segments, size, used in _core.rbc_store_list(self._handle)
        ]

    def prune(
        self,
        max_bytes: int | None = None,
        max_age_s: int | None = None,
        dry_run: bool = False,
        incomplete: bool = False,
    ) -> Pruned:
        """Remove the least recently used entries until the limits hold."""
        params, report = _core.new_PruneParams(), _core.new_PruneReport()
        flags = _core.PRUNE_FLAG_DRY_RUN if dry_run else 0
        flags |= _core.PRUNE_FLAG_INCOMPLETE if incomplete else 0
        _core.PruneParams_flags_set(params, flags)
        if max_bytes is not None:
            _core.PruneParams_max_bytes_set(params, max_bytes)
        if max_age_s is not None:
            _core.PruneParams_max_age_s_set(params, max_age_s)
        _core.rbc_store_prune(self._handle, params, report)
        return Pruned(
            *(getattr(_core, f"PruneReport_{name}_get")(report) for name in Pruned._fields)
        )


class _View:
    """The memory of a tensor, which keeps its entry open as long as an array uses it."""

    __slots__ = ("__array_interface__", "_handle")

    def __init__(self, handle: Any, address: int, typestr: str, shape: tuple[int, ...]) -> None:
        self._handle = handle
        self.__array_interface__ = {
            "version": 3,
            "data": (address, True),
            "typestr": typestr,
            "shape": shape,
        }


def entry_of(array: Any) -> Any:
    """Return the handle of the entry whose memory a NumPy array is in; None if it is elsewhere."""
    while array is not None and not isinstance(array, _View):
        array = getattr(array, "base", None)
    return None if array is None else array._handle


def register(context: Any, handle: Any, max_bytes: int) -> None:
    """Let kernels of a CUDA context read an entry's segments, as far as the system agrees."""
    _core.rbc_entry_register(context._handle, handle, max_bytes)


def pinned_bytes(handle: Any) -> int:
    """Return how many bytes of an entry kernels can read."""
    info = _core.new_EntryInfo()
    _core.rbc_entry_get_info(handle, info)
    pinned: int = _core.EntryInfo_num_pinned_bytes_get(info)
    return pinned


class Entry:
    """An open entry: it stays readable after the store is closed or pruned."""

    def __init__(self, handle: Any, verify: str = "open") -> None:
        self.handle = handle
        self._unverified = verify == "first"
        self._verified: set[str] = set()
        info = _core.new_EntryInfo()
        _core.rbc_entry_get_info(handle, info)
        self.is_mapped = _core.EntryInfo_access_get(info) == _core.STORE_ACCESS_MAP
        self.num_segments: int = _core.EntryInfo_num_segments_get(info)
        self.num_episodes: int = _core.EntryInfo_num_episodes_get(info)
        self.num_rows: int = _core.EntryInfo_num_rows_get(info)
        self.num_tensors: int = _core.EntryInfo_num_tensors_get(info)
        self.num_bytes: int = _core.EntryInfo_num_bytes_get(info)

    @property
    def names(self) -> list[str]:
        """The names of the tensors."""
        return [_core.rbc_entry_get_name(self.handle, i) for i in range(self.num_tensors)]

    def track(self, name: str) -> tuple[Any, tuple[int, ...]]:
        """Return the dtype and the shape of a tensor over all segments."""
        code, bits, shape = _with_status(_core.rbc_entry_get_track, self.handle, name)
        return _dtype(code, bits), shape

    def array(self, name: str, segment: int = 0) -> Any:
        """Return a tensor of a segment: a read-only view of the file, or a copy if it is read.

        Raises
        ------
        RoboCacheError
            A block is damaged, if the store compares sums on first use; the segment is then set
            aside.
        """
        import numpy as np

        if not self.is_mapped:
            return self._gathered(name)
        if self._unverified and name not in self._verified:
            self._verify(name)
            self._verified.add(name)
        tensor = _with_status(_core.rbc_entry_get_tensor, self.handle, name, segment)
        address, code, bits, shape = tensor
        dtype = _dtype(code, bits)
        if 0 in shape:
            empty = np.zeros(shape, dtype)
            empty.flags.writeable = False
            return empty
        typestr = f"<V{dtype.itemsize}" if dtype.kind == "V" else dtype.str
        view = np.asarray(_View(self.handle, address, typestr, shape))
        return view if view.dtype == dtype else view.view(dtype)

    def _gathered(self, name: str) -> Any:
        """Return a tensor that is read, not mapped. It has one segment."""
        import numpy as np

        dtype, shape = self.track(name)
        made = np.empty(shape, dtype)
        row = max(1, made.nbytes // max(1, shape[0]))
        step = max(1, _AT_ONCE // row)
        for begin in range(0, shape[0], step):
            part = made[begin : begin + step]
            self.gather(name, np.arange(begin, begin + len(part), dtype=np.int64), part)
        made.flags.writeable = False
        return made

    def _verify(self, name: str) -> None:
        """Let a gather compare the sums of all blocks of a tensor, in parts."""
        import numpy as np

        dtype, shape = self.track(name)
        step = max(1, _AT_ONCE // (dtype.itemsize * math.prod(shape[1:]) or 1))
        part = np.empty((min(step, shape[0]), *shape[1:]), dtype)
        for begin in range(0, shape[0], step):
            rows = np.arange(begin, min(begin + step, shape[0]), dtype=np.int64)
            self.gather(name, rows, part[: len(rows)])

    def gather(self, name: str, rows: Any, out: Any, context: Any = None) -> None:
        """Copy rows of a track to an array."""
        context = default_context(CPU) if context is None else context
        gather = _core.rbc_entry_gather
        _with_status(gather, context._handle, self.handle, name, rows, out)

    def prefetch(self, name: str, rows: Any) -> None:
        """Ask the system to read rows of a track that a later gather needs."""
        prefetch = _core.rbc_entry_prefetch
        _with_status(prefetch, default_context(CPU)._handle, self.handle, name, rows)

    def episode_offsets(self) -> Any:
        """Return where each episode begins, and where the last ends, as int64 [E+1]."""
        import numpy as np

        address, count, stride = _core.rbc_entry_get_episodes(self.handle)
        view = _View(self.handle, address, "<i8", (count,))
        view.__array_interface__["strides"] = (stride,)
        return np.ascontiguousarray(np.asarray(view))

    def verify(self) -> Verified:
        """Compare the sums of all blocks."""
        report = _core.new_VerifyReport()
        _core.rbc_entry_verify(self.handle, report)
        return Verified(
            *(getattr(_core, f"VerifyReport_{name}_get")(report) for name in Verified._fields)
        )


class Writer:
    """A segment that is being written, and its lock."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def add(self, name: str, dtype: Any, shape: Sequence[int]) -> None:
        """Declare a tensor. All are declared before the first rows are written."""
        _with_status(
            _core.rbc_segment_writer_add, self._handle, name, DTYPES[dtype.name], tuple(shape)
        )

    def write(self, name: str, rows: Any) -> None:
        """Append contiguous rows to a tensor: an array or bytes."""
        _with_status(_core.rbc_segment_writer_write, self._handle, name, rows)

    def write_array(self, name: str, array: Any) -> None:
        """Append an array of any strides, at most 64 MiB at a time."""
        for part in parts_of(array):
            self.write(name, part)

    def publish(self) -> None:
        """Give the segment its name."""
        _with_status(_core.rbc_segment_writer_publish, self._handle)

    def discard(self) -> None:
        """Release the lock. What was not published is lost."""
        handle, self._handle = self._handle, None
        if handle is not None:
            _core.delete_SegmentWriter(handle)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()


def parts_of(array: Any) -> Iterator[Any]:
    """Yield contiguous parts of an array, along its first axis."""
    import numpy as np

    step = max(1, _AT_ONCE // max(1, array.nbytes // max(1, len(array))))
    for begin in range(0, len(array), step):
        part = np.ascontiguousarray(array[begin : begin + step])
        if part.nbytes:
            yield part


def _dtype(code: int, bits: int) -> Any:
    import numpy as np

    name = NAME_OF_PAIR[code, bits]
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def _with_status(function: Any, *arguments: Any) -> Any:
    """Call a function of the store. Damage of a file is a RoboCacheError, not a ValueError."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise RoboCacheError(str(error), Status.DAMAGED) from None
