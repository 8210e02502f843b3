"""Recordings that were made elsewhere, fused in one call, against SciPy and pandas.

`pytest -s` prints what was compared. Each value is compared in units of the last place of the
largest value of its channel, in the precision that it was computed in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import robocache as rbc

pytest.importorskip("scipy")
pytest.importorskip("pandas")

import recorded_streams  # noqa: E402
import scipy_fusion  # noqa: E402

# In units of the last place of the largest value of the channel. What is picked is exact. The
# parabolas of the reference weigh neighbours by the ratio of their intervals, on the car's bus up
# to 240: it is they that lose the digits.
LIMITS = {"linear": 2, "cubic": 24, "pchip": 4, "slerp": 6, "angle": 4}


@dataclass
class Comparison:
    title: str
    streams: int = 0
    samples: int = 0
    elements: int = 0
    invalid: int = 0
    worst: dict[str, float] = field(default_factory=dict)  # by method

    def __str__(self):
        errors = ", ".join(f"{name} {error:.2g}" for name, error in sorted(self.worst.items()))
        return (
            f"{self.title}: {self.streams} streams, {self.samples} samples, "
            f"{self.elements} elements, {self.invalid} masks 0; errors in ulp: {errors}"
        )


def check(title, streams, clock, dtype):
    """Check all streams in one call, as float64 or rounded to float32, against the reference."""
    streams = recorded_streams.rounded_to(streams, dtype)
    made = [rbc.Stream(**stream) for stream in streams.values()]
    out, mask = rbc.fuse(made, clock, dtype=dtype, return_valid=True)
    assert out.dtype == dtype
    expected, expected_mask = scipy_fusion.fuse(streams.values(), clock)
    assert out.shape == expected.shape and mask.shape == (len(clock), len(streams))

    done = Comparison(f"{title}, {np.dtype(dtype).name}")
    end = 0
    for n, (name, stream) in enumerate(streams.items()):
        begin, end = end, end + stream["values"].shape[1]
        where = f"{done.title}: {name}"
        np.testing.assert_array_equal(mask[:, n], expected_mask[:, n], err_msg=where)
        errors = ulps(stream, out[:, begin:end], expected[:, begin:end], where)
        for method, error in errors:
            assert error <= LIMITS.get(method, 0), f"{where}: {method} is off by {error:.3g} ulp"
            done.worst[method] = max(done.worst.get(method, 0.0), error)
        done.streams += 1
        done.samples += len(stream["times"])
    done.elements, done.invalid = out.size, int((~mask).sum())
    print(done)
    return streams, out, mask


def ulps(stream, got, expected, where):
    """Return the largest error of each group of channels as (method, units of the last place)."""
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected), err_msg=where)
    method = stream.get("method", "linear")
    largest = np.nanmax(np.abs(stream["values"].astype(np.float64)), axis=0, initial=1e-300)
    largest = (largest + np.abs(stream.get("mean", 0))) / np.asarray(stream.get("std", 1))
    apart = np.nan_to_num(scipy_fusion.distance(got, expected, method))
    # A quaternion is normalized; an angle is wrapped.
    least = {"slerp": 1.0, "angle": np.pi}
    for begin, count, name in scipy_fusion.groups_of(method, got.shape[1]):
        part = slice(begin, begin + count)
        scale = np.finfo(got.dtype).eps * np.maximum(largest[part], least.get(name, 0))
        yield name, float((apart[:, part] / scale).max())


@pytest.fixture(scope="module")
def car(recordings):
    return recorded_streams.car(folder(recordings, "comma2k19"))


@pytest.fixture(scope="module", params=["sample", "sample_log_small"])
def drone(recordings, request):
    return request.param, recorded_streams.drone(folder(recordings, "px4"), request.param)


def folder(recordings, name):
    if not (recordings / name).is_dir():
        pytest.skip(f"no {recordings / name}")
    return recordings / name


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("clock", ["camera", "100 Hz"])
def test_car(car, clock, dtype):
    streams, frames = car
    ticks = frames if clock == "camera" else recorded_streams.even_clock(streams, 0.01)
    assert len(ticks) == (1200 if clock == "camera" else 6013)
    check(f"car on {clock}", streams, ticks, dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("clock", ["attitude", "100 Hz"])
def test_drone(drone, clock, dtype):
    flight, streams = drone
    if clock == "attitude":
        ticks = streams["attitude"]["times"]
    else:
        ticks = recorded_streams.even_clock(streams, 10_000)
    assert ticks.dtype == np.int64
    streams, out, mask = check(f"drone {flight} on {clock}", streams, ticks, dtype)

    names = list(streams)
    valid = mask[:, names.index("attitude")]
    if clock == "attitude":
        begin = sum(streams[name]["values"].shape[1] for name in names[: names.index("attitude")])
        np.testing.assert_array_equal(
            out[:, begin : begin + 4], streams["attitude"]["values"].astype(dtype)
        )
        assert valid.all()
    else:
        stamps = streams["attitude"]["times"]
        lost = [(a, b) for a, b in zip(stamps, stamps[1:]) if b - a > 20_000]
        within = sum((ticks > a) & (ticks < b) for a, b in lost).astype(bool)
        assert len(lost) == {"sample": 6, "sample_log_small": 1}[flight]
        outside = (ticks < stamps[0]) | (ticks > stamps[-1])
        np.testing.assert_array_equal(valid, ~within & ~outside)


def test_drone_far_from_the_start_of_its_clock(drone):
    """Nanoseconds since the epoch do not fit a double; they change only the times."""
    _, streams = drone
    ticks = recorded_streams.even_clock(streams, 10_000)
    plain = rbc.fuse([rbc.Stream(**s) for s in streams.values()], ticks, return_valid=True)
    epoch = 1_709_283_600_000_000_001
    scaled = ("max_gap", "tolerance", "clock_offset")
    moved = [
        rbc.Stream(
            **{
                **stream,
                "times": epoch + 1000 * stream["times"],
                **{name: 1000 * stream[name] for name in scaled if name in stream},
            }
        )
        for stream in streams.values()
    ]
    out, mask = rbc.fuse(moved, epoch + 1000 * ticks, return_valid=True)
    np.testing.assert_array_equal(out, plain[0])
    np.testing.assert_array_equal(mask, plain[1])


def test_humanoid_episodes(recordings):
    """100 episodes of 149 to 783 frames, states packed and actions padded, against np.interp."""
    data = folder(recordings, "unitree_g1")
    states, actions = np.load(data / "observation.state.npy"), np.load(data / "action.npy")
    stamps, episode = np.load(data / "timestamp.npy"), np.load(data / "episode_index.npy")
    offsets = np.searchsorted(episode, np.arange(episode[-1] + 2))
    lengths = np.diff(offsets)
    rows = np.arange(lengths.max())
    padded = np.minimum(offsets[:-1, None] + rows, len(stamps) - 1)
    # Rows after an episode's end have values that would show up in any result.
    behind = rows >= lengths[:, None]
    late = np.where(behind, np.float32(-1e9), stamps[padded])
    wild = np.where(behind[..., None], np.float32(np.nan), actions[padded])

    clock = np.arange(0, float(stamps.max()), 0.02, dtype=np.float32)  # 50 Hz
    ends = stamps[offsets[1:] - 1]
    query_lengths = np.searchsorted(clock, ends, side="right")
    out, mask = rbc.fuse(
        [
            rbc.Stream(states, stamps, batch_offsets=offsets),
            rbc.Stream(wild, late, lengths=lengths, method="previous"),
        ],
        clock,
        query_lengths=query_lengths,
        return_valid=True,
    )
    inside = np.arange(len(clock)) < query_lengths[:, None]
    np.testing.assert_array_equal(mask, np.stack([inside, inside], axis=2))
    assert not out[~inside].any()
    worst = 0.0
    for b, (begin, end) in enumerate(zip(offsets, offsets[1:])):
        queries, times = clock[inside[b]], stamps[begin:end]
        for channel, column in enumerate(states[begin:end].T):
            error = np.abs(out[b, inside[b], channel] - np.interp(queries, times, column))
            worst = max(worst, error.max() / np.abs(column).max())
        held = actions[begin:end][np.searchsorted(times, queries, side="right") - 1]
        np.testing.assert_array_equal(out[b, inside[b], 26:], held)
    worst /= np.finfo(np.float32).eps
    print(
        f"humanoid: {len(lengths)} episodes, {len(stamps)} samples, {inside.sum() * 52} elements, "
        f"{(~inside).sum() * 2} masks 0; errors in ulp: linear {worst:.2g}"
    )
    assert worst <= LIMITS["linear"]


def test_arm_episodes(recordings):
    """25 episodes of 10 frames at 5 Hz on to 12.5 Hz: position, roll-pitch-yaw and gripper."""
    data = folder(recordings, "bridge")
    states, actions = np.load(data / "state.npy"), np.load(data / "action.npy")
    times, clock = np.arange(10) / 5, np.arange(24) / 12.5
    groups = [(0, 3, "linear"), (3, 3, "angle"), (6, 1, "previous")]
    out, mask = rbc.fuse(
        [rbc.Stream(states, times, method=groups), rbc.Stream(actions, times, method="next")],
        clock,
        return_valid=True,
    )
    inside = clock <= times[-1]
    np.testing.assert_array_equal(mask, np.broadcast_to(inside[:, None], mask.shape))
    unwrapped = states.astype(np.float64)
    unwrapped[:, :, 3:6] = np.unwrap(unwrapped[:, :, 3:6], axis=1)
    before = np.searchsorted(times, clock, side="right") - 1
    after = np.minimum(np.searchsorted(times, clock, side="left"), 9)
    for b in range(len(states)):
        line = np.stack([np.interp(clock, times, column) for column in unwrapped[b].T], axis=1)
        line[:, 3:6] = scipy_fusion.wrapped(line[:, 3:6])
        np.testing.assert_allclose(out[b, :, :6], line[:, :6], rtol=0, atol=2e-7)
        np.testing.assert_array_equal(out[b, :, 6], states[b, before, 6])
        np.testing.assert_array_equal(out[b, :, 7:], actions[b, after])
