"""What a Parquet file tells of the ranges of its 64-bit integers, without reading them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._errors import needed


def integer_ranges(path: str) -> dict[str, tuple[int, int]] | None:
    """The least and the largest by column, 0 within; None where the file does not tell some."""
    parquet = needed("pyarrow.parquet", "tables", "a Parquet file")
    ranges: dict[str, tuple[int, int]] = {}
    with parquet.ParquetFile(path) as file:
        names, told = file.schema_arrow.names, file.metadata
        for g in range(told.num_row_groups):
            group = told.row_group(g)
            for c in range(group.num_columns):
                own = group.column(c)
                if own.physical_type != "INT64" or not group.num_rows:
                    continue
                if own.statistics is None or not own.statistics.has_min_max:
                    return None
                name = _top_of(own.path_in_schema, names)
                low, high = ranges.get(name, (0, 0))
                least, most = _range_of(own.statistics)
                ranges[name] = min(low, least), max(high, most)
    return ranges


def _top_of(path: str, names: Sequence[str]) -> str:
    """The column that a leaf, such as "pose.list.element", is of."""
    above = [name for name in names if path == name or path.startswith(f"{name}.")]
    return max(above, key=len, default=path)


def _range_of(known: Any) -> tuple[int, int]:
    """Of statistics; those of dates and the like as they are stored."""
    if known.logical_type.type in ("INT", "NONE"):
        return int(known.min), int(known.max)
    return int(known.min_raw), int(known.max_raw)
