"""What bags compress their chunks with."""

from __future__ import annotations

import bz2
import importlib
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, TypeVar

from ._errors import needed

_MOST = 4 << 30  # bytes of a chunk, which lie in memory at once; those of ROS 1 cannot tell of more
_LZ4_RATIO = 255  # it packs no better

Packed = TypeVar("Packed")
Unpacked = TypeVar("Unpacked")


def ahead(unpack: Callable[[Packed], Unpacked], items: Iterator[Packed]) -> Iterator[Unpacked]:
    """What ``unpack`` makes of each, in their order, by a thread a core, some of them ahead.

    The first is unpacked by itself: many ask for no more.
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
                waiting.append(pool.submit(unpack, item))
                if len(waiting) > cores:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def decompressed(data: bytes, kind: str, size: int) -> bytes:
    """``size`` bytes, or a ValueError that says why not. No more than these are unpacked."""
    if kind in ("", "none"):
        content = data
    elif size > _MOST:
        raise ValueError(
            f"says that it unpacks to {size / (1 << 30):,.2f} GiB, above {_MOST >> 30} GiB; if it "
            "does, unpack the file with mcap decompress, for which there is no limit"
        )
    else:
        try:
            content = _unpack(data, kind, size)
        except (ImportError, ValueError):
            raise
        except Exception as error:  # each library has errors of its own
            raise ValueError(f"its {kind} data are damaged: {error}") from None
    if len(content) != size:
        held = f"more than {size}" if len(content) == size + 1 else str(len(content))
        raise ValueError(f"has {held} bytes, expected {size}")
    return content


def _unpack(data: bytes, kind: str, size: int) -> bytes:
    most = size + 1
    if kind == "bz2":
        return _streams(bz2.BZ2Decompressor, data, most)
    if kind == "lz4":
        lz4 = needed("lz4.frame", "ros", "a bag compressed with lz4")
        # It takes the memory of all that it may unpack at once.
        most = min(most, len(data) * _LZ4_RATIO + 1)
        return _streams(lz4.LZ4FrameDecompressor, data, most)
    if kind == "zstd":
        return _zstd(data, most)
    raise ValueError(f"is compressed with {kind!r}, which is not read")


def _streams(decompressor: Callable[[], Any], data: bytes, most: int) -> bytes:
    """What streams one after another hold, up to some bytes."""
    parts: list[bytes] = []
    left = most
    while data and left > 0:
        one = decompressor()
        parts.append(one.decompress(data, max_length=left))
        left -= len(parts[-1])
        if left > 0 and not one.eof:
            raise ValueError("its packed data end too early")
        data = b"" if left == 1 else one.unused_data  # all but one byte: all that is expected
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _zstd(data: bytes, most: int) -> bytes:
    """By what Python has, or what rosbags brings along: the one since 0.11, the other before."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return _streams(importlib.import_module(name).ZstdDecompressor, data, most)
        except ModuleNotFoundError:
            continue
    zstandard = needed("zstandard", "ros", "a bag compressed with zstd")
    reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
    return bytes(reader.read(most))
