"""The arrays of a Zarr store, read completely, with notes about missing chunks."""

from __future__ import annotations

import math
from typing import Any

from ..._errors import FormatError, raise_shortage
from ..._options import Options
from .calls import in_one_thread
from .chunks import Chunks, Place, chunks_of
from .store import Files, group_of

_NUMBERS = "fiubmM"  # kinds of dtypes
_FEW = 64  # missing chunks from which on only the stored ones are read


class Store:
    """A store, and how much of it was read."""

    def __init__(self, path: str, group: Any, files: Files, options: Options) -> None:
        self.path = path
        self.group = group
        self._files = files
        self.options = options
        self._bytes: dict[str, int] = {}  # by array

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.group = group_of(self._files)

    def without_metadata(self, group: str, known: set[str]) -> list[str]:
        """Return folders of a group that hold files, but are neither an array nor a group."""
        return [
            name
            for name in sorted(self._files.names_in(group))
            if name not in known
            and not name.startswith(".")
            and any(True for _ in self._files.names(f"{group}/{name}"))
        ]

    def require_limit(self, name: str, array: Any) -> Chunks:
        """Return the chunks of an array, if it needs no more memory than is allowed.

        Raises
        ------
        FormatError
            Together with the arrays before it, it needs too much for a store of this size.
        """
        chunks = chunks_of(self._files, self.path, name, array)
        self._bytes[name] = chunks.bytes
        limit, total = self.options.limit, sum(self._bytes.values())
        if total > limit.allowed(0):  # else the sizes of the files do not matter
            limit.require(self.path, name, total, self._files.total)
        return chunks

    def require_chunk(self, name: str, array: Any) -> Chunks:
        """Return the chunks of an array that is read some rows at a time.

        Raises
        ------
        FormatError
            One chunk needs too much memory for a store of this size.
        """
        chunks = chunks_of(self._files, self.path, name, array)
        size = math.prod(chunks.chunk) * chunks.item
        if size > self.options.limit.allowed(0):
            self.options.limit.require(self.path, f"{name}, a chunk", size, self._files.total)
        return chunks

    @in_one_thread()
    def read(self, name: str, complete: bool = False) -> Any:
        """Read an array; of a damaged one, what can be read, if damage is kept.

        ``complete``: a lost or missing part is an error even then.
        """
        import numpy as np

        try:
            array = self.group[name]
        except KeyError:
            raise FormatError(self.path, name, "is missing") from None
        if not hasattr(array, "dtype"):
            raise FormatError(self.path, name, "is a group, expected an array")
        if array.dtype.kind not in _NUMBERS:
            raise FormatError(self.path, name, f"has dtype {array.dtype}, expected numbers")
        dtype = array.dtype.newbyteorder("=")
        chunks = self.require_limit(name, array)
        if array.size == 0:
            return np.zeros(array.shape, dtype)
        stored = chunks.stored()
        faults, missing = self._look(chunks, stored)
        absent = chunks.count - len(stored)
        values = None
        is_whole = not absent or (chunks.inner is None and absent <= _FEW + len(stored))
        if is_whole and not faults and not (absent and array.fill_value is None):
            try:
                values = np.asarray(array[...])
            except Exception:  # errors of zarr and its codecs have no common class
                raise_shortage(self.path)  # else one of its chunks has a fault
        if values is None:
            values = self._by_chunk(array, chunks, stored, faults)
        if complete and (faults or absent or missing):
            count = len(faults) + absent + missing
            text = (
                _lost(chunks, faults) if faults else f"{count} of its chunks {_is(count)} missing"
            )
            raise FormatError(self.path, name, text)
        if faults:
            self.options.damage.found(self.path, name, _lost(chunks, faults))
        self._note_missing(array, name, chunks, absent, missing)
        return values.astype(dtype, copy=False)

    def _look(self, chunks: Chunks, stored: list[Place]) -> tuple[dict[Place, str], int]:
        """Return the faults of chunk files, and the number of chunks missing within files."""
        faults: dict[Place, str] = {}
        missing = 0
        for place in stored:
            try:
                missing += chunks.unwritten(place)
            except Exception as error:
                raise_shortage(self.path)
                faults[place] = first_line(error)
        return faults, missing

    def _by_chunk(
        self, array: Any, chunks: Chunks, stored: list[Place], faults: dict[Place, str]
    ) -> Any:
        """Read chunk by chunk; lost chunks become NaN, or 0 for integers."""
        import numpy as np

        lost = np.nan if array.dtype.kind == "f" else np.zeros((), array.dtype)[()]
        fill = lost if array.fill_value is None else array.fill_value
        values = np.full(array.shape, fill, array.dtype.newbyteorder("="))
        for place in stored:
            region = chunks.region(place)
            if place not in faults:
                try:
                    values[region] = array[region]
                    continue
                except Exception as error:
                    raise_shortage(self.path)
                    faults[place] = first_line(error)
            values[region] = lost
        return values

    def _note_missing(
        self, array: Any, name: str, chunks: Chunks, absent: int, missing: int
    ) -> None:
        """Note missing chunks. Zarr does not store chunks that hold only the fill value."""
        fill = array.fill_value
        as_what = f"read as {fill}"
        if fill is None:
            lost = "NaN" if array.dtype.kind == "f" else "0"
            as_what = f"read as {lost}, because the array has no fill value"
        if absent:
            noun = "chunks" if chunks.inner is None else "files of chunks"
            text = f"{absent} of {chunks.count} {noun} {_is(absent)} missing, and {as_what}"
            self.options.damage.note(self.path, name, text)
        if missing:
            assert chunks.inner is not None
            count = math.prod(-(-n // i) for n, i in zip(chunks.shape, chunks.inner))
            text = f"{missing} of {count} chunks {_is(missing)} missing in the files, and {as_what}"
            self.options.damage.note(self.path, name, text)


def _lost(chunks: Chunks, faults: dict[Place, str]) -> str:
    first, text = next(iter(sorted(faults.items())))
    rows = ""
    if chunks.shape:
        begin, end = first[0] * chunks.chunk[0], (first[0] + 1) * chunks.chunk[0]
        rows = f" (rows {begin} to {min(end, chunks.shape[0]) - 1})"
    if len(faults) == 1:
        return f"a chunk cannot be read{rows}: {text}"
    return f"{len(faults)} of {chunks.count} chunks cannot be read; the first{rows}: {text}"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    if isinstance(error, FormatError):
        return error.reason
    return str(error).partition("\n")[0] or type(error).__name__
