"""The frames of cameras in Zarr: arrays of pixels, whose episodes are ranges of rows."""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from ..._errors import Damage, FormatError, raise_shortage
from ..._frames.arrays import StoredRows, blocks
from ..._options import Options
from .arrays import Store, first_line
from .calls import in_one_thread
from .chunks import Chunks
from .metadata import require_harmless
from .store import files_of, group_of

_AT_ONCE = 8 << 20  # bytes of small chunks that are read at once
_KEPT = 32 << 20  # bytes of rows that are kept, of the last chunks


class ZarrRows(StoredRows):
    """The rows of an array, read in whole chunks along the first axis; the last ones are kept."""

    def __init__(
        self, store: Store, name: str, array: Any, lengths: Any, fault: str | None = None
    ) -> None:
        import numpy as np

        self.path, self.name = store.path, name
        self.row, self.dtype = tuple(array.shape[1:]), array.dtype.newbyteorder("=")
        self.rows = int(array.shape[0])
        self.lengths = lengths
        self.begins = np.cumsum(lengths) - lengths
        self.follow_links, self.limit = store.options.follow_links, store.options.limit
        self.fault = None if fault is None else (self.path, name, fault)
        self._forget()

    def _forget(self) -> None:
        self._array: Any = None
        self._chunks: Chunks | None = None
        self._checked: set[Any] = set()  # files whose chunks unpack to what they should
        self._blocks: OrderedDict[int, Any] = OrderedDict()
        self._bytes = 0
        self._warned = False

    def files(self, episode: int) -> tuple[str, ...]:
        if os.path.isdir(self.path):
            return (os.path.join(self.path, *self.name.split("/")),)
        return (self.path,)

    def place(self, episode: int) -> Any:
        return [self.name, int(self.begins[episode]), int(self.lengths[episode])]

    def where(self, episode: int, row: int) -> tuple[str, str]:
        return self.path, f"{self.name}, episode {episode}, row {row}"

    def parts(self, episode: int, rows: Any) -> Iterator[tuple[int, Any]]:
        self._open()
        assert self._chunks is not None
        size = max(1, (self._chunks.inner or self._chunks.chunk)[0])
        most = max(1, _AT_ONCE // max(1, size * math.prod(self.row) * self.dtype.itemsize))
        found = list(blocks(rows + int(self.begins[episode]), size))
        for i, (at, number, own) in enumerate(found):
            if number not in self._blocks:
                count = 1
                while count < most and found[i + count : i + count + 1]:
                    if found[i + count][1] != number + count or number + count in self._blocks:
                        break
                    count += 1
                row = int(own[0] - self.begins[episode])
                self._take(episode, row, number, count, size)
            yield at, self._blocks[number][own - number * size]

    @in_one_thread()
    def _take(self, episode: int, row: int, number: int, count: int, size: int) -> None:
        """Read consecutive blocks of rows: chunks along the first axis. Keep them for a while."""
        import numpy as np

        begin, end = number * size, min((number + count) * size, self.rows)
        try:
            for first in range(number, number + count):
                self._check(first * size)
            values = np.asarray(self._array[begin:end])
        except FormatError as error:
            raise FormatError(*self.where(episode, row), error.reason) from None
        except Exception as error:  # errors of zarr and its codecs have no common class
            raise_shortage(self.path)
            if count > 1:  # find the one
                for one in range(number, number + count):
                    inside = max(row, one * size - int(self.begins[episode]))
                    self._take(episode, inside, one, 1, size)
                return
            text = f"its chunk cannot be read: {first_line(error)}"
            raise FormatError(*self.where(episode, row), text) from None
        values = values.astype(self.dtype, copy=False)
        while self._blocks and self._bytes + values.nbytes > _KEPT:
            self._bytes -= self._blocks.popitem(last=False)[1].nbytes
        for i in range(count):
            self._blocks[number + i] = values[i * size : (i + 1) * size]
        self._bytes += values.nbytes

    def _check(self, begin: int) -> None:
        """Check the files of the chunks that begin at a row, before Zarr unpacks them."""
        assert self._chunks is not None
        chunks = self._chunks
        first = begin // chunks.chunk[0]
        if first in self._checked:
            return
        for rest in itertools.product(*map(range, chunks.grid[1:])):
            place = (first, *rest)
            key = chunks.key(place)
            missing = 0 if key in chunks.files else 1
            missing += 0 if missing else chunks.unwritten(place)
            if missing and self._array.fill_value is None:
                raise FormatError(self.path, key, "is missing, and the array has no fill value")
            if missing:
                self._note(key)
        self._checked.add(first)

    def _note(self, key: str) -> None:
        """Warn of the first missing chunk: Zarr need not store a chunk of only the fill value."""
        if self._warned:
            return
        self._warned = True
        warnings.warn(
            f"{self.path}: {key} is missing, or lacks a chunk: its frames, and frames of other "
            f"missing files, are read as {self._array.fill_value}, as Zarr defines it (frames of "
            "one color need no chunk)",
            stacklevel=2,
        )

    def _open(self) -> None:
        if self._array is not None:
            return
        options = Options(Damage(), follow_links=self.follow_links, limit=self.limit)
        if not os.path.exists(self.path):
            raise FormatError(self.path, "", "is missing")
        files = files_of(self.path, self.follow_links, self.limit)
        require_harmless(files, self.follow_links)
        try:
            store = Store(self.path, group_of(files), files, options)
            array = store.group[self.name]
        except FormatError:
            raise
        except Exception as error:  # as above
            raise_shortage(self.path)
            raise FormatError(self.path, self.name, first_line(error)) from None
        found = tuple(array.shape), array.dtype.newbyteorder("=")
        if found != ((self.rows, *self.row), self.dtype):
            text = f"has {found[1]} {list(found[0])}, but had {self.dtype} "
            text += f"{[self.rows, *self.row]} when the data set was opened"
            raise FormatError(self.path, self.name, text)
        self._chunks = store.require_chunk(self.name, array)
        self._array = array

    def close(self) -> None:
        self._forget()
