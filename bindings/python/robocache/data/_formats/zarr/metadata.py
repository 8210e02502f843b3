"""The metadata of a Zarr store, checked before Zarr opens an array.

Metadata name the codecs that unpack an array, and one of them, pickle, runs any code that an array
contains. A store is refused if its metadata name a codec that is not known to be harmless.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from ..._errors import FormatError
from ..._file_access import Folder
from .store import Files, FolderFiles, ZipFiles, folders_below

_FILES = (".zgroup", ".zarray", ".zmetadata", "zarr.json")
_MOST = 64 << 20  # bytes of one metadata file
_LEAST = 16 << 20  # bytes of metadata that any zip file may have

# Codecs that only convert bytes or numbers.
_HARMLESS = {"zlib", "gzip", "bz2", "lzma", "lz4", "zstd", "blosc", "snappy", "zfpy", "pcodec"}
_HARMLESS |= {"shuffle", "delta", "fixedscaleoffset", "quantize", "bitround", "packbits", "astype"}
_HARMLESS |= {"crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3", "base64"}
_HARMLESS |= {"vlen-utf8", "vlen-bytes", "vlen-array", "json2", "msgpack2", "categorize"}
_HARMLESS |= {"bytes", "endian", "transpose", "sharding_indexed"}  # of version 3
_PICTURES = "imagecodecs_"


def require_harmless(files: Files, follow_links: bool) -> None:
    """Check that no link leads out of a store, and that no codec of it can run code."""
    path = files.path
    if isinstance(files, FolderFiles):
        metadata = _folder_files(files, follow_links)
    else:
        metadata = _zip_files(files)
    for place, text in metadata:
        try:
            content = json.loads(text)
            codecs = list(_codecs(content))
        except (ValueError, RecursionError) as error:
            raise FormatError(path, place, f"is not a Zarr group, or is damaged: {error}") from None
        for codec in codecs:
            if not _is_harmless(codec):
                raise FormatError(path, place, _refusal(codec))


def _refusal(codec: Any) -> str:
    if codec_names(codec) == ["pickle"]:
        return (
            "packs its array with pickle, which can run any code, and is not read; save the array "
            "again as numbers"
        )
    return (
        f"packs its array with {(codec_names(codec) or [codec])[0]!r}, which is not known to be "
        "harmless; save the array again with zstd or blosc"
    )


# ---- files --------------------------------------------------------------------------------------


def _folder_files(files: FolderFiles, follow_links: bool) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of the metadata files."""
    path = files.path
    folder = Folder(path, follow_links)
    for base, directories, names in folders_below(path, follow_links):
        for name in (*directories, *names):
            file = os.path.join(base, name)
            place = os.path.relpath(file, path)
            if not follow_links and os.path.islink(file) and not folder.holds(file):
                reason = "is a link out of the store; follow_links=True allows it"
                raise FormatError(path, place, reason)
            if name.lower() in _FILES and name in names and os.path.exists(file):
                yield place, _limited(path, place, files.part(place, 0, _MOST + 1))


def _zip_files(files: ZipFiles) -> Iterator[tuple[str, bytes]]:
    """Yield the same for a zipped store, also for members with equal names."""
    total = 0
    for member in files.members:
        if member.filename.rpartition("/")[2].lower() in _FILES:
            total += member.file_size
            if total > max(_LEAST, files.limit.RATIO * files.total):
                reason = f"brings the metadata to {total} bytes, too many for a file of "
                raise FormatError(files.path, member.filename, f"{reason}{files.total} bytes")
            text = files.content(member, min(member.file_size, _MOST + 1))
            yield member.filename, _limited(files.path, member.filename, text)


def _limited(path: str, place: str, text: bytes) -> bytes:
    if len(text) > _MOST:
        raise FormatError(path, place, f"has more than {_MOST >> 20} MB, too many for metadata")
    return text


# ---- codecs -------------------------------------------------------------------------------------


def _codecs(metadata: Any) -> Iterator[Any]:
    """Yield the codecs of an array, or of all arrays that a group's metadata repeat."""
    for node in _nodes(metadata):
        for key in ("filters", "compressor", "codecs"):
            codecs = node.get(key)
            for codec in codecs if isinstance(codecs, list) else [codecs]:
                if codec is not None:
                    yield from _nested(codec)


def _nodes(metadata: Any) -> Iterator[dict[str, Any]]:
    """Yield an array or a group, and nodes it repeats: in .zmetadata (v2), zarr.json (v3)."""
    waiting: list[Any] = [metadata]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            raise ValueError(f"has {node!r:.40} where metadata of an array should be")
        yield node
        own = node.get("metadata")
        if isinstance(own, dict):
            waiting += [part for name, part in own.items() if not name.endswith(".zattrs")]
        repeated = node.get("consolidated_metadata")
        if isinstance(repeated, dict) and isinstance(repeated.get("metadata"), dict):
            waiting += repeated["metadata"].values()


def _nested(codec: Any) -> Iterator[Any]:
    """Yield a codec and the codecs nested in it, as in shards."""
    waiting = [codec]
    while waiting:
        codec = waiting.pop()
        yield codec
        inner = codec.get("configuration") if isinstance(codec, dict) else None
        for key in ("codecs", "index_codecs"):
            codecs = inner.get(key) if isinstance(inner, dict) else None
            waiting += codecs if isinstance(codecs, list) else [codecs] if codecs else []


def codec_names(codec: Any) -> list[str]:
    """Return the names of a codec: its id in version 2, its name in version 3."""
    if isinstance(codec, dict):
        named = [codec[key] for key in ("id", "name") if key in codec]
    else:
        named = [codec]
    return [name[len("numcodecs.") :] if name.startswith("numcodecs.") else name
            for name in named if isinstance(name, str)]  # fmt: skip


def _is_harmless(codec: Any) -> bool:
    names = codec_names(codec)
    return bool(names) and all(name in _HARMLESS or name.startswith(_PICTURES) for name in names)
