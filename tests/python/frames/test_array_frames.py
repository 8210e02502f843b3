"""Frames in arrays: in memory, in maps of .npy files, in HDF5 and in Zarr."""

from __future__ import annotations

import os
import pathlib
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import data_files
import robocache as rbc
from picture_files import aged, decoded, encoded, images_of, read, require_equal, whole
from robocache.data._frames.arrays import ArrayFrames, may_be_camera

data = rbc.data
H, W = 12, 16


def pixels(count, *shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, *(shape or (H, W, 3))), np.uint8)


# ---- in memory and in maps ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "stored, expected",
    [
        (pixels(9), pixels(9)),
        (pixels(9, 3, H, W), pixels(9, 3, H, W).transpose(0, 2, 3, 1)),
        (pixels(9, H, W), pixels(9, H, W)[..., None]),
        (pixels(9, 1, H, W), pixels(9, 1, H, W).transpose(0, 2, 3, 1)),
        (pixels(9).astype(np.float32), pixels(9)),
        (np.asfortranarray(pixels(9)), pixels(9)),
        (pixels(9, H, W, 4)[..., :3], pixels(9, H, W, 4)[..., :3]),
    ],
    ids=["last", "first", "gray", "gray first", "floats", "Fortran", "without alpha"],
)
def test_layouts(stored, expected):
    source = ArrayFrames("front", stored, [0, 4, 4, 9])
    require_equal(source, [expected[:4], expected[4:4], expected[4:]])
    assert source.shape == expected.shape[1:] and source.shape[2] in (1, 3)
    assert ("floats" in source.arithmetic()) == (stored.dtype.kind == "f")


@pytest.mark.parametrize(
    "array, offsets, words",
    [
        (pixels(4, H, W, 4), [0, 4], ["4 channels", "array[..., :3]"]),
        (pixels(4, 4, H, W), [0, 4], ["4 channels"]),
        (pixels(4, 3, H, 3), [0, 4], ["may be first or last"]),
        (pixels(4, H, W, 5), [0, 4], ["expected 1 or 3 channels"]),
        (pixels(4, W), [0, 4], ["expected [H,W,3]"]),
        (pixels(4, 0, W, 3), [0, 4], ["[0, 16, 3]"]),
        (pixels(4).astype(np.uint16), [0, 4], ["uint16", "unproject"]),
        (pixels(4), [0, 5], ["row 5", "4 rows"]),
        (pixels(4), [0, 3, 2], ["ascend"]),
        (pixels(4), [0.0, 4.0], ["integers"]),
        ([1, 2], [0, 2], ["list"]),
    ],
)
def test_arrays_that_are_refused(array, offsets, words):
    with pytest.raises(ValueError) as caught:
        ArrayFrames("front", array, offsets)
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize("value", [0.5, -1.0, 256.0, np.nan, np.inf])
def test_floats_that_are_not_whole(value):
    stored = pixels(5).astype(np.float64)
    stored[3, 2, 1, 0] = value
    source = ArrayFrames("front", stored, [0, 1, 5])
    whole(source, 0)
    with pytest.raises(data.FormatError, match=r"episode 1, row 2: has the value .* 0 to 255"):
        read(source, 1, [0, 2])


def test_arguments_of_read():
    source = ArrayFrames("front", pixels(5), [0, 5])
    out = np.empty((2, H, W, 3), np.uint8)
    with pytest.raises(IndexError, match="episode: is 1"):
        source.read(1, np.array([0, 1]), out)
    with pytest.raises(IndexError, match="rows: has 5"):
        source.read(0, np.array([0, 5]), out)
    with pytest.raises(IndexError, match="rows: has -1"):
        source.read(0, np.array([-1, 0]), out)
    for rows in ([1, 0], [1, 1]):
        with pytest.raises(ValueError, match="strictly ascending"):
            source.read(0, np.array(rows), out)
    for wrong in (out[:1], out.astype(np.int8), out[:, ::2], out[..., :1]):
        with pytest.raises(ValueError, match="out: has dtype"):
            source.read(0, np.array([0, 1]), wrong)
    source.read(0, np.array([], np.int64), out[:0])


def test_a_map_is_pickled_by_its_path(tmp_path):
    stored = pixels(40, 64, 64, 3)
    np.save(tmp_path / "frames.npy", stored)
    mapped = np.load(tmp_path / "frames.npy", mmap_mode="r")
    for part, own in [(mapped, stored), (mapped[3:30:2, 5:], stored[3:30:2, 5:])]:
        source = ArrayFrames("front", part, [0, 5, len(own)])
        content = pickle.dumps(source)
        assert len(content) < 2000
        for each in (source, pickle.loads(content)):
            require_equal(each, [own[:5], own[5:]])
            assert each.files(1) == (str(tmp_path / "frames.npy"),)
            assert each.place(1) == source.place(1)
            each.close()
            require_equal(each, [own[:5], own[5:]])
    assert ArrayFrames("x", mapped, [0, 5]).place(0) != ArrayFrames("x", mapped, [1, 6]).place(0)
    swapped = ArrayFrames("x", mapped.transpose(0, 2, 1, 3), [0, 5])
    assert swapped.place(0) != ArrayFrames("x", mapped, [0, 5]).place(0)


def test_a_map_of_a_truncated_file(tmp_path):
    stored = pixels(40, 64, 64, 3)
    np.save(tmp_path / "frames.npy", stored)
    source = ArrayFrames("front", np.load(tmp_path / "frames.npy", mmap_mode="r"), [0, 40])
    os.truncate(tmp_path / "frames.npy", 50_000)
    with pytest.raises(data.FormatError, match="truncated: it has 50000 bytes"):
        whole(source, 0)


def test_an_array_in_memory_has_no_files():
    source = ArrayFrames("front", pixels(4), [0, 4])
    with pytest.raises(ValueError, match="np.save"):
        source.files(0)
    np.testing.assert_array_equal(whole(pickle.loads(pickle.dumps(source)), 0), pixels(4))


@pytest.mark.parametrize(
    "shape, dtype, name, is_camera",
    [
        ((9, 480, 640, 3), np.uint8, "a", True),
        ((9, 3, 480, 640), np.uint8, "a", True),
        ((9, 84, 84), np.uint8, "a", True),
        ((9, 4, 4), np.uint8, "a", False),
        ((9, 96, 96, 3), np.float32, "data/img", True),
        ((9, 96, 96, 3), np.float32, "points", False),
        ((9, 1024, 3), np.float32, "image", False),
        ((9, 480, 640, 1), np.uint16, "depth", False),
        ((9, 480, 640, 4), np.uint8, "rgba", False),
        ((9, 7), np.uint8, "a", False),
        ((9,), np.uint8, "a", False),
    ],
)
def test_which_arrays_are_cameras(shape, dtype, name, is_camera):
    assert may_be_camera(shape, np.dtype(dtype), name) == is_camera


# ---- HDF5 ---------------------------------------------------------------------------------------


def write_demos(path, frames, name="obs/agentview_image", lengths=None, **options):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for e, own in enumerate(frames):
            group = file.create_group(f"data/demo_{e}")
            length = len(own) if lengths is None else lengths[e]
            group["actions"] = np.zeros((length, 2), np.float32)
            if own is not None:
                group.create_dataset(name, data=own, **options)
    return path


OPTIONS = [
    {},
    {"chunks": (1, H, W, 3)},
    {"chunks": (4, H, W, 3), "compression": "gzip"},
    {"chunks": (3, 5, 7, 2), "compression": "lzf", "shuffle": True, "fletcher32": True},
    {"chunks": (64, H, W, 3), "compression": "gzip", "maxshape": (None, H, W, 3)},
]


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_robomimic(tmp_path, options):
    h5py = pytest.importorskip("h5py")
    frames = [pixels(length, seed=length) for length in (9, 30, 5)]
    path = write_demos(tmp_path / "demos.hdf5", frames, **options)
    episodes = data.open(path)
    assert list(episodes.cameras) == ["obs/agentview_image"]
    assert not [each for each in episodes.left_out if "image" in each.place]
    camera = episodes.cameras["obs/agentview_image"]
    with h5py.File(path) as file:
        expected = [file[f"data/demo_{e}/obs/agentview_image"][:] for e in range(3)]
    require_equal(camera, expected)
    assert camera.files(1) == (str(path),)
    assert len({str(camera.place(e)) for e in range(3)}) == 3
    content = pickle.dumps(camera)
    assert len(content) < 3000
    require_equal(pickle.loads(content), expected)
    camera.close()
    require_equal(camera, expected)


def test_a_file_per_episode_in_turn(tmp_path):
    """More files than are kept open, read in turns, and a second camera."""
    h5py = pytest.importorskip("h5py")
    expected = {"top": [], "wrist": []}
    for e in range(12):
        with h5py.File(tmp_path / f"episode_{e}.hdf5", "w") as file:
            file["action"] = np.zeros((6, 2))
            for c, name in enumerate(expected):
                own = pixels(6, seed=2 * e + c)
                file[f"observations/images/{name}"] = own
                expected[name].append(own)
    cameras = data.open(tmp_path).cameras
    assert list(cameras) == ["observations/images/top", "observations/images/wrist"]
    for row in range(6):
        for e in range(12):
            for name, frames in expected.items():
                own = read(cameras[f"observations/images/{name}"], e, [row])
                np.testing.assert_array_equal(own[0], frames[e][row])
    assert cameras["observations/images/top"].files(11) == (str(tmp_path / "episode_11.hdf5"),)


def test_one_observation_more(tmp_path):
    frames = [pixels(7), pixels(5, seed=1)]
    path = write_demos(tmp_path / "demos.hdf5", frames, lengths=[6, 4])
    camera = data.open(path).cameras["obs/agentview_image"]
    require_equal(camera, [frames[0][:6], frames[1][:4]])


def test_cameras_that_differ_between_episodes(tmp_path):
    def fault(*frames, **options):
        path = write_demos(tmp_path / "demos.hdf5", frames, **options)
        camera = data.open(path).cameras["obs/agentview_image"]
        found = set()
        for use in (lambda: camera.shape, lambda: camera.lengths, lambda: camera.place(0)):
            with pytest.raises(data.FormatError) as caught:
                use()
            found.add(str(caught.value))
        assert len(found) == 1
        return found.pop()

    text = fault(pixels(4), pixels(6), lengths=[4, 3])
    assert "data/demo_1" in text and "has 6 frames, but the tracks of this episode have 3" in text
    text = fault(pixels(4), pixels(4, H, W + 1, 3))
    assert "data/demo_1" in text and "[12, 17, 3]" in text and "[12, 16, 3]" in text


def test_a_camera_that_some_episodes_lack(tmp_path):
    """The episodes that have it can be selected, as the message says."""
    frames = [pixels(4), None, pixels(3, seed=1), None]
    path = aged(write_demos(tmp_path / "demos.hdf5", frames, lengths=[4, 4, 3, 2]))
    name = "obs/agentview_image"
    images = rbc.Images(name, dtype="uint8", layout="hwc")
    spec = rbc.WindowSpec({"actions": [0], "front": rbc.Window([0], images=images)})
    for require in (None, True, True):  # the cache stores the reason too
        cache = require and rbc.Cache(tmp_path / "cache", require=True)
        episodes = data.open(path, cache=cache)
        assert episodes.cameras[name].lengths.tolist() == [4, 0, 3, 0]
        (left_out,) = [each for each in episodes.left_out if each.place == name]
        text = "not a camera in all episodes: 'data/demo_1', 'data/demo_3' lack it"
        assert text in left_out.reason
        with pytest.raises(ValueError, match="has 0 frames in episode 1, .* select episodes"):
            images_of(episodes, spec, [0], [0])
        found, valid = images_of(episodes.select([2, 0]), spec, [0, 1, 0], [2, 3, 0])
        assert valid.all()
        np.testing.assert_array_equal(found[:, 0], [frames[2][2], frames[0][3], frames[2][0]])


def test_no_error_at_the_end_of_a_process(tmp_path):
    path = write_demos(tmp_path / "demos.hdf5", [pixels(4)])
    code = f"""
import numpy, robocache
camera = robocache.data.open({str(path)!r}).cameras["obs/agentview_image"]
kept = camera.copy()
camera.read(0, numpy.arange(2), numpy.empty((2, *camera.shape), numpy.uint8))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""


def test_rows_that_were_never_written(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = write_demos(tmp_path / "demos.hdf5", [pixels(8)], chunks=(2, H, W, 3))
    with h5py.File(path, "a") as file:
        file["data/demo_0/actions"].resize  # noqa: B018
        del file["data/demo_0/actions"]
        file["data/demo_0/actions"] = np.zeros((20, 2))
        del file["data/demo_0/obs/agentview_image"]
        stored = file.create_dataset(
            "data/demo_0/obs/agentview_image", (20, H, W, 3), np.uint8, chunks=(2, H, W, 3)
        )
        stored[:8] = pixels(8)
    camera = data.open(path).cameras["obs/agentview_image"]
    np.testing.assert_array_equal(read(camera, 0, range(8)), pixels(8))
    with pytest.raises(data.FormatError, match=r"demo_0.*row 8: was never written"):
        read(camera, 0, range(10))


@pytest.mark.parametrize("keep", [0.9, 0.5])
def test_truncated_hdf5(tmp_path, keep):
    path = write_demos(tmp_path / "demos.hdf5", [pixels(300)], chunks=(4, H, W, 3))
    camera = data.open(path).cameras["obs/agentview_image"]
    os.truncate(path, int(os.path.getsize(path) * keep))
    with pytest.raises(data.FormatError, match=r"demos\.hdf5"):
        whole(camera, 0)
    path.unlink()
    camera.close()
    with pytest.raises(data.FormatError, match=r"demos\.hdf5: is missing"):
        whole(camera, 0)


def test_a_damaged_chunk(tmp_path):
    path = write_demos(
        tmp_path / "demos.hdf5", [pixels(40)], chunks=(4, H, W, 3), compression="gzip"
    )
    h5py = pytest.importorskip("h5py")
    with h5py.File(path) as file:
        info = file["data/demo_0/obs/agentview_image"].id.get_chunk_info_by_coord((20, 0, 0, 0))
    with open(path, "r+b") as file:
        file.seek(info.byte_offset)
        file.write(b"\xff" * info.size)
    camera = data.open(path).cameras["obs/agentview_image"]
    np.testing.assert_array_equal(read(camera, 0, range(20)), pixels(40)[:20])
    with pytest.raises(data.FormatError, match="episode 0, row 20: cannot be read"):
        read(camera, 0, [22])
    np.testing.assert_array_equal(read(camera, 0, [30]), pixels(40)[30:31])


def test_frames_after_a_change_of_the_file(tmp_path):
    path = write_demos(tmp_path / "demos.hdf5", [pixels(8)])
    camera = data.open(path).cameras["obs/agentview_image"]
    whole(camera, 0)
    os.utime(path, ns=(1, 1))
    with pytest.raises(data.FormatError, match="changed while it was read"):
        whole(camera, 0)


def test_a_forked_process_reads_hdf5(tmp_path):
    """It starts another process for HDF5, and opens the file again."""
    path = write_demos(tmp_path / "demos.hdf5", [pixels(8)])
    code = f"""
import os
import numpy as np
import robocache as rbc
camera = rbc.data.open({str(path)!r}).cameras["obs/agentview_image"]
def total():
    out = np.empty((8, {H}, {W}, 3), np.uint8)
    camera.read(0, np.arange(8), out)
    return int(out.sum())
first = total()
if os.fork() == 0:
    os._exit(0 if total() == first else 1)
print(os.waitstatus_to_exitcode(os.wait()[1]), first == total())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "0 True\n", done.stderr


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("as_text", [False, True])
def test_aloha_with_packed_pictures(tmp_path, kind, as_text):
    """Each row is a file, padded with zeros to the longest file of its episode."""
    h5py = pytest.importorskip("h5py")
    expected = []
    for e, length in enumerate((5, 7)):
        contents = [encoded(frame, kind) for frame in pixels(length, 32, 32, 3, seed=e)]
        longest = max(map(len, contents)) + 3 * e
        with h5py.File(tmp_path / f"episode_{e}.hdf5", "w") as file:
            file["action"] = np.zeros((length, 2))
            rows = np.array(contents, f"S{longest}")
            if not as_text:
                file["compress_len"] = np.array([list(map(len, contents))], np.float64)
                rows = rows.view(np.uint8).reshape(length, longest)
            file["observations/images/top"] = rows
        expected.append(np.stack([decoded(content) for content in contents]))
    episodes = data.open(tmp_path)
    assert "observations/images/top" not in episodes.tracks
    camera = episodes.cameras["observations/images/top"]
    require_equal(camera, expected)
    require_equal(pickle.loads(pickle.dumps(camera)), expected)
    del camera, episodes  # which unlocks the files
    with h5py.File(tmp_path / "episode_1.hdf5", "a") as file:
        row = file["observations/images/top"][3]
        damaged = row[: len(row) // 2] if as_text else np.where(np.arange(len(row)) < 200, row, 0)
        file["observations/images/top"][3] = damaged
    camera = data.open(tmp_path).cameras["observations/images/top"]
    with pytest.raises(data.FormatError, match=r"episode_1\.hdf5.*episode 1, row 3: is a"):
        whole(camera, 1)


def test_aloha_and_its_files(tmp_path):
    data_files.write_aloha(tmp_path / "episode_0.hdf5", 5, 0)
    cameras = data.open(tmp_path).cameras
    assert list(cameras) == ["observations/images/top"]


# ---- Zarr ---------------------------------------------------------------------------------------


def write_buffer(path, arrays, ends=(4, 9, 11), chunks=None, **options):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(path), mode="w")
    group.create_array("meta/episode_ends", data=np.array(ends))
    group.create_array("data/action", data=np.zeros((ends[-1], 2)))
    for name, array in arrays.items():
        made = group.create_array(
            f"data/{name}", shape=array.shape, dtype=array.dtype,
            chunks=chunks or (3, *array.shape[1:]), **options,
        )  # fmt: skip
        made[:] = array
    return path


def zipped(path):
    made = shutil.make_archive(str(path), "zip", path)
    return pathlib.Path(made)


@pytest.mark.parametrize("as_zip", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"chunks": (1, H, W, 3)},
        {"chunks": (4, 5, 7, 2)},
        {"chunks": (50, H, W, 3)},
        {"chunks": (2, H, W, 3), "shards": (4, H, W, 3)},
    ],
    ids=["3", "1", "tiles", "one", "shards"],
)
def test_replay_buffers(tmp_path, options, as_zip):
    zarr = pytest.importorskip("zarr")
    frames = pixels(11)
    path = write_buffer(tmp_path / "x.zarr", {"front": frames}, **options)
    stored = zarr.open_group(str(path), mode="r")["data/front"][:]
    np.testing.assert_array_equal(stored, frames)
    path = zipped(path) if as_zip else path
    episodes = data.open(path)
    camera = episodes.cameras["front"]
    assert not episodes.left_out and "front" not in episodes.tracks
    expected = [stored[:4], stored[4:9], stored[9:]]
    require_equal(camera, expected)
    assert camera.files(0) == (str(path if as_zip else path / "data" / "front"),)
    assert [camera.place(e) for e in range(3)] == [
        ["data/front", *at] for at in [(0, 4), (4, 5), (9, 2)]
    ]
    content = pickle.dumps(camera)
    assert len(content) < 2000
    require_equal(pickle.loads(content), expected)


def test_floats_of_diffusion_policy(tmp_path):
    """Its buffers hold images as float32 with whole numbers."""
    frames = pixels(11, 16, 16, 3)
    stored = frames.astype(np.float32)
    episodes = data.open(write_buffer(tmp_path / "x.zarr", {"img": stored}))
    camera = episodes.cameras["img"]
    assert list(episodes.tracks) == ["action"]
    require_equal(camera, [frames[:4], frames[4:9], frames[9:]])
    assert camera.arithmetic()["floats"]
    stored[5] /= 255
    camera = data.open(write_buffer(tmp_path / "y.zarr", {"img": stored})).cameras["img"]
    with pytest.raises(data.FormatError, match="data/img, episode 1, row 1: has the value"):
        whole(camera, 1)


def test_only_the_chunks_that_are_needed(tmp_path):
    path = write_buffer(tmp_path / "x.zarr", {"front": pixels(12)}, ends=(12,))
    for chunk in (path / "data/front").rglob("1/0/0/0"):
        chunk.write_bytes(b"\0" * 20)
    camera = data.open(path).cameras["front"]
    rows = [0, 1, 2, 6, 7, 11]
    np.testing.assert_array_equal(read(camera, 0, rows), pixels(12)[rows])
    with pytest.raises(data.FormatError, match="data/front, episode 0, row 4: "):
        read(camera, 0, [1, 4])
    np.testing.assert_array_equal(read(camera, 0, [6]), pixels(12)[6:7])


def test_missing_chunks_are_the_fill_value_with_a_warning(tmp_path):
    path = write_buffer(tmp_path / "x.zarr", {"front": pixels(12)}, ends=(12,), fill_value=7)
    next((path / "data/front").rglob("2/0/0/0")).unlink()
    camera = data.open(path).cameras["front"]
    read(camera, 0, range(6))
    with pytest.warns(UserWarning, match="front.*is missing.*read as 7"):
        found = whole(camera, 0)
    expected = pixels(12)
    expected[6:9] = 7
    np.testing.assert_array_equal(found, expected)


def test_frames_and_rows_of_other_lengths(tmp_path):
    path = write_buffer(tmp_path / "x.zarr", {"front": pixels(10)})
    episodes = data.open(path)
    with pytest.raises(data.FormatError, match="has 10 frames, but the episodes have 11 rows"):
        _ = episodes.cameras["front"].shape
    assert ["front"] == [each.place for each in episodes.left_out]


def test_a_store_that_changed(tmp_path):
    camera = data.open(write_buffer(tmp_path / "x.zarr", {"front": pixels(11)})).cameras["front"]
    write_buffer(tmp_path / "x.zarr", {"front": pixels(11, H, W + 1, 3)})
    with pytest.raises(data.FormatError, match=r"has uint8 \[11, 12, 17, 3\], but had uint8 \[11"):
        whole(camera, 0)
    shutil.rmtree(tmp_path / "x.zarr")
    with pytest.raises(data.FormatError, match="is missing"):
        whole(camera, 0)


def test_clouds_and_gray(tmp_path):
    arrays = {
        "points": np.random.default_rng(0).normal(size=(11, 1024, 3)),
        "map": np.random.default_rng(0).normal(size=(11, 16, 16, 3)).astype("f4"),
        "mono": pixels(11, 16, 20),
        "depth": np.zeros((11, 16, 20, 1), np.uint16),
    }
    episodes = data.open(write_buffer(tmp_path / "x.zarr", arrays))
    assert list(episodes.cameras) == ["mono"]
    assert "mono" in episodes.tracks and "map" in episodes.tracks
    require_equal(episodes.cameras["mono"], [
        part[..., None] for part in np.split(arrays["mono"], [4, 9])])  # fmt: skip


# ---- use ----------------------------------------------------------------------------------------


def test_copies_read_in_other_threads(tmp_path):
    """Each thread has a copy with files of its own."""
    frames = [pixels(length, seed=length) for length in (9, 30)]
    path = write_demos(tmp_path / "demos.hdf5", frames, chunks=(4, H, W, 3), compression="gzip")
    store = write_buffer(tmp_path / "x.zarr", {"front": np.concatenate(frames)}, ends=(9, 39))
    for camera in (
        data.open(path).cameras["obs/agentview_image"],
        data.open(store).cameras["front"],
        ArrayFrames("front", np.concatenate(frames), [0, 9, 39]),
    ):
        with ThreadPoolExecutor(4) as pool:
            for done in [
                pool.submit(require_equal, camera.copy(), frames, seed) for seed in range(8)
            ]:
                done.result()
        require_equal(camera, frames)


@pytest.mark.parametrize("kind", ["hdf5", "zarr"])
def test_windows_of_images(tmp_path, kind):
    frames = [pixels(length, seed=length) for length in (9, 30)]
    if kind == "hdf5":
        name, path = "obs/image", write_demos(tmp_path / "x.hdf5", frames, "obs/image")
    else:
        name = "image"
        path = write_buffer(tmp_path / "x.zarr", {name: np.concatenate(frames)}, ends=(9, 39))
    aged(path)
    images = rbc.Images(name, dtype="uint8", layout="hwc")
    for cache in (None, rbc.Cache(tmp_path / "cache"), rbc.Cache(tmp_path / "cache")):
        episodes = data.open(path, cache=cache)
        track = next(iter(episodes.tracks))
        spec = rbc.WindowSpec({track: [0], "front": rbc.Window([-1, 0], images=images)})
        found, valid = images_of(episodes, spec, [1, 0], [29, 0])
        np.testing.assert_array_equal(found[0], frames[1][28:30])
        np.testing.assert_array_equal(found[1, 1], frames[0][0])
        assert valid.tolist() == [[True, True], [False, True]]
    assert any((tmp_path / "cache").rglob("*.rbs"))


def test_convert_writes_the_cameras_of_hdf5(tmp_path):
    pytest.importorskip("av")
    zarr = pytest.importorskip("zarr")
    frames = [pixels(5, 32, 32, 3), pixels(8, 32, 32, 3, seed=1)]
    path = write_demos(tmp_path / "demos.hdf5", frames, "obs/front_image")
    made = data.convert(path, tmp_path / "out.zarr", fps=10)
    assert made.cameras == {"obs/front_image": (32, 32, 3)}
    group = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")
    (name,) = [name for name, array in group["data"].arrays() if array.ndim == 4]
    np.testing.assert_array_equal(np.asarray(group[f"data/{name}"]), np.concatenate(frames))
