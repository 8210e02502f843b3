"""Tables in which several things share the rows: a column identifies the thing of each row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..._errors import needed
from .parquet import numbers_of, present_in, zero_filled
from .texts import is_text

_FEW, _MANY = 2, 64  # things
_MOSTLY = 0.9  # of the rows with a time identify their thing
_REPEATED = 0.5  # of the rows have a time that another row has too


@dataclass(frozen=True)
class Instances:
    """A column that identifies the thing of each row."""

    column: str
    labels: tuple[Any, ...]  # integers or texts
    counts: tuple[int, ...]  # number of rows of each

    def rows(self, path: str, chunked: Any) -> dict[Any, Any]:
        """Return the rows of each thing, as bool arrays. Rows without a value belong to none."""
        values, there = codes_of(path, self.column, chunked)
        if isinstance(values, tuple):
            codes, texts = values
            place = {text: i for i, text in enumerate(texts)}
            return {label: there & (codes == place.get(label, -1)) for label in self.labels}
        return {label: there & (values == label) for label in self.labels}


def may_say_which(kind: Any) -> bool:
    """Whether a column of a type may identify the thing of a row: integers and texts may."""
    arrow = needed("pyarrow", "tables", "a table")
    return bool(arrow.types.is_integer(kind) or is_text(kind))


def codes_of(path: str, name: str, chunked: Any) -> tuple[Any, Any]:
    """Return integers, or (codes, texts) for texts, and a mask of the rows that have a value."""
    arrow = needed("pyarrow", "tables", "a table")
    there = present_in(chunked)
    if is_text(chunked.type):
        whole = chunked.combine_chunks()
        if isinstance(whole, arrow.ChunkedArray):
            whole = whole.chunk(0) if whole.num_chunks else arrow.array([], arrow.string())
        if not arrow.types.is_dictionary(whole.type):
            whole = whole.dictionary_encode()
        indices = zero_filled(arrow.chunked_array([whole.indices]))
        return (numbers_of(path, name, indices), whole.dictionary.to_pylist()), there
    return numbers_of(path, name, zero_filled(chunked)), there


def times_repeat(times: Any) -> bool:
    """Whether at least half of the rows share their time with another row."""
    import numpy as np

    if len(times) < 2 * _FEW:
        return False
    _, counts = np.unique(times, return_counts=True)
    return bool(counts[counts > 1].sum() >= _REPEATED * len(times))


def instances_of(
    path: str, table: Any, names: Iterable[str], times: Any, mask: Any
) -> Instances | None:
    """Return the first column by which the times of each thing are unique and ascending.

    Rows without a time, or without a value in the column, are ignored.
    """
    import numpy as np

    if not times_repeat(times[mask]):
        return None
    _, places = np.unique(times, return_inverse=True)
    for name in names:
        if not may_say_which(table.schema.field(name).type):
            continue
        values, there = codes_of(path, name, table[name])
        texts = None
        if isinstance(values, tuple):
            values, texts = values
            there &= np.array([bool(text) for text in texts] or [False])[values]
        kept = there & mask
        if kept.sum() < _MOSTLY * mask.sum() or not times_repeat(times[kept]):
            continue
        labels, codes, counts = np.unique(values[kept], return_inverse=True, return_counts=True)
        if not _FEW <= len(labels) <= _MANY or len(codes) < 2 * len(labels):
            continue
        order = np.argsort(codes, kind="stable")
        steps, same = np.diff(places[kept][order]), np.diff(codes[order]) == 0
        if (steps[same] > 0).all():
            known = [int(label) if texts is None else texts[label] for label in labels]
            return Instances(name, tuple(known), tuple(counts.tolist()))
    return None
