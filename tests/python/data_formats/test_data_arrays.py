"""Unusual folders of .npy files."""

from __future__ import annotations

import os

import numpy as np
import pytest

import robocache as rbc

data = rbc.data


def write(folder, **arrays):
    for name, array in arrays.items():
        path = folder / f"{name.replace('__', '/')}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, array)
    return folder


def test_files_that_would_be_one_stream(tmp_path):
    """gyro.npy and gyro/value.npy are two streams; so are value.npy and values.npy of a folder."""
    given = {
        "gyro": np.full((5, 2), 1.0),
        "gyro__value": np.full((4, 2), 2.0),
        "imu__value": np.full((3, 2), 3.0),
        "imu__values": np.full((3, 2), 4.0),
        "imu__value__value": np.full((3, 2), 5.0),
        "alone__value": np.full((3, 2), 6.0),
    }
    recording = data.open(write(tmp_path, **given)).load()
    names = {name: name.replace("__", "/") for name in given} | {"alone__value": "alone"}
    assert set(recording.names) == set(names.values())
    for name, stream in names.items():
        np.testing.assert_array_equal(recording[stream].values, given[name])


@pytest.mark.parametrize(
    "files",
    [
        ("imu/values", "rig/arm/values"),  # at two depths
        ("log/imu/values", "log/arm/values"),
        ("imu/values", "arm/values"),
    ],
)
def test_no_file_of_nested_folders_is_lost(tmp_path, files):
    """A folder with .npy files only in subfolders is one data set, at every depth."""
    given = {file: np.full((3, 2), float(i)) for i, file in enumerate(files)}
    write(tmp_path, **{file.replace("/", "__"): values for file, values in given.items()})
    recording = data.open(tmp_path).load()
    assert set(recording.names) == {os.path.dirname(file) for file in files}
    for file, values in given.items():
        np.testing.assert_array_equal(recording[os.path.dirname(file)].values, values)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "expected a .npy file, got a file of 0 bytes"),
        (b"\x93NUM", "expected a .npy file, got a file that begins with"),
        (b"\x93NUMPY\x01\x00v\x00{'descr'", "header is damaged, truncated, or"),
    ],
)
def test_a_damaged_file_in_a_folder(tmp_path, content, match):
    write(tmp_path, good=np.zeros((3, 2)))
    (tmp_path / "._good.npy").write_bytes(b"what macOS writes beside files")
    assert data.open(tmp_path).names == ("good",)
    (tmp_path / "bad.npy").write_bytes(content)
    with pytest.raises(data.FormatError, match=match) as caught:
        data.open(tmp_path)
    assert caught.value.path == str(tmp_path / "bad.npy")
    kept = data.open(tmp_path, damaged="keep")
    assert kept.names == ("good",) and match in kept.problems[0].text


def test_nothing_but_damage(tmp_path):
    write(tmp_path, bad=np.zeros((300, 2)))
    path = tmp_path / "bad.npy"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(data.FormatError, match="no array with one row per step; .*bad.npy: is dam"):
        data.open(tmp_path, damaged="keep")
    with pytest.raises(data.FormatError, match="is damaged or truncated") as caught:
        data.open(path, damaged="keep")
    assert "keep" not in str(caught.value)


def test_arrays_without_rows(tmp_path):
    """They do not affect the other arrays."""
    write(tmp_path, full=np.ones((3, 2)), empty=np.zeros((0, 3)), narrow=np.zeros((3, 0)))
    recording = data.open(tmp_path).load()
    shapes = {name: recording[name].values.shape for name in recording}
    assert shapes == {"full": (3, 2), "empty": (0, 3), "narrow": (3, 0)}


@pytest.mark.parametrize("shape", [(0, 5, 2), (5, 0, 2), (4, 3, 0)])
def test_episodes_without_numbers(tmp_path, shape):
    write(tmp_path, state=np.zeros(shape), action=np.zeros(shape))
    episodes = data.open(tmp_path)
    assert episodes["state"].values.shape == (shape[0] * shape[1], shape[2])
    np.testing.assert_array_equal(episodes.lengths("state"), [shape[1]] * shape[0])


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4", ">u2"])
def test_bytes_of_numbers_in_the_other_order(tmp_path, dtype):
    values = np.arange(20).reshape(10, 2).astype(dtype)
    stamps = (np.arange(10) * 10**8).astype(">i8")
    native = np.dtype(dtype).newbyteorder("=")
    streams = data.open(write(tmp_path / "streams", value=values, t=stamps), unit="ns")
    episodes = data.open(
        write(
            tmp_path / "episodes",
            episode_index=np.repeat([0, 1], 5).astype(">i8"),
            value=values,
            timestamp=stamps,
        ),
        unit="ns",
    )
    padded = data.open(write(tmp_path / "padded", value=values.reshape(2, 5, 2)), rate=10)
    aligned = streams.align(10)["value"]
    for got in (streams["value"], episodes["value"], padded["value"], aligned):
        np.testing.assert_array_equal(got.values, values)
    for got in (streams["value"], episodes["value"], padded["value"]):
        assert got.values.dtype == native and got.values.dtype.isnative
    np.testing.assert_array_equal(episodes["value"].times, stamps)
    assert rbc.statistics(streams["value"].values).count.tolist() == [10, 10]


def test_times_of_episodes_without_a_unit(tmp_path):
    """Integers are ticks of an unknown unit, floats are seconds."""
    index, values = np.repeat([0, 1], 5), np.zeros((10, 2))
    ticks = write(tmp_path / "a", episode_index=index, x=values, timestamp=np.arange(10))
    seconds = write(tmp_path / "b", episode_index=index, x=values, timestamp=np.arange(10.0))
    assert data.open(ticks).unit is None and data.open(ticks, unit="ms").unit == "ms"
    assert data.open(seconds).unit == "s"


def test_times_beyond_int64(tmp_path):
    write(tmp_path, t=np.array([1, 1 << 63], np.uint64), value=np.zeros((2, 3)))
    with pytest.raises(data.FormatError, match="t.npy, row 1: is 9223372036854775808, expected"):
        data.open(tmp_path).load()


def test_numbers_that_streams_do_not_hold(tmp_path):
    write(tmp_path, x=np.zeros((3, 2)), long=np.zeros((3, 2), np.longdouble), z=np.zeros(3, "c8"))
    recording = data.open(tmp_path)
    wide = np.dtype(np.longdouble)
    if wide.itemsize > 8:
        assert recording.names == ("x",)
        assert [e.reason for e in recording.left_out] == [
            f"has dtype {kind}, which is not read" for kind in (wide, "complex64")
        ]
