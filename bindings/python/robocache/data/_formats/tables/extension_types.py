"""Columns of Arrow extension types, read by their storage.

Packages register such types: ``datasets`` those of Array2D to Array5D, pandas those of periods.
After that, pyarrow reads a column as the registered type; before, it reads the storage.
"""

from __future__ import annotations

from typing import Any

from ..._errors import needed

_WHAT = "a Parquet file"


def storage_of(table: Any) -> Any:
    """A table whose columns have the storage of their extension types, also within lists."""
    arrow = needed("pyarrow", "tables", _WHAT)
    for i, field in enumerate(table.schema):
        kind = storage_type(field.type)
        if kind is field.type:
            continue
        column = table.column(i)
        if isinstance(field.type, arrow.BaseExtensionType):
            chunks = [chunk.storage for chunk in column.chunks]
            column = arrow.chunked_array(chunks, field.type.storage_type)
        if column.type != kind:
            column = column.cast(kind)
        table = table.set_column(i, field.with_type(kind), column)
    return table


def storage_schema(schema: Any) -> Any:
    """The same of a schema."""
    for i, field in enumerate(schema):
        kind = storage_type(field.type)
        if kind is not field.type:
            schema = schema.set(i, field.with_type(kind))
    return schema


def storage_type(kind: Any) -> Any:
    """The type without extension types; the same object if it has none."""
    arrow = needed("pyarrow", "tables", _WHAT)
    types = arrow.types
    if isinstance(kind, arrow.BaseExtensionType):
        return storage_type(kind.storage_type)
    if types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        inner = [storage_type(field.type) for field in fields]
        if all(new is field.type for new, field in zip(inner, fields)):
            return kind
        return arrow.struct([field.with_type(new) for new, field in zip(inner, fields)])
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return kind
    old = kind.value_type
    new = storage_type(old)
    if new is old:
        return kind
    field = kind.value_field.with_type(new)
    if types.is_fixed_size_list(kind):
        return arrow.list_(field, kind.list_size)
    return arrow.large_list(field) if types.is_large_list(kind) else arrow.list_(field)
