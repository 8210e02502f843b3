"""Joints are matched by name, not by position, with rosbags as reference."""

from __future__ import annotations

import numpy as np
import pytest

import data_files
import keyed_bags as bags
import robocache as rbc
from robocache.data._formats.messages import joints

pytest.importorskip("rosbags")

data = rbc.data
kinds = pytest.mark.parametrize("kind", bags.KINDS)


def opened(tmp_path, kind, told, store):
    return data.open(bags.write(tmp_path, kind, told, store))


@kinds
def test_an_order_that_changes(tmp_path, kind):
    store = bags.store_of(kind)
    told = []
    for i, at in enumerate(bags.times(40)):
        order = slice(None) if i < 20 else slice(None, None, -1)
        told.append(bags.joints(store, at, ["j1", "joint2"][order], [i, 10][order]))
    recording = opened(tmp_path, kind, told, store)
    assert recording.names == ("/joint_states",)
    stream = recording["/joint_states"]
    assert stream.names == ("position[j1]", "position[joint2]")
    assert stream.values.tolist() == [[i, 10] for i in range(40)]


@kinds
@pytest.mark.parametrize("seed", range(4))
def test_any_names_in_any_order(tmp_path, kind, seed):
    """Several publishers shuffle their names; rosbags reads the messages one by one."""
    rng = np.random.default_rng(seed)
    store = bags.store_of(kind)
    sets = [["a", "bb", "ccc", "d"], ["a", "x"], ["grip per", "é"], ["q"]][: 1 + seed]
    told = []
    for at in bags.times(90):
        names = list(rng.permutation(sets[rng.choice(len(sets))]))
        values = rng.normal(size=(3, len(names)))
        told.append(bags.joints(store, at, names, values[0], values[1], values[2]))
    path = bags.write(tmp_path, kind, told, store)
    recording = data.open(path).load()
    expected = {}
    for _, at, message in bags.read(path, kind, store):
        row = {}
        for field in ("position", "velocity", "effort"):
            row.update({f"{field}[{n}]": v for n, v in zip(message.name, getattr(message, field))})
        expected.setdefault(frozenset(row), []).append((at, row))
    assert len(recording) == len(expected)
    for stream in recording.streams.values():
        rows = expected[frozenset(stream.names)]
        assert stream.log_times.tolist() == [at for at, _ in rows]
        np.testing.assert_array_equal(
            stream.values, [[row[name] for name in stream.names] for _, row in rows]
        )


@kinds
def test_two_publishers(tmp_path, kind):
    store = bags.store_of(kind)
    told = []
    for i, at in enumerate(bags.times(40)):
        told.append(bags.joints(store, at, ["j1", "j2"], [i, -i]))
        told.append(bags.joints(store, at + 1000, ["left", "right", "j1"], [100, 200, 5]))
    recording = opened(tmp_path, kind, told, store)
    assert recording.names == ("/joint_states/j1+j2", "/joint_states/j1+left+right")
    other = recording["/joint_states/j1+left+right"]
    assert other.names == ("position[left]", "position[right]", "position[j1]")
    assert other.values.tolist() == [[100, 200, 5]] * 40
    assert (other.log_times - recording["/joint_states/j1+j2"].log_times == 1000).all()
    assert recording.select(["/joint_states"]).names == recording.names


def test_the_same_joints_in_two_frames(tmp_path):
    store = bags.store_of("mcap")
    told = []
    for i, at in enumerate(bags.times(40)):
        told.append(bags.joints(store, at, ["a", "b"], [i % 2, 5], frame=("l", "r")[i % 2]))
    recording = opened(tmp_path, "mcap", told, store)
    assert recording.names == ("/joint_states/a+b/l", "/joint_states/a+b/r")
    assert recording["/joint_states/a+b/r"].values.tolist() == [[1, 5]] * 20


def test_no_names_and_no_velocity(tmp_path):
    store = bags.store_of("mcap")
    told = [bags.joints(store, at, [], [i, 2]) for i, at in enumerate(bags.times(20))]
    told += [bags.joints(store, at, ["a"], [i], topic="/b") for i, at in enumerate(bags.times(20))]
    recording = opened(tmp_path, "mcap", told, store)
    assert recording["/joint_states"].names == ("position[0]", "position[1]")
    assert recording["/b"].names == ("position[a]",)


def test_names_that_are_odd(tmp_path):
    """Repeated and empty names in a message keep their order in the message."""
    store = bags.store_of("mcap")
    names = ["a", "a", "", "b/c"]
    told = [bags.joints(store, at, names, [1, 2, 3, 4]) for at in bags.times(10)]
    told += [bags.joints(store, at, ["z"], [9]) for at in bags.times(10)]
    recording = opened(tmp_path, "mcap", told, store)
    assert recording.names == ("/joint_states/2+3 more", "/joint_states/z")
    stream = recording["/joint_states/2+3 more"]
    assert stream.names == tuple(f"position[{n}]" for n in ("a", "a #2", "2", "b/c"))
    assert stream.values.tolist() == [[1, 2, 3, 4]] * 10


def test_efforts_that_are_sometimes_missing(tmp_path):
    """An array whose length changes is omitted, with the reason; the others are read."""
    store = bags.store_of("mcap")
    told = [
        bags.joints(store, at, ["a", "b"], [i, 1], effort=[5, 6] if i % 3 else [])
        for i, at in enumerate(bags.times(40))
    ]
    recording = opened(tmp_path, "mcap", told, store).load()
    assert recording["/joint_states"].values.tolist() == [[i, 1] for i in range(40)]
    reasons = {each.place: each.reason for each in recording.left_out}
    assert reasons["/joint_states: effort"] == "array of 0 to 2 elements"


def test_states_of_a_controller(tmp_path):
    """Arrays in nested messages are matched by name, too."""
    store = bags.store_of("mcap")
    make, name, told = data_files.make, "test_msgs/msg/Controller", []
    for i, at in enumerate(bags.times(20)):
        order = [0, 1, 2] if i < 10 else [2, 0, 1]
        point = make(store, "test_msgs/msg/Point", positions=np.array([i, 10.0, 20.0])[order])
        told.append(("/arm/state", name, at, make(
            store, name, header=data_files.header(store, at), desired=point, gain=0.5,
            joint_names=[["a", "b", "c"][k] for k in order])))  # fmt: skip
    stream = opened(tmp_path, "mcap", told, store)["/arm/state"]
    assert stream.names == (*(f"desired.positions[{n}]" for n in "abc"), "gain")
    assert stream.values.tolist() == [[i, 10, 20, 0.5] for i in range(20)]


def test_labels_of_joints():
    assert joints.labels(["a", "a", "a #2", "a"]) == ["a", "a #3", "a #2", "a #4"]
    assert joints.label([]) == "(no names)"
    assert joints.label(["d", "c", "b", "a"]) == "a+3 more"
