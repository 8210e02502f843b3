"""Columns of Arrow extension types are read by their storage, registered or not."""

from __future__ import annotations

import json

import numpy as np
import pytest

import data_files
import robocache as rbc

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

data = rbc.data
# The names of types in the package datasets, and of an unrelated type.
NAMES = [f"datasets.features.features.Array{n}DExtensionType" for n in (2, 3)] + ["someone.else"]
SHAPES = {NAMES[0]: (4, 4), NAMES[1]: (2, 3, 2), NAMES[2]: (5,)}


def made_type(name):
    """Return an extension type stored as lists of lists, with its shape as JSON."""
    storage = pa.float32()
    for _ in SHAPES[name]:
        storage = pa.list_(storage)

    class Made(pa.ExtensionType):
        def __init__(self):
            super().__init__(storage, name)

        def __arrow_ext_serialize__(self):
            return json.dumps([SHAPES[name], "float32"]).encode()

        @classmethod
        def __arrow_ext_deserialize__(cls, storage, serialized):
            return cls()

    return Made()


@pytest.fixture
def registered():
    """Register types for one test, as an import of their package does."""
    names = []

    def register(made):
        try:
            pa.register_extension_type(made)
        except pa.ArrowKeyError:  # the package of the type was imported in this process
            pa.unregister_extension_type(made.extension_name)
            pa.register_extension_type(made)
        names.append(made.extension_name)

    yield register
    for name in names:
        pa.unregister_extension_type(name)


def column_of(name, rows):
    """Return a column of extension type, and its values [rows, numbers]."""
    values = np.arange(rows * np.prod(SHAPES[name]), dtype=np.float32)
    nested = values.reshape(rows, *SHAPES[name]).tolist()
    made = made_type(name)
    return pa.ExtensionArray.from_storage(made, pa.array(nested, made.storage_type)), values


def table_file(path, column, rows):
    times = pa.array(np.arange(rows) / 10)
    pq.write_table(pa.table({"time_s": times, "pose": column}), path)


@pytest.mark.parametrize("name", NAMES)
def test_a_table(tmp_path, registered, name):
    column, values = column_of(name, 20)
    table_file(tmp_path / "x.parquet", column, 20)
    before = data.open(tmp_path / "x.parquet").load()["x"]
    registered(made_type(name))
    assert isinstance(pq.read_schema(tmp_path / "x.parquet").field("pose").type, pa.ExtensionType)
    opened = data.open(tmp_path / "x.parquet")
    after = opened.load()["x"]
    assert opened.left_out == () and after.names == before.names
    np.testing.assert_array_equal(after.values, values.reshape(20, -1))
    np.testing.assert_array_equal(before.values, after.values)


def lerobot_set(folder, name):
    """Write a v3.0 set with a feature of an extension type; return it and its values."""
    data_files.write_lerobot(folder, (6, 4), version="v3.0")
    path = folder / "data/chunk-000/file-000.parquet"
    column, values = column_of(name, 10)
    pq.write_table(pq.read_table(path).append_column("observation.pose", column), path)
    info = json.loads((folder / "meta/info.json").read_text())
    shape = list(SHAPES[name])
    info["features"]["observation.pose"] = {"dtype": "float32", "shape": shape, "names": None}
    (folder / "meta/info.json").write_text(json.dumps(info))
    return values


@pytest.mark.parametrize("name", NAMES)
def test_lerobot(tmp_path, registered, name):
    values = lerobot_set(tmp_path / "x", name)
    before = data.open(tmp_path / "x")["observation.pose"].values
    registered(made_type(name))
    after = data.open(tmp_path / "x")["observation.pose"].values
    np.testing.assert_array_equal(after, values.reshape(10, -1))
    np.testing.assert_array_equal(before, after)


def test_within_lists_and_structs(tmp_path, registered):
    """Types that contain extension types, and texts of an extension type."""

    class Made(pa.ExtensionType):
        def __init__(self, storage):
            super().__init__(storage, "someone.else")

        def __arrow_ext_serialize__(self):
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage, serialized):
            return cls(storage)

    numbers = pa.ExtensionArray.from_storage(Made(pa.float64()), pa.array(np.arange(12.0)))
    texts = pa.ExtensionArray.from_storage(Made(pa.string()), pa.array(["a", "b", "c"] * 4))
    table = pa.table({
        "time_s": np.arange(6) / 10,
        "pair": pa.FixedSizeListArray.from_arrays(numbers, 2),
        "both": pa.ListArray.from_arrays(pa.array(range(0, 13, 2), pa.int32()), numbers),
        "word": texts[:6],
        "told": pa.StructArray.from_arrays([numbers[:6], texts[:6]], ["a", "b"]),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "x.parquet")
    results = []
    for _ in range(2):
        opened = data.open(tmp_path / "x.parquet")
        results.append((opened.load()["x"].values, opened.left_out))
        if len(results) == 1:
            registered(Made(pa.float64()))
    np.testing.assert_array_equal(results[1][0][:, :2], np.arange(12.0).reshape(6, 2))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]
    assert not any("extension" in str(each) for each in results[1][1])


def test_the_package_datasets(tmp_path):
    """Files and types that datasets itself writes and registers."""
    datasets = pytest.importorskip("datasets")
    poses = np.arange(160, dtype=np.float32).reshape(10, 4, 4)
    kinds = {"time_s": datasets.Value("float64"), "pose": datasets.Array2D((4, 4), "float32")}
    made = datasets.Dataset.from_dict(
        {"time_s": (np.arange(10) / 10).tolist(), "pose": poses.tolist()},
        features=datasets.Features(kinds),
    )
    made.to_parquet(tmp_path / "x.parquet")
    values = data.open(tmp_path / "x.parquet").load()["x"].values
    np.testing.assert_array_equal(values, poses.reshape(10, 16))
