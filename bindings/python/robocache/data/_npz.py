"""npz files that ``save`` wrote: one file, every value and stamp."""

from __future__ import annotations

import json
import zipfile
from typing import Any

from ._errors import FormatError
from ._flat import Data, flattened, parsed, restored
from ._open import Options, head

KIND = "robocache npz"
_DESCRIPTION = "robocache"


def sniff(path: str) -> bool:
    if head(path, 4) != b"PK\x03\x04":
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{_DESCRIPTION}.npy" in archive.namelist()
    except zipfile.BadZipFile:
        return path.endswith(".npz")  # cut off: opening it tells


def open(path: str, options: Options) -> Any:
    import numpy as np

    try:
        archive = np.load(path, allow_pickle=False)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise FormatError(path, "", f"is no npz file, or cut off: {error}") from None

    def array(name: str) -> Any:
        try:
            return archive[name]
        except Exception as error:  # zlib's, zipfile's, KeyError
            raise FormatError(path, name, f"cannot be read: {error}") from None

    with archive:
        told = parsed(str(array(_DESCRIPTION)))
        if told is None:
            raise FormatError(path, _DESCRIPTION, "is no description of a recording")
        try:
            return restored(told, array, path, KIND)
        except (KeyError, TypeError, IndexError) as error:
            raise FormatError(path, _DESCRIPTION, f"is not whole: {error!r}") from None


def write(given: Data, part: str) -> None:
    import numpy as np

    told, arrays = flattened(given)
    with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in (*arrays, (_DESCRIPTION, np.array(json.dumps(told)))):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array, order="C"), allow_pickle=False)
