"""The demo from end to end: on its own recording, and on real ones where their folder is there."""

from __future__ import annotations

import struct
import sys
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "python"))

import align_recording  # noqa: E402
import picture_files  # noqa: E402
import reference  # noqa: E402
import simulate  # noqa: E402
from random_share import share_of  # noqa: E402
from recordings import Recording, make_stream  # noqa: E402

ORIGINS = ("interpolated", "picked", "exact", "gap", "outside")


@dataclass
class Run:
    """The output of one run of the demo for one recording, and the recording."""

    recording: Recording
    arrays: dict[str, np.ndarray]
    summary: str
    picture: Path

    @property
    def clock(self) -> np.ndarray:
        return self.arrays["clock"]

    def values(self, stream: str) -> np.ndarray:
        of_stream = [name.startswith(f"{stream}.") for name in self.arrays["channels"]]
        return self.arrays["features"][:, of_stream]

    def mask(self, stream: str) -> np.ndarray:
        return self.arrays["valid"][:, list(self.arrays["streams"]).index(stream)]

    def row(self, table: str, stream: str) -> list[str]:
        """The words behind a stream's name in the library's report, `in`, or in the table `out`."""
        lines = self.summary.splitlines()
        head = {"in": "samples"}.get(table, table)
        start = next(i for i, line in enumerate(lines) if line.split()[:1] == [head])
        return next(line.split()[1:] for line in lines[start + 1 :] if line.split()[:1] == [stream])

    def counts(self, stream: str) -> dict[str, int]:
        numbers = self.row("out", stream)[2:7]
        return dict(zip(ORIGINS, map(int, numbers)))


def run_demo(out: Path, *arguments: str) -> None:
    assert align_recording.main([*arguments, "--out", str(out)]) == 0


def load(out: Path, recording: Recording) -> Run:
    with np.load(out / f"{recording.name}.npz") as file:
        arrays = dict(file)
    summary = (out / f"{recording.name}.txt").read_text(encoding="utf-8")
    return Run(recording, arrays, summary, out / f"{recording.name}.png")


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("arm")
    run_demo(out)
    return load(out, simulate.simulate_recording())


def run_real(folder: Path, out: Path, *arguments: str) -> list[Run]:
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    run_demo(out, "--data", str(folder), *arguments)
    return [load(out, recording) for recording in align_recording.read_recordings(folder)]


@pytest.fixture(scope="module")
def comma2k19(recordings: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    (run,) = run_real(recordings / "comma2k19", tmp_path_factory.mktemp("comma2k19"))
    return run


@pytest.fixture(scope="module")
def px4(recordings: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return run_real(recordings / "px4", tmp_path_factory.mktemp("px4"))


def check_against_the_rules(run: Run) -> None:
    """Values and masks of the queries to test, and all counts, against a plain loop over them."""
    streams = run.recording.streams
    assert sorted(run.arrays) == ["channels", "clock", "features", "streams", "valid"]
    assert list(run.arrays["streams"]) == [stream.name for stream in streams]
    assert list(run.arrays["channels"]) == [
        f"{stream.name}.{channel}" for stream in streams for channel in stream.channels
    ]
    features, valid = run.arrays["features"], run.arrays["valid"]
    assert features.shape == (len(run.clock), len(run.arrays["channels"]))
    assert valid.shape == (len(run.clock), len(streams)) and valid.dtype == bool
    assert features.dtype == np.result_type(*(s.values for s in streams if s.values.dtype != bool))
    precision = np.finfo(features.dtype).eps
    some = share_of(np.arange(len(run.clock)))

    for stream in streams:
        values, mask = run.values(stream.name), run.mask(stream.name)
        max_gap = run.recording.ticks(stream.max_gap_s)
        expected, expected_mask = reference.resample(
            stream.values,
            stream.times,
            run.clock[some],
            method=stream.method,
            outside="fill",
            max_gap=max_gap,
            floats=True,
        )
        np.testing.assert_array_equal(mask[some], expected_mask, err_msg=stream.name)
        assert not values[~mask].any(), stream.name
        # No method goes far beyond its samples: its error is one of their size.
        largest = np.abs(stream.values.astype(np.float64)).max(axis=0)
        error = np.abs(values[some] - expected) / (precision * np.maximum(largest, 1))
        picks = {"nearest", "previous", "next"}.issuperset(stream.methods)
        assert error.max() <= (0 if picks else 20), stream.name

        times = stream.times.tolist()
        counts = dict.fromkeys(ORIGINS, 0)
        for query in run.clock.tolist():
            left, right = bisect_right(times, query) - 1, bisect_left(times, query)
            if left >= right:
                counts["exact"] += 1
            elif left < 0 or right == len(times):
                counts["outside"] += 1
            elif times[right] - times[left] > max_gap:
                counts["gap"] += 1
            else:
                counts["picked" if picks else "interpolated"] += 1
        assert run.counts(stream.name) == counts, stream.name


def check_picture(path: Path) -> None:
    header = path.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", header[16:24])
    assert width == 1950 and 1000 < height < 2500
    assert 50_000 < path.stat().st_size < 1_000_000
    counts, found = picture_files.colours_of(path)
    white = counts @ (found == 255).mean(axis=1) / counts.sum()
    assert 0.7 < white < 0.99  # white paper, with something on it
    # The colours of interpolated samples, of gaps and of what lies outside are there.
    for colour in ("0072B2", "E4E4E4", "FCEBD2"):
        near = np.abs(found - list(bytes.fromhex(colour))).max(axis=1) <= 2
        assert counts[near].sum() > 200, colour


def test_arm_follows_the_rules(arm: Run) -> None:
    check_against_the_rules(arm)


def test_arm_clock_is_even_and_in_nanoseconds(arm: Run) -> None:
    assert arm.clock.dtype == np.int64
    assert arm.clock[0] >= simulate.EPOCH_NS and len(arm.clock) == 1000
    np.testing.assert_array_equal(np.diff(arm.clock), 20_000_000)
    # The stamps need int64: float32 cannot even distinguish the first from the last.
    assert np.float32(arm.clock[0]) == np.float32(arm.clock[-1])


@pytest.mark.parametrize(
    ("name", "truth", "tolerance"),
    [
        # Noise of 4.5 sigma, and what linear interpolation takes off a curve between two samples.
        ("joints", simulate.joint_angles, 0.012),
        ("imu", simulate.imu_readings, 0.26),
        ("pose", lambda t: unsigned(simulate.pose(t)), 0.004),
        ("force", simulate.force, 0.4),
    ],
)
def test_arm_is_near_the_truth_where_the_mask_says_so(
    arm: Run, name: str, truth, tolerance: float
) -> None:
    mask = arm.mask(name)
    t = (arm.clock[mask] - simulate.EPOCH_NS) / 1e9
    values = arm.values(name)[mask]
    error = np.abs((unsigned(values) if name == "pose" else values) - truth(t))
    assert 0.75 < mask.mean() < 1
    assert error.max() < tolerance


def unsigned(pose: np.ndarray) -> np.ndarray:
    """Return the quaternion of an orientation with w > 0: the arm never turns that far."""
    return np.hstack([pose[:, :3], pose[:, 3:] * np.sign(pose[:, 3:4])])


def test_arm_orientation_is_right_whatever_the_signs_of_its_samples(arm: Run) -> None:
    samples = arm.recording.stream("pose").values[:, 3]
    assert np.count_nonzero(np.diff(np.sign(samples))) > 100
    orientation = arm.values("pose")[arm.mask("pose"), 3:]
    np.testing.assert_allclose(np.linalg.norm(orientation, axis=1), 1, atol=1e-6)


def test_arm_force_does_not_overshoot(arm: Run) -> None:
    stream = arm.recording.stream("force")
    mask, values = arm.mask("force"), arm.values("force")
    right = np.searchsorted(stream.times, arm.clock[mask])
    around = np.stack([stream.values[right - 1], stream.values[right]])
    assert (values[mask] >= around.min(axis=0) - 1e-6).all()
    assert (values[mask] <= around.max(axis=0) + 1e-6).all()
    # It was switched on late.
    assert not mask[arm.clock < stream.times[0]].any() and mask.sum() == 779


def test_arm_gripper_is_a_state(arm: Run) -> None:
    assert arm.recording.stream("gripper").values.dtype == bool
    gripper = arm.values("gripper")[arm.mask("gripper"), 0]
    assert set(np.unique(gripper)) == {0, 1}
    # As often as it moves, none of them within a gap.
    assert np.count_nonzero(np.diff(gripper)) == 6


def test_arm_summary_names_what_was_simulated(arm: Run) -> None:
    assert arm.summary.startswith(
        "a simulated robot arm (seed 7): 20.0 s, 5 streams, 24 channels\n"
    )
    assert "int64 ns" in arm.summary and "steps of 137 s" in arm.summary
    gaps = {"joints": 3, "imu": 3, "pose": 2, "force": 0, "gripper": 1}
    for stream in arm.recording.streams:
        words = arm.row("in", stream.name)
        assert int(words[0]) == len(stream.times)
        assert 0.9 * stream.nominal_hz < float(words[1]) < 1.02 * stream.nominal_hz
        assert [int(word) for word in words[5:7]] == [
            40 if stream.name == "joints" else 0,
            gaps[stream.name],
        ]
    assert (
        400 < float(arm.row("in", "joints")[7]) < 430
    )  # the dropout of 0.40 s, and the adjacent samples
    assert "put in order: pose 5\n" in arm.summary


def test_arm_picture(arm: Run) -> None:
    check_picture(arm.picture)


def test_same_seed_same_bytes(arm: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_demo(tmp_path)
    for suffix in ("npz", "txt", "png", "html"):
        assert (tmp_path / f"arm.{suffix}").read_bytes() == arm.picture.with_suffix(
            f".{suffix}"
        ).read_bytes(), suffix
    assert arm.summary in capsys.readouterr().out


def test_another_seed_other_values(arm: Run) -> None:
    other = simulate.simulate_recording(seed=8)
    assert not np.array_equal(other.stream("gripper").times, arm.recording.stream("gripper").times)


def test_rate_sets_the_clock(tmp_path: Path) -> None:
    run_demo(tmp_path, "--rate", "12.5")
    run = load(tmp_path, simulate.simulate_recording())
    np.testing.assert_array_equal(np.diff(run.clock), 80_000_000)
    check_against_the_rules(run)


def test_samples_are_put_in_order_and_equal_stamps_stay_in_theirs() -> None:
    stream = make_stream("s", np.array([10, 30, 20, 20, 40]), np.arange(5.0), ("a",), 1.0)
    assert stream.times.tolist() == [10, 20, 20, 30, 40]
    assert stream.values[:, 0].tolist() == [0, 2, 3, 1, 4]
    assert stream.reordered == 2


def test_bad_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rate in ("0", "-1", "nan", "inf"):
        with pytest.raises(SystemExit):
            align_recording.main(["--rate", rate, "--out", str(tmp_path)])
        assert "--rate" in capsys.readouterr().err
    assert align_recording.main(["--rate", "0.01", "--out", str(tmp_path)]) == 1
    assert "too short for two ticks" in capsys.readouterr().err
    for folder in (tmp_path, tmp_path / "missing"):
        assert align_recording.main(["--data", str(folder), "--out", str(tmp_path)]) == 1
        assert f"{folder}: not a recording" in capsys.readouterr().err
    flight = tmp_path / "f_sensor_combined.csv"
    flight.write_text("timestamp,gyro_rad[0]\n1,0\n2,0\n")
    assert align_recording.main(["--data", str(tmp_path), "--out", str(tmp_path)]) == 1
    assert "no column 'accelerometer_m_s2[0]'" in capsys.readouterr().err


def test_comma2k19_follows_the_rules(comma2k19: Run) -> None:
    check_against_the_rules(comma2k19)
    check_picture(comma2k19.picture)


def test_comma2k19_runs_on_the_clock_of_the_camera(comma2k19: Run, recordings: Path) -> None:
    pose = recordings / "comma2k19" / "global_pose"
    np.testing.assert_array_equal(comma2k19.clock, np.load(pose / "frame_times.npy"))
    # Every tick is a frame, so the pose is unchanged, in double precision.
    parts = ("positions", "orientations", "velocities")
    frames = np.hstack([np.load(pose / f"frame_{part}.npy") for part in parts])
    np.testing.assert_array_equal(comma2k19.values("camera"), frames)
    assert comma2k19.counts("camera")["exact"] == 1200


def test_comma2k19_agrees_with_numpy(comma2k19: Run, recordings: Path) -> None:
    log = recordings / "comma2k19" / "processed_log"
    for name, path in (("speed", "CAN/speed"), ("steering", "CAN/steering_angle")):
        mask = comma2k19.mask(name)
        assert mask.sum() == 1199  # the first frame is older than the first message
        times, values = np.load(log / path / "t.npy"), np.load(log / path / "value.npy").ravel()
        # numpy works with a slope, not with a weight: not the same roundings.
        np.testing.assert_allclose(
            comma2k19.values(name)[mask, 0],
            np.interp(comma2k19.clock[mask], times, values),
            atol=1e-9,
        )


def test_comma2k19_radar(comma2k19: Run) -> None:
    words = comma2k19.row("in", "radar")
    assert (int(words[0]), int(words[5])) == (10100, 3937)
    # One slot: nothing from another slot is mixed in, and while it is empty there is nothing.
    slot, mask = comma2k19.values("radar_slot"), comma2k19.mask("radar_slot")
    assert set(slot[mask, 3]) == {531}
    assert comma2k19.row("in", "radar_slot")[6] == "3"
    assert float(comma2k19.row("in", "radar_slot")[7]) == pytest.approx(1650.6, abs=0.5)
    t = comma2k19.clock - comma2k19.clock[0]
    assert not mask[(t > 9.95) & (t < 10.3)].any() and mask[(t > 10.35) & (t < 11)].all()


def test_comma2k19_as_published_has_no_suffixes(
    comma2k19: Run, recordings: Path, tmp_path: Path
) -> None:
    for file in (recordings / "comma2k19").rglob("*.npy"):
        copy = tmp_path / file.relative_to(recordings / "comma2k19").with_suffix("")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    (recording,) = align_recording.read_recordings(tmp_path)
    for stream, expected in zip(recording.streams, comma2k19.recording.streams):
        np.testing.assert_array_equal(stream.times, expected.times)
        np.testing.assert_array_equal(stream.values, expected.values)


def test_comma2k19_at_another_rate(recordings: Path, tmp_path: Path) -> None:
    (run,) = run_real(recordings / "comma2k19", tmp_path, "--rate", "100")
    assert len(run.clock) == 6004
    np.testing.assert_allclose(np.diff(run.clock), 0.01, atol=1e-10)
    check_against_the_rules(run)


def test_px4_follows_the_rules(px4: list[Run]) -> None:
    assert [run.recording.name for run in px4] == ["px4_sample", "px4_sample_log_small"]
    for run in px4:
        assert run.clock.dtype == np.int64
        np.testing.assert_array_equal(np.diff(run.clock), 10_000)
        check_against_the_rules(run)
        check_picture(run.picture)


def test_px4_dropouts_are_invalid(px4: list[Run]) -> None:
    sample, small = px4
    assert [sample.row("in", name)[6] for name in ("imu", "attitude", "velocity", "motors")] == [
        "8",
        "5",
        "0",
        "0",
    ]
    assert [
        int(small.row("in", name)[6])
        for name in ("imu", "angular_velocity", "attitude", "velocity")
    ] == [1] * 4
    # The logger lost 161.3 ms between its first two readings.
    assert small.row("in", "imu")[7] == "161.3"
    mask = small.mask("imu")
    lost = (small.clock > 20_326_716) & (small.clock < 20_488_019)
    assert lost.sum() == 16 and not mask[lost].any() and mask[~lost][1:].all()
    assert not small.values("imu")[lost].any()
