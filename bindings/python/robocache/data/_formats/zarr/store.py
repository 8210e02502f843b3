"""The files of a Zarr store, which are in a folder or in a zip file.

Zarr's own stores wait forever if a chunk is a pipe. The store here opens only regular files, and
never writes.
"""

from __future__ import annotations

import errno
import functools
import importlib
import os
import stat
import threading
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, Union

from ..._errors import FormatError, needed, raise_shortage
from ..._file_access import Limit, opened, require_regular
from .calls import open_group

_UNPACKED = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}  # zipfile reads these in bounded memory
_OTHERS = {zipfile.ZIP_BZIP2: "bzip2", zipfile.ZIP_LZMA: "lzma"}


class FolderFiles(Mapping[str, bytes]):
    """The files below a folder by their relative names, with "/" between the parts."""

    def __init__(self, path: str, follow_links: bool) -> None:
        self.path = path
        self.follow_links = follow_links

    def __getitem__(self, key: str) -> bytes:
        return self.part(key)

    def __iter__(self) -> Iterator[str]:
        yield from self.names("")

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        try:
            mode = os.stat(os.path.join(self.path, str(key))).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return False
        return not stat.S_ISDIR(mode)

    def part(self, key: str, begin: int = 0, end: int | None = None) -> bytes:
        """Read some bytes of a file, fewer if it ends before; a negative begin is from the end.

        Raises
        ------
        KeyError
            The file does not exist.
        """
        try:
            file = opened(os.path.join(self.path, key))
        except (FileNotFoundError, NotADirectoryError):
            raise KeyError(key) from None
        with file:
            if begin < 0:
                begin = max(0, os.fstat(file.fileno()).st_size + begin)
            file.seek(begin)
            return file.read(-1 if end is None else max(0, end - begin))

    def size_of(self, key: str) -> int:
        """Return the size of a file."""
        path = os.path.join(self.path, key)
        require_regular(path)
        return os.path.getsize(path)

    def names(self, prefix: str) -> Iterator[str]:
        """Yield all files below a folder of the store, including pipes and devices."""
        top = os.path.join(self.path, prefix)
        for base, _, names in folders_below(top, self.follow_links):
            inside = os.path.relpath(base, self.path)
            start = "" if inside == os.curdir else inside.replace(os.sep, "/") + "/"
            yield from (start + name for name in names)

    def names_in(self, prefix: str) -> list[str]:
        """Return the files and folders directly in a folder of the store."""
        try:
            return os.listdir(os.path.join(self.path, prefix))
        except (FileNotFoundError, NotADirectoryError):
            return []

    @functools.cached_property
    def total(self) -> int:
        """The size of all files."""
        sizes = 0
        for name in self.names(""):
            try:
                sizes += self.size_of(name)
            except (FileNotFoundError, FormatError):  # a broken link, or a pipe
                continue
        return sizes


def folders_below(top: str, follow_links: bool) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk a folder as ``os.walk`` does, but raise for a folder that cannot be read."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise error

    seen: set[str] = set()
    for base, folders, names in os.walk(top, onerror=refuse, followlinks=follow_links):
        if follow_links:  # they may form a cycle
            real = os.path.realpath(base)
            if real in seen:
                folders.clear()
                continue
            seen.add(real)
        yield base, folders, names


class ZipFiles(Mapping[str, bytes]):
    """The members of a zip file by name; of several with one name, the last."""

    def __init__(self, path: str, limit: Limit) -> None:
        self.path = path
        self.limit = limit
        self.total = os.path.getsize(path)
        self._lock = threading.Lock()
        self._open()

    def _open(self) -> None:
        self._process = os.getpid()
        self._archive = zipfile.ZipFile(opened(self.path))
        self.members = [member for member in self._archive.infolist() if not member.is_dir()]
        self._by_name = {member.filename: member for member in self.members}

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "limit": self.limit, "total": self.total}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
        self._open()

    def __getitem__(self, key: str) -> bytes:
        return self.part(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def part(self, key: str, begin: int = 0, end: int | None = None) -> bytes:
        """See :class:`FolderFiles`."""
        member = self._by_name[key]
        self.limit.require(self.path, key, member.file_size, self.total)
        if begin < 0:
            begin = max(0, member.file_size + begin)
        end = member.file_size if end is None else min(end, member.file_size)
        with self._lock:
            if os.getpid() != self._process:  # forked processes share the position in the file
                self._open()
            return self.content(member, end)[begin:]

    def content(self, member: zipfile.ZipInfo, size: int) -> bytes:
        """Read the first bytes of a member."""
        if member.compress_type not in _UNPACKED:
            kind = _OTHERS.get(member.compress_type, f"method {member.compress_type}")
            text = f"is packed with {kind}, expected deflate or no packing; pack the store again"
            raise FormatError(self.path, member.filename, text)
        try:
            with self._archive.open(member) as file:
                return file.read(size)
        except Exception as error:  # of zipfile, zlib, and the system for a negative position
            raise_shortage(self.path)
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise
            text = f"cannot be read: {error or type(error).__name__}"
            raise FormatError(self.path, member.filename, text) from None

    def size_of(self, key: str) -> int:
        """See :class:`FolderFiles`."""
        return self._by_name[key].file_size

    def names(self, prefix: str) -> Iterator[str]:
        """See :class:`FolderFiles`."""
        start = prefix + "/" if prefix else ""
        return (name for name in self._by_name if name.startswith(start))

    def names_in(self, prefix: str) -> list[str]:
        """See :class:`FolderFiles`."""
        start = len(prefix) + 1 if prefix else 0
        return list(dict.fromkeys(name[start:].partition("/")[0] for name in self.names(prefix)))


Files = Union[FolderFiles, ZipFiles]


def files_of(path: str, follow_links: bool, limit: Limit) -> Files:
    return FolderFiles(path, follow_links) if os.path.isdir(path) else ZipFiles(path, limit)


def group_of(files: Files) -> Any:
    """Open the group of a store with Zarr."""
    zarr = needed("zarr", "zarr", "a Zarr store")
    if is_old(zarr):
        return zarr.open_group(zarr.storage.KVStore(files), mode="r")
    return open_group(_store_class()(files), "r")


def is_old(zarr: Any) -> bool:
    """Whether this is Zarr 2, which has no coroutines and uses other stores."""
    return int(zarr.__version__.partition(".")[0]) < 3


@functools.cache
def _store_class() -> Any:
    """Return a store class for Zarr 3, which is imported only if needed."""
    from zarr.abc import store as abc

    class Store(abc.Store):
        """Reads the files of a store, in the calling thread."""

        supports_writes = False
        supports_deletes = False
        supports_partial_writes = False
        supports_listing = True

        def __init__(self, files: Files, *, read_only: bool = True) -> None:
            super().__init__(read_only=True)
            self.files = files

        def with_read_only(self, read_only: bool = True) -> Store:
            return type(self)(self.files)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Store) and other.files is self.files

        def __hash__(self) -> int:
            return id(self.files)

        async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
            if prototype is None:
                prototype = importlib.import_module("zarr.core.buffer").default_buffer_prototype()
            begin, end = 0, None
            if isinstance(byte_range, abc.RangeByteRequest):
                begin, end = byte_range.start, byte_range.end
            elif isinstance(byte_range, abc.OffsetByteRequest):
                begin = byte_range.offset
            elif isinstance(byte_range, abc.SuffixByteRequest):
                begin = -byte_range.suffix
            try:
                return prototype.buffer.from_bytes(self.files.part(key, begin, end))
            except KeyError:
                return None

        async def get_partial_values(self, prototype: Any, key_ranges: Any) -> list[Any]:
            return [await self.get(key, prototype, part) for key, part in key_ranges]

        async def exists(self, key: str) -> bool:
            return key in self.files

        async def list(self) -> Any:
            for name in self.files:
                yield name

        async def list_prefix(self, prefix: str) -> Any:
            for name in self.files:
                if name.startswith(prefix):
                    yield name

        async def list_dir(self, prefix: str) -> Any:
            for name in self.files.names_in(prefix.rstrip("/")):
                yield name

        async def set(self, key: str, value: Any) -> None:
            self._check_writable()

        async def set_partial_values(self, key_start_values: Any) -> None:
            self._check_writable()

        async def delete(self, key: str) -> None:
            self._check_writable()

    return Store
