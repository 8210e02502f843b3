"""Frames on the clock of an alignment."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import data_files
import robocache as rbc
from picture_files import aged, encoded, images_of, pixels, read, whole
from robocache.data._frames.arrays import ArrayFrames
from robocache.data._frames.held import HeldFrames

data = rbc.data
SECOND = 10**9
BEGIN = 1_700_000_000 * SECOND


# ---- the source itself --------------------------------------------------------------------------


def held(rows, lengths=None, **options):
    frames = pixels(20)
    source = ArrayFrames("front", frames, [0, 8, 20])
    lengths = [len(own) for own in rows] if lengths is None else lengths
    return [frames[:8], frames[8:]], HeldFrames(source, rows, lengths, **options)


def test_frames_repeat():
    rows = [np.array([0, 0, 0, 3, 3, 7]), np.array([11, 2, 2, 5])]
    frames, camera = held(rows)
    assert camera.lengths.tolist() == [6, 4] and camera.shape == (12, 16, 3)
    for e in range(2):
        np.testing.assert_array_equal(whole(camera, e), frames[e][rows[e]])
    np.testing.assert_array_equal(read(camera, 0, [1, 2, 5]), frames[0][[0, 0, 7]])
    np.testing.assert_array_equal(read(camera, 1, [1]), frames[1][[2]])
    again = pickle.loads(pickle.dumps(camera))
    np.testing.assert_array_equal(whole(again, 1), frames[1][rows[1]])
    assert again.place(0) == camera.place(0) != held([rows[0] + 0, rows[1]])[1].place(1)
    other = held([np.array([0, 0, 0, 3, 4, 7]), rows[1]])[1]
    assert other.place(0) != camera.place(0) and other.place(1) == camera.place(1)
    assert camera.arithmetic()["held"]


def test_other_episodes_and_a_function():
    asked = []

    def rows(episode):
        asked.append(episode)
        return np.array([1, 1, 4])

    frames, camera = held(rows, [3, 3], episodes=[1, 0])
    assert not asked
    np.testing.assert_array_equal(whole(camera, 0), frames[1][[1, 1, 4]])
    assert asked == [0]
    again = pickle.loads(pickle.dumps(camera))
    np.testing.assert_array_equal(whole(again, 1), frames[0][[1, 1, 4]])
    with pytest.raises(ValueError, match="rows: has 3 rows in episode 0, not 5"):
        whole(held(rows, [5])[1], 0)


def test_rows_without_a_frame():
    frames, camera = held([np.array([-1, -1, 0, 0])])
    assert camera.missing(0).tolist() == [True, True, False, False]
    np.testing.assert_array_equal(read(camera, 0, [2, 3]), frames[0][[0, 0]])
    with pytest.raises(data.FormatError, match="front, episode 0, row 1: has no frame"):
        read(camera, 0, [1, 2])


def test_frames_are_read_once():
    _, camera = held([np.array([2, 2, 2, 5, 5])])
    seen = []
    original = camera.source.read

    def counted(episode, rows, out):
        seen.append(rows.tolist())
        original(episode, rows, out)

    camera.source.read = counted
    whole(camera, 0)
    assert seen == [[2, 5]]


def test_copies():
    rows = [np.array([0, 0, 3]), np.array([11, 2])]
    frames, camera = held(rows)
    copy = camera.copy()
    assert copy.source is not camera.source
    np.testing.assert_array_equal(whole(copy, 1), frames[1][rows[1]])
    assert camera.with_options() is camera
    with pytest.raises(ValueError, match="max_age: is 1.*pass max_age to align"):
        camera.with_options(max_age=1)


# ---- recordings ---------------------------------------------------------------------------------


def bag(path, arrivals, stamps, storage="mcap"):
    """An imu at 100 Hz, and a camera whose frames have log times and stamps."""
    pytest.importorskip("rosbags")
    store = data_files.typestore()
    frames = pixels(len(arrivals))
    messages = []
    for i in range(200):
        at = BEGIN + i * 10_000_000
        imu = data_files.make(
            store, "sensor_msgs/msg/Imu", header=data_files.header(store, at),
            angular_velocity=data_files.make(store, "geometry_msgs/msg/Vector3", x=float(i)),
        )  # fmt: skip
        messages.append(("/imu", "sensor_msgs/msg/Imu", at + 1_000_000, imu))
    for frame, at, stamp in zip(frames, arrivals, stamps):
        made = data_files.make(
            store, "sensor_msgs/msg/Image", header=data_files.header(store, int(stamp)), height=12,
            width=16, encoding="rgb8", step=48, data=frame.reshape(-1),
        )  # fmt: skip
        messages.append(("/cam", "sensor_msgs/msg/Image", int(at), made))
    messages.sort(key=lambda message: message[2])
    data_files.write_ros2(path, messages, store, storage)
    return frames


def newest(times, stamps, arrivals=None, lag=0, max_age=None):
    """The rule, row by row: the last frame in the order of stamps that exists."""
    found = []
    for time in times.tolist():
        best = -1
        for i, stamp in enumerate(stamps.tolist()):
            exists = stamp <= time and (arrivals is None or arrivals[i] <= time + lag)
            if exists and (best < 0 or stamp >= stamps[best]):
                best = i
        if best >= 0 and max_age is not None and time - stamps[best] > max_age:
            best = -1
        found.append(best)
    return np.array(found)


def jitter(count=40, seed=2, overtake=True):
    rng = np.random.default_rng(seed)
    stamps = BEGIN + np.arange(count) * 43_000_000 + rng.integers(0, 20_000_000, count)
    arrivals = stamps + 20_000_000 + rng.integers(0, 60_000_000, count)
    if not overtake:
        return np.sort(arrivals), stamps
    order = np.argsort(arrivals, kind="stable")
    assert (np.diff(stamps[order]) < 0).any()
    return arrivals[order], stamps[order]


CASES = [
    {},
    {"clock": "log"},
    {"available": "arrival", "lag": 0.03},
    {"available": "arrival", "max_age": 0.05, "clock_offset": {"/cam": 0.004}},
    {"causal": True, "max_age": {"/cam": 0.03}},
]


@pytest.mark.parametrize("options", CASES, ids=range(len(CASES)))
@pytest.mark.parametrize("overtake", [False, True])
@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_an_aligned_bag(tmp_path, options, storage, overtake):
    """If later frames overtake earlier ones, headers go back, and the default is the log."""
    arrivals, stamps = jitter(overtake=overtake)
    frames = bag(tmp_path / "bag", arrivals, stamps, storage)
    options = dict(options)
    if options.get("available") == "arrival":
        options["late_bound"] = 10
    aligned = data.open(tmp_path / "bag").select(["/imu", "/cam"]).align(30, **options)
    camera = aligned.cameras["/cam"]
    times = np.asarray(aligned["/imu"].times)
    assert camera.lengths.tolist() == [len(times)]
    limited = options.get("available") == "arrival"
    by_log = options.get("clock") == "log" or (overtake and not limited)
    own = arrivals if by_log else stamps
    offset = round(options.get("clock_offset", {}).get("/cam", 0) * SECOND)
    age = options.get("max_age")
    age = age["/cam"] if isinstance(age, dict) else age
    expected = newest(
        times, own + offset, arrivals if limited else None, round(options.get("lag", 0) * SECOND),
        None if age is None else round(age * SECOND),
    )  # fmt: skip
    assert camera.rows(0).tolist() == expected.tolist()
    assert camera.missing(0).tolist() == (expected < 0).tolist()
    there = np.flatnonzero(expected >= 0)
    np.testing.assert_array_equal(read(camera, 0, there), frames[expected[there]])
    again = pickle.loads(pickle.dumps(camera))
    np.testing.assert_array_equal(read(again, 0, there[5:9]), frames[expected[there[5:9]]])


def test_windows_of_an_aligned_bag(tmp_path):
    arrivals, stamps = jitter(overtake=False)
    frames = bag(tmp_path / "bag", arrivals, stamps)
    aged(tmp_path / "bag")
    recording = data.open(tmp_path / "bag").select(["/imu", "/cam"])
    options = {"dtype": "uint8", "layout": "hwc"}
    for store in (False, True):
        cache = rbc.Cache(tmp_path / "cache") if store else None
        aligned = recording.align(30)
        aligned = aligned.with_cameras(aligned.cameras, cache=cache)
        chosen = aligned.cameras["/cam"].rows(0)
        spec = rbc.WindowSpec(
            {"/imu": [0], "front": rbc.Window([-1, 0], images=rbc.Images("/cam", **options))}
        )
        found, valid = images_of(aligned, spec, [0, 0], [1, 9])
        np.testing.assert_array_equal(found, frames[chosen[[[0, 1], [8, 9]]]])
        assert valid.all()
    assert any((tmp_path / "cache").rglob("*.rbs"))
    images = rbc.Images("/cam", max_age=0.01, **options)
    spec = rbc.WindowSpec({"/imu": [0], "front": rbc.Window([0], images=images)})
    times = np.asarray(aligned["/imu"].times)
    expected = newest(times, stamps, max_age=10_000_000)
    assert (expected < 0).any() and (expected >= 0).any()
    aligned = recording.align(30)
    every = np.arange(len(times))
    found, valid = images_of(aligned, spec, np.zeros(len(times), int), every)
    assert valid[:, 0].tolist() == (expected >= 0).tolist()
    np.testing.assert_array_equal(found[expected >= 0, 0], frames[expected[expected >= 0]])


def test_options_that_name_no_camera(tmp_path):
    arrivals, stamps = jitter()
    bag(tmp_path / "bag", arrivals, stamps)
    recording = data.open(tmp_path / "bag")
    with pytest.raises(KeyError, match="max_age: has '/came'"):
        recording.align(30, causal=True, max_age={"/came": 1})


def test_pictures_next_to_a_trajectory(tmp_path):
    """Times in seconds as floats compare as they are written: equal ones exist."""
    pytest.importorskip("pyarrow")
    begin = 1305031102
    stamps = [f"{begin + i // 10}.{i % 10}75304" for i in range(30)]
    rows = "".join(f"{stamp} {i} 0 0 0 0 0 1\n" for i, stamp in enumerate(stamps))
    (tmp_path / "groundtruth.txt").write_text(rows)
    (tmp_path / "rgb").mkdir()
    frames = pixels(10)
    for i, frame in enumerate(frames):
        (tmp_path / f"rgb/{stamps[3 * i]}.png").write_bytes(encoded(frame))
    lines = "".join(f"{stamps[3 * i]} rgb/{stamps[3 * i]}.png\n" for i in range(10))
    (tmp_path / "rgb.txt").write_text(lines)
    times = np.array([float(stamp) for stamp in stamps])
    aligned = data.open(tmp_path).align(times)
    camera = aligned.cameras["rgb"]
    assert camera.rows(0).tolist() == [i // 3 for i in range(30)]
    np.testing.assert_array_equal(whole(camera, 0), frames[np.arange(30) // 3])
    before = data.open(tmp_path).align(np.nextafter(times, 0), span="union")
    assert before.cameras["rgb"].rows(0).tolist() == [(i + 2) // 3 - 1 for i in range(30)]


# ---- data sets ----------------------------------------------------------------------------------


def test_aligned_episodes(tmp_path):
    """Frames have the times of their rows. A lower rate skips some, a higher one repeats them."""
    zarr = pytest.importorskip("zarr")
    frames = pixels(30)
    group = zarr.open_group(str(tmp_path / "x"), mode="w")
    group.create_array("meta/episode_ends", data=np.array([12, 30]))
    group.create_array("data/action", data=np.arange(60.0).reshape(30, 2))
    group.create_array("data/img", data=frames)
    episodes = data.open(tmp_path / "x", rate=10)
    parts = [frames[:12], frames[12:]]
    for rate in (4, 10, 25):
        for chosen in (None, [1], [1, 0]):
            own = episodes if chosen is None else episodes.select(chosen)
            aligned = own.align(rate)
            camera = aligned.cameras["img"]
            for e, source in enumerate(chosen or [0, 1]):
                times = np.asarray(aligned.select([e])["action"].times)
                stamps = np.arange(len(parts[source])) / 10
                expected = newest(times, stamps)
                assert camera.rows(e).tolist() == expected.tolist()
                np.testing.assert_array_equal(whole(camera, e), parts[source][expected])
    one = episodes.align(4).select([1])
    assert one._about.chosen.tolist() == [1] and len(one.cameras["img"].lengths) == 2


def test_a_pickle_takes_the_options_of_images(tmp_path):
    """Workers that are spawned, and Ray, get the cameras of an alignment as pickles."""
    arrivals, stamps = jitter(overtake=False)
    bag(tmp_path / "bag", arrivals, stamps)
    aligned = data.open(tmp_path / "bag").select(["/imu", "/cam"]).align(30)
    camera = aligned.cameras["/cam"]
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(camera))))
    expected = newest(np.asarray(aligned["/imu"].times), stamps, max_age=10_000_000)
    assert 0 < (expected < 0).sum() < len(expected)
    for each in (camera, again):
        assert each.with_options(max_age=0.01).rows(0).tolist() == expected.tolist()
        other = each.with_options(convert="RGB")
        assert other.source is not each.source
        assert other.rows(0).tolist() == camera.rows(0).tolist()
    rows = held([np.array([0, 3])])[1]
    rows = pickle.loads(pickle.dumps(HeldFrames(camera.source, [rows.rows(0)], [2])))
    assert rows.with_options(convert="RGB").rows(0).tolist() == [0, 3]


def test_joined_with_an_alignment(tmp_path):
    """Rows without a frame stay so next to data sets in which every row has one."""
    frames, camera = held([np.array([-1, 2, 2])])
    whole_camera = ArrayFrames("front", frames[1], [0, 2, 4])
    values = np.zeros((4, 1), np.float32)
    full = rbc.Episodes({"state": rbc.Track(values, [0, 2, 4])})
    full = full.with_cameras({"front": whole_camera})
    part = rbc.Episodes({"state": rbc.Track(values[:3], [0, 3])}).with_cameras({"front": camera})
    images = rbc.Images("front", dtype="uint8", layout="hwc")
    spec = rbc.WindowSpec({"state": [0], "front": rbc.Window([0], images=images)})
    expected = [frames[1][0], np.zeros_like(frames[1][0]), frames[0][2]]
    for sets, which in (([full, part], [0, 2, 2]), ([part, full], [1, 0, 0])):
        found, valid = images_of(data.concat(sets), spec, which, [0, 0, 1])
        assert valid[:, 0].tolist() == [True, False, True]
        np.testing.assert_array_equal(found[:, 0], expected)
    nothing = part.select([])
    for sets in ([nothing, full], [full, nothing]):
        found, valid = images_of(data.concat(sets), spec, [0, 1], [1, 1])
        assert valid.all()
        np.testing.assert_array_equal(found[:, 0], frames[1][[1, 3]])


def test_only_some_episodes_lack_frames():
    frames, camera = held([np.array([0, 3]), np.array([1, -1, 4])])

    class Some(HeldFrames):
        def missing(self, episode):
            return super().missing(episode) if episode else None

    some = Some(camera.source, camera.rows, camera.lengths)
    episodes = rbc.Episodes({"state": rbc.Track(np.zeros((5, 1), np.float32), [0, 2, 5])})
    images = rbc.Images("front", dtype="uint8", layout="hwc")
    spec = rbc.WindowSpec({"state": [0], "front": rbc.Window([0], images=images)})
    found, valid = images_of(
        episodes.with_cameras({"front": some}), spec, [0, 1, 1, 1], [1, 0, 1, 2]
    )
    assert valid[:, 0].tolist() == [True, True, False, True]
    np.testing.assert_array_equal(found[[0, 1, 3], 0], [frames[0][3], frames[1][1], frames[1][4]])


def test_frames_that_may_have_the_times_of_two_tracks():
    """An error, unless the times are equal or a track has the name of the camera."""
    frames = pixels(6)
    camera = ArrayFrames("front", frames, [0, 6])
    slow, fast = np.arange(6) / 2, np.arange(6) / 10

    def aligned(**times):
        tracks = {
            name: rbc.Track(np.zeros((6, 1), np.float32), [0, 6], times=own)
            for name, own in times.items()
        }
        return rbc.Episodes(tracks).with_cameras({"front": camera}).align(2).cameras["front"]

    with pytest.raises(ValueError, match="front: has 6 frames .* arm and imu have .* times differ"):
        aligned(arm=slow, imu=fast).rows(0)
    assert aligned(arm=slow, hand=slow).rows(0).tolist() == [0, 1, 2, 3, 4, 5]
    assert aligned(arm=fast, front=slow).rows(0).tolist() == [0, 1]
