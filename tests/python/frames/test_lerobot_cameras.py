"""The cameras of LeRobot data sets: ``About.cameras``, for videos and for pictures."""

import builtins
import io
import json
import os
import pickle

import numpy as np
import pytest

import data_files
import numbered_videos as videos
import robocache as rbc
from robocache.data import FormatError
from robocache.data._errors import Damage
from robocache.data._formats.lerobot import cameras as lerobot_cameras
from robocache.data._formats.lerobot.cameras import LeRobotPictures, LeRobotVideo, Meta
from robocache.data._formats.lerobot.frames import frames_of
from robocache.data._options import Options

pytest.importorskip("av")
pq = pytest.importorskip("pyarrow.parquet")
pa = pytest.importorskip("pyarrow")

CAMERA = "observation.images.top"
LENGTHS = (5, 3, 4)
EPISODES = "meta/episodes/chunk-000/file-000.parquet"


@pytest.fixture(params=["v2.1", "v3.0"])
def folder(tmp_path, request):
    made = tmp_path / "set"
    data_files.write_lerobot(made, LENGTHS, request.param)
    write_videos(made)
    return made


@pytest.fixture
def v3(tmp_path):
    made = tmp_path / "set"
    data_files.write_lerobot(made, LENGTHS, "v3.0")
    write_videos(made)
    return made


def write_videos(folder, name=CAMERA):
    options = {"bf": "2", "g": "4"}
    if json.loads((folder / "meta/info.json").read_text())["codebase_version"] == "v3.0":
        path = folder / f"videos/{name}/chunk-000/file-000.mp4"
        path.parent.mkdir(parents=True)
        videos.write(path, range(sum(LENGTHS)), rate=10, options=options)
        return
    begin = 0
    for e, length in enumerate(LENGTHS):
        path = folder / f"videos/chunk-{e // 2:03d}/{name}/episode_{e:06d}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        videos.write(path, range(begin, begin + length), rate=10, options=options)
        begin += length


def cameras(folder):
    return rbc.data.open(folder)._about.cameras


def read(camera, episode, rows=None):
    rows = np.arange(camera.lengths[episode]) if rows is None else np.asarray(rows)
    out = np.empty((len(rows), *camera.shape), np.uint8)
    camera.read(episode, rows, out)
    return out


def numbers(camera, episode, rows=None):
    return [videos.number_of(image) for image in read(camera, episode, rows)]


def change(folder, **columns):
    """Change columns of meta/episodes: the video's, by the end of their names."""
    table = pq.read_table(folder / EPISODES)
    for key, values in columns.items():
        name = f"videos/{CAMERA}/{key}"
        if name in table.column_names:
            table = table.drop_columns([name])
        table = table.append_column(name, pa.array(values))
    pq.write_table(table, folder / EPISODES)


def test_each_episode_has_its_frames(folder):
    camera = cameras(folder)[CAMERA]
    assert camera.name == CAMERA and camera.shape == (*videos.SIZE, 3)
    assert camera.lengths.tolist() == list(LENGTHS)
    first = 0
    for episode, length in enumerate(LENGTHS):
        assert numbers(camera, episode) == list(range(first, first + length))
        assert [os.path.isfile(file) for file in camera.files(episode)] == [True]
        first += length
    assert numbers(camera, 0, [1, 4]) == [1, 4]
    assert len({str((camera.files(e), camera.place(e))) for e in range(3)}) == 3


def test_creating_cameras_opens_no_file(folder, monkeypatch):
    meta = Meta(str(folder), Options(Damage()))
    monkeypatch.setattr(builtins, "open", None)
    monkeypatch.setattr(os, "open", None)
    made = LeRobotVideo(meta, CAMERA), LeRobotPictures(meta, "pictures")
    monkeypatch.undo()
    assert made[0].lengths.tolist() == list(LENGTHS)


def test_pickles_hold_the_path(folder):
    camera = cameras(folder)[CAMERA]
    before = read(camera, 1)
    content = pickle.dumps(camera)
    assert len(content) < 3000
    assert (read(pickle.loads(content), 1) == before).all()


def test_frames_in_any_order_of_episodes(folder):
    meta = Meta(str(folder), Options(Damage()))
    wanted = {2: [0, 3], 0: [1, 2], 1: [0]}
    feature = meta.info.features[CAMERA]
    found = list(frames_of(meta.info, meta.plan, feature, wanted, meta.options))
    assert [(e, i) for e, i, _ in found] == [(2, 0), (2, 3), (0, 1), (0, 2), (1, 0)]
    assert [videos.number_of(image) for _, _, image in found] == [8, 11, 1, 2, 5]


def test_begins_that_drifted(v3):
    change(v3, from_timestamp=[0.0, 0.5 + 0.012, 0.8 - 0.012])
    camera = cameras(v3)[CAMERA]
    assert [numbers(camera, e)[0] for e in range(3)] == [0, 5, 8]


def test_a_begin_between_two_frames(v3):
    change(v3, from_timestamp=[0.0, 0.5, 0.84])
    with pytest.raises(
        FormatError, match=r"file-000\.mp4: episode 2, row 0: has no frame at 0\.84"
    ):
        read(cameras(v3)[CAMERA], 2)


def test_episodes_with_the_same_frames(v3):
    change(v3, from_timestamp=[0.0, 0.5, 0.6])
    camera = cameras(v3)[CAMERA]
    assert numbers(camera, 0) == list(range(5))
    for episode, other in ((1, 2), (2, 1)):
        text = rf"episode {episode}, {CAMERA}: has frames of the same video as episode {other}"
        with pytest.raises(FormatError, match=text):
            read(camera, episode)


def test_ends_that_differ_from_the_rows(v3):
    change(v3, to_timestamp=[0.5, 0.8, 1.2])
    assert numbers(cameras(v3)[CAMERA], 1) == [5, 6, 7]
    change(v3, to_timestamp=[0.5, 0.9, 1.2])
    with pytest.raises(FormatError, match=r"episode 1, .*is from 0.5.* 4\.00 frames, expected 3"):
        read(cameras(v3)[CAMERA], 1)


def test_a_video_of_another_episode(tmp_path):
    folder = tmp_path / "set"
    data_files.write_lerobot(folder, LENGTHS, "v2.1")
    write_videos(folder)
    places = [folder / f"videos/chunk-000/{CAMERA}/episode_{e:06d}.mp4" for e in (0, 1)]
    swap = folder / "swap"
    places[0].rename(swap)
    places[1].rename(places[0])
    swap.rename(places[1])
    camera = cameras(folder)[CAMERA]
    for episode, count, rows in ((0, 3, 5), (1, 5, 3)):
        text = (
            rf"episode_00000{episode}\.mp4: episode {episode}: has {count} frames, expected {rows}"
        )
        with pytest.raises(FormatError, match=text):
            read(camera, episode)


def test_a_video_that_is_missing(v3):
    (v3 / f"videos/{CAMERA}/chunk-000/file-000.mp4").unlink()
    camera = cameras(v3)[CAMERA]
    with pytest.raises(FormatError, match=r"file-000\.mp4.*missing"):
        read(camera, 0)


@pytest.mark.parametrize("fps", [None, 29.97])
def test_rates_without_times(v3, fps):
    path = v3 / "meta/info.json"
    info = json.loads(path.read_text())
    info["fps"] = fps
    path.write_text(json.dumps(info))
    with pytest.raises(FormatError, match=r"info\.json: fps: is "):
        read(cameras(v3)[CAMERA], 0)


# ---- pictures -----------------------------------------------------------------------------------


def write_pictures(folder, version, named=False, kind="PNG", of=videos.picture):
    """A data set whose rows have pictures, or their files' names."""
    image = pytest.importorskip("PIL.Image")
    data_files.write_lerobot(folder, LENGTHS, version)
    path = folder / "meta/info.json"
    info = json.loads(path.read_text())
    info["features"]["view"] = {"dtype": "image", "shape": [*videos.SIZE, 3], "names": None}
    del info["features"][CAMERA]
    path.write_text(json.dumps(info))
    for file in sorted((folder / "data").rglob("*.parquet")):
        table = pq.read_table(file)
        cells = []
        for number in table["index"].to_pylist():
            made = of(number)
            made = image.fromarray(made) if isinstance(made, np.ndarray) else made
            content = io.BytesIO()
            made.save(content, kind)
            cells.append({"bytes": content.getvalue(), "path": f"{number}.{kind.lower()}"})
            if named:
                target = folder / "images" / cells[-1]["path"]
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(cells[-1]["bytes"])
                cells[-1] = {"bytes": None, "path": f"images/{number}.{kind.lower()}"}
        kinds = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        pq.write_table(table.append_column("view", pa.array(cells, kinds)), file)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
def test_pictures_in_rows(tmp_path, version, named):
    folder = tmp_path / "set"
    write_pictures(folder, version, named)
    camera = cameras(folder)["view"]
    assert camera.shape == (*videos.SIZE, 3) and camera.lengths.tolist() == list(LENGTHS)
    begin = 0
    for episode, length in enumerate(LENGTHS):
        expected = np.stack([videos.picture(n) for n in range(begin, begin + length)])
        assert (read(camera, episode) == expected).all()
        files = camera.files(episode)
        assert files[0].endswith(".parquet") and len(files) == (1 + length if named else 1)
        begin += length
    assert (read(camera, 1, [2])[0] == videos.picture(7)).all()
    again = pickle.loads(pickle.dumps(camera))
    assert (read(again, 2) == read(camera, 2)).all()
    assert "libjpeg" in camera.arithmetic()["jpeg"]


def test_only_the_row_groups_of_an_episode_are_read(tmp_path, monkeypatch):
    folder = tmp_path / "set"
    write_pictures(folder, "v3.0")
    for file in (folder / "data").rglob("*.parquet"):
        pq.write_table(pq.read_table(file), file, row_group_size=2)
    calls = []
    own = lerobot_cameras.read_rows
    monkeypatch.setattr(
        lerobot_cameras, "read_rows", lambda *args: calls.append(own(*args)) or calls[-1]
    )
    camera = cameras(folder)["view"]
    for episode, row, number in ((1, 2, 7), (0, 1, 1), (0, 4, 4), (2, 3, 11)):
        assert (read(camera, episode, [row])[0] == videos.picture(number)).all()
    # the first file has rows 0 to 7; shape reads episode 0, and episode 2 is in the next file
    assert [(begin, len(column)) for begin, column in calls] == [(0, 6), (4, 4), (0, 6), (0, 4)]


def test_a_data_file_with_too_few_rows(tmp_path):
    folder = tmp_path / "set"
    write_pictures(folder, "v3.0")
    path = folder / "meta/info.json"
    info = json.loads(path.read_text())
    del info["features"]["episode_index"]
    path.write_text(json.dumps(info))
    file = folder / "data/chunk-000/file-000.parquet"
    pq.write_table(pq.read_table(file).slice(0, 7).drop_columns(["episode_index"]), file)
    camera = cameras(folder)["view"]
    assert (read(camera, 0, [4])[0] == videos.picture(4)).all()
    with pytest.raises(FormatError, match=r"file-000\.parquet: episode 1: ends at row 7"):
        read(camera, 1)


def test_jpeg_is_decoded_as_lerobot_decodes_it(tmp_path):
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "set"
    write_pictures(folder, "v3.0", kind="JPEG")
    cell = pq.read_table(folder / "data/chunk-000/file-000.parquet")["view"][3].as_py()
    expected = np.asarray(image.open(io.BytesIO(cell["bytes"])).convert("RGB"))
    assert (read(cameras(folder)["view"], 0, [3])[0] == expected).all()


def test_pictures_that_differ(tmp_path):
    image = pytest.importorskip("PIL.Image")

    def sizes(number):
        return videos.picture(number) if number < 7 else videos.picture(number)[:, :-2]

    def alpha(number):
        return image.fromarray(videos.picture(number)).convert("RGBA")

    write_pictures(tmp_path / "sizes", "v3.0", of=sizes)
    with pytest.raises(
        FormatError, match="episode 1, row 2: the picture of view has 94 x 32 pixels"
    ):
        read(cameras(tmp_path / "sizes")["view"], 1)
    write_pictures(tmp_path / "alpha", "v3.0", of=alpha)
    camera = cameras(tmp_path / "alpha")["view"]
    text = r'episode 0, row 0: the picture of view has an alpha channel.*convert="RGB"'
    with pytest.raises(FormatError, match=text):
        read(camera, 0)
    converted = camera.with_options(convert="RGB")
    assert (read(converted, 0)[4] == videos.picture(4)).all()


# ---- LeRobot ------------------------------------------------------------------------------------


def test_lerobots_own_decoder_gives_the_same_frames(recordings):
    """The frames of LeRobot differ by the rounding of the conversion to RGB, not by one frame."""
    pytest.importorskip("torch")
    decode = pytest.importorskip("lerobot.datasets.video_utils", exc_type=ImportError)
    folder = recordings / "lerobot_v3_so101"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    fps = json.loads((folder / "meta/info.json").read_text())["fps"]
    rng = np.random.default_rng(0)
    for camera in cameras(folder).values():
        for episode, length in enumerate(camera.lengths.tolist()):
            path, begin = camera.video_of(episode)
            rows = np.sort(rng.choice(length, 4, replace=False))
            own = read(camera, episode, rows).astype(int)
            times = [begin + row / fps for row in rows.tolist()]
            theirs = decode.decode_video_frames(path, times, 1e-4, "torchcodec")
            theirs = (theirs.numpy() * 255).round().astype(int).transpose(0, 2, 3, 1)
            assert np.abs(own - theirs).max() <= 4


def test_pictures_of_episodes_that_follow_those_left_out(tmp_path):
    """Their index changes, and the cache still finds their own frames."""
    folder = tmp_path / "set"
    write_pictures(folder, "v3.0")
    whole = cameras(folder)["view"]
    meta = whole._meta
    left = np.arange(len(LENGTHS)) == 0
    fewer = LeRobotPictures(
        Meta(str(folder), Options(Damage()), meta.info, meta.plan.without(left)), "view"
    )
    assert (read(fewer, 0) == read(whole, 1)).all()
    assert fewer.place(0) == whole.place(1) and fewer.place(1) == whole.place(2)
    assert len({str(whole.place(e)) for e in range(len(LENGTHS))}) == len(LENGTHS)
