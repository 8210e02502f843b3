"""A store that an earlier build wrote: its format stays readable."""

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest

from robocache import RoboCacheError, Status
from robocache._cache.store import Store

GOLDEN = Path(__file__).parents[2] / "golden" / "store"
KEY = bytes(range(32))
TENSORS = {
    "state": np.arange(10, dtype=np.float32).reshape(5, 2) / 4,
    "größe": np.array([1, -2, 3, -4, 2**62], np.int64),
    "valid": np.array([[1, 0], [0, 1], [1, 1], [0, 0], [1, 0]], bool),
}


@pytest.fixture
def folder(tmp_path):
    """A copy that belongs to this user, as files of a store have to."""
    return shutil.copytree(GOLDEN, tmp_path / "store")


@pytest.mark.parametrize("access", ["map", "read"])
@pytest.mark.parametrize("verify", ["open", "first", "none"])
def test_the_golden_store_is_read(folder, access, verify):
    entry = Store(str(folder), read_only=True, access=access, verify=verify).find(KEY)
    assert entry.names == list(TENSORS)
    assert (entry.num_episodes, entry.num_rows, entry.num_segments) == (2, 5, 1)
    assert entry.episode_offsets().tolist() == [0, 2, 5]
    for name, values in TENSORS.items():
        found = entry.array(name)
        assert found.dtype == values.dtype and found.tobytes() == values.tobytes()
        assert entry.track(name) == (values.dtype, values.shape)
        rows, out = np.array([4, 0, 4]), np.empty((3, *values.shape[1:]), values.dtype)
        entry.gather(name, rows, out)
        assert out.tobytes() == values[rows].tobytes()
    assert entry.verify().num_damaged_blocks == 0


def test_the_same_tensors_make_the_same_files(tmp_path):
    """Nothing in a segment or an index depends on the time or on the process."""
    store = Store(str(tmp_path / "new"), min_free_bytes=0)
    with store.lock(KEY, 0, episodes=2, rows=5) as writer:
        for name, values in TENSORS.items():
            writer.add(name, values.dtype, values.shape)
        for name, values in TENSORS.items():
            writer.write_array(name, values)
        writer.publish()
    store.publish(KEY, 1, np.array([0, 2, 5]), '{"store":1}')
    for file in GOLDEN.rglob("*"):
        if file.is_file():
            made = tmp_path / "new" / file.relative_to(GOLDEN)
            digests = [hashlib.sha256(each.read_bytes()).hexdigest() for each in (made, file)]
            assert digests[0] == digests[1], file.name


def test_a_view_outlives_its_store_and_its_files(folder):
    view = Store(str(folder)).find(KEY).array("state")
    shutil.rmtree(folder)
    assert view.tobytes() == TENSORS["state"].tobytes()
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


def test_statuses(folder):
    store = Store(str(folder))
    assert store.find(bytes(32)) is None
    with pytest.raises(RoboCacheError, match="key: has 31 bytes, expected 32"):
        store.find(bytes(31))
    with pytest.raises(TypeError):
        store.find("x")
    with store.lock(bytes(32), 0) as writer:
        with pytest.raises(RoboCacheError) as raised:
            store.lock(bytes(32), 0)
        assert raised.value.status == Status.BUSY
        with pytest.raises(RoboCacheError):
            writer.add("rbc.x", np.dtype("int8"), (1,))
    with pytest.raises(RoboCacheError) as raised:
        Store(str(folder), read_only=True).lock(bytes(32), 0)
    assert raised.value.status == Status.UNSUPPORTED
    with pytest.raises(RoboCacheError) as raised:
        store.find(KEY).array("missing")
    assert raised.value.status == Status.NOT_FOUND


def test_empty_and_strided_arrays(tmp_path):
    store = Store(str(tmp_path / "new"), min_free_bytes=0)
    values = np.arange(24.0).reshape(4, 6)[::2, ::-1]
    with store.lock(KEY, 0, episodes=1, rows=2) as writer:
        writer.add("a", values.dtype, values.shape)
        writer.write_array("a", values)
        with pytest.raises(RoboCacheError):
            writer.write("a", b"too much")
        writer.publish()
    store.publish(KEY, 1, np.array([0, 2]), "{}")
    assert store.find(KEY).array("a").tobytes() == np.ascontiguousarray(values).tobytes()
