"""Rows of an HDF5 array, and which of them were never written. It runs in the worker.

HDF5 stores a chunk when it is first written, and reads the fill value if there is no chunk: a
program that died leaves such rows behind.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from typing import Any

import h5py
import numpy as np

from .links import require_inside

_SHOWN = 3  # ranges of rows in a text


class Rows:
    def __init__(self, dataset: Any) -> None:
        plist = dataset.get_create_plist()
        require_inside(plist)
        self.dataset = dataset
        self.shape, self.dtype = dataset.shape, dataset.dtype.newbyteorder("=")
        self.repeated = 0  #: chunks that the index lists more than once
        #: Ranges of rows that hold a chunk that was never written, in order.
        self.unwritten: list[tuple[int, int]] = []
        #: Ranges in which no chunk was written: HDF5 need not look for each chunk there.
        self.empty: list[tuple[int, int]] = []
        self.fill = np.zeros((), self.dtype)
        if math.prod(self.shape) == 0:
            return
        if plist.get_layout() == h5py.h5d.CHUNKED:
            self._look_at_chunks(plist.get_chunk())
        elif plist.get_layout() == h5py.h5d.CONTIGUOUS and dataset.get_offset() is None:
            self.unwritten = self.empty = [(0, self.shape[0])]
        if self.unwritten and plist.fill_value_defined() != h5py.h5d.FILL_VALUE_UNDEFINED:
            plist.get_fill_value(self.fill)

    def _look_at_chunks(self, chunk: tuple[int, ...]) -> None:
        rows, step = self.shape[0], chunk[0]
        each = math.prod(-(-n // c) for n, c in zip(self.shape[1:], chunk[1:]))
        offsets = set()
        listed = 0
        for offset in _offsets(self.dataset):
            if all(0 <= at < extent for at, extent in zip(offset, self.shape)):
                listed += 1
                offsets.add(offset)
        self.repeated = listed - len(offsets)
        present = Counter(offset[0] // step for offset in offsets)
        whole = sorted(row for row, count in present.items() if count >= each)
        self.unwritten = list(_between(whole, step, rows))
        self.empty = list(_between(sorted(present), step, rows))

    def unwritten_text(self) -> str:
        """Such as "rows 500 to 999 were never written, and read as 0.0"; "" if all were."""
        if not self.unwritten:
            return ""
        shown = [f"{a} to {b - 1}" for a, b in self.unwritten[:_SHOWN]]
        more = len(self.unwritten) - _SHOWN
        if more > 0:
            total = sum(b - a for a, b in self.unwritten)
            shown.append(f"in {more} more ranges, {total} rows in all,")
        return f"rows {', '.join(shown)} were never written, and read as {self.fill[()]}"

    def read(self, begin: int, end: int, into: Any) -> None:
        """Some rows, into an array of their shape."""
        found = (self.shape[1:], self.dtype)
        if found != (into.shape[1:], into.dtype) or end > self.shape[0]:
            raise ValueError(
                f"is of {found[1]} {list(self.shape)}, but was of {into.dtype} with rows "
                f"{list(into.shape[1:])}: it changed after it was opened"
            )
        if into.size == 0:
            return
        if self.unwritten:
            into[...] = self.fill  # HDF5 writes nothing there if no fill value is defined
        at = begin
        first = bisect.bisect_right(self.empty, (begin, begin))
        for a, b in self.empty[max(0, first - 1) :]:
            if a >= end:
                break
            if at < a:
                self._read(at, a, into[at - begin : a - begin])
            at = max(at, b)
        if at < end:
            self._read(at, end, into[at - begin :])

    def _read(self, begin: int, end: int, into: Any) -> None:
        if (begin, end) == (0, self.shape[0]):
            self.dataset.read(h5py.h5s.ALL, h5py.h5s.ALL, into)
            return
        chosen = self.dataset.get_space()
        chosen.select_hyperslab((begin, *(0 for _ in self.shape[1:])), into.shape)
        self.dataset.read(h5py.h5s.create_simple(into.shape), chosen, into)


def _offsets(dataset: Any) -> Any:
    """The first element of each chunk that is there."""
    if not hasattr(dataset, "chunk_iter"):  # before HDF5 1.14
        return [dataset.get_chunk_info(i).chunk_offset for i in range(dataset.get_num_chunks())]
    found: list[tuple[int, ...]] = []
    dataset.chunk_iter(lambda info: found.append(info.chunk_offset))
    return found


def _between(present: list[int], step: int, rows: int) -> Any:
    """Ranges of rows in front of, between and behind blocks of ``step`` rows that are present."""
    at = 0
    for block in present:
        if at < block * step:
            yield at, block * step
        at = (block + 1) * step
    if at < rows:
        yield at, rows
