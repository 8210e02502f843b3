"""npz files written by ``save``: one file with every value and stamp."""

from __future__ import annotations

import json
import math
import os
import zipfile
from typing import IO, Any, BinaryIO

from ..._errors import FormatError, raise_shortage
from ..._file_access import Limit, head, opened
from ..._options import Options
from ..description import Format
from .named_arrays import Data, flattened, parsed, restored
from .npy import header_of

KIND = "robocache npz"
_DESCRIPTION = "robocache"
_PART = 1 << 20  # bytes unpacked at once


FORMAT = Format(
    name="npz",
    title="npz of RoboCache",
    files="*.npz",
    reads="What save wrote: recordings or episodes, with every value, stamp, kind and unit.",
    refuses="Archives of other programs: names and units of their arrays are not known. Save their "
    "arrays as .npy files in one folder.",
    example='recording = rbc.data.open("run.npz")',
)


def sniff(path: str) -> bool:
    if head(path, 4) != b"PK\x03\x04":
        return False
    try:
        with opened(path) as file, zipfile.ZipFile(file) as archive:
            return f"{_DESCRIPTION}.npy" in archive.NameToInfo
    except Exception:  # errors of zipfile, struct and text decoding
        raise_shortage(path)
        return path.endswith(".npz")  # cut off: opening it reports that


def open(path: str, options: Options) -> Any:
    with opened(path) as file:
        arrays = _Arrays(path, file, options.limit)
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

        member = self.archive.NameToInfo.get(f"{name}.npy")
        if member is None:
            raise FormatError(self.path, name, "is missing")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            text = f"is compressed by method {member.compress_type}, expected 0 or 8"
            raise FormatError(self.path, name, text)
        self.unpacked += member.file_size
        self.limit.require(self.path, name, self.unpacked, self.size)
        try:
            with self.archive.open(member) as file:
                header = header_of(self.path, name, file, member.file_size)
                flat = np.empty(math.prod(header.shape), header.dtype)
                count = 0
                if flat.nbytes:
                    count = _read_into(flat.reshape(-1).view(np.uint8).data, file)
        except FormatError:
            raise
        except Exception as error:  # errors of zlib and zipfile
            raise_shortage(self.path)
            raise FormatError(self.path, name, f"cannot be read: {error}") from None
        if count != flat.nbytes:
            text = f"is truncated: has {count:,} bytes of numbers, expected {flat.nbytes:,}"
            raise FormatError(self.path, name, text)
        return flat.reshape(header.shape, order="F" if header.by_column else "C")


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
