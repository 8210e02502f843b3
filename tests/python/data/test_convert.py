"""``data.convert``: recordings become one data set, with cameras, whole or not at all."""

import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import data_files
import policy_bags as bags
from child_processes import environment
from robocache import Episodes, Track, data

pytest.importorskip("rosbags")
pytest.importorskip("pyarrow")

TRACKS = {"observation.state": ["/joint_states:position"], "action": "/commands"}


def needs_av():
    return pytest.importorskip("av", reason="PyAV is not installed")


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A folder of three bags with two cameras."""
    folder = tmp_path_factory.mktemp("bags")
    for k in range(3):
        bags.write_bag(folder / f"run_{k + 9}", seed=k, seconds=1.5, size=32, markers=(0.2, 0.8))
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A bag without cameras."""
    return bags.write_bag(
        tmp_path_factory.mktemp("plain") / "run", seconds=2, cameras=(), compressed=()
    )


def converted(sources, out, **options):
    options = {"rate": 20, "tracks": TRACKS, **options}
    made = data.convert(sources, out, **options)
    return made, data.open(out).load()


def test_a_folder_of_bags_becomes_a_data_set_with_the_names_of_policies(three, tmp_path):
    made, episodes = converted(three, tmp_path / "set", tasks="pick")
    assert len(made) == len(episodes) == 3 and episodes.tasks == ("pick",) * 3
    assert [each["source"][-6:] for each in made.episodes] == ["run_9", "run_10", "run_11"] or [
        os.path.basename(each["source"]) for each in made.episodes
    ] == ["run_9", "run_10", "run_11"]
    state, action = episodes["observation.state"], episodes["action"]
    assert state.names == action.names == ("position[shoulder]", "position[elbow]")
    assert state.values.dtype == np.float32 and episodes.rate == 20
    offsets = state.episode_offsets
    for k in range(3):
        rows = slice(offsets[k], offsets[k + 1])
        t = np.arange(offsets[k + 1] - offsets[k]) / 20
        assert np.allclose(state.values[rows], bags.state_at(t, k), atol=1e-6)
        assert np.allclose(action.values[rows], bags.state_at(t + 0.5, k), atol=1e-6)
    assert data.checks.check(episodes) == []
    assert any(each.place == "/front/image_raw" for each in made.left_out)


def test_an_unknown_argument_is_refused_with_a_hint(three, tmp_path):
    with pytest.raises(TypeError, match="unexpected keyword argument 'task'. Did you mean tasks?"):
        data.convert(three, tmp_path / "set", rate=20, tracks=TRACKS, task="pick")


def test_cameras_become_videos_whose_frames_are_the_nearest(three, tmp_path):
    needs_av()
    from robocache.data._write import video

    images = {"front": "/front/image_raw", "wrist": "/wrist/compressed"}
    made, episodes = converted(three, tmp_path / "set", images=images)
    assert made.cameras == {f"observation.images.{n}": (32, 32, 3) for n in images}
    for camera, seed in (("observation.images.front", 0), ("observation.images.wrist", 1)):
        track = episodes[camera]
        assert track.num_episodes == 3
        for e in range(3):
            path, begin = track.files[e]
            frames = list(video.frames(path, begin))
            assert len(frames) == track.lengths[e]
            numbers = [bags.number_of(image, 32, seed) for _, image in frames]
            at = np.arange(len(numbers)) / 20
            assert np.abs(np.array(numbers) / 30 - at).max() <= 0.5 / 30 + 1e-6
            assert np.allclose([t for t, _ in frames], at, atol=1e-4)
        farthest = max(each["farthest"][camera] for each in made.episodes)
        assert 0 < farthest <= 0.5 / 30 + 1e-6
    stored = episodes.stored_statistics()["observation.images.front"]
    assert stored.mean.shape == (3,) and 0 < stored.mean[0] < 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only for root does SVT-AV1 change the scheduling")
def test_the_encoder_of_videos_does_not_change_the_scheduling(tmp_path):
    needs_av()
    from robocache.data._write import video

    def policies():
        threads = os.listdir("/proc/self/task")
        return len(threads), {os.sched_getscheduler(int(thread)) for thread in threads}

    before, _ = policies()
    writer = video.Writer(str(tmp_path / "x.mp4"), 30)
    for level in (0, 99):
        writer.add(np.full((64, 64, 3), level, np.uint8))
        threads, found = policies()
        assert threads > before and found == {os.SCHED_OTHER}
    writer.close()
    assert policies()[1] == {os.SCHED_OTHER}


@pytest.mark.parametrize("encoding", ["bgr8", "rgba8", "bgra8", "mono8", "8UC1"])
def test_pixels_of_each_encoding_are_kept_in_png(encoding, tmp_path):
    needs_av()
    import pyarrow.parquet as parquet

    from robocache.data._frames.picture_decoder import PictureDecoder

    bag = bags.write_bag(
        tmp_path / "bag", seconds=0.5, size=16, compressed=(), encoding=encoding, ros1=False
    )
    images = {"front": "/front/image_raw"}
    converted(bag, tmp_path / "set", images=images, image_format="png", rate=30)
    (file,) = (tmp_path / "set" / "data" / "chunk-000").iterdir()
    column = parquet.read_table(file)["observation.images.front"].to_pylist()
    for k, entry in enumerate(column):
        image = PictureDecoder("RGB").rgb(entry["bytes"])
        expected = bags.picture(k, 16)
        if encoding in ("mono8", "8UC1"):
            expected = np.repeat(expected[..., :1], 3, -1)
        assert np.array_equal(image, expected)


def test_an_unknown_encoding_is_refused_with_the_known_ones(tmp_path):
    needs_av()
    bag = bags.write_bag(tmp_path / "bag", seconds=0.5, size=16, encoding="mono16")
    with pytest.raises(data.FormatError, match=r"message 0 of /front.* 'mono16', expected .*rgb8"):
        converted(bag, tmp_path / "set", images={"front": "/front/image_raw"})
    assert os.listdir(tmp_path) == ["bag"]


def test_ros1_bags_have_cameras_too(tmp_path):
    needs_av()
    bag = bags.write_bag(tmp_path / "run.bag", seconds=0.5, size=16, ros1=True)
    made, episodes = converted(bag, tmp_path / "set", images={"front": "/front/image_raw"})
    assert episodes["observation.images.front"].num_rows == made.rows > 5


def test_images_of_foxglove_in_protobuf(tmp_path):
    needs_av()
    pytest.importorskip("google.protobuf")
    zarr = pytest.importorskip("zarr")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

    files = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    file = files.file.add(name="foxglove/RawImage.proto", package="foxglove", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    image = file.message_type.add(name="RawImage")
    for number, name, kind in ((1, "timestamp", 11), (2, "width", 7), (3, "height", 7),
                               (4, "encoding", 9), (5, "step", 7), (6, "data", 12)):  # fmt: skip
        of = ".google.protobuf.Timestamp" if kind == 11 else None
        image.field.add(name=name, number=number, type=kind, label=1, type_name=of)
    pool = descriptor_pool.DescriptorPool()
    for each in files.file:
        pool.Add(each)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("foxglove.RawImage"))
    bag = data_files.McapBytes()
    camera, declared = bag.declared(
        "/camera", "foxglove.RawImage", files.SerializeToString(), "protobuf", "protobuf"
    )
    state, also = bag.declared("/state", "", b"", "json", "")
    bag.data += declared + also
    frames = np.random.default_rng(0).integers(0, 256, (10, 4, 6, 3), np.uint8)
    for k, frame in enumerate(frames):
        rows = np.pad(frame.reshape(4, 18), ((0, 0), (0, 2)))  # two bytes after each row
        at = 10**18 + k * 10**8
        message = made(width=6, height=4, encoding="rgb8", step=20, data=rows.tobytes())
        message.timestamp.FromNanoseconds(at)
        bag.data += bag.message(camera, at, message.SerializeToString())
        bag.data += bag.message(state, at, json.dumps({"x": float(k)}).encode())
    (tmp_path / "run.mcap").write_bytes(bag.finished(summary=False))
    options = dict(rate=10, tracks={"observation.state": "/state"}, images={"front": "/camera"})
    data.convert(tmp_path / "run.mcap", tmp_path / "set.zarr", **options)
    store = zarr.open(str(tmp_path / "set.zarr"), mode="r")
    assert np.array_equal(store["data/observation.images.front"][:], frames)
    cut = message.SerializeToString()[:-1]
    bag.data += bag.message(camera, at + 10**8, cut)
    bag.data += bag.message(state, at + 10**8, b'{"x": 10}')
    (tmp_path / "cut.mcap").write_bytes(bag.finished(summary=False))
    made = data.convert(tmp_path / "cut.mcap", tmp_path / "cut.zarr", **options)
    assert made.rows == 10
    assert [each.place for each in made.left_out] == ["/camera"]
    assert "1 message could not be read" in made.left_out[0].reason


def test_jpeg_and_png_messages_are_kept_byte_by_byte(tmp_path):
    needs_av()
    import pyarrow.parquet as parquet

    for kind, encoding in (("jpeg", "rgb8"), ("png", "png")):
        bag = bags.write_bag(tmp_path / kind, seconds=0.4, size=16, cameras=(), encoding=encoding)
        out = tmp_path / f"set_{kind}"
        converted(bag, out, images={"w": "/wrist/compressed"}, image_format=kind, rate=30)
        (file,) = (out / "data" / "chunk-000").iterdir()
        column = parquet.read_table(file)["observation.images.w"].to_pylist()
        assert [e["bytes"] for e in column] == [
            bags.jpeg(bags.picture(k, 16), kind) for k in range(len(column))
        ]


def test_episodes_are_cut_to_the_common_span_and_the_summary_says_by_which_stream(tmp_path):
    needs_av()
    bag = bags.write_bag(tmp_path / "bag", seconds=2, size=16, camera_begins=0.9)
    made, _ = converted(bag, tmp_path / "set", images={"front": "/front/image_raw"})
    (cut,) = (each["cut"]["begin"] for each in made.episodes)
    assert cut == {"seconds": pytest.approx(0.9, abs=1e-6), "stream": "/front/image_raw"}
    assert any("0.9 s before /front/image_raw begins" in note for note in made.notes)


def test_parts_are_joined_in_order_and_labels_are_put_before_names(plain, tmp_path):
    tracks = {
        "observation.state": ["arm=/joint_states:position[elbow]", "/odom:point.x,point.z"],
        "action": ["a=/commands", "b=/commands"],
    }
    _, episodes = converted(plain, tmp_path / "set", tracks=tracks)
    state = episodes["observation.state"]
    assert state.names == ("arm.position[elbow]", "point.x", "point.z")
    assert np.allclose(state.values[:, 0], -0.2 * np.arange(len(state.values)) / 20, atol=1e-6)
    assert episodes["action"].names[:2] == ("a.position[shoulder]", "a.position[elbow]")
    assert len(set(episodes["action"].names)) == 4


def test_names_that_repeat_get_their_stream(plain, tmp_path):
    tracks = {"observation.state": ["/joint_states:position", "/commands"]}
    _, episodes = converted(plain, tmp_path / "set", tracks=tracks)
    assert episodes["observation.state"].names[2] == "commands.position[shoulder]"


@pytest.mark.parametrize("shift", [1, 3])
def test_action_shift_takes_later_states(plain, tmp_path, shift):
    tracks = {"observation.state": ["/joint_states:position"]}
    made, episodes = converted(plain, tmp_path / "set", tracks=tracks, action_shift=shift)
    state, action = episodes["observation.state"].values, episodes["action"].values
    assert np.array_equal(action[:-shift], state[shift:]) and len(state) == made.rows
    assert np.allclose(action[-1], bags.state_at((made.rows - 1 + shift) / 20), atol=1e-6)


def test_without_tracks_every_stream_is_one_except_the_excluded(plain, tmp_path):
    made, episodes = converted(plain, tmp_path / "set", tracks=None, exclude=["/odo*"])
    assert [n for n in episodes.tracks if n != "task_index"] == ["joint_states", "commands"]
    assert any("has no track observation.state" in note for note in made.notes)


def test_paths_globs_and_objects_can_be_mixed(three, plain, tmp_path):
    sources = [str(three / "run_1?"), plain, data.open(three / "run_9")]
    made, _ = converted(sources, tmp_path / "set")
    names = [os.path.basename(str(each["source"])) for each in made.episodes]
    assert names == ["run_10", "run_11", "run", "run_9"]
    with pytest.raises(FileNotFoundError, match="no file or folder matches"):
        converted(str(three / "x*"), tmp_path / "set2")
    with pytest.raises(ValueError, match="is named twice"):
        converted([plain, plain], tmp_path / "set2")


def test_a_stream_that_is_missing_is_an_error_that_names_the_recording(three, tmp_path):
    odd = bags.write_bag(tmp_path / "odd", seconds=0.5, cameras=(), compressed=())
    tracks = {**TRACKS, "observation.environment_state": ["/wrist/compressed"]}
    with pytest.raises(KeyError, match=r"odd: tracks\['observation.environment_state'\]"):
        converted(odd, tmp_path / "set", tracks=tracks)
    assert sorted(os.listdir(tmp_path)) == ["odd"]
    with pytest.raises(KeyError, match=r"run_9: images\['observation.images.x'\]: no such stream"):
        converted(three, tmp_path / "set", images={"x": "/nothing"})


def test_failed_recordings_can_be_skipped(three, tmp_path):
    needs_av()
    odd = bags.write_bag(tmp_path / "odd", seconds=0.5, cameras=(), compressed=())
    images = {"front": "/front/image_raw"}
    made, episodes = converted([odd, three], tmp_path / "set", images=images, skip_failed=True)
    assert len(episodes) == 3 and made.skipped[0][0] == str(odd)
    assert "no such stream '/front/image_raw'" in made.skipped[0][1]
    with pytest.raises(ValueError, match="none of them became an episode"):
        converted(odd, tmp_path / "set2", images=images, skip_failed=True)


# ---- splits -------------------------------------------------------------------------------------


def test_a_topic_splits_a_recording(three, tmp_path):
    made, episodes = converted(three / "run_9", tmp_path / "set", episode_from="/episode_marker")
    assert len(episodes) == 2
    begins = [(each["begin"] - bags.BEGIN) / 1e9 for each in made.episodes]
    assert begins == [pytest.approx(0.2), pytest.approx(0.8)]
    state = episodes["observation.state"].values
    assert np.allclose(state[0], bags.state_at(0.2), atol=1e-6)


def test_a_bool_topic_marks_the_episodes(tmp_path):
    from rosbags.typesys import Stores, get_typestore

    kind = get_typestore(Stores.ROS2_HUMBLE).types["std_msgs/msg/Bool"]
    more = [(t, "/on", "std_msgs/msg/Bool", kind(on)) for t, on in
            ((0.1, False), (0.3, True), (0.5, True), (0.8, False), (1.0, True))]  # fmt: skip
    bag = bags.write_bag(tmp_path / "bag", seconds=1.5, cameras=(), compressed=(), more=more)
    made, _ = converted(bag, tmp_path / "set", episode_from="/on")
    begins = [(each["begin"] - bags.BEGIN) / 1e9 for each in made.episodes]
    assert begins == [pytest.approx(0.3), pytest.approx(1.0)]
    assert made.episodes[0]["rows"] == 10


def test_gaps_split_a_recording_or_are_noted(tmp_path):
    needs_av()
    bag = bags.write_bag(tmp_path / "bag", seconds=6, size=16, gap=(2, 4))
    images = {"front": "/front/image_raw"}
    made, episodes = converted(bag, tmp_path / "split", images=images, split_gap=0.5)
    assert len(episodes) == 2
    second = episodes["observation.state"].values[episodes["observation.state"].episode_offsets[1]]
    assert np.allclose(second, bags.state_at(4.0), atol=0.02)
    assert [each["gaps"] for each in made.episodes] == [{}, {}]
    made, episodes = converted(bag, tmp_path / "whole", images=images)
    assert len(episodes) == 1 and any("no sample for up to 2" in note for note in made.notes)
    made, episodes = converted(bag, tmp_path / "marked", images=images, max_gap=0.5)
    valid = episodes["valid"]
    assert 0.4 < valid.values.mean() < 0.8
    gaps = [note for note in made.notes if "no sample for up to 2" in note]
    assert gaps and all("the track valid marks" in n and "filled" not in n for n in gaps)


@pytest.mark.parametrize("absolute", [False, True])
def test_a_table_of_spans_splits_recordings(three, tmp_path, absolute):
    begin = bags.BEGIN / 1e9 if absolute else 0
    end = "_time" if absolute else ""
    table = tmp_path / "spans.csv"
    table.write_text(
        f"recording,begin{end},end{end},task\nrun_9,{begin + 0.5},{begin + 1},push\n"
        f"run_11,{begin},{begin + 0.25},pull\nrun_10,{begin},{begin + 0.5},\n"
    )
    made, episodes = converted(three, tmp_path / "set", spans=table, tasks="else")
    assert episodes.tasks == ("push", "else", "pull")
    assert (made.episodes[0]["begin"] - bags.BEGIN) / 1e9 == pytest.approx(0.5)
    table.write_text("begin,end\n2,1\n")
    with pytest.raises(data.FormatError, match="line 2: ends at 1"):
        converted(three, tmp_path / "set2", spans=table)
    table.write_text(f"recording,begin{end},end{end}\nrun_9,{begin},{begin + 1}\nrum_9,0,1\n")
    made, _ = converted(three, tmp_path / "set3", spans=table, skip_failed=True)
    note = "spans= names rum_9, which is not one of the sources. Did you mean run_9?"
    assert made.notes[0] == note


# ---- whole or not at all ------------------------------------------------------------------------


def test_an_interrupted_conversion_continues_and_other_options_are_refused(
    three, tmp_path, monkeypatch
):
    from robocache.data._convert import convert as module

    out = tmp_path / "set"
    opened = []
    real = module.Source.opened

    def interrupted(self, options):
        opened.append(os.path.basename(self.name))
        if len(opened) == 3:
            raise KeyboardInterrupt
        return real(self, options)

    monkeypatch.setattr(module.Source, "opened", interrupted)
    with pytest.raises(KeyboardInterrupt):
        converted(three, out)
    assert sorted(os.listdir(tmp_path)) == ["set.part"]
    with pytest.raises(
        FileExistsError, match=r"set.part: was begun with rate=20, and now it is 30"
    ):
        converted(three, out, rate=30)
    with pytest.raises(FileExistsError, match="was begun with .* sources"):
        converted(three / "run_9", out)
    made, _ = converted(three, out)
    assert opened == ["run_9", "run_10", "run_11", "run_11"] and len(made) == 3
    assert sorted(os.listdir(tmp_path)) == ["set"]
    whole, _ = converted(three, tmp_path / "again")
    assert contents(out) == contents(tmp_path / "again")
    assert made.episodes == whole.episodes


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def of_streams(*names):
    times = {"log": np.arange(20) * 10**8}
    values = np.arange(20.0)[:, None]
    return data.Recording.from_streams(
        data.RecordedStream(name, "test", ("x",), values, times, "ns") for name in names
    )


def test_recordings_with_other_streams_are_refused(tmp_path):
    with pytest.raises(ValueError, match="lacks the feature 'b', unlike .*; name the tracks"):
        data.convert([of_streams("a", "b"), of_streams("a")], tmp_path / "set", rate=10)
    made = data.convert(
        [of_streams("a", "b"), of_streams("a")], tmp_path / "set", rate=10, exclude=["b"]
    )
    assert list(made.features) == ["a"]


def test_a_missing_video_is_named(three, tmp_path):
    needs_av()
    converted(three / "run_9", tmp_path / "source", images={"front": "/front/image_raw"})
    (video,) = (tmp_path / "source" / "videos").rglob("*.mp4")
    video.unlink()
    name = "observation.images.front"
    with pytest.raises(data.FormatError, match=rf"is missing; exclude=\['{name}'\] leaves"):
        data.convert(tmp_path / "source", tmp_path / "set")
    made = data.convert(tmp_path / "source", tmp_path / "set", exclude=[name])
    assert made.cameras == {} and name in str(made.left_out)


def test_an_output_that_exists_is_kept_unless_it_is_to_be_replaced(plain, tmp_path):
    out = tmp_path / "set"
    converted(plain, out)
    before = contents(out)
    with pytest.raises(FileExistsError, match="exists"):
        converted(plain, out, rate=10)
    assert contents(out) == before
    made, episodes = converted(plain, out, rate=10, overwrite=True)
    assert episodes.rate == 10 and sorted(os.listdir(tmp_path)) == ["set"]


def test_a_folder_that_does_not_exist_is_named_as_it_was_passed(plain, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        converted(plain, tmp_path / "none" / "set")
    assert caught.value.filename == str(tmp_path / "none" / "set")
    assert os.listdir(tmp_path) == []


def test_a_folder_that_no_conversion_made_is_not_emptied(plain, tmp_path):
    (tmp_path / "set.part").mkdir()
    (tmp_path / "set.part" / "mine").write_text("kept")
    with pytest.raises(FileExistsError, match="was not made by a conversion"):
        converted(plain, tmp_path / "set")
    assert (tmp_path / "set.part" / "mine").read_text() == "kept"
    (tmp_path / "other.part").write_text("kept")
    with pytest.raises(FileExistsError, match="other.part: .* was not made by a conversion"):
        converted(plain, tmp_path / "other")
    assert (tmp_path / "other.part").read_text() == "kept"


# Each conversion in a separate process, which a signal ends after some seconds, if not 0.
CONVERSIONS = """
import os, signal, sys, time, traceback
import forked
from robocache import data
forked.import_commands()
for line in sys.stdin:
    seconds, out = line.rstrip().split(maxsplit=1)
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_REAL, float(seconds))
        try:
            data.convert(sys.argv[1], out, rate=20, tracks={tracks!r}, images={images!r})
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), time.monotonic() - begin, flush=True)
"""


def test_a_killed_conversion_leaves_nothing_or_all_and_continues(three, tmp_path):
    needs_av()
    images = {"front": "/front/image_raw", "wrist": "/wrist/compressed"}
    code = CONVERSIONS.format(tracks=TRACKS, images=images)
    out, whole = tmp_path / "set", tmp_path / "whole"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(three)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", env=environment(),
    )  # fmt: skip

    def convert(out, seconds=0.0):
        process.stdin.write(f"{seconds} {out}\n")
        process.stdin.flush()
        status, took = process.stdout.readline().split()
        return int(status), float(took)

    status, length = convert(whole)
    assert status == 0
    rng = np.random.default_rng(3)
    for _ in range(12):
        status, _ = convert(out, rng.uniform(0.3, 1.0) * length)
        if out.exists() and not (tmp_path / "set.part" / "assembled.json").exists():
            break
        assert status == -signal.SIGALRM
        assert not out.exists() or json.loads((out / "meta" / "info.json").read_text())
    if not out.exists():
        assert convert(out)[0] == 0
    made, expected = data.open(out).load(), data.open(whole).load()
    assert len(made) == 3
    assert np.array_equal(made["action"].values, expected["action"].values)
    assert made["observation.images.front"].num_rows == made["action"].num_rows
    left = [name for name in os.listdir(tmp_path) if name not in ("set", "whole", "set.part")]
    assert convert(tmp_path / "another")[0] == 0
    process.communicate()
    assert all(name.startswith("set.") for name in left)


def test_a_conversion_continues_that_was_killed_before_its_plan_was_complete(three, tmp_path):
    (tmp_path / "set.npz.part").mkdir()
    for name in ("lock", "plan.json.new"):
        (tmp_path / "set.npz.part" / name).write_text("")
    assert len(data.convert(three, tmp_path / "set.npz", rate=20, tracks=TRACKS)) == 3
    assert os.listdir(tmp_path) == ["set.npz"]


# ---- data sets ----------------------------------------------------------------------------------


def test_a_lerobot_data_set_keeps_its_videos(three, tmp_path):
    needs_av()
    from robocache.data._write import video

    images = {"front": "/front/image_raw"}
    converted(three, tmp_path / "first", images=images)
    source = data.open(tmp_path / "first")
    data.convert(source, tmp_path / "copied")
    copied = data.open(tmp_path / "copied").load()
    assert np.array_equal(copied["action"].values, source["action"].values)
    name = "observation.images.front"
    for e in range(3):
        frames = [
            [image for _, image in video.frames(*each[name].files[e])] for each in (source, copied)
        ]
        assert np.array_equal(*frames)
    made = data.convert(tmp_path / "first", tmp_path / "slower", rate=10)
    slower = data.open(tmp_path / "slower").load()
    numbers = [bags.number_of(i, 32) for _, i in video.frames(*slower[name].files[0])]
    assert np.abs(np.array(numbers) / 30 - np.arange(len(numbers)) / 10).max() <= 1.5 / 30
    assert len(numbers) == slower["action"].lengths[0] and made.rate == 10


def test_episodes_in_memory_are_written_with_their_rows(tmp_path):
    values = np.arange(12, dtype=np.float64).reshape(6, 2)
    track = Track(values, [0, 4, 6], times=[0, 0.1, 0.2, 0.3, 0, 0.1], names=["a", "b"])
    episodes = Episodes({"observation.state": track}, tasks=["x", "y"])
    data.convert(episodes, tmp_path / "set", dtype=None)
    read = data.open(tmp_path / "set").load()
    assert np.array_equal(read["observation.state"].values, values) and read.tasks == ("x", "y")


def test_sources_are_not_changed(three, tmp_path):
    needs_av()
    before = {path: path.stat().st_mtime_ns for path in three.rglob("*")}
    converted(three, tmp_path / "set", images={"front": "/front/image_raw"})
    assert {path: path.stat().st_mtime_ns for path in three.rglob("*")} == before
    with pytest.raises(FileExistsError, match="contains"):
        converted(three / "run_9", three, overwrite=True)
    shutil.rmtree(tmp_path / "set")


def test_cameras_of_data_sets_are_no_state(tmp_path):
    sets = pytest.importorskip("camera_sets")
    source = sets.with_pictures(tmp_path / "source", sets.frames(80), count=2)
    with pytest.raises(ValueError, match=f"{sets.NAME} holds images, expected numbers; name it"):
        data.convert(source, tmp_path / "out", tracks={"observation.state": sets.NAME})
    episodes = data.open(source)
    with pytest.raises(FileExistsError, match="is inside .*source, which is read"):
        data.convert(episodes, source / "out")
