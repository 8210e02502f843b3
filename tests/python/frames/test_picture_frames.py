"""Frames in PNG and JPEG files: in folders, next to trajectories, and in RLDS."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import robocache as rbc
from picture_files import aged, decoded, encoded, images_of, pixels, read, require_equal, whole
from robocache.data._formats.rlds.records import example, put
from robocache.data._frames.pictures import ImageFrames, NamedPictures

image = pytest.importorskip("PIL.Image")
data = rbc.data


def write(folder, contents, name="{}.png"):
    folder.mkdir(parents=True, exist_ok=True)
    for i, content in enumerate(contents):
        (folder / name.format(i)).write_bytes(content)
    return folder


# ---- folders ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_folders(tmp_path, kind):
    """Numbers are compared by value: 2.png is before 10.png."""
    expected = []
    for e, count in enumerate((12, 3)):
        contents = [encoded(frame, kind) for frame in pixels(count, seed=e)]
        write(tmp_path / f"episode {e}", contents)
        expected.append([decoded(content) for content in contents])
    (tmp_path / "episode 0" / "notes.txt").write_text("x")
    source = ImageFrames("front", [tmp_path / "episode 0", tmp_path / "episode 1"])
    assert source.shape == (12, 16, 3) and source.times is None
    require_equal(source, expected)
    again = pickle.loads(pickle.dumps(source))
    require_equal(again, expected)
    assert source.files(1) == tuple(str(tmp_path / f"episode 1/{i}.png") for i in range(3))
    assert "ImageFrames" in source.arithmetic()["frames"] and "jpeg" in source.arithmetic()
    assert len(list(source.encoded(0))) == 12


def test_one_folder_and_gray(tmp_path):
    frames = pixels(3, channels=0)
    write(tmp_path / "x", [encoded(frame) for frame in frames])
    source = ImageFrames("front", tmp_path / "x", times=[5, 7, 9])
    require_equal(source, [np.repeat(frames[..., None], 3, axis=3)])
    assert source.times.tolist() == [5, 7, 9]


def test_nothing_is_opened_before_it_is_needed(tmp_path):
    source = ImageFrames("front", tmp_path / "x")
    again = pickle.loads(pickle.dumps(source))
    write(tmp_path / "x", [encoded(frame) for frame in pixels(2)])
    for each in (source, again):
        require_equal(each, [pixels(2)])


def test_folders_without_frames(tmp_path):
    (tmp_path / "empty").mkdir()
    for name, words in (("empty", "zero frames"), ("missing", "is not a folder")):
        with pytest.raises(data.FormatError, match=f"{name}: front: .*{words}"):
            _ = ImageFrames("front", tmp_path / name).lengths
    write(tmp_path / "x", [encoded(frame) for frame in pixels(2)])
    with pytest.raises(data.FormatError, match="has 2 pictures, but 3 times are given"):
        _ = ImageFrames("front", tmp_path / "x", times=[1, 2, 3]).lengths
    with pytest.raises(ValueError, match="times: expected one folder, got 2"):
        ImageFrames("front", [tmp_path / "x", tmp_path / "x"], times=[1, 2])


@pytest.mark.parametrize(
    "content, words",
    [
        (encoded(pixels(1)[0])[:-30], "truncated PNG"),
        (encoded(pixels(1, 64, 64)[0], "JPEG")[:-900], "truncated JPEG"),
        (b"", "expected a JPEG or PNG picture"),
        (b"GIF89a" * 10, "expected a JPEG or PNG picture"),
        (encoded(pixels(1, 12, 17)[0]), "17 x 12 pixels, but the first frame has 16 x 12"),
        (encoded(pixels(1, channels=4)[0]), "alpha"),
        (encoded(image.fromarray(pixels(1)[0]).convert("P")), "palette"),
        (encoded(image.fromarray(pixels(1)[0]).convert("CMYK"), "JPEG"), "CMYK"),
        (encoded(image.fromarray(np.zeros((12, 16), np.uint16))), "16 bits"),
    ],
    ids=["png", "jpeg", "empty", "gif", "size", "alpha", "palette", "cmyk", "16 bits"],
)
def test_pictures_that_are_refused(tmp_path, content, words):
    contents = [encoded(frame) for frame in pixels(3)]
    folder = write(tmp_path / "x", [*contents, content])
    source = ImageFrames("front", folder)
    np.testing.assert_array_equal(read(source, 0, [0, 2]), pixels(3)[[0, 2]])
    with pytest.raises(data.FormatError, match=f"3.png: episode 0, row 3: .*{words}"):
        whole(source, 0)


def test_pictures_that_convert_accepts(tmp_path):
    frame = pixels(1, channels=4)[0]
    folder = write(tmp_path / "x", [encoded(frame)])
    source = ImageFrames("front", folder, convert="RGB")
    np.testing.assert_array_equal(whole(source, 0)[0], frame[..., :3])
    assert pickle.loads(pickle.dumps(source)).arithmetic() == source.arithmetic()
    assert source.arithmetic() != ImageFrames("front", folder).arithmetic()


def test_options_and_copies(tmp_path):
    folder = write(tmp_path / "x", [encoded(frame) for frame in pixels(3, channels=4)])
    source = ImageFrames("front", folder)
    converted = source.with_options(convert="RGB")
    for each in (converted, converted.copy()):
        require_equal(each, [pixels(3, channels=4)[..., :3]])
    assert converted.with_options(convert="RGB") is converted
    with pytest.raises(data.FormatError, match="alpha"):
        whole(source.copy(), 0)
    with pytest.raises(ValueError, match="max_age: is 1"):
        source.with_options(max_age=1)


def test_a_picture_that_is_gone(tmp_path):
    folder = write(tmp_path / "x", [encoded(frame) for frame in pixels(3)])
    source = ImageFrames("front", folder)
    whole(source, 0)
    (folder / "1.png").unlink()
    with pytest.raises(data.FormatError, match="1.png: episode 0, row 1: is missing"):
        whole(source, 0)


# ---- next to trajectories -----------------------------------------------------------------------


def test_euroc(tmp_path):
    pytest.importorskip("pyarrow")
    times = 1403636579763555584 + np.arange(4) * 50_000_000
    base = tmp_path / "mav0"
    (base / "imu0").mkdir(parents=True)
    rows = "".join(f"{t},1,2,3\n" for t in times)
    (base / "imu0/data.csv").write_text("#timestamp [ns],x [m],y [m],z [m]\n" + rows)
    frames = pixels(4, channels=0)
    for t, frame in zip(times, frames):
        write(base / "cam0/data", [encoded(frame)], f"{t}.png")
    names = "".join(f"{t},{t}.png\r\n" for t in times)
    (base / "cam0/data.csv").write_text("#timestamp [ns],filename\r\n" + names)
    recording = data.open(tmp_path)
    assert list(recording.cameras) == ["cam0"] and not recording.left_out
    camera = recording.cameras["cam0"]
    assert camera.times.tolist() == times.tolist()
    require_equal(camera, [np.repeat(frames[..., None], 3, axis=3)])
    again = pickle.loads(pickle.dumps(data.open(tmp_path).cameras["cam0"]))
    assert again.times.tolist() == times.tolist()
    part = recording.select(begin=int(times[1]))
    assert list(part.cameras) == ["cam0"]
    (base / "cam0/data.csv").write_text("#timestamp [ns],filename\n1,../../../../x.png\n")
    with pytest.raises(data.FormatError, match="leads out of the data set"):
        _ = data.open(tmp_path).cameras["cam0"].lengths


def test_kitti(tmp_path):
    pytest.importorskip("pyarrow")
    pose = "1 0 0 {} 0 1 0 0 0 0 1 0\n"
    (tmp_path / "poses.txt").write_text("".join(pose.format(i) for i in range(4)))
    (tmp_path / "times.txt").write_text("0.000000e+00\n1.036224e-01\n2.072448e-01\n3.1e-01\n")
    frames = pixels(4)
    write(tmp_path / "image_2", map(encoded, frames), "{:06}.png")
    recording = data.open(tmp_path)
    assert list(recording.cameras) == ["image_2"] and not recording.left_out
    camera = recording.cameras["image_2"]
    assert camera.times.tolist() == [0, 103_622_400, 207_244_800, 310_000_000]
    require_equal(camera, [frames])
    (tmp_path / "image_2/000004.png").write_bytes(encoded(frames[0]))
    with pytest.raises(data.FormatError, match=r"has 5 pictures, but times\.txt has 4 times"):
        _ = data.open(tmp_path).cameras["image_2"].lengths


def test_tum(tmp_path):
    pytest.importorskip("pyarrow")
    pose = "{} {} 0 0 0 0 0 1\n"
    begin = 1305031102
    rows = "".join(pose.format(f"{begin + i / 10:.4f}", i) for i in range(20))
    (tmp_path / "groundtruth.txt").write_text("# timestamp tx ty tz qx qy qz qw\n" + rows)
    frames = pixels(3)
    names = [f"rgb/{begin}.{i}75304.png" for i in range(3)]
    (tmp_path / "rgb.txt").write_text(
        "# color images\n" + "".join(f"{name[4:-4]} {name}\n" for name in names)
    )
    for name, frame in zip(names, frames):
        write(tmp_path / "rgb", [encoded(frame)], name[4:])
    recording = data.open(tmp_path)
    assert recording.names == ("groundtruth",) and list(recording.cameras) == ["rgb"]
    camera = recording.cameras["rgb"]
    assert camera.times.tolist() == [begin * 10**9 + i * 10**8 + 75_304_000 for i in range(3)]
    require_equal(camera, [frames])
    (tmp_path / "rgb.txt").write_text(f"{begin}.5 {names[0]}\n{begin}.4 {names[1]}\n")
    with pytest.raises(data.FormatError, match="the time of picture 1 is before"):
        _ = data.open(tmp_path).cameras["rgb"].lengths


# ---- RLDS ---------------------------------------------------------------------------------------


def write_rlds(folder, episodes, kind="PNG", cameras=("image", "wrist")):
    """Write pictures and a state of each step as TensorFlow Datasets does."""
    import json

    folder.mkdir(parents=True, exist_ok=True)
    picture = {
        "pythonClassName": "tensorflow_datasets.core.features.image_feature.Image",
        "image": {"shape": {"dimensions": ["12", "16", "3"]}, "dtype": "uint8",
                  "encodingFormat": kind.lower()},
    }  # fmt: skip
    state = {
        "pythonClassName": "tensorflow_datasets.core.features.tensor_feature.Tensor",
        "tensor": {"shape": {"dimensions": ["2"]}, "dtype": "float32", "encoding": "none"},
    }

    def of(members):
        return {"pythonClassName": "x.FeaturesDict", "featuresDict": {"features": members}}

    step = of({"observation": of({"state": state, **dict.fromkeys(cameras, picture)})})
    steps = {"pythonClassName": "x.Dataset", "sequence": {"feature": step}}
    (folder / "features.json").write_text(json.dumps(of({"steps": steps})))
    (folder / "dataset_info.json").write_text("{}")
    made = {name: [] for name in cameras}
    for number, part in enumerate((episodes[:2], episodes[2:])):
        with open(folder / f"x-train.tfrecord-0000{number}-of-00002", "wb") as file:
            for length in part:
                features = {"steps/observation/state": np.zeros(2 * length, np.float32)}
                for c, name in enumerate(cameras):
                    frames = pixels(length, seed=10 * length + c)
                    own = [encoded(frame, kind) for frame in frames]
                    features[f"steps/observation/{name}"] = own
                    made[name].append([decoded(content) for content in own])
                put(file, example(features))
    return made


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_rlds(tmp_path, kind):
    expected = write_rlds(tmp_path / "x", [5, 1, 9], kind)
    episodes = data.open(tmp_path / "x")
    assert list(episodes.cameras) == ["observation.image", "observation.wrist"]
    assert not episodes.left_out
    cameras = episodes.cameras
    for name, frames in expected.items():
        camera = cameras[f"observation.{name}"]
        require_equal(camera, frames)
        content = pickle.dumps(camera)
        assert len(content) < 4000
        require_equal(pickle.loads(content), frames)
        assert camera.files(0) == camera.files(1) != camera.files(2)
        assert len({str(camera.place(e)) for e in range(3)}) == 3
    places = {str(camera.place(0)) for camera in cameras.values()}
    assert len(places) == 2


def test_truncated_rlds(tmp_path):
    write_rlds(tmp_path / "x", [5, 1, 9])
    camera = data.open(tmp_path / "x").cameras["observation.image"]
    path = tmp_path / "x/x-train.tfrecord-00000-of-00002"
    path.write_bytes(path.read_bytes()[:-9])
    whole(camera, 0)
    with pytest.raises(data.FormatError, match="tfrecord-00000.*truncated"):
        whole(camera, 1)
    path.unlink()
    with pytest.raises(data.FormatError, match="tfrecord-00000.*is missing"):
        whole(camera, 0)


def test_a_damaged_picture_in_rlds(tmp_path):
    write_rlds(tmp_path / "x", [5])
    path = tmp_path / "x/x-train.tfrecord-00000-of-00002"
    frames = [encoded(frame) for frame in pixels(3)]
    frames[1] = frames[1][:60]
    with open(path, "wb") as file:
        state = {"steps/observation/state": np.zeros(6, np.float32)}
        names = ("image", "wrist")
        put(file, example({**state, **{f"steps/observation/{n}": frames for n in names}}))
    camera = data.open(tmp_path / "x").cameras["observation.wrist"]
    with pytest.raises(data.FormatError, match="observation/wrist, episode 0, row 1: is a"):
        whole(camera, 0)


def test_pictures_in_another_order_are_not_those_of_the_cache(tmp_path):
    """A list such as rgb.txt may have the same files in another order."""
    frames = pixels(4)
    write(tmp_path / "x", [encoded(frame) for frame in frames])
    aged(tmp_path / "x")
    images = rbc.Images("front", dtype="uint8", layout="hwc")
    spec = rbc.WindowSpec({"state": [0], "front": rbc.Window([0], images=images)})
    for order in ([0, 1, 2, 3], [0, 2, 1, 3], [3, 2, 1, 0]):
        files = NamedPictures(str(tmp_path / "x"), [[f"{i}.png" for i in order]])
        source = ImageFrames.made("front", files)
        state = rbc.Track(np.zeros((4, 1), np.float32), [0, 4])
        episodes = rbc.Episodes({"state": state}).with_cameras(
            {"front": source}, cache=rbc.Cache(tmp_path / "cache", require=True)
        )
        found, _ = images_of(episodes, spec, [0] * 4, range(4))
        np.testing.assert_array_equal(found[:, 0], frames[order])
