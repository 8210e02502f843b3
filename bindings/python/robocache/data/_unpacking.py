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
    """``size`` bytes, or a ValueError that says why not."""
    if kind in ("", "none"):
        content = data
    else:
        try:
            content = _unpack(data, kind)
        except (ImportError, ValueError):
            raise
        except Exception as error:  # each library has errors of its own
            raise ValueError(f"its {kind} data are damaged: {error}") from None
    if len(content) != size:
        raise ValueError(f"has {len(content)} bytes, expected {size}")
    return content


def _unpack(data: bytes, kind: str) -> bytes:
    result: Any
    if kind == "bz2":
        result = bz2.decompress(data)
    elif kind == "lz4":
        result = needed("lz4.frame", "ros", "a bag compressed with lz4").decompress(data)
    elif kind == "zstd":
        result = _zstd(data)
    else:
        raise ValueError(f"is compressed with {kind!r}, which is not read")
    return bytes(result)


def _zstd(data: bytes) -> Any:
    """By what Python has, or what rosbags brings along: the one since 0.11, the other before."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name).decompress(data)
        except ModuleNotFoundError:
            continue
    zstandard = needed("zstandard", "ros", "a bag compressed with zstd")
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)
