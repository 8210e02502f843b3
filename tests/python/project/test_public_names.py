"""Public names: dir(), modules of classes and functions, pickles, functions of a single type."""

import importlib
import inspect
import pickle

import numpy as np
import pytest

import robocache as rbc
from robocache import data

MODULES = [
    "robocache",
    "robocache.data",
    "robocache.data.checks",
    "robocache.torch",
    "robocache.ray",
]


def test_dir_is_the_public_list():
    assert dir(rbc) == sorted([*rbc.__all__, "data", "ray", "torch"])
    assert dir(data) == sorted(data.__all__) and dir(data.checks) == sorted(data.checks.__all__)
    with pytest.raises(AttributeError, match="module 'robocache' has no attribute 'nothing'"):
        _ = rbc.nothing


@pytest.mark.parametrize("module_name", MODULES)
def test_classes_and_functions_have_public_names(module_name):
    if module_name in ("robocache.torch", "robocache.ray"):
        pytest.importorskip(module_name.rpartition(".")[2])
    module = importlib.import_module(module_name)
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            parts = value.__module__.split(".")
            assert not any(part.startswith("_") for part in parts), value
            public = __import__(value.__module__, fromlist=[name])
            assert getattr(public, name) is value
            assert pickle.loads(pickle.dumps(value)) is value


def test_there_is_one_class_of_episodes():
    assert data.Episodes is rbc.Episodes and data.Channel is rbc.Channel


def test_pickles_name_public_modules():
    track = rbc.Track(np.zeros((4, 2), np.float32), [0, 2, 4], times=[0.0, 0.1, 0.0, 0.1])
    result = rbc.statistics(np.arange(6.0).reshape(3, 2))
    spec = rbc.WindowSpec({"arm": rbc.Window([0, 1], track="arm")})
    stream = rbc.WindowStream(track.values, [0, 1], episode_offsets=track.episode_offsets)
    counted = rbc.StatisticsAccumulator(2)
    values = [track, rbc.Episodes({"arm": track}), result, spec, stream, counted]
    for value in [*values, rbc.Normalization(0.0, 1.0), rbc.data.FormatError("a", "b", "c")]:
        content = pickle.dumps(value, protocol=2)
        assert b"robocache" in content and b"robocache._" not in content, type(value)
        pickle.loads(content)


def test_opening_by_type(tmp_path):
    table = tmp_path / "arm.csv"
    table.write_text("time_us,shoulder\n0,0.5\n10000,0.6\n")
    arrays = tmp_path / "set.npz"
    track = rbc.Track(np.zeros((4, 2), np.float32), [0, 2, 4], times=[0.0, 0.1, 0.0, 0.1])
    rbc.Episodes({"arm": track}).save(arrays)
    cloud = tmp_path / "a.pcd"
    cloud.write_text(
        "VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 1\nHEIGHT 1\n"
        "VIEWPOINT 0 0 0 1 0 0 0\nPOINTS 1\nDATA ascii\n1 2 3\n"
    )
    assert isinstance(data.open_recording(table, unit="us"), data.Recording)
    assert isinstance(data.open_episodes(arrays), rbc.Episodes)
    clouds = data.open_clouds(cloud)
    assert isinstance(clouds, data.PointClouds) and clouds.names == ["a.pcd"]
    assert clouds[0].points.tolist() == [[1, 2, 3]]
    assert len(data.open_clouds(tmp_path / "a.pcd")) == 1
    for function, path, text in [
        (data.open_recording, arrays, "is a data set of episodes, expected a recording"),
        (data.open_episodes, table, "is a recording, expected a data set of episodes"),
        (data.open_clouds, table, "is a recording, expected point clouds"),
        (data.open_recording, cloud, "is point clouds, expected a recording"),
    ]:
        with pytest.raises(data.FormatError, match=text) as caught:
            function(path)
        assert caught.value.path == str(path)
        assert "Open it with open_" in caught.value.reason
