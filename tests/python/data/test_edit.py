"""``data.edit``: each change keeps the rest of a LeRobot data set, which passes all checks."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import camera_sets as sets
import policy_bags as bags
import recordings_with_faults as faults
import robocache as rbc
from robocache import data
from robocache.data import FormatError

pytest.importorskip("pyarrow")
STATE, ACTION = "observation.state", "action"


def files_in(folder):
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def source(tmp_path):
    """A data set of 5 episodes of 40 rows, which no test may change."""
    folder = tmp_path / "source"
    data.save(faults.episodes(), folder, "lerobot")
    before = files_in(folder)
    yield folder
    assert files_in(folder) == before


def checked(folder):
    """Open a data set, which must pass every check, and read it."""
    episodes = data.open(folder)
    assert data.checks.check(episodes) == []
    return episodes.load()


def same_rows(made, place, whole, number, begin=0, end=40):
    for name in (STATE, ACTION):
        mine = made.select([place])[name]
        theirs = whole.select([number])[name]
        np.testing.assert_array_equal(mine.values, theirs.values[begin:end])
        assert mine.values.dtype == theirs.values.dtype and mine.names == theirs.names
        np.testing.assert_allclose(mine.times, np.arange(end - begin) / 10, atol=1e-6)


# ---- episodes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"drop": [1, 3]}, [0, 2, 4]),
        ({"drop": "0,2-4"}, [1]),
        ({"keep": [4, 0, 2]}, [4, 0, 2]),
        ({"keep": "3-4,0-1", "drop": 4}, [3, 0, 1]),
        ({"keep": [2, 2]}, [2, 2]),
        ({}, [0, 1, 2, 3, 4]),
    ],
)
def test_drop_keep_and_reorder(source, tmp_path, options, left):
    result = data.edit(source, tmp_path / "out", **options)
    made, whole = checked(tmp_path / "out"), data.open(source).load()
    assert result.episodes == len(made) == len(left) and result.rows == 40 * len(left)
    for place, number in enumerate(left):
        same_rows(made, place, whole, number)
    assert made.tasks == ("stack",) * len(left)


def test_trim(source, tmp_path):
    data.edit(source, tmp_path / "out", trim={"0-1": "10:", 3: (5, -5), "4": ":1"})
    made, whole = checked(tmp_path / "out"), data.open(source).load()
    assert made.lengths(STATE).tolist() == [30, 30, 40, 30, 1]
    for place, (begin, end) in enumerate([(10, 40), (10, 40), (0, 40), (5, 35), (0, 1)]):
        same_rows(made, place, whole, place, begin, end)


def test_split_and_merge(source, tmp_path):
    made = data.edit(source, tmp_path / "parts", split={"train": 0.8, "val": 0.2})
    assert made.parts == {"train": 4, "val": 1}
    whole = data.open(source).load()
    same_rows(checked(tmp_path / "parts" / "val"), 0, whole, 4)
    data.edit([tmp_path / "parts" / n for n in ("val", "train")], tmp_path / "all")
    merged = checked(tmp_path / "all")
    for place, number in enumerate((4, 0, 1, 2, 3)):
        same_rows(merged, place, whole, number)
    named = data.edit(source, tmp_path / "named", split={"a": "3,0", "b": [1]}, drop=2)
    assert named.parts == {"a": 2, "b": 1} and "1 episode is in no part" in str(named)
    same_rows(checked(tmp_path / "named" / "a"), 0, whole, 3)


def test_merging_joins_tasks(tmp_path):
    for name, words in (("a", ["x", "y"]), ("b", ["y", "z"])):
        episodes = faults.episodes(count=2)
        data.save(data.Episodes(episodes.tracks, tasks=words), tmp_path / name, "lerobot")
    data.edit([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    assert checked(tmp_path / "out").tasks == ("x", "y", "y", "z")
    info = json.loads((tmp_path / "out" / "meta" / "info.json").read_text())
    assert info["total_tasks"] == 3 and info["splits"] == {"train": "0:4"}


# ---- features and tasks -------------------------------------------------------------------------


def test_rename_and_remove(source, tmp_path):
    data.edit(source, tmp_path / "out", rename={STATE: "state"}, remove=[ACTION])
    made, whole = checked(tmp_path / "out"), data.open(source).load()
    assert list(made.tracks) == ["state"]
    np.testing.assert_array_equal(made["state"].values, whole[STATE].values)
    stats = json.loads((tmp_path / "out" / "meta" / "stats.json").read_text())
    assert "state" in stats and not {STATE, ACTION} & set(stats)


def test_change_tasks(source, tmp_path):
    data.edit(source, tmp_path / "out", tasks={"all": "pick", "0,3": "place", 4: "rest"})
    assert checked(tmp_path / "out").tasks == ("place", "pick", "pick", "place", "rest")


@pytest.mark.parametrize("version", ["v2.0", "v2.1"])
def test_older_versions_become_v3(tmp_path, version):
    sets.without_camera(tmp_path / "old", version)
    data.edit(tmp_path / "old", tmp_path / "new", drop=0)
    made, whole = checked(tmp_path / "new"), data.open(tmp_path / "old").load()
    assert made.format == "LeRobot v3.0"
    for place in range(4):
        same_rows(made, place, whole, place + 1)


# ---- cameras ------------------------------------------------------------------------------------


def frames_of(folder, camera, episode):
    """Return all frames of an episode."""
    from robocache.data._formats.lerobot.frames import frames_of as frames
    from robocache.data._formats.lerobot.stored_statistics import DataSet

    made = DataSet.open(str(folder))
    wanted = {episode: range(int(made.plan.lengths[episode]))}
    feature = made.info.features[camera]
    return np.stack([f for *_, f in frames(made.info, made.plan, feature, wanted, made.options)])


def test_pictures_in_rows_stay(tmp_path):
    pixels = sets.frames(200)
    sets.with_pictures(tmp_path / "source", pixels)
    data.edit(tmp_path / "source", tmp_path / "out", keep=[3, 1], trim={1: "7:"})
    checked(tmp_path / "out")
    np.testing.assert_array_equal(frames_of(tmp_path / "out", sets.NAME, 0), pixels[120:160])
    np.testing.assert_array_equal(frames_of(tmp_path / "out", sets.NAME, 1), pixels[47:80])


def test_a_file_of_all_episodes_is_copied_whole(tmp_path):
    pixels = sets.frames(200)
    sets.with_video(tmp_path / "source", pixels)
    made = data.edit(tmp_path / "source", tmp_path / "out", keep="4,0-3")
    checked(tmp_path / "out")
    assert made.notes == ()
    np.testing.assert_array_equal(frames_of(tmp_path / "out", sets.NAME, 0), pixels[160:])
    place = f"videos/{sets.NAME}/chunk-000/file-000.mp4"
    assert (tmp_path / "out" / place).read_bytes() == (tmp_path / "source" / place).read_bytes()


def test_a_part_without_a_keyframe_is_encoded_again(tmp_path):
    pixels = sets.frames(200)
    sets.with_video(tmp_path / "source", pixels)
    made = data.edit(tmp_path / "source", tmp_path / "out", drop=2, trim={3: "3:"})
    checked(tmp_path / "out")
    assert made.notes[0].startswith(f"{sets.NAME}: 1 of 4 videos were encoded again")
    np.testing.assert_array_equal(frames_of(tmp_path / "out", sets.NAME, 3), pixels[160:])
    frames = frames_of(tmp_path / "out", sets.NAME, 2)
    np.testing.assert_allclose(frames.mean((1, 2)), pixels[123:160].mean((1, 2)), atol=6)


# ---- resized cameras ----------------------------------------------------------------------------

PAD = {"size": (40, 48), "rule": "opencv", "filter": "area", "fit": "pad", "pad_value": (1, 2, 3)}


def resized(pixels, **options):
    return rbc.images(pixels, dtype="uint8", layout="hwc", **options)


def own_statistics(frames):
    """Statistics of frames of an episode, as LeRobot computes them."""
    values = frames.reshape(-1, 3) / 255.0
    return values.min(0), values.max(0), values.mean(0), values.std(0)


def statistics_are_of(folder, episode, frames):
    from robocache import statistics_files

    stored = statistics_files.read_lerobot_episodes(folder)[episode][sets.NAME]
    for name, value in zip(("min", "max", "mean", "std"), own_statistics(frames)):
        np.testing.assert_allclose(getattr(stored, name), value, atol=1e-6)


@pytest.mark.parametrize(
    ("resize", "options"),
    [
        ((12, 16), {"size": (12, 16)}),
        ({"top": PAD}, PAD),
        ({sets.NAME: {"size": 10, "rule": "torchvision", "filter": "bicubic"}}, None),
    ],
)
def test_a_video_is_resized_before_it_is_encoded(tmp_path, resize, options):
    pixels = sets.frames(200)
    sets.with_video(tmp_path / "source", pixels)
    before = files_in(tmp_path / "source")
    made = data.edit(
        tmp_path / "source",
        tmp_path / "out",
        keep="4,1",
        trim={1: "3:"},
        resize=resize,
        lossless=True,
    )
    assert files_in(tmp_path / "source") == before
    options = options or resize[sets.NAME]
    whole, part = resized(pixels[160:], **options), resized(pixels[43:80], **options)
    np.testing.assert_array_equal(frames_of(tmp_path / "out", sets.NAME, 0), whole)
    np.testing.assert_array_equal(frames_of(tmp_path / "out", sets.NAME, 1), part)
    checked(tmp_path / "out")
    info = json.loads((tmp_path / "out" / "meta" / "info.json").read_text())
    entry = info["features"][sets.NAME]
    assert entry["shape"] == list(whole.shape[1:])
    assert entry["info"]["video.height"] == whole.shape[1]
    assert entry["info"]["video.width"] == whole.shape[2]
    statistics_are_of(tmp_path / "out", 0, whole)
    statistics_are_of(tmp_path / "out", 1, part)
    assert f"{sets.NAME}: resized by the rule" in made.notes[0]


def test_pictures_in_rows_are_resized(tmp_path):
    pixels = sets.frames(200)
    sets.with_pictures(tmp_path / "source", pixels)
    data.edit(tmp_path / "source", tmp_path / "out", drop="1-4", resize="openpi")
    expected = resized(pixels[:40], size=224, fit="pad")
    np.testing.assert_array_equal(frames_of(tmp_path / "out", sets.NAME, 0), expected)
    checked(tmp_path / "out")
    info = json.loads((tmp_path / "out" / "meta" / "info.json").read_text())
    assert info["features"][sets.NAME]["shape"] == [224, 224, 3]


def test_by_default_videos_are_av1(cameras, tmp_path):
    name = "observation.images.front"
    made = data.edit(cameras / "lerobot", tmp_path / "out", resize=rbc.image_preset("octo_wrist"))
    checked(tmp_path / "out")
    assert "by the preset octo_wrist" in made.notes[0]
    before = frames_of(cameras / "lerobot", name, 1)
    after = frames_of(tmp_path / "out", name, 1)
    expected = rbc.image_preset("octo_wrist")(before, dtype="uint8", layout="hwc")
    np.testing.assert_allclose(after.mean((1, 2)), expected.mean((1, 2)), atol=6)
    info = json.loads((tmp_path / "out" / "meta" / "info.json").read_text())
    assert info["features"][name]["info"]["video.codec"] == "av1"
    shape = info["features"][name]["shape"]
    assert sorted(shape) == [3, 128, 128]


def test_cameras_of_two_sizes_can_be_merged(tmp_path):
    for name, shape in (("a", (24, 32)), ("b", (48, 64))):
        sets.with_video(tmp_path / name, sets.frames(80, *shape), count=2)
    both = [tmp_path / "a", tmp_path / "b"]
    with pytest.raises(ValueError, match="top is .*64.* expected .*32"):
        data.edit(both, tmp_path / "out")
    data.edit(both, tmp_path / "out", resize=(24, 32), lossless=True)
    checked(tmp_path / "out")
    expected = resized(sets.frames(80, 48, 64)[:40], size=(24, 32))
    np.testing.assert_array_equal(frames_of(tmp_path / "out", sets.NAME, 2), expected)
    np.testing.assert_array_equal(
        frames_of(tmp_path / "out", sets.NAME, 1), sets.frames(80, 24, 32)[40:]
    )


@pytest.mark.parametrize(
    ("resize", "kind", "message"),
    [
        ((25, 32), ValueError, "resize: .*top would have 32 x 25 pixels, but videos need even"),
        ({"tap": 32}, KeyError, "resize: no such camera 'tap', expected one of .*mean top"),
        ({"rule": "opencv"}, TypeError, "resize: has no 'size'"),
        ({"size": 8, "dtype": 1}, TypeError, "resize: has 'dtype', expected one of .*size"),
        ({"size": 8, "filter": "area"}, rbc.RoboCacheError, "filter: is AREA, expected BOX"),
        ("open_pi", ValueError, "resize: name: is 'open_pi', expected one of .*mean openpi"),
        ((0, 8), ValueError, r"resize: size\[0\]: is 0, expected 1 or more"),
        ({"top": (8, "x")}, TypeError, r"resize\['top'\]: size\[1\]: is 'x', expected an int"),
    ],
)
def test_a_resize_that_is_refused_writes_nothing(tmp_path, resize, kind, message):
    sets.with_video(tmp_path / "source", sets.frames(80), count=2)
    with pytest.raises(kind, match=message):
        data.edit(tmp_path / "source", tmp_path / "out", resize=resize)
    assert sorted(os.listdir(tmp_path)) == ["source"]


def test_a_data_set_without_cameras_is_not_resized(source, tmp_path):
    with pytest.raises(ValueError, match="resize: the data set has no camera"):
        data.edit(source, tmp_path / "out", resize=224)


@pytest.fixture(scope="module")
def cameras(tmp_path_factory):
    """Data sets of bags with a camera, as videos: v3.0 and v2.1."""
    pytest.importorskip("av", reason="PyAV is not installed")
    pytest.importorskip("rosbags")
    folder = tmp_path_factory.mktemp("cameras")
    for k in range(3):
        bags.write_bag(folder / "bags" / f"run_{k}", seed=k, seconds=1, size=32, compressed=())
    for format in ("lerobot", "lerobot-v2.1"):
        data.convert(
            folder / "bags",
            folder / format,
            rate=20,
            tracks={STATE: "/joint_states:position", ACTION: "/commands"},
            images={"front": "/front/image_raw"},
            tasks="pick",
            format=format,
        )
    return folder


def test_statistics_that_cannot_be_right_are_computed_again(cameras, tmp_path):
    """LeRobot 0.4 stored standard deviations of cameras that are nearly 0."""
    import pyarrow.parquet as parquet

    name = "observation.images.front"
    shutil.copytree(cameras / "lerobot", tmp_path / "source")
    (file,) = (tmp_path / "source" / "meta" / "episodes").rglob("*.parquet")
    table = parquet.read_table(file)
    column = f"stats/{name}/std"
    stored = table[column].to_pylist()
    stored[1] = [[[1e-5]]] * 3
    at = table.schema.get_field_index(column)
    table = table.set_column(at, table.schema.field(at), [stored])
    parquet.write_table(table, file)
    made = data.edit(tmp_path / "source", tmp_path / "out", keep="0-1")
    assert made.notes[0].startswith(f"{name}: the std stored for 1 episode is far below")
    whole = data.edit(cameras / "lerobot", tmp_path / "whole", keep="0-1")
    assert whole.notes == ()
    ours, theirs = (
        json.loads((tmp_path / each / "meta" / "stats.json").read_text())[name]["std"]
        for each in ("out", "whole")
    )
    np.testing.assert_allclose(ours, theirs, rtol=0.05)


@pytest.mark.parametrize("format", ["lerobot", "lerobot-v2.1"])
def test_videos_of_episodes_are_copied(cameras, tmp_path, format):
    name = "observation.images.front"
    made = data.edit(
        cameras / format, tmp_path / "out", keep=[2, 0], trim={0: "4:"}, rename={name: "top"}
    )
    checked(tmp_path / "out")
    assert made.notes == ()  # row 4 is a keyframe
    first, second = (frames_of(cameras / format, name, e) for e in (2, 0))
    np.testing.assert_array_equal(frames_of(tmp_path / "out", "top", 0), first)
    np.testing.assert_array_equal(frames_of(tmp_path / "out", "top", 1), second[4:])
    mine = data.open(tmp_path / "out").stored_statistics()["top"]
    assert mine.mean.shape == (3,) and (0 < mine.mean).all() and (mine.mean < 1).all()


# ---- refusals, and interruptions ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"drop": [5]}, ValueError, "no episode 5, expected 0 to 4"),
        ({"drop": "all"}, ValueError, "no episode is left"),
        ({"keep": "x"}, ValueError, "expected episodes, such as"),
        ({"trim": {0: "40:"}}, ValueError, "leaves no row of episode 0"),
        ({"trim": {0: "1-2"}}, ValueError, "expected rows, such as"),
        ({"remove": ["acton"]}, KeyError, "Did you mean"),
        ({"remove": ["timestamp"]}, ValueError, "is needed in each LeRobot data set"),
        ({"remove": [STATE, ACTION]}, ValueError, "no feature is left"),
        ({"rename": {STATE: ACTION}}, ValueError, "would both be action"),
        ({"rename": {STATE: "a/b"}}, ValueError, "is not a name for a feature"),
        ({"split": {"a": 0.9, "b": 0.2}}, ValueError, "at most 1 together"),
        ({"split": {"a": "0-2", "b": "2"}}, ValueError, "episode 2 is in a and in b"),
        ({"split": {"../a": "0"}}, ValueError, "is not a name for a folder"),
        ({"tasks": {0: 3}}, TypeError, "expected a text"),
    ],
)
def test_refusals(source, tmp_path, options, kind, words):
    with pytest.raises(kind) as raised:
        data.edit(source, tmp_path / "out", **options)
    assert words in str(raised.value)
    assert [p.name for p in tmp_path.iterdir()] == ["source"]


def test_sources_that_do_not_fit_are_refused(source, tmp_path):
    other = faults.episodes()
    renamed = {STATE: other[ACTION], ACTION: other[ACTION]}
    data.save(data.Episodes(renamed), tmp_path / "other", "lerobot")
    with pytest.raises(ValueError, match=r"observation\.state is .*, expected"):
        data.edit([source, tmp_path / "other"], tmp_path / "out")
    with pytest.raises(FormatError, match="is not a LeRobot data set"):
        data.edit(tmp_path, tmp_path / "out")
    with pytest.raises(FileExistsError, match="exists"):
        data.edit(source, tmp_path / "other")
    for inside in (source / "out", tmp_path):
        with pytest.raises(FileExistsError):
            data.edit(source, inside, overwrite=True)


def test_rows_that_meta_does_not_know_are_refused(source, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import shutil

    shutil.copytree(source, tmp_path / "bad")
    path = tmp_path / "bad" / "data/chunk-000/file-000.parquet"
    parquet.write_table(parquet.read_table(path).slice(0, 190), path)
    with pytest.raises(FormatError, match="has 30 rows, and meta says 40"):
        data.edit(tmp_path / "bad", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_missing_video_is_named(tmp_path):
    sets.with_video(tmp_path / "source", sets.frames(200))
    (video,) = (tmp_path / "source").rglob("*.mp4")
    video.unlink()
    with pytest.raises(FormatError, match=r"mp4: is missing; remove=\['observation.images.top'\]"):
        data.edit(tmp_path / "source", tmp_path / "out")
    data.edit(tmp_path / "source", tmp_path / "out", remove=[sets.NAME])
    checked(tmp_path / "out")


def test_a_data_set_is_replaced_by_a_complete_copy(source, tmp_path):
    data.edit(source, tmp_path / "own")
    data.edit(tmp_path / "own", tmp_path / "own", drop=0, overwrite=True)
    assert len(checked(tmp_path / "own")) == 4


def test_a_killed_edit_leaves_the_old_data_set(source, tmp_path):
    data.edit(source, tmp_path / "own")
    before = files_in(tmp_path / "own")
    code = (
        "import sys; from robocache import data; print('ready', flush=True); "
        "data.edit(sys.argv[1], sys.argv[1], drop=0, overwrite=True)"
    )
    for wait in (0.0, 0.02, 0.05, 0.1):
        run = subprocess.Popen(
            [sys.executable, "-c", code, tmp_path / "own"], stdout=subprocess.PIPE, env=os.environ
        )
        assert run.stdout is not None and run.stdout.readline() == b"ready\n"
        time.sleep(wait)
        run.send_signal(signal.SIGKILL)
        run.wait()
        run.stdout.close()
        now = files_in(tmp_path / "own")
        if now != before:  # it was complete
            assert len(checked(tmp_path / "own")) == 4
            break
    data.edit(tmp_path / "own", tmp_path / "own", keep="0-1", overwrite=True)
    assert len(checked(tmp_path / "own")) == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["own", "source"]
