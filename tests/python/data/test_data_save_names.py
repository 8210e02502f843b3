"""Names that a format reserves or file systems reject; data that LeRobot cannot store."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import robocache as rbc
from robocache.data._formats.arrays.named_arrays import distinct

data = rbc.data
CUTS = [0, 2, 5]
TIMES = np.arange(5) * 0.1
LONG = "/ü" * 1500
OWN = ["timestamp", "frame_index", "episode_index", "index", "task_index", "robocache.stamps"]


def track(values, times=TIMES):
    return rbc.Track(np.asarray(values).reshape(5, -1), CUTS, times=times)


def given(tasks=None, **tracks):
    more = {name: track(values) for name, values in tracks.items()}
    return data.Episodes({"s": track(np.arange(10.0)), **more}, tasks=tasks)


def back(episodes, folder, format="lerobot"):
    renamed = episodes.save(folder / "x", format)
    assert all("saved as the feature" in each.reason for each in renamed)
    opened = data.open(folder / "x")
    assert dict(opened.tracks) == dict(episodes.tracks) and opened.tasks == episodes.tasks
    return opened


@pytest.mark.parametrize("name", [*OWN, *(f"/{name}" for name in OWN)])
@pytest.mark.parametrize("times", [TIMES, TIMES + 1e9], ids=["float32", "stamps"])
def test_columns_that_lerobot_has_for_itself(tmp_path, name, times):
    pytest.importorskip("pyarrow")
    values = np.arange(5, dtype=np.float32) + 0.5
    tracks = {"s": track(np.arange(10.0), times), name: track(values, times)}
    back(data.Episodes(tracks), tmp_path)
    told = json.loads((tmp_path / "x/meta/info.json").read_text())
    assert name in told["robocache"]["names"].values()


def test_two_tracks_of_such_a_name(tmp_path):
    pytest.importorskip("pyarrow")
    names = ["index", "/index", "index.1", "/index.1", "//index", "task_index", "/task_index"]
    back(given(**{name: np.arange(5) + i for i, name in enumerate(names)}), tmp_path)


@pytest.mark.parametrize(
    ("values", "own"),
    [
        ([0, 0, 1, 1, 1], True),
        ([0, 0, 2, 1, 2], True),  # the second episode has two tasks
        ([0, 0, 0, 0, 0], False),
        ([0, 0, 7, 7, 7], False),
    ],
)
def test_tasks_of_rows(tmp_path, values, own):
    """task_index is LeRobot's column if it has the tasks of the episodes; else only a track."""
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    back(given(["a", ("b", "c")], task_index=values), tmp_path)
    rows = pq.read_table(tmp_path / "x/data/chunk-000/file-000.parquet")["task_index"].to_pylist()
    assert rows == (values if own else [0, 0, 1, 1, 1])


@pytest.mark.parametrize("format", ["npz", "zarr", "lerobot"])
def test_a_name_that_no_file_system_holds(tmp_path, format):
    pytest.importorskip({"zarr": "zarr", "lerobot": "pyarrow"}.get(format, "numpy"))
    back(given(**{LONG: np.arange(5), LONG + "b": np.arange(5) + 1}), tmp_path, format)


def test_streams_of_such_names(tmp_path):
    pytest.importorskip("zarr")
    streams = [data.RecordedStream(name, "k", ("a",), np.full((2, 1), i), {"log": np.arange(2)})
               for i, name in enumerate((LONG, LONG + "b"))]  # fmt: skip
    data.Recording.from_streams(streams).save(tmp_path / "x", "zarr")
    opened = data.open(tmp_path / "x")
    assert [opened[s.name].values.tolist() for s in streams] == [[[0], [0]], [[1], [1]]]


def test_distinct():
    assert distinct(["/a", "a", "a.2", ".a"]) == ["a", "a.1", "a.2", "a.3"]
    assert distinct(["b", "a.2", "a", "/a"]) == ["b", "a.2", "a", "a.3"]
    assert distinct(["a.2", "a", "/a"]) == ["a.2", "a", "a.3"]  # .2 is taken
    assert distinct(["/x"], reserved=["x"]) == ["x.0"]
    kept = "k" * 255
    assert distinct([kept]) == [kept]
    cut = distinct([kept, f"/{kept}", LONG, f"{LONG}b"])
    assert len(set(cut)) == 4 and all(len(name.encode()) <= 255 for name in cut)


def test_an_episode_without_rows(tmp_path):
    pytest.importorskip("pyarrow")
    episodes = data.Episodes({"s": rbc.Track(np.zeros((5, 1)), [0, 2, 2, 5], times=TIMES)})
    with pytest.raises(ValueError, match="and episode 1 is empty; select the others, or use 'npz'"):
        episodes.save(tmp_path / "x", "lerobot")
    assert os.listdir(tmp_path) == []
    assert episodes.select([0, 2]).save(tmp_path / "x", "lerobot") == ()
    assert len(data.open(tmp_path / "x")) == 2


def test_a_channel_without_a_finite_value(tmp_path):
    pytest.importorskip("pyarrow")
    values = np.arange(10.0).reshape(5, 2)
    values[:, 1] = np.nan
    match = "but /a b has no finite value in channel 1; select the other tracks, or use 'npz'"
    with pytest.raises(ValueError, match=match):
        given(**{"/a b": values}).save(tmp_path / "x", "lerobot")
    assert os.listdir(tmp_path) == []
    values[0, 1] = 1
    assert given(a=values).save(tmp_path / "x", "lerobot") == ()
    np.testing.assert_array_equal(data.open(tmp_path / "x")["a"].values, values)
