"""Data sets and columns of the package datasets, compared with its own access."""

from __future__ import annotations

import numpy as np
import pytest

import robocache as rbc
from robocache.data import checks

datasets = pytest.importorskip("datasets")
data = rbc.data


def of_robot(lengths, seed=0):
    rng = np.random.default_rng(seed)
    rows = sum(lengths)
    features = datasets.Features({
        "observation.state": datasets.Sequence(datasets.Value("float32"), length=3),
        "observation.pose": datasets.Array2D((2, 4), "float32"),
        "action": datasets.Sequence(datasets.Value("float64")),
        "gripper": datasets.Value("int16"),
        "next.done": datasets.Value("bool"),
        "task": datasets.Value("string"),
        "note": datasets.Value("string"),
        "timestamp": datasets.Value("float32"),
        **dict.fromkeys(("frame_index", "episode_index", "index"), datasets.Value("int64")),
    })  # fmt: skip
    frames = np.concatenate([np.arange(n) for n in lengths])
    columns = {
        "observation.state": rng.normal(size=(rows, 3)),
        "observation.pose": rng.normal(size=(rows, 2, 4)),
        "action": rng.normal(size=(rows, 2)),
        "gripper": rng.integers(0, 9, rows),
        "next.done": rng.random(rows) < 0.2,
        "task": np.repeat([f"task {e % 2}" for e in range(len(lengths))], lengths),
        "note": np.array([str(i) for i in range(rows)]),
        "timestamp": frames / 30,
        "frame_index": frames,
        "episode_index": np.repeat(np.arange(len(lengths)), lengths),
        "index": np.arange(rows),
    }
    columns = {name: column.tolist() for name, column in columns.items()}
    return datasets.Dataset.from_dict(columns, features=features)


@pytest.mark.parametrize("seed", range(4))
def test_episodes(seed):
    lengths = np.random.default_rng(seed).integers(1, 12, 7).tolist()
    source = of_robot(lengths, seed)
    if seed == 2:  # in several chunks
        parts = [source.select(range(0, 5)), source.select(range(5, len(source)))]
        source = datasets.concatenate_datasets(parts)
    if seed == 3:  # through indices
        rows = np.flatnonzero(np.array(source["episode_index"]) != 1)
        source = source.select(rows.tolist())
        lengths = [n for e, n in enumerate(lengths) if e != 1]
    given = data.from_datasets(source)
    names = ["observation.state", "observation.pose", "action", "gripper", "next.done"]
    assert list(given.tracks) == names and given.format == "datasets"
    for name in names:
        expected = np.array(source[name][:]).reshape(len(source), -1)
        assert given[name].lengths.tolist() == lengths
        np.testing.assert_array_equal(given[name].values, expected.astype(given[name].values.dtype))
    dtypes = [str(given[name].values.dtype) for name in names]
    assert dtypes == ["float32", "float32", "float64", "int16", "bool"]
    expected = np.array(source["timestamp"][:], np.float32).astype(np.float64)
    np.testing.assert_array_equal(np.asarray(given["action"].times, np.float64), expected)
    assert given.tasks == tuple(source[int(i)]["task"] for i in np.cumsum(lengths) - 1)
    assert [str(each) for each in given.left_out] == ["note: texts are not read"]
    assert not [found for found in checks.check(given) if found.severity == "error"]


def test_a_rate():
    source = of_robot([4, 3]).remove_columns("timestamp")
    assert data.from_datasets(source)["action"].times is None
    times = data.from_datasets(source, rate=10)["action"].times
    np.testing.assert_allclose(times, np.array([0, 1, 2, 3, 0, 1, 2]) / 10)
    every = source.select([0, 2, 4, 6])
    np.testing.assert_allclose(data.from_datasets(every, rate=10)["action"].times, [0, 0.2, 0, 0.2])
    bare = every.remove_columns("frame_index")
    np.testing.assert_allclose(data.from_datasets(bare, rate=10)["action"].times, [0, 0.1, 0, 0.1])


def test_rows_out_of_order():
    source = of_robot([4, 3])
    with pytest.raises(data.FormatError, match="episode_index, row 4: goes back.*dataset.sort"):
        data.from_datasets(source.select([3, 4, 5, 6, 0]))
    with pytest.raises(data.FormatError, match="frame_index, row 1: does not ascend"):
        data.from_datasets(source.select([1, 0, 2]))
    mixed = source.shuffle(seed=3)
    again = data.from_datasets(mixed.sort(["episode_index", "frame_index"]))
    np.testing.assert_array_equal(
        again["action"].values, data.from_datasets(source)["action"].values
    )


def test_columns_that_are_not_read():
    source = datasets.Dataset.from_dict({
        "episode_index": [0, 0], "a": [1.0, 2.0], "lists": [[1], [1, 2]], "null": [1, None],
        "task": ["x", "y"], "parts": [{"a": 1}, {"a": 2}],
    })  # fmt: skip
    given = data.from_datasets(source)
    assert list(given.tracks) == ["a"] and given.tasks is None
    reasons = {each.place: each.reason for each in given.left_out}
    assert set(reasons) == {"lists", "null", "task", "parts"}
    assert "2 elements, the first row 1" in reasons["lists"] and "is null" in reasons["null"]


@pytest.mark.parametrize("seed", range(3))
def test_recording(seed):
    rng = np.random.default_rng(seed)
    columns = {
        "time_ms": (np.arange(20) * 10).tolist(),
        "qx": rng.normal(size=20).tolist(),
        "force": rng.normal(size=(20, 3)).tolist(),
    }
    source = datasets.Dataset.from_dict({**columns, "word": ["a"] * 20})
    given = data.from_datasets(source)
    assert given.names == ("dataset",) and given.unit == "ms"
    stream = given["dataset"]
    assert stream.names == ("qx", "force[0]", "force[1]", "force[2]")
    expected = np.column_stack([columns["qx"], columns["force"]])
    np.testing.assert_array_equal(stream.values, expected)
    assert stream.times().tolist() == columns["time_ms"]
    assert [each.place for each in given.left_out] == ["dataset: word"]
    shuffled = source.shuffle(seed=1)
    again = data.from_datasets(shuffled, time="time_ms")["dataset"]
    order = np.argsort(again.times())
    np.testing.assert_array_equal(again.values[order], expected)


def test_columns():
    source = of_robot([4, 3])
    given = data.from_datasets(source["action"], rate=10)
    assert given.names == ("action",)
    np.testing.assert_array_equal(given["action"].values, np.array(source["action"][:]))
    np.testing.assert_allclose(given["action"].times(), np.arange(7) / 10)
    (unread,) = data.from_datasets(source["action"]).unread
    assert unread.place == "action" and "rate=" in unread.reason


def test_things_of_one_time():
    source = datasets.Dataset.from_dict({
        "timestamp": np.repeat(np.arange(10) / 10, 2).tolist(), "id": [0, 1] * 10,
        "x": np.arange(20.0).tolist(),
    })  # fmt: skip
    given = data.from_datasets(source)
    assert given.names == ("dataset[0]", "dataset[1]")
    assert given["dataset[1]"].values[:, 0].tolist() == list(range(1, 20, 2))


def test_kinds():
    source = of_robot([4, 3])
    kinds = {"observation.pose": {"0-3": "quaternion_wxyz"}}
    given = data.from_datasets(source, kinds=kinds)
    assert [c.kind for c in given["observation.pose"].channels][:5] == [
        *["quaternion"] * 4,
        "number",
    ]


def test_other_objects():
    source = of_robot([4, 3])
    splits = datasets.DatasetDict({"train": source, "test": source})
    nested = datasets.Dataset.from_dict({"a": [{"b": 1}]})
    for wrong, match in (
        (splits, "a DatasetDict: select one of its splits, 'train', 'test'"),
        (source.to_iterable_dataset(), "an IterableDataset, whose rows have no index"),
        (nested["a"]["b"], "b is a part of the column of a struct"),
        ({"a": 1}, "is dict, expected a datasets.Dataset or Column"),
        (source.features, "is Features, expected a datasets.Dataset or Column"),
    ):
        with pytest.raises(TypeError, match=match):
            data.from_datasets(wrong)
    with pytest.raises(data.FormatError, match="--time no: no such column"):
        data.from_datasets(source, time="no")
    with pytest.raises(data.FormatError, match="--time no: no such column, expected one of .x."):
        data.from_datasets(nested.add_column("x", [1.0]), time="no")
