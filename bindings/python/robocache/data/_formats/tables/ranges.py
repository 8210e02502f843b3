"""What a Parquet file tells of the ranges of its 64-bit integers, without reading them."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from .parquet import with_file
from .parquet_footer import groups_of
from .parquet_size import columns_of_leaves


def integer_ranges(path: str, names: Collection[str]) -> dict[str, tuple[int, int]] | None:
    """The least and the largest value of each column, and 0; None if the file lacks some."""

    def read(file: Any) -> dict[str, tuple[int, int]] | None:
        ranges: dict[str, tuple[int, int]] = {}
        owners, chosen = columns_of_leaves(file), set(names)
        if owners is None:
            return None
        for group in groups_of(path):
            for leaf, (name, chunk) in enumerate(zip(owners, group.chunks)):
                if name not in chosen or chunk.kind != "INT64" or not group.rows:
                    continue
                if chunk.range is None or set(map(len, chunk.range)) != {8}:
                    return None
                signed = json.loads(file.schema.column(leaf).logical_type.to_json()).get(
                    "isSigned", True
                )
                least, most = (int.from_bytes(x, "little", signed=signed) for x in chunk.range)
                low, high = ranges.get(name, (0, 0))
                ranges[name] = min(low, least), max(high, most)
        return ranges

    return with_file(path, read)
