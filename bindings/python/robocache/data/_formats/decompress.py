"""Decompression of bags, and limits on the unpacked size."""

from __future__ import annotations

import bz2
import importlib
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, BinaryIO, Callable, TypeVar

from .._errors import needed, raise_shortage
from .._file_access import Limit
from .messages.pieces import Rows

_MOST = 4 << 30  # bytes of a chunk, which is held in memory; ROS 1 cannot declare more
_LEAST_RECORD = 64  # bytes that a record counts at least
_LZ4_RATIO = 255  # the best ratio of lz4

Packed = TypeVar("Packed")
Unpacked = TypeVar("Unpacked")


class CannotUnpack(ValueError):
    """Packed data cannot be unpacked.

    Attributes
    ----------
    unpacked : int or None
        The bytes that were unpacked before the fault was found; None if none were.
    """

    def __init__(self, reason: str, unpacked: int | None = None) -> None:
        super().__init__(reason)
        self.unpacked = unpacked


class Budget:
    """The bytes that one pass over a file has unpacked, and their limit."""

    def __init__(self, limit: Limit, path: str, size: int) -> None:
        self.limit, self.path, self.size = limit, path, size
        self.used = 0

    def spend(self, place: str, data: bytes, kind: str, declared: int) -> None:
        """Count the size that a chunk declares, before it is unpacked.

        Raises
        ------
        FormatError
            It unpacks to that size, and the file would unpack to more than is allowed.
        CannotUnpack
            It does not unpack to that size, or is larger than any chunk may be.
        """
        if declared > _MOST and kind in ("bz2", "lz4", "zstd"):
            raise CannotUnpack(_too_large(declared))
        left = self.limit.allowed(self.size) - self.used
        if declared > left:
            # A damaged size may be anything: unpack the data to find out.
            if self._found_smaller(data, kind, max(left, 0)):
                raise CannotUnpack(f"declares {declared} bytes, but unpacks to another size")
            self.limit.require(self.path, place, self.used + declared, self.size)
        self.used += declared

    def _found_smaller(self, data: bytes, kind: str, most: int) -> bool:
        """Whether data end, or prove damaged, before unpacking to ``most`` bytes."""
        try:
            found = unpacked_size(data, kind, most + 1)
        except CannotUnpack as error:
            self.used += error.unpacked or 0
            return True
        if found <= most:
            self.used += found
        return found <= most

    def charge(self, place: str, count: int, size: int) -> None:
        """Count the records of a chunk: each needs memory, and counts as some bytes.

        Raises
        ------
        FormatError
            There are more than is allowed for the file.
        """
        self.used += max(0, count * _LEAST_RECORD - size)
        self.limit.require(self.path, place, self.used, self.size)

    def correct(self, declared: int, error: CannotUnpack) -> None:
        """Count the real size of a damaged chunk instead of the declared one."""
        if error.unpacked is not None:
            self.used += error.unpacked - declared


def ahead(unpack: Callable[[Packed], Unpacked], items: Iterator[Packed]) -> Iterator[Unpacked]:
    """Unpack items in order, some of them ahead, with one thread per core.

    The first item is unpacked without threads, since many callers need no more. If the system
    cannot start threads, the calling thread unpacks.
    """
    for first in items:
        yield unpack(first)
        break
    cores = len(os.sched_getaffinity(0))
    if cores == 1:
        yield from map(unpack, items)
        return
    waiting: deque[Future[Unpacked]] = deque()
    with ThreadPoolExecutor(cores, thread_name_prefix="robocache-unpack") as pool:
        try:
            for item in items:
                try:
                    waiting.append(pool.submit(unpack, item))
                except RuntimeError:  # no thread can be started
                    while waiting:
                        yield waiting.popleft().result()
                    yield unpack(item)
                    yield from map(unpack, items)
                    return
                if len(waiting) > cores:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


ZSTD = b"\x28\xb5\x2f\xfd"  # first bytes of zstd data, which no CDR message has


def unpacked_messages(rows: Rows, budget: Budget) -> tuple[Rows, dict[str, Any]]:
    """Unpack messages that may be compressed singly; also return the sizes of those that fail.

    Raises
    ------
    FormatError
        They unpack to more than is allowed for the file.
    """
    import numpy as np

    magic = int.from_bytes(ZSTD, "little")
    longer = rows.sizes >= 4
    if not longer.all() or not len(rows):
        packed = np.zeros(len(rows), bool)
        packed[longer] = rows.select(longer).field(0, "<u4") == magic
    else:
        packed = rows.field(0, "<u4") == magic
    if not packed.any():
        return rows, {}
    contents, good = [], np.ones(len(rows), bool)
    failed: dict[str, list[int]] = {}
    for i, is_packed in enumerate(packed.tolist()):
        content = rows.message(i)
        if is_packed:
            most = max(0, min(_MOST, budget.limit.allowed(budget.size) - budget.used)) + 1
            parts = []
            try:
                for part in _parts(content, "zstd", most, 1 << 20, budget.path):
                    parts.append(part)
                    budget.used += len(part)
                    if budget.used > budget.limit.allowed(budget.size):
                        place = "messages compressed one by one"
                        budget.limit.require(budget.path, place, budget.used, budget.size)
            except CannotUnpack as error:
                failed.setdefault(str(error), []).append(len(content))
                good[i] = False
                continue
            content = b"".join(parts)
        contents.append(content)
    sizes = np.array([len(content) for content in contents], np.int64)
    data = np.frombuffer(b"".join(contents), np.uint8)
    made = rows.select(good)
    made = replace(made, data=data, starts=np.cumsum(sizes) - sizes, sizes=sizes)
    return made, {reason: np.array(each, np.int64) for reason, each in failed.items()}


def decompressed(data: bytes, kind: str, size: int, path: str = "packed data") -> bytes:
    """Unpack exactly ``size`` bytes.

    Raises
    ------
    CannotUnpack
            The data are damaged, or have another size.
    MemoryError
        There is too little memory; the message names the path.
    """
    if kind in ("", "none"):
        content = data
    elif size > _MOST:
        raise CannotUnpack(_too_large(size), 0)
    else:
        content = b"".join(_parts(data, kind, size + 1, size + 1, path))
    if len(content) != size:
        held = f"more than {size}" if len(content) == size + 1 else str(len(content))
        raise CannotUnpack(f"has {held} bytes, expected {size}", len(content))
    return content


def unpacked_size(data: bytes, kind: str, most: int, path: str = "packed data") -> int:
    """Return the unpacked size of data, counted up to ``most``, with little memory."""
    if kind in ("", "none"):
        return len(data)
    return sum(map(len, _parts(data, kind, most, 1 << 20, path)))


def _too_large(size: int) -> str:
    return (
        f"declares {size / (1 << 30):,.2f} GiB, above {_MOST >> 30} GiB; if this is "
        "right, unpack the file with mcap decompress, which has no such limit"
    )


def _parts(data: bytes, kind: str, most: int, at_once: int, path: str) -> Iterator[bytes]:
    """Unpack data, up to ``most`` bytes, in pieces."""
    done = 0
    try:
        for part in _streams(_decompressor(kind), data, most, at_once, kind):
            done += len(part)
            yield part
    except (ImportError, MemoryError):
        raise
    except CannotUnpack as error:
        raise CannotUnpack(str(error), done) from None
    except Exception as error:  # each library has its own errors
        raise_shortage(path)
        raise CannotUnpack(f"its {kind} data are damaged: {error}", done) from None


def _decompressor(kind: str) -> Callable[[], Any]:
    if kind == "bz2":
        return bz2.BZ2Decompressor
    if kind == "lz4":
        lz4 = needed("lz4.frame", "ros", "a bag compressed with lz4")
        made: Callable[[], Any] = lz4.LZ4FrameDecompressor
        return made
    if kind == "zstd":
        return _zstd()
    raise CannotUnpack(f"is compressed with {kind!r}, which is not read")


def _streams(
    decompressor: Callable[[], Any], data: bytes, most: int, at_once: int, kind: str
) -> Iterator[bytes]:
    """Unpack consecutive streams, up to ``most`` bytes."""
    left = most
    while data and left > 0:
        one = decompressor()
        packed = data
        while left > 0 and not one.eof:
            wanted = min(left, at_once)
            if kind == "lz4":  # it allocates max_length at once
                wanted = min(wanted, len(data) * _LZ4_RATIO + 1)
            part = one.decompress(packed, max_length=wanted)
            packed = b""
            left -= len(part)
            if part:
                yield part
            if one.eof or left <= 0:
                break
            if one.needs_input and not part:  # lz4 may hold output back
                raise CannotUnpack("its packed data end too early")
        data = (
            b"" if left <= 1 or not one.eof else one.unused_data
        )  # the expected bytes are complete


def unpacked_parts(file: BinaryIO, at_once: int, path: str) -> Iterator[bytes]:
    """Unpack a file that is compressed with zstd, in pieces.

    Raises
    ------
    CannotUnpack
        It is damaged or truncated.
    """
    try:
        reader = _zstd_file(file)
        while part := bytes(reader.read(at_once)):
            yield part
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # each library has its own errors
        raise_shortage(path)
        raise CannotUnpack(f"its zstd data are damaged or truncated: {error}") from None


def _zstd_file(file: BinaryIO) -> Any:
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name).ZstdFile(file, "rb")
        except ModuleNotFoundError:
            continue
    module = needed("zstandard", "ros", "a file compressed with zstd")
    return module.ZstdDecompressor().stream_reader(file, read_across_frames=True)


class _Zstandard:
    """A stream of the package zstandard with the interface of Python's decompressors."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.reader: Any = None
        self.eof, self.needs_input, self.unused_data = False, False, b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        if self.reader is None:
            made = self.module.ZstdDecompressor()
            self.reader = made.stream_reader(data, read_across_frames=True)
        part = bytes(self.reader.read(max_length))
        self.eof = not part
        return part


def _zstd() -> Callable[[], Any]:
    """Return the decompressor of Python, or of the package that rosbags needs."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            made: Callable[[], Any] = importlib.import_module(name).ZstdDecompressor
        except ModuleNotFoundError:
            continue
        return made
    module = needed("zstandard", "ros", "a bag compressed with zstd")
    return lambda: _Zstandard(module)
