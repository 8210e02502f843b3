"""npz files: those that ``save`` writes, with every value and stamp, and others."""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, Any, BinaryIO

from ...._episodes.episodes import Episodes
from ..._errors import FormatError, LeftOut, raise_shortage
from ..._file_access import Limit, head, opened
from ..._options import Options
from ..._recording import Recording
from ..description import Format
from .named_arrays import Data, flattened, parsed, restored
from .npy import OBJECTS, Header, Shaped, header_of
from .npy_folder import is_clock, opened_arrays
from .rows import is_number

KIND = "robocache npz"
_DESCRIPTION = "robocache"
_RATES = ("fps", "framerate", "frame_rate", "mocap_framerate", "mocap_frame_rate")
_PART = 1 << 20  # bytes unpacked at once


FORMAT = Format(
    name="npz",
    title="NumPy archives",
    files="*.npz",
    reads="What save wrote: recordings or episodes, with every value, stamp, kind and unit. Of "
    "other programs: a stream for each array, on the array of times with the same rows or on a "
    "number fps, and episodes by episode_ends, episode_lengths, traj_lengths or episode_index.",
    refuses="Arrays of Python objects, pictures and texts are listed, not read.",
    example='recording = rbc.data.open("run.npz")',
    named_times=True,
)


def sniff(path: str) -> bool:
    if head(path, 4) != b"PK\x03\x04":
        return False
    try:
        with opened(path) as file, zipfile.ZipFile(file) as archive:
            names = archive.NameToInfo
            return bool(names) and all(name.endswith((".npy", "/")) for name in names)
    except Exception:  # errors of zipfile, struct and text decoding
        raise_shortage(path)
        return path.endswith(".npz")  # truncated: opening it reports that


def open(path: str, options: Options) -> Any:
    with opened(path) as file:
        arrays = _Arrays(path, file, options.limit)
        if f"{_DESCRIPTION}.npy" not in arrays.archive.NameToInfo:
            return _others(arrays, options)
        if options.time is not None:
            raise ValueError(f"--time {options.time}: {path} was written by save, with its times")
        description = parsed(str(arrays.read(_DESCRIPTION)))
        if description is None:
            raise FormatError(path, _DESCRIPTION, "is not a description of a recording")
        try:
            return restored(description, arrays.read, path, KIND)
        except FormatError:
            raise
        except Exception as error:  # the description has entries of other types
            raise_shortage(path)
            raise FormatError(path, _DESCRIPTION, f"is incomplete: {error!r}") from None


# ---- archives of other programs -----------------------------------------------------------------


@dataclass(frozen=True)
class _Member(Shaped):
    """An array in an archive, as ``npy.StoredArray`` is one in a file. No file stays open."""

    path: str
    name: str
    header: Header
    limit: Limit

    def read(self) -> Any:
        """Read the numbers in native byte order."""
        import numpy as np

        with opened(self.path) as file:
            array = _Arrays(self.path, file, self.limit).read(self.name)
        if (array.shape, array.dtype) != (self.shape, self.dtype):
            raise FormatError(self.path, self.name, "has changed since it was opened")
        return np.asarray(array, self.dtype.newbyteorder("="), order="C")

    def first(self, count: int) -> Any:
        """Read the first numbers of a one-dimensional array."""
        return self.read()[:count]


def _others(arrays: _Arrays, options: Options) -> Recording | Episodes:
    """Open an archive of other programs as a folder of .npy files."""
    members: dict[str, _Member] = {}
    left_out: list[LeftOut] = []
    for file in arrays.archive.NameToInfo:
        name = file.removesuffix(".npy")
        if file.endswith("/"):
            continue
        try:
            members[name] = _Member(arrays.path, name, arrays.header(name), arrays.limit)
        except FormatError as error:
            if error.reason == OBJECTS:
                left_out.append(LeftOut(name, error.reason))
            else:
                options.damage.found(arrays.path, name, error.reason)
    arrays.limit.require(
        arrays.path, "", sum(each.header.size for each in members.values()), arrays.size
    )
    kept: dict[str, Any] = dict(members)
    rate = _rate_in(arrays, members)
    if rate is not None and options.rate is None and not any(map(is_clock, members, kept.values())):
        name, options = rate[0], replace(options, rate=rate[1])
        left_out.append(LeftOut(name, f"is the rate, {rate[1]:g}"))
        del kept[name]
        lengths = Counter(len(each) for each in kept.values() if each.ndim)
        most = lengths.most_common(1)[0][0] if lengths else 0
        for other in [n for n, each in kept.items() if each.ndim and len(each) != most]:
            left_out.append(LeftOut(other, f"has {len(kept.pop(other))} rows, others {most}"))
    return opened_arrays(arrays.path, kept, options, left_out, "npz")


def _rate_in(arrays: _Arrays, members: dict[str, _Member]) -> tuple[str, float] | None:
    """Return the array that holds the rows per second, and its number."""
    for name, member in members.items():
        one = math.prod(member.shape) == 1 and is_number(member.dtype)
        if one and name.lower().rpartition("/")[2] in _RATES:
            rate = float(arrays.read(name).reshape(()))
            if 0 < rate < 1e6:
                return name, rate
    return None


class _Arrays:
    """The arrays of an archive, by name, with a limit on their total size."""

    def __init__(self, path: str, file: BinaryIO, limit: Limit) -> None:
        self.path, self.limit = path, limit
        self.size = os.fstat(file.fileno()).st_size
        self.unpacked = 0
        try:
            self.archive = zipfile.ZipFile(file)
        except Exception as error:
            raise_shortage(path)
            raise FormatError(path, "", f"is not an npz file, or is truncated: {error}") from None

    def read(self, name: str) -> Any:
        import numpy as np

        member = self._member(name)
        self.unpacked += member.file_size
        self.limit.require(self.path, name, self.unpacked, self.size)
        with self._named(name), self.archive.open(member) as file:
            header = header_of(self.path, name, file, member.file_size)
            flat = np.empty(math.prod(header.shape), header.dtype)
            count = 0
            if flat.nbytes:
                count = _read_into(flat.reshape(-1).view(np.uint8).data, file)
        if count != flat.nbytes:
            text = f"is truncated: has {count:,} bytes of numbers, expected {flat.nbytes:,}"
            raise FormatError(self.path, name, text)
        return flat.reshape(header.shape, order="F" if header.by_column else "C")

    def header(self, name: str) -> Header:
        """Read the header of an array."""
        member = self._member(name)
        with self._named(name), self.archive.open(member) as file:
            return header_of(self.path, name, file, member.file_size)

    def _member(self, name: str) -> zipfile.ZipInfo:
        member = self.archive.NameToInfo.get(f"{name}.npy")
        if member is None:
            raise FormatError(self.path, name, "is missing")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            text = f"is compressed by method {member.compress_type}, expected 0 or 8"
            raise FormatError(self.path, name, text)
        return member

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        """Turn the errors of zlib and zipfile into a FormatError."""
        try:
            yield
        except FormatError:
            raise
        except Exception as error:
            raise_shortage(self.path)
            raise FormatError(self.path, name, f"cannot be read: {error}") from None


def _read_into(view: memoryview, file: IO[bytes]) -> int:
    """Read until the buffer is full, then to the end of the file, which checks the checksum."""
    count = 0
    while count < len(view) and (part := file.read(min(_PART, len(view) - count))):
        view[count : count + len(part)] = part
        count += len(part)
    while file.read(_PART):
        pass
    return count


def write(source: Data, part: str) -> None:
    import numpy as np

    description, arrays = flattened(source)
    with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in (*arrays, (_DESCRIPTION, np.array(json.dumps(description)))):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array, order="C"), allow_pickle=False)
