"""The chunks of a Zarr array: which ones are stored, and how much they unpack to.

Zarr fills a missing chunk with the fill value of the array, and unpacks a stored chunk to any
size. This module checks both before Zarr reads a chunk.
"""

from __future__ import annotations

import bz2
import lzma
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Callable

from ..._errors import FormatError
from .metadata import codec_names
from .store import Files

Place = tuple[int, ...]  # of a chunk, by axis

_SLACK = 1 << 18  # bytes allowed above twice a chunk's numbers: headers, checksums, a zstd block
_UNSEEN = 64 << 20  # bytes that a chunk may unpack to without a check
_LZMA_MEMORY = 256 << 20  # bytes; the highest preset takes 65 MiB
_CHECKSUMS = {"crc32": 0, "crc32c": -4, "adler32": 0, "fletcher32": -4, "jenkins_lookup3": -4}
_STREAMS = ("zlib", "gzip", "bz2", "lzma")
_HEADS = ("blosc", "lz4", "zstd")


@dataclass(frozen=True)
class Chunks:
    """How an array is divided into chunks, one file per chunk, and how they are packed."""

    files: Files
    array: str  #: name in the store
    shape: Place
    chunk: Place  #: shape of the content of one file
    item: int  #: bytes per number
    start: str  #: prefix of chunk names
    separator: str  #: separator between the numbers in chunk names
    codecs: tuple[Any, ...]  #: in the order of unpacking
    inner: Place | None = None  #: shape of the chunks within a file (a shard)
    index_first: bool = False  #: whether their index is at the begin of a file
    index_sum: int = 0  #: bytes of the checksum after the index

    @property
    def grid(self) -> Place:
        """The number of files by axis."""
        return tuple(-(-n // c) for n, c in zip(self.shape, self.chunk))

    @property
    def count(self) -> int:
        """The number of files if all chunks are stored."""
        return math.prod(self.grid)

    @property
    def bytes(self) -> int:
        """Bytes of memory for the array, or for one chunk if a chunk is larger."""
        return max(math.prod(self.shape), math.prod(self.chunk)) * self.item

    def key(self, place: Place) -> str:
        """Return the name of a chunk's file."""
        numbers = [str(n) for n in place]
        if self.start == "c":
            return f"{self.array}/{self.separator.join(['c', *numbers])}"
        return f"{self.array}/{self.separator.join(numbers or ['0'])}"

    def stored(self) -> list[Place]:
        """Return the chunks that have a file, in order."""
        found, grid = set(), self.grid
        for name in self.files.names(self.array):
            place = self._place(name[len(self.array) + 1 :])
            if place is not None and all(n < limit for n, limit in zip(place, grid)):
                found.add(place)
        return sorted(found)

    def _place(self, name: str) -> Place | None:
        parts = name.split(self.separator)
        if self.start == "c":
            if parts.pop(0) != "c":
                return None
        elif not self.shape:
            return () if parts == ["0"] else None
        if len(parts) != len(self.shape) or not all(map(_is_number, parts)):
            return None
        return tuple(map(int, parts))

    def region(self, place: Place) -> tuple[slice, ...]:
        """Return the region of the array that a chunk holds."""
        return tuple(
            slice(n * c, min((n + 1) * c, limit))
            for n, c, limit in zip(place, self.chunk, self.shape)
        )

    def unwritten(self, place: Place) -> int:
        """Count the chunks that are missing in a file.

        Raises
        ------
        ValueError
            A chunk in it is truncated, or would unpack to more than its numbers.
        """
        key = self.key(place)
        if self.inner is None:
            _check(self, key, 0, self.files.size_of(key), math.prod(self.chunk) * self.item)
            return 0
        spans = self._spans(key)
        missing = 0
        per = [c // i for c, i in zip(self.chunk, self.inner)]
        within = [
            min(p, -(-(limit - n * c) // i))  # chunks past the array's end hold nothing
            for p, i, n, c, limit in zip(per, self.inner, place, self.chunk, self.shape)
        ]
        used = spans.reshape(*per, 2)[tuple(slice(0, w) for w in within)].reshape(-1, 2)
        for begin, length in used.tolist():
            if begin == length == _NOTHING:
                missing += 1
            else:
                _check(self, key, begin, length, math.prod(self.inner) * self.item)
        return missing

    def _spans(self, key: str) -> Any:
        """Return begin and length of each chunk in a file."""
        import numpy as np

        assert self.inner is not None
        count = math.prod(self.chunk) // math.prod(self.inner)
        size, length = self.files.size_of(key), 16 * count + self.index_sum
        if size < length:
            raise ValueError(
                f"its index is truncated: it needs {length} bytes, but the file has {size}"
            )
        if size > count * (2 * math.prod(self.inner) * self.item + _SLACK) + length:
            raise ValueError(f"its file has {size} bytes, too many for its numbers")
        index = (
            self.files.part(key, 0, length) if self.index_first else self.files.part(key, -length)
        )
        return np.frombuffer(index[: 16 * count], "<u8").reshape(count, 2)


_NOTHING = (1 << 64) - 1


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and (text == "0" or text[0] != "0") and len(text) < 20


# ---- metadata -----------------------------------------------------------------------------------


def chunks_of(files: Files, path: str, name: str, array: Any) -> Chunks:
    """Return the chunks of an array.

    Raises
    ------
    FormatError
        Its chunks are divided or packed in an unsupported way.
    """
    shape, item = tuple(array.shape), array.dtype.itemsize
    metadata = array.metadata.to_dict() if hasattr(array, "metadata") else None
    if metadata is None or metadata["zarr_format"] == 2:
        source = array if metadata is None else array.metadata
        packed = [*(source.filters or ()), *([source.compressor] if source.compressor else [])]
        packers = _one_packer(path, name, [codec.get_config() for codec in packed])
        separator = source.dimension_separator if metadata else source._dimension_separator
        return Chunks(files, name, shape, tuple(array.chunks), item, "", separator, packers)
    grid, keys = metadata["chunk_grid"], metadata["chunk_key_encoding"]
    if grid["name"] != "regular" or keys["name"] not in ("default", "v2"):
        raise FormatError(path, name, "has chunks of several sizes, or with unknown names")
    chunk = tuple(grid["configuration"]["chunk_shape"])
    configuration = keys.get("configuration") or {}
    start = "c" if keys["name"] == "default" else ""
    separator = configuration.get("separator", "/" if start else ".")
    codecs = list(metadata["codecs"])
    if not any(_is_sharding(codec) for codec in codecs):
        packers = _one_packer(path, name, codecs)
        return Chunks(files, name, shape, chunk, item, start, separator, packers)
    inner = codecs[0].get("configuration", {})
    if len(codecs) > 1 or any(map(_is_sharding, inner["codecs"])):
        raise FormatError(path, name, "has shards that are packed again, which are not read")
    index = [codec_names(codec)[0] for codec in inner["index_codecs"]]
    if index not in (["bytes"], ["bytes", "crc32c"]) or _is_big(inner["index_codecs"][0]):
        raise FormatError(path, name, f"has shards with an index in {index}, which is not read")
    return Chunks(
        files,
        name,
        shape,
        chunk,
        item,
        start,
        separator,
        _one_packer(path, name, list(inner["codecs"])),
        tuple(inner["chunk_shape"]),
        inner.get("index_location", "end") == "start",
        4 * (len(index) - 1),
    )


def _is_sharding(codec: Any) -> bool:
    return codec_names(codec)[:1] == ["sharding_indexed"]


def _is_big(codec: Any) -> bool:
    return str((codec.get("configuration") or {}).get("endian", "little")) == "big"


def _one_packer(path: str, name: str, codecs: list[Any]) -> tuple[Any, ...]:
    """Return codecs from last to first. Only one of them may expand data."""
    packers = [codec for codec in codecs if codec_names(codec)[0] in (*_STREAMS, *_HEADS)]
    if len(packers) > 1:
        names = " and ".join(codec_names(codec)[0] for codec in packers)
        raise FormatError(path, name, f"is packed several times, by {names}; pack it once")
    after = codecs[codecs.index(packers[0]) + 1 :] if packers else []
    others = [codec_names(c)[0] for c in after if codec_names(c)[0] not in _CHECKSUMS]
    if others:
        raise FormatError(path, name, f"is packed, and then stored by {others[0]}; pack it last")
    return tuple(reversed(codecs))


# ---- sizes --------------------------------------------------------------------------------------


def _check(chunks: Chunks, key: str, begin: int, length: int, expected: int) -> None:
    """Raise if a part of a file unpacks to more than about twice the expected size."""
    limit = 2 * expected + _SLACK
    size = chunks.files.size_of(key)
    if begin + length > size:
        raise ValueError(
            f"a chunk is truncated: it should end at byte {begin + length}, but the file has "
            f"{size} bytes"
        )
    if length > limit:
        raise ValueError(f"has {length} bytes, too many for numbers of {expected} bytes")
    for codec in chunks.codecs:
        name = codec_names(codec)[0]
        if name in _CHECKSUMS:
            configuration = codec.get("configuration", codec)
            default = "end" if _CHECKSUMS[name] else "start"
            begin += 4 if configuration.get("location", default) == "start" else 0
            length -= 4
        elif name in (*_HEADS, *_STREAMS):
            unpacked = _unpacked(chunks, key, begin, max(length, 0), name, codec, limit)
            if unpacked > limit:
                raise ValueError(f"unpacks to {unpacked} bytes or more, expected {expected} bytes")
            return
        else:
            return


def _unpacked(
    chunks: Chunks, key: str, begin: int, length: int, name: str, codec: Any, limit: int
) -> int:
    """Return the unpacked size of a chunk, or a number above the limit if it is larger."""

    def part(count: int) -> bytes:
        return chunks.files.part(key, begin, begin + min(count, length))

    if name == "blosc":
        return int.from_bytes(part(8)[4:], "little")
    if name == "lz4":
        return int.from_bytes(part(4), "little")
    if name == "zstd":
        size = _zstd_content(part(18))
        return _zstd_blocks(part(length)) if size is None else size
    if name in ("zlib", "gzip") and length * 1032 <= _UNSEEN:  # the best ratio of deflate
        return 0
    return _streamed(_decompressor(name, codec), part(length), limit)


def _decompressor(name: str, codec: Any) -> Callable[[], Any]:
    configuration = codec.get("configuration", codec)
    if name == "bz2":
        return bz2.BZ2Decompressor
    if name == "lzma":
        form = configuration.get("format", lzma.FORMAT_XZ)
        if form == lzma.FORMAT_RAW:
            return lambda: lzma.LZMADecompressor(form, None, configuration.get("filters"))
        return lambda: lzma.LZMADecompressor(form, _LZMA_MEMORY)
    return lambda: _Inflater(31 if name == "gzip" else 15)


class _Inflater:
    """A decompressor of zlib with the methods of bz2's."""

    def __init__(self, bits: int) -> None:
        self._stream = zlib.decompressobj(bits)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def needs_input(self) -> bool:
        return not self._stream.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._stream.decompress(data or self._stream.unconsumed_tail, max_length)


def _streamed(make: Callable[[], Any], data: bytes, limit: int) -> int:
    """Return the bytes that consecutive streams unpack to; stop above the limit."""
    total = 0
    while data and total <= limit:
        one = make()
        for piece in _pieces(one, data):
            total += len(piece)
            if total > limit:
                return total
        data = one.unused_data.lstrip(b"\0") if one.eof else b""
    return total


def _pieces(one: Any, data: bytes) -> Iterator[bytes]:
    piece = one.decompress(data, 1 << 20)
    while piece:
        yield piece
        if one.eof or (one.needs_input and len(piece) < 1 << 20):
            return
        piece = one.decompress(b"", 1 << 20)


def _zstd_content(head: bytes) -> int | None:
    """Return the size in the header of a zstd frame; None if it has none."""
    if head[:4] != b"\x28\xb5\x2f\xfd" or len(head) < 6:
        return 0  # it cannot be unpacked
    flags = head[4]
    single = flags >> 5 & 1
    position = 5 + (not single) + (0, 1, 2, 4)[flags & 3]
    width = (single, 2, 4, 8)[flags >> 6]
    if width == 0:
        return None
    return int.from_bytes(head[position : position + width], "little") + (256 if width == 2 else 0)


def _zstd_blocks(data: bytes) -> int:
    """Return an upper bound on the content of zstd frames without a size."""
    total, position = 0, 0
    while data[position : position + 4] == b"\x28\xb5\x2f\xfd" and position + 5 < len(data):
        flags = data[position + 4]
        single = flags >> 5 & 1
        position += 5 + (not single) + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6]
        last = 0
        while not last and position + 3 <= len(data):
            head = int.from_bytes(data[position : position + 3], "little")
            last, kind, size = head & 1, head >> 1 & 3, head >> 3
            total += (size, size, 1 << 17, 0)[kind]
            position += 3 + (1 if kind == 1 else size)
        position += 4 * (flags >> 2 & 1)
    return total
