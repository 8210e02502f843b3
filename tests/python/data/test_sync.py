"""Planted offsets and drifts between two sensors of one motion are found."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import robocache as rbc
from random_share import random_share, share_of

data = pytest.importorskip("robocache.data")

PLANTED = share_of([0.0123, 0.005, 0.0471, 0.1017, -0.2, -0.0337, 0.2])


def later(given, seconds: float):
    """Return the same sensor with a clock that is ahead."""
    if isinstance(given, tuple):
        return given[0] + seconds, given[1]
    if isinstance(given, rbc.Track):
        times = given.times.astype(np.float64) + seconds
        return rbc.Track(given.values, given.episode_offsets, times=times, names=given.names)
    ticks = {"ns": 1e9, "us": 1e6}.get(given.unit)
    shift = seconds if ticks is None else round(seconds * ticks)
    return dataclasses.replace(given, clocks={k: t + shift for k, t in given.clocks.items()})


def check_planted(a, b, within: float = 1e-3, **options) -> data.SyncResult:
    """Check that each planted offset is found, in addition to the existing one."""
    there = data.sync(a, b, **options)
    for planted in PLANTED:
        found = data.sync(a, later(b, planted), **options)
        assert found.offset - there.offset == pytest.approx(-planted, abs=within), planted
        assert found.correlation == pytest.approx(there.correlation, abs=0.03)
    return there


def motion(seed: int, channels: int = 3):
    """Return a smooth motion as a function of time."""
    rng = np.random.default_rng(seed)
    size = (12, channels)
    rate, phase = rng.uniform(0.1, 3, size), rng.uniform(0, 2 * np.pi, size)
    weight = rng.normal(size=size) / np.sqrt(rate)
    return lambda t: (weight * np.sin(2 * np.pi * rate * t[:, None, None] + phase)).sum(axis=1)


def jittered(rate: float, seconds: float, rng) -> np.ndarray:
    even = np.arange(0, seconds, 1 / rate)
    return np.sort(even + rng.normal(0, 0.1 / rate, len(even)))


# ---- real recordings ----------------------------------------------------------------------------


def test_car_gyro_and_camera_pose(recordings):
    car = data.open(recordings / "comma2k19")
    pose = car["global_pose/frame_orientations"]  # w x y z; 20 Hz, in other axes than the gyro
    found = check_planted(car["processed_log/IMU/gyro"], pose, kind_b="rotation_wxyz")
    assert found.correlation > 0.8 and abs(found.offset) < 0.02


def test_drone_gyro_and_attitude(recordings):
    flights = data.open(recordings / "px4", unit="us")
    for flight in ("sample", "sample_log_small"):
        gyro = flights[f"{flight}_sensor_combined"]
        attitude = flights[f"{flight}_vehicle_attitude"]
        a = gyro.select(names=[n for n in gyro.names if n.startswith("gyro_rad")])
        b = attitude.select(names=[n for n in attitude.names if n.startswith("q[")])
        assert len(a.names) == 3 and len(b.names) == 4
        found = check_planted(a, b, kind_a="values", kind_b="rotation_wxyz", max_offset=0.5)
        assert found.correlation > 0.85 and abs(found.offset) < 0.02


def test_husky_imu_and_odometry(recordings):
    bag = data.open(recordings / "ros1_robot_localization" / "test1.bag")
    found = check_planted(bag["/imu/data"], bag["/husky_velocity_controller/odom"], clock="header")
    assert found.correlation > 0.9
    assert 0.3 < -found.offset < 0.5  # the recording has this offset; its cause is unknown


def test_states_follow_actions(recordings):
    pusht = data.open(recordings / "lerobot_v3_pusht")
    found = check_planted(pusht["action"], pusht["observation.state"])
    assert found.correlation > 0.9 and -0.3 < found.offset < -0.1
    assert np.isnan(found.drift_uncertainty) and found.drift == 0


@pytest.mark.parametrize("stream", ["processed_log/IMU/gyro", "processed_log/IMU/accelerometer"])
def test_halves_of_one_sensor_are_at_offset_0(recordings, stream):
    """The offset between the odd and the even samples is known to be 0."""
    whole = data.open(recordings / "comma2k19")[stream]
    even, odd = whole.select(slice(0, None, 2)), whole.select(slice(1, None, 2))
    for planted in PLANTED:
        found = data.sync(even, later(odd, planted), kind_a="values", kind_b="values")
        assert found.offset == pytest.approx(-planted, abs=1e-3)


def test_unrelated_sensors_show_in_the_uncertainty(recordings):
    car = data.open(recordings / "comma2k19")
    found = data.sync(car["processed_log/IMU/magnetometer"], car["processed_log/CAN/speed"])
    assert found.uncertainty > 0.03 or found.correlation < 0.2


# ---- what is known exactly ----------------------------------------------------------------------


def simulated(seed: int, noise: float, offset: float, drift: float, seconds: float = 90.0):
    rng = np.random.default_rng(seed)
    moved = motion(seed)
    ta, tb = jittered(200, seconds, rng), jittered(30, seconds, rng)
    a, b = moved(ta), moved(tb)
    a, b = (x + noise * rng.normal(size=x.shape) for x in (a, b))
    turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    # A sample of b with the stamp t was taken at t + offset + drift (t - seconds / 2).
    stamps = (tb - offset + drift * seconds / 2) / (1 + drift)
    return (ta, a), (stamps, b @ turned)


def test_drift_and_offset_are_within_their_uncertainty():
    errors = []
    for seed in range(2 + random_share(4)):
        a, b = simulated(seed, 0.5, 0.0371, 80e-6)
        found = data.sync(a, b, kind_a="values", kind_b="values", max_offset=0.2, max_drift=3e-4)
        true = 0.0371 + 80e-6 * (found.reference - 45)
        assert found.offset == pytest.approx(true, abs=1e-3)
        assert found.drift == pytest.approx(80e-6, abs=50e-6)
        errors.append((found.offset - true) / found.uncertainty)
        errors.append((found.drift - 80e-6) / found.drift_uncertainty)
        assert 1e-5 < found.uncertainty < 1e-3
    assert 0.3 < np.sqrt(np.mean(np.square(errors))) < 2


def test_corrected_times_are_on_the_other_clock():
    a, b = simulated(3, 0.05, -0.1234, 100e-6)
    options = {"kind_a": "values", "kind_b": "values", "max_offset": 0.2, "max_drift": 3e-4}
    found = data.sync(a, b, **options)
    true = b[0] - 0.1234 + 100e-6 * (b[0] - 45)
    np.testing.assert_allclose(found.corrected(b[0]), true, rtol=0, atol=5e-4)
    ns = np.rint(b[0] * 1e9).astype(np.int64) + 1_700_000_000_000_000_000
    ns_a = np.rint(a[0] * 1e9).astype(np.int64) + 1_700_000_000_000_000_000
    same = data.sync((ns_a, a[1]), (ns, b[1]), unit="ns", **options)
    assert same.offset == pytest.approx(found.offset, abs=2e-5)
    moved = same.corrected(ns)
    assert moved.dtype == np.int64
    shift = (moved - ns) / 1e9
    np.testing.assert_allclose(shift, found.corrected(b[0]) - b[0], rtol=0, atol=5e-5)
    dates = data.sync((ns_a.view("M8[ns]"), a[1]), (ns.view("M8[ns]"), b[1]), **options)
    assert dates == same
    np.testing.assert_array_equal(dates.corrected(ns.view("M8[ns]")), moved.view("M8[ns]"))


def test_gaps_loud_stretches_and_edges_do_not_move_the_peak():
    t = np.arange(0, 60, 0.01)
    x = motion(5, 2)(t) * np.where(t > 50, 20, 1)[:, None]
    keep = ~((t > 10) & (t < 22)) & ~((t > 48) & (t < 53))
    late = (t > 3)[keep]
    found = data.sync((t, x), (t[keep][late] + 0.0777, x[keep][late]))
    assert found.offset == pytest.approx(-0.0777, abs=2e-4)
    assert found.overlap < 41


def test_spikes_of_a_pose_that_jumps_count_little():
    rng = np.random.default_rng(1)
    t = np.arange(0, 40, 0.01)
    x = motion(6)(t)
    spiky = x.copy()
    spiky[rng.integers(0, len(t), 100)] = 1e4
    found = data.sync((t, x), (t - 0.05, spiky), kind_a="values", kind_b="values", match="each")
    assert found.offset == pytest.approx(0.05, abs=min(3 * found.uncertainty, 5e-3))


def test_each_takes_scale_and_sign_and_any_takes_other_axes():
    t = np.arange(0, 40, 0.01)
    x = motion(7)(t)
    mirrored = later((t, x * [-2, 0.1, 30]), 0.0456)
    found = data.sync((t, x), mirrored, kind_a="values", kind_b="values", match="each")
    assert found.offset == pytest.approx(-0.0456, abs=1e-4) and found.correlation > 0.99
    two = later((t, x @ np.array([[1.0, 2], [0, 1], [-3, 0.5]])), 0.0456)
    found = data.sync((t, x), two, kind_a="values", kind_b="values")
    assert found.offset == pytest.approx(-0.0456, abs=1e-4) and found.correlation > 0.99


def test_rotation_is_that_of_the_moving_frame():
    """Quaternions of a turning body against its gyro, with signs that flip."""
    rng = np.random.default_rng(2)
    t = np.arange(0, 30, 0.005)
    rate = motion(8)(t)
    steps = rbc.convert_rotations(rate * 0.005, "rotvec", "quat_xyzw")
    q = np.zeros((len(t), 4))
    q[0, 3] = 1
    for i in range(len(t) - 1):
        v, w, u, s = q[i, :3], q[i, 3], steps[i, :3], steps[i, 3]
        q[i + 1, :3] = w * u + s * v + np.cross(v, u)
        q[i + 1, 3] = w * s - v @ u
    q *= rng.choice([-1, 1], len(t))[:, None]
    for kind, order in (("rotation_xyzw", [0, 1, 2, 3]), ("rotation_wxyz", [3, 0, 1, 2])):
        pose = (t[::4] + 0.0321, q[::4][:, order])
        options = {"kind_a": "values", "kind_b": kind, "match": "each"}
        # The rate at i turns from i to i + 1: half a step later.
        found = data.sync((t + 0.0025, rate), pose, **options)
        assert found.offset == pytest.approx(-0.0321, abs=2e-4) and found.correlation > 0.99
        assert data.sync((t, rate), pose, **{**options, "match": "any"}).correlation > 0.99


def test_episodes_are_recordings_by_themselves():
    tracks = []
    for shift in (0.0, 0.06):
        cuts, times, values = [0], [], []
        for e, rows in enumerate((300, 0, 2, 500, 400)):
            t = np.arange(rows) / 50 + 10 * e
            times.append(t + shift)
            values.append(motion(e, 2)(t))
            cuts.append(cuts[-1] + rows)
        made = rbc.Track(np.concatenate(values), cuts, times=np.concatenate(times))
        tracks.append(made)
    found = data.sync(*tracks, match="each")
    assert found.offset == pytest.approx(-0.06, abs=1e-3) and found.correlation > 0.98


def test_what_auto_takes():
    names = ("orientation.x", "orientation.y", "orientation.z", "orientation.w")
    t = np.arange(0, 20, 0.01)
    rate = motion(9)(t)
    turning = tuple(f"angular_velocity.{axis}" for axis in "xyz")
    rng = np.random.default_rng(3)
    still = np.tile([0.0, 0, 0, 1], (len(t), 1))
    imu = data.RecordedStream(
        "imu",
        "Imu",
        (*names, *turning),
        np.hstack([still, rate]),
        {"log": (t * 1e9).astype("i8")},
        "ns",
    )
    noisy = np.hstack([rng.normal(size=(len(t), 3)), rate])
    twist = data.RecordedStream(
        "odom",
        "Odometry",
        (*(f"twist.linear.{axis}" for axis in "xyz"), *(f"twist.angular.{axis}" for axis in "xyz")),
        noisy,
        {"log": (t * 1e9).astype("i8") + 40_000_000},
        "ns",
    )
    found = data.sync(imu, twist)
    assert found.offset == pytest.approx(-0.04, abs=1e-4) and found.correlation > 0.99
    assert "offset -40.0" in str(found)
    assert found.to_dict()["unit"] == "ns" and "lags" not in found.to_dict()
    assert found.lags.shape == found.scores.shape and (np.diff(found.lags) > 0).all()
    assert found.lags[np.argmax(found.scores)] == pytest.approx(found.offset, abs=0.006)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"b": (np.arange(100.0) + 1e6, np.zeros((100, 1)))}, "b: does not move"),
        ({"b": (np.arange(100.0) + 1e6, np.arange(100.0)[:, None] ** 2)}, "no time in common"),
        ({"b": (np.arange(100), np.zeros((100, 1)))}, "b: its times are integers"),
        ({"b": (np.arange(3.0), np.zeros((4, 1)))}, r"b: expected times \[n\]"),
        ({"b": (np.zeros(1), np.zeros((1, 1)))}, "b: has fewer than 2"),
        ({"kind_a": "twist"}, "kind_a: is 'twist'"),
        ({"kind_a": "rotation_xyzw"}, "a: has 2 channels, expected the 4"),
        ({"match": "some"}, "match: is 'some'"),
        ({"match": "each"}, "match: is 'each', but a has 2 channels and b has 1"),
        ({"max_offset": 0}, "max_offset"),
    ],
)
def test_what_is_refused(change, words):
    t = np.arange(0, 20, 0.01)
    options = {"a": (t, motion(1, 2)(t)), "b": (t, motion(1, 1)(t)), **change}
    a, b = options.pop("a"), options.pop("b")
    with pytest.raises(ValueError, match=words):
        data.sync(a, b, **options)


def test_an_offset_out_of_reach_is_named():
    t = np.arange(0, 40, 0.01)
    x = np.cumsum(motion(4, 1)(t) + np.sin(t / 5)[:, None], axis=0)
    with pytest.raises(ValueError, match="max_offset: is 0.1 s"):
        data.sync((t, x), (t + 0.15, x), kind_a="values", kind_b="values", max_offset=0.1)
