"""``open``: detection of formats, options, and missing packages."""

from __future__ import annotations

import inspect
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import data_files
import recordings_with_faults as faults
import robocache as rbc
import warm_python
from docstrings import parameters_of

data = rbc.data


def makers():
    """Writers of each format, with the package it needs and the extra that its error names."""

    def bag(storage):
        def write(path):
            store = data_files.typestore(storage == "ros1")
            told = data_files.messages(store, 5)
            if storage == "ros1":
                return data_files.write_ros1(path, told, store)
            return data_files.write_ros2(path, told, store, storage)

        return write

    def lerobot(version):
        def write(path):
            data_files.write_lerobot(path, version=version)
            return path

        return write

    def aloha(path):
        path.mkdir()
        data_files.write_aloha(path / "episode_0.hdf5")
        return path

    def robomimic(path):
        data_files.write_robomimic(path)
        return path

    def buffer(path):
        data_files.write_replay_buffer(path)
        return path

    def csv(path):
        path.write_text("t,a\n0.5,1\n1,2\n")
        return path

    return {
        "ros1": (bag("ros1"), "rosbags", "ros"),
        "mcap": (bag("mcap"), "rosbags", "ros"),
        "sqlite3": (bag("sqlite3"), "rosbags", "ros"),
        "lerobot v2.1": (lerobot("v2.1"), "pyarrow", "lerobot"),
        "lerobot v3.0": (lerobot("v3.0"), "pyarrow", "lerobot"),
        "aloha": (aloha, "h5py", "hdf5"),
        "robomimic": (robomimic, "h5py", "hdf5"),
        "zarr": (buffer, "zarr", "zarr"),
        "csv": (csv, "pyarrow", "tables"),
    }


@pytest.fixture(params=list(makers()))
def made(request, tmp_path):
    write, package, extra = makers()[request.param]
    pytest.importorskip(package)
    if request.param in ("mcap", "sqlite3", "ros1"):
        pytest.importorskip("rosbags")
    path = tmp_path / "what it is, no suffix says ☃"
    return write(path), package, extra


def output_of(code, folder=None):
    """Return the output of code in a separate process that has imported only robocache."""
    status, out, errors = warm_python.run(
        code, folder=folder, seconds=60, imported=warm_python.LIBRARY
    )
    assert status == 0, errors.decode()
    return out.decode()


def test_by_content_not_by_suffix(made):
    opened = data.open(made[0])
    assert isinstance(opened, (data.Recording, data.Episodes))
    assert repr(opened) and opened.path if isinstance(opened, data.Recording) else opened.source
    opened.load()
    assert data.open(str(made[0])) is not None


def test_paths_from_here(made, monkeypatch):
    monkeypatch.chdir(made[0].parent)
    opened = data.open(made[0].name)
    opened.load()


def test_a_missing_package_is_named_with_its_extra(made):
    """Runs in a separate process that cannot import the package."""
    path, package, extra = made
    code = f"""
import sys
sys.modules[{package!r}] = None
import robocache as rbc
try:
    rbc.data.open({str(path)!r})
except ModuleNotFoundError as error:
    print(error)
"""
    out = output_of(code)
    assert f"needs {package}, which is not installed" in out
    assert f"pip install 'robocache[{extra}]'" in out


@pytest.mark.parametrize(("format", "package"), [("zarr", "zarr"), ("lerobot", "pyarrow")])
def test_saving_without_a_package(tmp_path, format, package):
    code = f"""
import sys
sys.modules[{package!r}] = None
import numpy as np
import robocache as rbc
given = rbc.data.Episodes({{"a": rbc.Track(np.zeros((4, 2)), [0, 4], times=np.arange(4.0))}})
try:
    given.save({str(tmp_path / "x")!r}, {format!r})
except ModuleNotFoundError as error:
    print(error)
"""
    assert f"pip install 'robocache[{format}]'" in output_of(code)
    assert os.listdir(tmp_path) == []


def test_importing_the_package_imports_nothing_heavy():
    code = """
import sys
import robocache as rbc
rbc.data
heavy = {"pyarrow", "rosbags", "h5py", "zarr", "rich", "torch", "pandas"} & set(sys.modules)
print(sorted(heavy))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "[]\n", run.stdout + run.stderr


def test_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing: does not exist"):
        data.open(tmp_path / "nothing")


def test_what_is_not_known(tmp_path):
    (tmp_path / "x").write_bytes(b"\x00\x01\x02 something else")
    with pytest.raises(data.FormatError, match="unknown format. First bytes: ") as one:
        data.open(tmp_path / "x")
    assert one.value.path == str(tmp_path / "x") and one.value.place == ""
    with pytest.raises(data.FormatError, match="no file in this .* holds: x. Formats: ROS 1"):
        data.open(tmp_path)
    with pytest.raises(ValueError, match="damaged: is 'maybe', expected 'refuse' or 'keep'"):
        data.open(tmp_path, damaged="maybe")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no devices here")
def test_a_device_is_not_read():
    """Runs in a separate process with a memory limit: reading a device would use all memory."""
    code = """
import resource
import robocache as rbc
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
try:
    rbc.data.open("/dev/zero")
except rbc.data.FormatError as error:
    print(error)
"""
    assert output_of(code) == "/dev/zero: is a device, expected a file or a folder\n"


@pytest.mark.parametrize("name", ["x", "x.csv", "x.h5", "x.mcap", "x.npz"])
def test_pipes_and_sockets_are_not_waited_for(tmp_path, name):
    """Runs in a separate process, because no process writes to the pipe."""
    pytest.importorskip("pyarrow")
    os.mkfifo(tmp_path / name)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / name)
    data_files.write_lerobot(tmp_path / "lerobot")
    (tmp_path / "lerobot" / "meta" / "episodes.jsonl").unlink()
    os.mkfifo(tmp_path / "lerobot" / "meta" / "episodes.jsonl")
    code = f"""
import socket
import robocache as rbc
socket.socket(socket.AF_UNIX).bind("socket")
for path in ({name!r}, "socket", "folder", "lerobot"):
    try:
        rbc.data.open(path)
    except rbc.data.FormatError as error:
        print(error)
"""
    told = output_of(code, tmp_path).splitlines()
    assert len(told) == 4, told
    assert told[0] == f"{name}: is a pipe, expected a file or a folder"
    assert told[1] == "socket: is a socket, expected a file or a folder"
    assert told[2].startswith("folder: ")
    assert told[3] == "lerobot: meta/episodes.jsonl: is a pipe, expected a file or a folder"


def test_a_folder_of_several(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "episode_index.npy", np.zeros(3, int))
        np.save(tmp_path / name / "action.npy", np.zeros((3, 2)))
    np.zeros((8, 4), "<f4").tofile(tmp_path / "sweep.txt")
    with pytest.raises(data.FormatError, match="holds 2 data sets. Open one of them: a, b"):
        data.open(tmp_path)


@pytest.mark.parametrize("damaged", ["refuse", "keep"])
def test_a_folder_of_damaged_files_only(tmp_path, damaged):
    """The error names each file and its fault."""
    (tmp_path / "README.md").write_text("words")
    for name, content in (
        ("a.csv", b""),
        ("b.parquet", b"PAR"),
        ("c.hdf5", bytes(9)),
        ("d.npy", b""),
        ("e.pcd", b"FIELDS"),
        ("f.bag", b"#ROS"),
    ):
        (tmp_path / name).write_bytes(content)
    with pytest.raises(data.FormatError) as told:
        data.open(tmp_path, damaged=damaged)
    zeros = bytes(8)
    assert told.value.reason == (
        "no file could be read: a.csv is empty; "
        "b.parquet does not begin like a Parquet file; "
        f"c.hdf5: expected an HDF5 file, got a file that begins with {zeros!r}; "
        "d.npy: expected a .npy file, got a file of 0 bytes; "
        "e.pcd: expected a PCD file, got a file that begins with b'FIELDS'; "
        "f.bag: expected a ROS 1 bag, got a file that begins with b'#ROS'"
    )
    (tmp_path / "g.bin").write_bytes(bytes(3))
    with pytest.raises(data.FormatError, match="got a file that begins with b'#ROS'; and 1 more"):
        data.open(tmp_path, damaged=damaged)


def test_errors_are_pickled():
    import pickle

    error = data.FormatError("/x/y", "row 3", "is wrong")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) == "/x/y: row 3: is wrong" and copy.place == "row 3"


def test_progress(tmp_path, capfd):
    pytest.importorskip("rosbags")
    store = data_files.typestore()
    path = data_files.write_ros2(tmp_path / "x", data_files.messages(store, 50), store)
    data.open(path, progress=True).load()
    assert "Reading ROS 2 bag" in capfd.readouterr().err
    data.open(path).load()  # no terminal
    assert capfd.readouterr().err == ""


def test_progress_without_rich(tmp_path, capfd, monkeypatch):
    pytest.importorskip("rosbags")
    for name in [n for n in sys.modules if n == "rich" or n.startswith("rich.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    store = data_files.typestore()
    path = data_files.write_ros2(tmp_path / "x", data_files.messages(store, 50), store)
    data.open(path, progress=True).load()
    assert "Reading ROS 2 bag (MCAP): 100%" in capfd.readouterr().err


def test_a_large_file_takes_the_memory_of_its_index(tmp_path):
    """300 MB of messages are opened and iterated in much less memory."""
    pytest.importorskip("rosbags")
    store = data_files.typestore()
    name = "sensor_msgs/msg/Image"
    raw = store.serialize_cdr(
        data_files.make(store, name, data=np.zeros(1_000_000, np.uint8)), name
    )
    mcap = data_files.McapBytes()
    number, records = mcap.declared("/camera", name, store.generate_msgdef(name, ros_version=2)[0])
    content = records + mcap.message(number, 1, raw)
    path = tmp_path / "large.mcap"
    with open(path, "wb") as file:
        written = 0
        for _ in range(300):
            mcap.chunk(content, [number])
            file.write(mcap.data)
            written += len(mcap.data)
            at, *rest = mcap.chunks[-1]
            mcap.chunks[-1] = (at + written - len(mcap.data), *rest)
            mcap.data = b""
        whole = mcap.finished(declarations=records)
        file.write(whole[:-37])
        begin = written + len(mcap.record(15, b"1234"))
        file.write(mcap.record(2, __import__("struct").pack("<QQI", begin, 0, 0)) + mcap.MAGIC)
    code = f"""
import re
import robocache as rbc
recording = rbc.data.open({str(path)!r}, progress=False)
recording.left_out
survey = rbc.data.checks.survey(recording)
most = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]
print(survey.streams["/camera"].samples, int(most) // 1024)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    samples, megabytes = map(int, run.stdout.split())
    assert samples == 300 and megabytes < 200


def test_real_data_of_all_formats(recordings):
    """Every folder of recordings is opened, or is known not to be a recording."""
    none = {"rgbd_open3d", "README.md"}
    several = {"ros1_robot_localization", "ros2_mcap_crazyflie_vicon"}  # the others hold one each
    for path in sorted(pathlib.Path(recordings).iterdir()):
        if path.name in none or path.name in several:
            with pytest.raises(data.FormatError):
                data.open(path)
            continue
        opened = data.open(path)
        assert len(opened) > 0, path


def test_docstrings():
    for function in (data.open, data.align, data.save, data.statistics, data.checks.check):
        assert set(parameters_of(function)) == set(inspect.signature(function).parameters)
    for name in data.__all__:
        assert inspect.getdoc(getattr(data, name)), name


def test_pickled_before_it_is_read(made):
    """The pickle contains the path, not the data."""
    import pickle

    opened = data.open(made[0])
    copy = pickle.loads(pickle.dumps(opened))
    if isinstance(opened, data.Recording):
        assert copy.names == opened.names
        for name in opened.names:
            np.testing.assert_array_equal(copy[name].values, opened[name].values)
    else:
        assert not copy.is_loaded and copy == opened


def test_iterating_reads_unread_episodes_in_parts(tmp_path, monkeypatch):
    from robocache._episodes import episodes as module

    pytest.importorskip("pyarrow")
    data.save(faults.episodes(), tmp_path / "set", "lerobot")
    whole = data.open(tmp_path / "set").load()
    lengths = whole.lengths("action").tolist()
    for most in (1, max(lengths), lengths[0] + lengths[1], 10**6):
        monkeypatch.setattr(module, "_ROWS_AT_ONCE", most)
        opened = data.open(tmp_path / "set")
        assert list(opened) == [whole.select([e]) for e in range(len(whole))]
        assert not opened.is_loaded
