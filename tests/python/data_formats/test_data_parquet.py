"""Columns of Parquet files as arrays, and Ctrl-C while pandas is imported for pyarrow."""

from __future__ import annotations

import numpy as np
import pytest

import data_files
import robocache as rbc
import warm_python

pa = pytest.importorskip("pyarrow")

from robocache.data._formats.tables.parquet import column, present_in, zero_filled  # noqa: E402

_KINDS = ["bool", "int8", "uint8", "int16", "uint32", "int64", "uint64", "float16", "float64"]


def tables(dtype: str, shape: tuple[int, ...]):
    """Return an array of rows, and tables of it: whole, in chunks, and sliced from a longer one."""
    rng = np.random.default_rng(0)
    array = rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
    made = pa.array(array.reshape(-1))
    for width in array.shape[:0:-1]:
        made = pa.FixedSizeListArray.from_arrays(made, width)
    whole = pa.table({"x": made})
    return array, [(whole, 0), (pa.concat_tables([whole, whole])[3:], 3), (whole[5:19], 5)]


@pytest.mark.parametrize("shape", [(23,), (23, 3), (23, 3, 2), (0,), (0, 3)])
@pytest.mark.parametrize("dtype", _KINDS)
def test_columns(dtype: str, shape: tuple[int, ...]) -> None:
    array, given = tables(dtype, shape)
    for table, begin in given:
        values = column("x.parquet", table, "x")
        expected = np.concatenate([array, array])[begin : begin + table.num_rows]
        assert values.dtype == array.dtype
        np.testing.assert_array_equal(values, expected.reshape(values.shape))


def test_lists_of_one_length() -> None:
    table = pa.table({"x": pa.array([[0, 1], [2, 3], [4, 5]], pa.list_(pa.int32()))})
    assert column("x.parquet", table[1:], "x").tolist() == [[2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("values", "kind", "row"),
    [
        ([1, 2, None, 4, None], pa.int32(), 2),
        ([True] * 9 + [None, None], pa.bool_(), 9),
        ([None] * 3, pa.null(), 0),
        ([[1, 2], [3, None], [5, 6]], pa.list_(pa.int64()), 1),
        ([[1, 2], None], pa.list_(pa.int64(), 2), 1),
    ],
)
def test_the_row_of_a_null(values, kind, row) -> None:
    table = pa.table({"x": pa.array(values, kind)})
    for begin in range(row + 1):
        with pytest.raises(rbc.data.FormatError, match="is null") as caught:
            column("x.parquet", table[begin:], "x")
        assert caught.value.place == f"x, row {row - begin}"


@pytest.mark.parametrize(
    "chunks", [[], [[1, None, 3]], [[1] * 9, [None] * 3, [], [None, *[2] * 8, None]]]
)
def test_where_columns_are_null(chunks) -> None:
    chunked = pa.chunked_array(chunks, pa.int16())
    expected = np.array([value is not None for chunk in chunks for value in chunk], bool)
    for begin in range(len(expected) + 1):
        cut = chunked[begin:]
        np.testing.assert_array_equal(present_in(cut), expected[begin:])
    assert present_in(pa.nulls(2)).tolist() == [False, False]


def test_columns_of_no_rows_without_pandas(tmp_path) -> None:
    """Importing pandas takes a second."""
    import pyarrow.parquet as parquet

    table = pa.table(
        {"x": np.arange(5), "l": pa.array([[1.0, 2.0]] * 5, pa.list_(pa.float32(), 2))}
    )
    parquet.write_table(table, tmp_path / "rows.parquet")
    code = """
import sys
from robocache.data._formats.tables.parquet import column, read_table, table_without_nulls
empty, rows = table_without_nulls(sys.argv[1])[:2]
table = read_table(sys.argv[1], ["x", "l"])
columns = [column("", t, name) for t in (empty, table, table[:0]) for name in ("x", "l")]
print(rows, *(len(each) for each in columns), "pandas" in sys.modules)
"""
    path = tmp_path / "rows.parquet"
    _, out, errors = warm_python.run(code, path, imported=warm_python.LIBRARY)
    assert out == b"5 0 0 5 5 0 0 False\n", (out, errors)


def test_tables_of_numbers_without_pandas(tmp_path) -> None:
    """Empty cells too, and columns that Arrow holds in several parts."""
    import pyarrow.parquet as parquet

    rows = "".join(f"{i / 50:.2f},{i if i % 3 else ''},{i % 2 == 0}\n" for i in range(60))
    (tmp_path / "x.csv").write_text(f"time,a,b\n{rows}")
    (tmp_path / "x.tum").write_text("".join(f"{i} 1 2 3 0 0 0 1\n" for i in range(60)))
    parts = [pa.table({"time": np.arange(4.0) + 4 * i, "a": pa.array([1, None, 3, None]),
                       "b": pa.array([True, None, False, None])}) for i in range(2)]  # fmt: skip
    parquet.write_table(pa.concat_tables(parts), tmp_path / "x.parquet", row_group_size=3)
    code = """
import sys
import robocache as rbc
for path in sys.argv[1:]:
    streams = rbc.data.open(path, unit="s").load().streams.values()
    print(sum(stream.values.size for stream in streams), "pandas" in sys.modules)
"""
    paths = [tmp_path / f"x.{ending}" for ending in ("csv", "tum", "parquet")]
    _, out, errors = warm_python.run(code, *paths, imported=warm_python.LIBRARY)
    assert out == b"100 False\n420 False\n8 False\n", (out, errors)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.int64(), pa.float32(), pa.float64(),
                                  pa.bool_()])  # fmt: skip
@pytest.mark.parametrize("begin", range(4))
def test_zeros_instead_of_nulls(kind, begin) -> None:
    chunked = pa.chunked_array([[None, 1, None], [], [1, 1], [None]], pa.int8()).cast(kind)
    filled = zero_filled(chunked[begin:])
    assert filled.type == kind and not filled.null_count
    assert [int(value) for value in filled.to_pylist()] == [0, 1, 0, 1, 1, 0][begin:]
    assert zero_filled(filled) is filled


@pytest.mark.parametrize(
    ("kind", "said"), [(pa.decimal128(20, 2), "decimal128"), (pa.decimal256(40, 0), "decimal256"),
                       (pa.string(), "string"), (pa.date32(), "date32"), ("codes", "int32")]
)  # fmt: skip
def test_other_types_have_no_zeros(tmp_path, kind, said) -> None:
    """Numbers of another width, or with a dictionary, would be read from beyond the zero."""
    values = pa.array([1, None, 3], pa.int32())
    values = values.dictionary_encode() if kind == "codes" else values.cast(kind)
    chunked = pa.chunked_array([values])
    assert zero_filled(chunked) is chunked
    with pytest.raises(rbc.data.FormatError, match=f"has type {said}.*, expected numbers"):
        column("x.parquet", pa.table({"x": chunked}), "x")


def test_a_column_of_times_that_are_not_read(tmp_path) -> None:
    stamps = pa.array([1, 2, 3], pa.int32()).cast(pa.decimal128(20, 2))
    table = pa.table({"stamp": stamps, "x": [0.0, 1.0, 2.0]})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "x.parquet")
    match = "--time stamp: column stamp has no times that can be read, expected one of x$"
    with pytest.raises(rbc.data.FormatError, match=match):
        rbc.data.open(tmp_path / "x.parquet", time="stamp")


_INTERRUPTED = """
import sys
sys.path.insert(0, sys.argv[3])
import numpy as np
import robocache as rbc
given = rbc.data.open(sys.argv[1]).load()
print("read", flush=True)
given.save(sys.argv[2], "lerobot")
print("written", flush=True)
"""


def test_ctrl_c_while_pandas_is_imported(tmp_path) -> None:
    """Reading does not need pandas. Writing does, and Ctrl-C during its import stops it."""
    source, target, packages = tmp_path / "source", tmp_path / "target", tmp_path / "packages"
    data_files.write_lerobot(source, version="v3.0")
    packages.mkdir()
    (packages / "pandas.py").write_text(
        "import os, signal\n"
        "print('imported', flush=True)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
    )
    _, out, errors = warm_python.run(
        _INTERRUPTED, source, target, packages, imported=warm_python.LIBRARY
    )
    assert out == b"read\nimported\n", (out, errors)
    assert errors.rstrip().endswith(b"KeyboardInterrupt"), errors
    assert sorted(each.name for each in tmp_path.iterdir()) == ["packages", "source"]
