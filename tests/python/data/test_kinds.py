"""Kinds of channels by names, values, files and callers, and the alignment of each kind."""

import json
import pathlib
import random
import re

import numpy as np
import pytest

import data_files
import robocache as rbc
from robocache import data
from robocache._episodes.channels import Channel
from robocache.data import checks
from robocache.data._kinds import names as kind_names

spatial = pytest.importorskip("scipy.spatial.transform")
Rotation, Slerp = spatial.Rotation, spatial.Slerp
PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/concepts/kinds.md"
TIMES = np.arange(101) * 0.1
QUERIES = np.arange(0, 10, 0.03)
AXIS = np.array([2, 3, 6]) / 7


def turning(axis=AXIS, keep_sign=False):
    """Return x y z w of a turn by t rad; with w >= 0, the sign flips at a half turn."""
    half = TIMES / 2
    if not keep_sign:
        half = (half + np.pi / 2) % np.pi - np.pi / 2
    return np.concatenate([np.outer(np.sin(half), axis), np.cos(half)[:, None]], 1)


def stream(name, names, values, *, type="t", dtypes=None):
    values = np.asarray(values)
    return data.RecordedStream(
        name, type, tuple(names), values, {"time": TIMES[: len(values)]}, None, dtypes
    )


def aligned(name, names, values, queries=QUERIES, **options):
    given = data.Recording.from_streams([stream(name, names, values)])
    return given.align(queries, **options)[name]


def angle_between(a, b):
    return (Rotation.from_quat(a) * Rotation.from_quat(b).inv()).magnitude().max()


def kinds(names, values, **options):
    return [c.kind for c in stream("s", names, values, **options).channels]


def rows_of_page(mark):
    """Return the cells of the table after a marker on the page."""
    lines = PAGE.read_text().split(f"<!-- {mark} -->\n")[1].splitlines()
    table = [line for line in lines[2 : lines.index("")]]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


NAMES = [
    (tuple(re.findall(r"`([^`]+)`", names)), roles.split())
    for names, roles in rows_of_page("quaternions")
]


# ---- quaternions by name ------------------------------------------------------------------------


@pytest.mark.parametrize(("names", "roles"), NAMES, ids=lambda x: x[0])
def test_the_table_of_names_and_slerp_of_scipy(names, roles):
    four = turning()[:, ["xyzw".index(role) for role in roles]]
    track = aligned("s", names, four)
    assert {c.kind for c in track.channels} == {"quaternion"}
    own = stream("s", names, four).kinds.groups[0]
    assert [roles[c] for c in own.columns] == list("xyzw")
    expected = Slerp(TIMES, Rotation.from_quat(turning()))(QUERIES)
    got = track.values[:, list(own.columns)]
    assert (Rotation.from_quat(got) * expected.inv()).magnitude().max() < 1e-12
    np.testing.assert_allclose(np.linalg.norm(got, axis=1), 1, atol=1e-12)


def test_shuffled_columns_among_others():
    """Any order, other channels between, random prefixes and suffixes, any case."""
    rng = random.Random(0)
    expected = Slerp(TIMES, Rotation.from_quat(turning()))(QUERIES)
    for _ in range(150):
        names, roles = rng.choice(NAMES)
        head, tail = rng.choice(("", "left.", "imu_", "/robot/")), rng.choice(("", "_1", ".left"))
        if any(name[-1].isdigit() or name[-1] in ")]" for name in names):
            tail = ""
        if any(name[0] in "xyzw" for name in names) or "quatX" in names:
            head = tail = ""
        own = [head + name + tail for name in names]
        own = rng.choice((own, own, own if "quatX" in names else [n.upper() for n in own]))
        others = rng.sample(["gx", "gy", "gz", "temperature", "speed", "volts [V]"], 3)
        columns = list(zip(own, turning()[:, ["xyzw".index(r) for r in roles]].T, roles))
        columns += [(other, np.sin(TIMES + i), "") for i, other in enumerate(others)]
        rng.shuffle(columns)
        track = aligned("s", [c[0] for c in columns], np.stack([c[1] for c in columns], 1))
        got = track.values[:, [[c[2] for c in columns].index(role) for role in "xyzw"]]
        assert (Rotation.from_quat(got) * expected.inv()).magnitude().max() < 1e-12, columns
        for i, (name, values, role) in enumerate(columns):
            if not role:
                want = np.interp(QUERIES, TIMES, values)
                np.testing.assert_allclose(track.values[:, i], want, atol=1e-14)
                assert track.channels[i] == Channel(name, "number", "V" if "[V]" in name else None)


def test_whole_numbers_of_planar_motion(tmp_path):
    t, four = TIMES, turning((0, 0, 1))
    lines = [f"{a:.9g},0,0,{z:.17g},{w:.17g}" for a, z, w in zip(t, four[:, 2], four[:, 3])]
    path = tmp_path / "planar.csv"
    path.write_text("time,qx,qy,qz,qw\n" + "\n".join(lines) + "\n")
    recording = data.open(path)
    assert recording["planar"].dtypes[:2] == ("int64", "int64")
    got = recording.align(QUERIES)["planar"].values
    expected = Slerp(t, Rotation.from_quat(four))(QUERIES).as_quat()
    assert angle_between(got, expected) < 1e-12


def test_what_is_no_quaternion():
    joints = np.stack([np.sin(TIMES + j) * 1.5 for j in range(7)], 1)
    for names in (("q1", "q2", "q3", "q4"), tuple(f"q[{j}]" for j in range(7)), tuple("xyzw")):
        own = joints[:, : len(names)]
        assert set(kinds(names, own)) == {"number"}
        track = aligned("s", names, own)
        want = np.stack([np.interp(QUERIES, TIMES, column) for column in own.T], 1)
        np.testing.assert_allclose(track.values, want, atol=1e-14)


def test_rows_that_do_not_confirm_the_names():
    """One of 1000 rows may be off, and zeros do not count; with more, a decision is required."""
    names = ("qx", "qy", "qz", "qw")
    four = np.tile(turning()[:100], (10, 1))
    four[7] *= 1.1
    four[20:40] = 0
    four = np.concatenate([four, four[50:80]])
    assert set(kinds(names, four)) == {"quaternion"}
    four[[9, 10, 11]] *= 1.1
    own = data.RecordedStream("s", "t", names, four, {"time": np.arange(len(four)) * 0.1})
    with pytest.raises(ValueError, match="--kind s:qx-qw=quaternion"):
        data.Recording.from_streams([own]).align(5)
    assert set(kinds(names, turning() * 3)) == {"number"}
    (found,) = checks.check(data.Recording.from_streams([stream("s", names, turning() * 3)]))
    assert found.kind == "quaternion" and "interpolated as numbers" in found.text


@pytest.mark.parametrize(
    ("name", "width", "begins"),
    [("obs/eef_quat", 4, [0]), ("robot0_eef_pose", 7, [3]), ("cube_orientations", 12, [0, 4, 8])],
)
def test_arrays_of_episodes(name, width, begins):
    values = np.zeros((101, width))
    for begin in begins:
        values[:, begin : begin + 4] = turning()
    track = rbc.Track(values, [0, 60, 101], times=np.concatenate([TIMES[:60], TIMES[:41]]))
    episodes = data.Episodes({name: track})
    got = episodes.align(30)[name]
    assert [c.kind for c in got.channels].count("quaternion") == 4 * len(begins)
    first = slice(0, got.lengths[0])
    expected = Slerp(TIMES[:60], Rotation.from_quat(turning()[:60]))(got.times[first])
    for begin in begins:
        part = got.values[first, begin : begin + 4]
        assert (Rotation.from_quat(part) * expected.inv()).magnitude().max() < 1e-12


# ---- by values only -----------------------------------------------------------------------------


def test_a_candidate_stops_alignment():
    other = np.sin(TIMES)[:, None] * 4
    given = data.Recording.from_streams(
        [stream("imu", ("a", "b", "c", "d", "e"), np.concatenate([other, turning()], 1))]
    )
    assert {c.kind for c in given["imu"].channels} == {"number"}
    with pytest.raises(ValueError, match="--kind imu:b-e=quaternion") as error:
        given.align(30)
    assert "--accept-guesses" in str(error.value) and "--as-numbers" in str(error.value)
    (found,) = [f for f in checks.check(given) if f.kind == "quaternion_candidate"]
    assert found.severity == "warning" and "--kind imu:b-e=quaternion" in found.text
    numbers = given.align(QUERIES, as_numbers=True)["imu"].values
    np.testing.assert_allclose(numbers[:, 1], np.interp(QUERIES, TIMES, turning()[:, 0]))
    expected = Slerp(TIMES, Rotation.from_quat(turning()))(QUERIES).as_quat()
    for options in (
        {"accept_guesses": True},
        {"kinds": {"imu": {"b-e": "quaternion"}}},
        {"methods": {"imu:b-e": "slerp"}},
    ):
        got = given.align(QUERIES, **options)["imu"].values[:, 1:]
        assert angle_between(got, expected) < 1e-12
    given.align(30, kinds={"imu": {"b-e": "number"}})
    with pytest.raises(ValueError, match="accept_guesses: cannot be combined with as_numbers"):
        given.align(30, accept_guesses=True, as_numbers=True)


def test_what_is_no_candidate():
    four = turning()

    def stops(values, dtype="f8"):
        names = [f"c{i}" for i in range(values.shape[1])]
        return len(stream("s", names, values.astype(dtype)).kinds.candidates)

    assert stops(four) == 1 and stops(four, "f4") == 1
    assert stops(four[:20]) == 1 and stops(four[:19]) == 0
    assert stops(four * 1.002) == 0
    assert stops(np.eye(4)[np.arange(101) % 4]) == 0  # 0 and 1 only
    constant = np.full((101, 4), 0.5)
    constant[:, 3] *= np.where(np.arange(101) % 2, 1, -1)
    assert stops(constant) == 0  # only one of them varies
    assert stops(np.concatenate([four, turning((0, 1, 0))], 1)) == 2
    matrices = Rotation.from_quat(four).as_matrix()
    pose = np.zeros((101, 4, 4))
    pose[:, :3, :3], pose[:, 3, 3] = matrices, 1
    assert stops(pose.reshape(101, 16)) == 0
    assert stops(pose[:, :3].reshape(101, 12)) == 0
    assert stops(pose.transpose(0, 2, 1).reshape(101, 16)) == 0


def test_pieces_and_the_whole_find_the_same():
    values = np.concatenate([np.sin(TIMES)[:, None], turning()], 1)
    names = ("yaw", "a", "b", "c", "d")
    pieces = checks.Channels("s", names, 5)
    for begin in range(0, 101, 7):
        pieces.add(values[begin : begin + 7])
    whole = stream("s", names, values).kinds
    assert pieces.kinds.groups == whole.groups and pieces.kinds.candidates == whole.candidates


# ---- angles -------------------------------------------------------------------------------------


def wrapped(rate, period, positive):
    turn = (0.3 + rate * TIMES) * period / (2 * np.pi)
    low = 0 if positive else -period / 2
    return (turn - low) % period + low, turn


@pytest.mark.parametrize("unit", ["rad", "deg", "turn"])
@pytest.mark.parametrize("positive", [False, True])
def test_angles_against_unwrap(unit, positive):
    period = {"rad": 2 * np.pi, "deg": 360.0, "turn": 1.0}[unit]
    values, _ = wrapped(1.3, period, positive)
    straight = np.unwrap(values, period=period)
    track = aligned("s", (f"yaw_{unit}",), values[:, None])
    assert track.channels == (Channel(f"yaw_{unit}", "angle", unit),)
    got = track.values[:, 0]
    want = np.interp(QUERIES, TIMES, straight)
    low = 0 if positive else -period / 2
    np.testing.assert_allclose(got, (want - low) % period + low, atol=1e-12 * period)
    assert got.min() >= low and got.max() < low + period


@pytest.mark.parametrize(
    ("name", "period", "positive", "unit"),
    [
        ("yaw", 2 * np.pi, False, "rad"),
        ("theta", 2 * np.pi, True, "rad"),
        ("heading", 360, True, "deg"),
        ("course_over_ground", 360, True, "deg"),
        ("lon", 360, False, "deg"),
        ("joint_6", 2 * np.pi, False, "rad"),
        ("q7", 360, False, "deg"),
        ("imu.yawDeg", 360, False, "deg"),
        ("azimuth [°]", 360, True, "deg"),
    ],
)
def test_names_of_angles(name, period, positive, unit):
    values, _ = wrapped(1.1, period, positive)
    track = aligned("s", (name,), values[:, None])
    assert track.channels == (Channel(name, "angle", unit),)
    want = np.interp(QUERIES, TIMES, np.unwrap(values, period=period))
    low = 0 if positive else -period / 2
    np.testing.assert_allclose(track.values[:, 0], (want - low) % period + low, atol=1e-11)


@pytest.mark.parametrize(
    ("name", "half", "dtype"),
    [("heading", 180, "f8"), ("yaw_deg", 180, "f4"), ("yaw", np.pi, "f4"), ("yaw", np.pi, "f8")],
)
def test_half_a_turn_stays_where_no_value_is_negative(name, half, dtype):
    values = np.full((101, 1), half, dtype)
    values[:20] = np.linspace(0.9, 1, 20)[:, None] * half
    got = aligned("s", (name,), values).values
    assert got.dtype == dtype and got.min() >= values.min() and got.max() == values.max()
    assert (got[QUERIES > 2] == values[-1]).all()


@pytest.mark.parametrize(("low", "unit"), [(-np.pi, "rad"), (0, "rad")])
def test_longitudes_in_radians(low, unit):
    turn = 2 * np.pi
    values = (3 + 0.2 * TIMES + 3.1 * (low == 0) - low) % turn + low
    track = aligned("s", ("longitude",), values[:, None])
    assert track.channels == (Channel("longitude", "angle", unit),)
    want = np.interp(QUERIES, TIMES, np.unwrap(values))
    np.testing.assert_allclose(track.values[:, 0], (want - low) % turn + low, atol=1e-11)
    small = stream("s", ("longitude",), 2.3 + 0.001 * TIMES[:, None])
    assert small.channels == (Channel("longitude", "angle", "deg"),)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("yaw", 3 * TIMES),
        ("theta", 5 + 4 * TIMES),
        ("yaw_deg", np.linspace(-10, 350, 101)),  # below 0 and above half a turn
        ("heading_deg", np.linspace(0, 400, 101)),
        ("yaw_rate", wrapped(1, 2 * np.pi, False)[0]),
        ("rollSpeed", wrapped(1, 2 * np.pi, False)[0]),
        ("yaw (deg/s)", wrapped(1, 360, False)[0]),
        ("joint_6", np.where(np.arange(101) % 2, 2.0, -2.0)),  # a jump, not by a turn
        ("latitude", np.linspace(-80, 80, 101)),
    ],
)
def test_what_is_no_angle(name, values):
    assert kinds((name,), values[:, None]) == ["number"]
    got = aligned("s", (name,), values[:, None]).values[:, 0]
    np.testing.assert_allclose(got, np.interp(QUERIES, TIMES, values), atol=1e-12)


def test_an_angle_of_several_turns_is_a_note():
    found = checks.check(data.Recording.from_streams([stream("s", ("yaw",), (3 * TIMES)[:, None])]))
    assert [(f.severity, f.kind) for f in found] == [("note", "angle_range")]


def test_jumps_between_episodes_do_not_count():
    values = np.tile(np.linspace(-3, 3, 50), 2)[:, None]
    track = rbc.Track(values, [0, 50, 100], names=["joint_1"])
    assert data.Episodes({"s": track})["s"].channels[0].kind == "number"


def test_roll_pitch_and_yaw():
    values = np.stack(
        [0.1 * np.sin(TIMES), 0.2 * np.cos(TIMES), wrapped(1, 2 * np.pi, False)[0]], 1
    )
    track = aligned("s", ("roll", "pitch", "yaw"), values)
    assert track.channels == tuple(Channel(n, "euler", "rad") for n in ("roll", "pitch", "yaw"))
    want = np.interp(QUERIES, TIMES, np.unwrap(values[:, 2]))
    np.testing.assert_allclose(track.values[:, 2], (want + np.pi) % (2 * np.pi) - np.pi, atol=1e-12)


# ---- other forms of rotations -------------------------------------------------------------------


def tumbling():
    """Return a turn about a moving axis, without sign flips."""
    return Rotation.from_rotvec(np.stack([np.sin(TIMES), 0.4 * TIMES, np.cos(0.7 * TIMES)], 1))


def test_rotation_vectors():
    turn = (2.5 + TIMES + np.pi) % (2 * np.pi) - np.pi
    zero = np.zeros(101)
    expected = Rotation.from_rotvec(np.outer(2.5 + QUERIES, [0, 0, 1]))
    six = np.stack([zero + 0.1, zero, zero, zero, zero, turn], 1)
    for names in (
        ("x", "y", "z", "rx", "ry", "rz"),
        tuple(f"actual_TCP_pose_{i}" for i in range(6)),
        tuple(f"tcp.{n}" for n in ("x", "y", "z", "rx", "ry", "rz")),
    ):
        track = aligned("arm", names, six)
        assert [c.kind for c in track.channels][3:] == ["rotation_vector"] * 3
        got = Rotation.from_rotvec(track.values[:, 3:])
        assert (got * expected.inv()).magnitude().max() < 1e-12
        assert np.linalg.norm(track.values[:, 3:], axis=1).max() <= np.pi * (1 + 1e-12)
    track = rbc.Track(six[:, 3:].astype("f4"), [0, 101], times=TIMES)
    episodes = data.Episodes({"robot0_eef_rot_axis_angle": track})
    (name,) = episodes.tracks
    own = episodes.align(30)[name]
    got = Rotation.from_rotvec(own.values)
    want = Rotation.from_rotvec(np.outer(2.5 + own.times, [0, 0, 1]))
    assert own.values.dtype == np.float32 and (got * want.inv()).magnitude().max() < 1e-6


def test_rotation_vectors_longer_than_half_a_turn():
    """They stay in the branch of the neighbouring samples."""
    turn = 2.5 + 0.3 * TIMES
    values = np.outer(turn, [0, 0.6, 0.8])
    got = aligned("s", ("x", "y", "z"), values, kinds={"s": {"x-z": "rotation_vector"}}).values
    want = np.outer(2.5 + 0.3 * QUERIES, [0, 0.6, 0.8])
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_rotation_vectors_of_several_turns():
    """Only declared ones can be that long. They keep the number of turns of their samples."""
    turn = np.linspace(0.1, 21, 101)
    values = np.outer(turn, [0, 0.6, 0.8])
    got = aligned("s", ("x", "y", "z"), values, kinds={"s": {"x-z": "rotation_vector"}}).values
    want = np.outer(np.interp(QUERIES, TIMES, turn), [0, 0.6, 0.8])
    np.testing.assert_allclose(got, want, atol=1e-11)


@pytest.mark.parametrize("name", ["cmd_r{}", "tcp_speed_r{}", "wrench.r{}", "joy_r{}", "r{}_rate"])
def test_what_is_no_rotation_vector(name):
    values = np.stack([np.sin(TIMES), np.cos(TIMES), np.sin(2 * TIMES)], 1)
    names = [name.format(axis) for axis in "xyz"] + [name.replace("r{}", a) for a in "xyz"]
    assert set(kinds(names, np.concatenate([values, values], 1))) == {"number"}


def test_a_rotation_vector_without_a_position_is_a_warning():
    values = np.stack([np.sin(TIMES), np.cos(TIMES), np.sin(2 * TIMES)], 1)
    own = stream("s", ("rx", "ry", "rz"), values)
    assert {c.kind for c in own.channels} == {"number"}
    found = checks.check(data.Recording.from_streams([own]))
    assert [(f.severity, f.kind) for f in found] == [("warning", "rotation_vector")]
    far = np.concatenate([values, 90 * values], 1)  # degrees
    own = stream("s", ("x", "y", "z", "rx", "ry", "rz"), far)
    assert {c.kind for c in own.channels} == {"number"}
    assert [f.kind for f in own.kinds.findings] == ["rotation_vector"]


@pytest.mark.parametrize(
    ("kind", "make", "read"),
    [
        ("matrix", lambda r: r.as_matrix().reshape(-1, 9), lambda v: v.reshape(-1, 3, 3)),
        (
            "matrix_columns",
            lambda r: r.as_matrix().transpose(0, 2, 1).reshape(-1, 9),
            lambda v: v.reshape(-1, 3, 3).transpose(0, 2, 1),
        ),
        (
            "rot6d",
            lambda r: r.as_matrix()[:, :2].reshape(-1, 6),
            lambda v: np.stack([v[:, :3], v[:, 3:], np.cross(v[:, :3], v[:, 3:])], axis=1),
        ),
    ],
)
def test_matrices(kind, make, read):
    values = make(tumbling())
    names = [f"m{i}" for i in range(values.shape[1])]
    got = aligned("s", names, values, kinds={"s": kind}).values
    expected = Slerp(TIMES, tumbling())(QUERIES)
    np.testing.assert_allclose(read(got), expected.as_matrix(), atol=1e-12)


@pytest.mark.parametrize("rows", [3, 4])
@pytest.mark.parametrize("by_column", [False, True])
def test_poses(rows, by_column):
    pose = np.zeros((101, rows, 4))
    pose[:, :3, :3] = tumbling().as_matrix()
    pose[:, :3, 3] = np.stack([TIMES**2, np.sin(TIMES), TIMES], 1)
    if rows == 4:
        pose[:, 3, 3] = 1
    flat = (pose.transpose(0, 2, 1) if by_column else pose).reshape(101, -1)
    kind = f"pose_{rows}x4{'_columns' if by_column else ''}"
    got = aligned("s", [f"p{i}" for i in range(4 * rows)], flat, kinds={"s": {"*": kind}}).values
    shape = (-1, 4, rows) if by_column else (-1, rows, 4)
    got = got.reshape(shape).transpose(0, 2, 1) if by_column else got.reshape(shape)
    expected = Slerp(TIMES, tumbling())(QUERIES).as_matrix()
    np.testing.assert_allclose(got[:, :3, :3], expected, atol=1e-12)
    for i in range(3):
        want = np.interp(QUERIES, TIMES, pose[:, i, 3])
        np.testing.assert_allclose(got[:, i, 3], want, atol=1e-12)
    if rows == 4:
        np.testing.assert_array_equal(got[:, 3], np.tile([0, 0, 0, 1], (len(QUERIES), 1)))


@pytest.mark.parametrize("axes", ["xyz", "ZYX", "yzx"])
@pytest.mark.parametrize("unit", ["", "_deg"])
def test_euler_angles_by_slerp(axes, unit):
    values = tumbling().as_euler(axes, degrees=bool(unit))
    names = ("a", "b", "c")
    got = aligned("s", names, values, kinds={"s": {"a-c": f"euler_{axes}{unit}"}}).values
    expected = Slerp(TIMES, tumbling())(QUERIES)
    again = Rotation.from_euler(axes, got, degrees=bool(unit))
    assert (again * expected.inv()).magnitude().max() < 1e-11
    half = 180 if unit else np.pi
    assert np.abs(got).max() <= half


# ---- steps, and covariances ---------------------------------------------------------------------


def test_steps_and_counts():
    count = np.arange(101, dtype=np.int64)[:, None] * 1000
    own = stream("s", ("wheel_encoder",), count)
    assert own.channels == (Channel("wheel_encoder", "step"),)
    assert [(f.severity, f.kind) for f in own.kinds.findings] == [("note", "counts")]
    got = data.Recording.from_streams([own]).align(QUERIES)["s"]
    assert got.values.dtype == np.int64
    held = count[(np.searchsorted(TIMES, QUERIES, "right") - 1), 0]
    np.testing.assert_array_equal(got.values[:, 0], held)
    got = data.Recording.from_streams([own]).align(
        QUERIES, kinds={"s": {"wheel_encoder": "number"}}
    )["s"]
    np.testing.assert_allclose(got.values[:, 0], 10_000 * QUERIES)


def test_messages(tmp_path):
    """Quaternion messages are recognized by type, not by name; omitted covariances are listed."""
    pytest.importorskip("rosbags")
    store = data_files.typestore(ros1=True)
    path = data_files.write_ros1(tmp_path / "x", data_files.messages(store, 60), store)
    recording = data.open(path)
    own = recording["/imu"]
    of = {c.name: c for c in own.channels}
    assert of["orientation.w"].kind == "quaternion"
    assert of["orientation_covariance[0]"].kind == "covariance"
    made = recording.align(50)
    assert made["/imu"].names == tuple(n for n in own.names if "covariance" not in n)
    assert any("orientation_covariance" in left.place for left in made.left_out)
    asked = recording.align(50, kinds={"/imu": {"orientation_covariance": "number"}})
    assert "orientation_covariance[8]" in asked["/imu"].names
    some = recording.select(["/imu"], channels={"/imu": ["orientation_covariance[0]"]})
    assert some.align(50)["/imu"].num_channels == 1
    with pytest.raises(TypeError, match="^streams: is a dict, .* channels= selects channels"):
        recording.select({"/imu": ["orientation_covariance[0]"]})  # iterates over streams only
    with pytest.raises(TypeError, match=r"^streams: is '/imu', expected a list of names: \['/imu'"):
        recording.select("/imu")
    with pytest.raises(TypeError, match=r"^names: is 'x', expected a list of names: \['x'\]"):
        own.select(names="x")


# ---- what a caller says -------------------------------------------------------------------------


def test_channels_that_a_caller_names(tmp_path):
    names = ("orientation[0]", "orientation[1]", "orientation[2]", "orientation[3]")
    names += ("orientation_covariance[0]", "yaw", "a-b")
    values = np.concatenate([turning(), np.zeros((101, 3))], 1)
    given = data.Recording.from_streams([stream("imu", names, values)])

    def of(channels, kind):
        own = given.with_kinds({"imu": {channels: kind}})["imu"]
        return [(g.kind, g.columns) for g in own.kinds.groups if g.source == "caller"]

    assert of("orientation", "quaternion_wxyz") == [("quaternion", (1, 2, 3, 0))]
    assert of("orientation[0]-orientation[3]", "quaternion_xyzw") == [("quaternion", (0, 1, 2, 3))]
    assert of("0-3", "quaternion_xyzw") == [("quaternion", (0, 1, 2, 3))]
    assert of("orientation[3],orientation[0],orientation[1],orientation[2]", "quaternion_wxyz")
    assert of("a-b", "angle_deg") == [("angle", (6,))]
    for channels, kind, text in (
        ("yaw", "quaternion", "does not fit 1 channel: 'yaw'"),
        ("nothing", "angle", "no such channel 'nothing', expected one of 'orientation"),
        ("yaw", "qaternion", "is 'qaternion', expected one of number"),
    ):
        with pytest.raises(ValueError, match=re.escape(text)):
            given.align(10, kinds={"imu": {channels: kind}})
    with pytest.raises(KeyError, match="no such stream 'gps'"):
        given.align(10, kinds={"gps": "number"})
    far = data.Recording.from_streams([stream("s", ("a",), (100 * TIMES)[:, None])])
    with pytest.raises(ValueError, match="s:a is declared angle_deg, but its values go from 0"):
        far.align(10, kinds={"s": {"a": "angle_deg"}})


def test_kinds_of_open_and_saved_files(tmp_path):
    path = tmp_path / "s.csv"
    table = np.concatenate([TIMES[:, None], turning(), np.degrees(turning())[:, :1] * 3], 1)
    np.savetxt(path, table, header="time,a,b,c,d,e", delimiter=",", comments="", fmt="%.17g")
    recording = data.open(path, kinds={"s": {"a-d": "quaternion", "e": "angle_deg"}})
    made = recording.align(20)
    wanted = [("quaternion", None)] * 4 + [("angle", "deg")]
    assert [(c.kind, c.unit) for c in made["s"].channels] == wanted
    for given in (recording, made):
        for form in ("npz", "zarr"):
            if form == "zarr":
                pytest.importorskip("zarr")
            target = tmp_path / f"{type(given).__name__}.{form}"
            given.save(target, form)
            again = data.open(target)
            assert [(c.kind, c.unit) for c in again["s"].channels] == wanted
            if form == "npz":
                assert again["s"].channels == given["s"].channels
                again.align(10)  # which asks nothing
                assert not [f for f in checks.check(again) if "candidate" in f.kind]


def test_broken_kinds_of_a_saved_file(tmp_path):
    made = data.Recording.from_streams([stream("s", ("yaw",), np.sin(TIMES)[:, None])])
    made.save(tmp_path / "a.npz")
    arrays = dict(np.load(tmp_path / "a.npz"))
    told = json.loads(str(arrays["robocache"]))
    told["streams"][0]["kinds"]["groups"][0]["columns"] = [7]
    arrays["robocache"] = np.array(json.dumps(told))
    np.savez(tmp_path / "b.npz", **arrays)
    with pytest.raises(data.FormatError, match="its kinds do not fit 1 channel"):
        data.open(tmp_path / "b.npz")
    del told["streams"][0]["kinds"]  # as files were before
    arrays["robocache"] = np.array(json.dumps(told))
    np.savez(tmp_path / "c.npz", **arrays)
    assert data.open(tmp_path / "c.npz")["s"].channels == made["s"].channels


def test_selection_keeps_what_all_values_showed():
    values, _ = wrapped(1.3, 360, True)
    own = stream("s", ("heading", "x"), np.stack([values, TIMES], 1))
    assert own.select(slice(0, 2)).kinds.groups == own.kinds.groups
    assert own.select(names=["x"]).channels == (Channel("x", "number"),)
    quaternion = stream("s", ("qx", "qy", "qz", "qw"), turning())
    assert {c.kind for c in quaternion.select(names=["qx", "qy"]).channels} == {"number"}


def test_findings_are_those_of_the_channels_that_are_left():
    values = np.stack([9 * np.sin(TIMES), np.cos(TIMES), np.sin(2 * TIMES)], 1)
    values = np.concatenate([values, values, turning(keep_sign=True)], 1)
    names = ("x", "y", "z", "rx", "ry", "rz", "a", "b", "c", "d")
    given = data.Recording.from_streams([stream("s", names, values)])

    def found(recording):
        return [finding.kind for finding in recording["s"].kinds.findings]

    assert found(given) == ["rotation_vector", "quaternion_candidate"]
    declared = {"rx-rz": "rotation_vector"}
    assert found(given.with_kinds({"s": declared})) == ["quaternion_candidate"]
    assert found(given.with_kinds({"s": {**declared, "a-d": "number"}})) == []
    assert found(given.select(channels={"s": ["rx", "ry", "rz", "a"]})) == ["rotation_vector"]
    moved = given.select(channels={"s": ["x", "a", "b", "c", "d", "a"]})
    assert moved["s"].names == ("x", "a", "b", "c", "d")  # each once
    assert [f.place for f in moved["s"].kinds.findings] == ["a, b, c, d"]


def held(name, values, at, unit="x"):
    times = {"time": np.asarray(at, float)}
    return data.RecordedStream(name, "t", (unit,), np.asarray(values), times, static=True)


def test_static_streams_take_methods_and_keep_integers():
    large = 2**60 + 1  # which no float64 holds
    moving = stream("s", ("v",), np.sin(TIMES)[:, None])
    given = data.Recording.from_streams([moving, held("h", [[large]], [1])])
    made = given.align(10, methods={"h": "previous", "h:x": "linear"})
    assert made["h"].values.dtype == np.int64
    assert made["h"].values[[0, 9, 11, -1], 0].tolist() == [0, 0, large, large]
    assert made["valid"].values[[0, 9, 11, -1], 1].tolist() == [False, False, True, True]
    with pytest.raises(ValueError, match="--method h:y=linear: no such channel 'y'"):
        given.align(10, methods={"h:y": "linear"})
    with pytest.raises(ValueError, match="no such method"):
        given.align(10, methods={"h": "curved"})
    with pytest.raises(KeyError, match="no such stream"):
        given.align(10, methods={"g": "linear"})


def test_static_streams_hold_after_a_span_begins():
    moving = stream("s", ("v",), np.sin(TIMES)[:, None])
    streams = [moving, held("h", [[1.0], [2.0]], [0, 3.05]), held("late", [[3.0]], [9])]
    given = data.Recording.from_streams(streams).select(begin=2, end=5)
    assert [len(given[name]) for name in given] == [30, 2, 0]
    made = given.align(10)
    assert made["h"].values[:, 0].tolist() == [1.0] * 11 + [2.0] * 19
    assert [each.place for each in made.left_out] == ["late"]


def test_static_streams_without_others_need_no_time_in_common():
    made = data.Recording.from_streams([held("a", [[1.0]], [0]), held("b", [[2.0]], [1])]).align(2)
    assert made["a"].values[:, 0].tolist() == [1, 1, 1]
    np.testing.assert_array_equal(made["b"].values[:, 0], [np.nan, np.nan, 2])


def test_methods_for_some_channels():
    values = np.concatenate([turning(), np.sin(TIMES)[:, None]], 1)
    given = data.Recording.from_streams([stream("s", ("qx", "qy", "qz", "qw", "v"), values)])
    got = given.align(QUERIES, methods={"s:v": "previous"})["s"].values
    np.testing.assert_array_equal(
        got[:, 4], values[np.searchsorted(TIMES, QUERIES, "right") - 1, 4]
    )
    linear = given.align(QUERIES, methods={"s": "linear"})["s"].values
    np.testing.assert_allclose(linear[:, 0], np.interp(QUERIES, TIMES, values[:, 0]))
    for methods, text in (
        ({"s": "slerp"}, "--method s=slerp: these are 5 channels, but slerp takes 4"),
        ({"s:qx": "linear"}, "names only some channels of a rotation"),
        ({"s:v": "curved"}, "no such method"),
    ):
        with pytest.raises(ValueError, match=re.escape(text)):
            given.align(QUERIES, methods=methods)


# ---- the page, and the command line -------------------------------------------------------------


def test_the_page_has_all_words_and_kinds():
    words, joints = (re.findall(r"`(\w+)`", row[0]) for row in rows_of_page("angles"))
    assert tuple(words) == kind_names.ANGLE_WORDS
    assert tuple(joints[:5]) == kind_names.JOINT_WORDS
    text = PAGE.read_text()
    from robocache._episodes.channels import KINDS
    from robocache.data._kinds.declared import SPELLINGS

    for kind in KINDS:
        assert f"| `{kind}` |" in text, kind
    for kind in SPELLINGS:
        short = re.sub(r"^(euler|angle|rotation_vector)_.*", r"\1", kind)
        assert f"`{short}`" in text, kind
    for word in kind_names.NO_VECTOR_WORDS + kind_names.VECTOR_WORDS[:1]:
        assert f"`{word}`" in text, word


def test_the_command_line(tmp_path, capsys):
    typer = pytest.importorskip("typer")
    from typer.testing import CliRunner

    from robocache import cli
    from robocache.cli._app import app

    assert typer and cli
    path = tmp_path / "imu.csv"
    table = np.concatenate([TIMES[:, None], turning(), wrapped(1, 360, True)[0][:, None]], 1)
    np.savetxt(path, table, header="time_s,a,b,c,d,yaw_deg", delimiter=",", comments="")

    def run(*arguments):
        return CliRunner().invoke(app, [str(a) for a in arguments])

    out = tmp_path / "o.npz"
    resample = ("resample", path, "--rate", 20, "-o", out, "--overwrite")
    told = run("inspect", path, "--json")
    kinds = {c["name"]: c for c in json.loads(told.stdout)["streams"]["imu"]["kinds"]}
    assert kinds["yaw_deg"]["kind"] == "angle" and kinds["yaw_deg"]["source"] == "names"
    assert run("inspect", path, "--check").exit_code == 1
    assert run(*resample).exit_code == 1
    for option in (
        ("--accept-guesses",),
        ("--kind", "imu:a-d=quaternion_xyzw"),
        ("--method", "imu:a-d=slerp"),
    ):
        assert run(*resample, *option).exit_code == 0, option
        track = data.open(out)["imu"]
        expected = Slerp(TIMES, Rotation.from_quat(turning()))(track.times)
        got = Rotation.from_quat(track.values[:, :4])
        assert (got * expected.inv()).magnitude().max() < 1e-12
    assert run(*resample, "--as-numbers").exit_code == 0
    assert run(*resample, "--accept-guesses", "--as-numbers").exit_code == 2
    assert run(*resample, "--kind", "imu:a-d").exit_code == 1
    assert run(*resample, "--kind", "gps:a-d=quaternion").exit_code == 1


@pytest.mark.parametrize("command", [("windows",), ("stats",)])
def test_relative_actions_ask_too(tmp_path, command):
    """They subtract channel by channel; windows and statistics of single channels do not."""
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from robocache.cli._app import app

    tracks = {
        name: rbc.Track(np.concatenate([turning(), turning()[:, :2]], 1), [0, 60, 101])
        for name in ("state", "action")
    }
    path = tmp_path / "set.npz"
    data.Episodes(tracks).save(path)

    def run(*options):
        return CliRunner().invoke(app, [*command, str(path), *options])

    relative = ("--relative", "2") if command == ("stats",) else ("--relative",)
    assert run().exit_code == 0
    assert run(*relative).exit_code == 1
    for options in (("--as-numbers",), ("--accept-guesses",), ("--absolute", "0,1,2,3")):
        assert run(*relative, *options).exit_code == 0, options
    assert run(*relative, "--kind", "action:0-3=number").exit_code == 0


def test_joints_by_name_are_angles_if_they_jump() -> None:
    times = np.arange(41) * 100_000_000
    turn = (3.0 + 0.1 * np.arange(41) + np.pi) % (2 * np.pi) - np.pi
    values = np.stack([np.full(41, 0.1), turn], axis=1)
    names = ("position[slide]", "position[wrist]")
    stream = data.RecordedStream(
        "/joint_states", "sensor_msgs/msg/JointState", names, values, {"log": times}, "ns"
    )
    assert [channel.kind for channel in stream.channels] == ["number", "angle"]
    assert [channel.unit for channel in stream.channels] == [None, "rad"]
