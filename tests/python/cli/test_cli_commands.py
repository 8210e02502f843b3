"""`robocache stats`, `sync`, `resample` and `voxelize`: their numbers, files and exit codes."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.testing import CliRunner  # noqa: E402

import recordings_with_faults as faults  # noqa: E402
import voxel_reference  # noqa: E402
from robocache import Episodes, Track, data, statistics_files  # noqa: E402
from robocache.cli._app import app  # noqa: E402

RUNNER = CliRunner()


def run(*arguments, code=0):
    result = RUNNER.invoke(app, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.stdout


def told(*arguments, code=0):
    return json.loads(run(*arguments, "--json", code=code))


@pytest.fixture
def lerobot(tmp_path):
    pytest.importorskip("pyarrow")
    folder = tmp_path / "a set, é"
    data.save(faults.episodes(), folder, "lerobot")
    return folder


# ---- stats --------------------------------------------------------------------------------------


def check_numbers(of, values):
    values = values.astype(np.float64)
    np.testing.assert_array_equal(of["min"], values.min(axis=0))
    np.testing.assert_array_equal(of["max"], values.max(axis=0))
    np.testing.assert_allclose(of["mean"], values.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(of["std"], values.std(axis=0), rtol=1e-13)
    np.testing.assert_array_equal(of["quantiles"], np.quantile(values, of["levels"], axis=0))
    assert of["count"] == [len(values)] * values.shape[1]


def test_stats_of_a_data_set(lerobot):
    out = told("stats", lerobot)
    for name in ("observation.state", "action"):
        check_numbers(out["streams"][name], faults.episodes()[name].values)
    assert out["streams"]["action"]["names"] == ["x", "y"]
    assert list(told("stats", lerobot, "-s", "action")["streams"]) == ["action"]
    text = run("stats", lerobot)
    assert max(map(len, text.splitlines())) <= 80 and "action: 200 values" in text


@pytest.mark.parametrize(("most", "reads"), [(32 << 20, 1), (10_000, 2)])
def test_stats_of_a_recording_are_exact_too(tmp_path, monkeypatch, most, reads):
    """The recording is read in pieces, in several passes if it is large."""
    monkeypatch.setattr("robocache._statistics.pieces.HELD", most)
    one, two = faults.stream("one", 3000), faults.FAULTS["nan"]()
    recording = faults.recording(one, two)
    passes = []

    def pieces(self, names=None):
        passes.append(tuple(names))
        for name in names:
            for begin in range(0, len(self[name]), 700):
                part = self[name].select(slice(begin, begin + 700))
                yield data.Piece(name, part.names, part.values, part.clocks)

    monkeypatch.setattr(data.Recording, "pieces", pieces)
    monkeypatch.setattr("robocache.cli.stats.open_data", lambda *_, **__: recording)
    out = told("stats", tmp_path)["streams"]
    check_numbers(out["one"], one.values)
    assert out["arm"]["nonfinite"] == [0, 0, 1] and out["arm"]["count"] == [400, 400, 399]
    assert len(passes) == reads and passes[0] == ("one", "arm")
    assert "bad" in run("stats", tmp_path)


def test_stats_check(lerobot):
    assert told("stats", lerobot, "--check")["ok"]
    assert run("stats", lerobot, "--check").endswith("nothing found\n")
    file = lerobot / "meta" / "stats.json"
    stored = json.loads(file.read_text())
    stored["action"]["q99"][0] += 1
    stored["action"]["count"] = [7]
    file.write_text(json.dumps(stored))
    out = told("stats", lerobot, "--check", code=1)
    assert [f["place"] for f in out["findings"]] == ["count", "x"] and not out["ok"]
    assert "q99 is stored as" in out["findings"][1]["text"]


@pytest.mark.parametrize("tracks", [[], ["-s", "action"], ["-s", "observation.state"]])
def test_stats_check_names_what_it_could_not_compare(lerobot, tracks):
    file = lerobot / "meta" / "stats.json"
    stored = json.loads(file.read_text())
    del stored["action"]
    file.write_text(json.dumps(stored))
    bad = tracks != ["-s", "observation.state"]
    out = told("stats", lerobot, "--check", *tracks, code=int(bad))
    assert [f["stream"] for f in out["findings"]] == ["action"] * bad
    assert out["compared"] == (0 if tracks == ["-s", "action"] else len(out["streams"]) - bad)
    if bad:
        assert "no statistics are stored" in run("stats", lerobot, "--check", *tracks, code=1)


def test_stats_check_of_what_holds_none(tmp_path):
    path = faults.save(tmp_path / "r.npz")
    result = RUNNER.invoke(app, ["stats", str(path), "--check"])
    assert result.exit_code == 1 and "holds no statistics to compare with" in result.stderr


@pytest.mark.parametrize("kind", ["lerobot", "openpi", "gr00t"])
def test_stats_write_files_that_are_read_back(lerobot, tmp_path, kind):
    file = tmp_path / "out.json"
    run("stats", lerobot, "--write", kind, "-o", file)
    back = getattr(statistics_files, f"read_{kind}")(file)
    back["action"] = back["actions" if kind == "openpi" else "action"]
    values = faults.episodes()["action"].values.astype(np.float64)
    np.testing.assert_allclose(back["action"].mean, values.mean(axis=0), rtol=1e-14)
    assert RUNNER.invoke(app, ["stats", str(lerobot), "--write", kind, "-o", str(file)]).exit_code
    run("stats", lerobot, "--write", kind, "-o", file, "--overwrite")


def test_episode_statistics_of_v21_are_checked(recordings, tmp_path):
    pytest.importorskip("pyarrow")
    source = recordings / "lerobot_v21_cr5"
    out = told("stats", source, "--check")
    assert out["ok"] and out["compared"] == 81
    folder = tmp_path / "set"
    shutil.copytree(source, folder)
    file = folder / "meta" / "episodes_stats.jsonl"
    lines = file.read_text().splitlines()
    third = json.loads(lines[3])
    third["stats"]["action"]["std"][0] = 9.5
    lines[3] = json.dumps(third)
    file.write_text("\n".join(lines) + "\n")
    (found,) = told("stats", folder, "--check", code=1)["findings"]
    assert found["place"].startswith("episode 3") and "stored as 9.5" in found["text"]
    lines[4] = json.dumps({**json.loads(lines[4]), "stats": {}})
    file.write_text("\n".join(lines) + "\n")
    out = told("stats", folder, "--check", "-s", "action", code=1)
    assert out["findings"][0]["text"].startswith("no statistics are stored of 1 of 81 episodes")
    assert out["compared"] == 80


# ---- sync ---------------------------------------------------------------------------------------


def swings(offset_ns):
    t = np.arange(3000) * 0.01
    rng = np.random.default_rng(5)
    rate, phase = rng.uniform(0.2, 3, (8, 3)), rng.uniform(0, 6, (8, 3))
    x = np.sin(2 * np.pi * rate * t[:, None, None] + phase).sum(axis=1)
    names = ("position.x", "position.y", "position.z")
    log = faults.START + np.arange(3000) * 10 * faults.MS
    made = {"samples": 3000, "values": x, "names": names}
    return (
        faults.stream("/a", **made, clocks=faults.clocks(log)),
        faults.stream("/b", **made, clocks=faults.clocks(log + offset_ns)),
    )


def test_sync(tmp_path):
    path = faults.save(tmp_path / "two.npz", *swings(37_300_000))
    out = told("sync", path, "--a", "/a", "--b", "/b", "--max-drift", "200")
    assert out["offset"] == pytest.approx(-0.0373, abs=1e-4) and not out["weak"]
    assert abs(out["drift"]) < 2e-5 and out["correlation"] > 0.99
    text = run("sync", path, "--a", "/a:position.x,position.y", "--b", "/b:position.x,position.y")
    assert "offset" in text and "-37.2" in text and "clock_offset=-0.0372" in text
    run("sync", path, "--a", "/a:position", "--b", "/b:position", "--within", "0.05")
    run("sync", path, "--a", "/a", "--b", "/b", "--within", "0.03", code=1)


def test_sync_of_two_files(tmp_path):
    a, b = swings(-20_000_000)
    one, two = faults.save(tmp_path / "a.npz", a), faults.save(tmp_path / "b.npz", b)
    out = told("sync", one, "--a", "/a", "--b", "/b", "--other", two)
    assert out["offset"] == pytest.approx(0.02, abs=1e-4)


def write_swing(path, ticks, late=0.0, begin=1.0):
    x = swings(0)[0].values[:, 0]
    times = begin + np.arange(len(x)) * 0.01 + late
    words = [f"{round(t * ticks)}" if ticks > 1 else f"{t!r}" for t in times.tolist()]
    name = {10**6: "time_us", 10**3: "time_ms"}[ticks] if path.stem == "stated" else "time"
    lines = (f"{word},{value!r}" for word, value in zip(words, x.tolist()))
    path.write_text("\n".join([f"{name},x", *lines]) + "\n")
    return path


@pytest.mark.parametrize(
    ("ticks", "unit", "taken"), [(10**6, "us", "us"), (10**3, None, "ms"), (1, None, "s")]
)
def test_sync_names_the_units_of_a_file(tmp_path, ticks, unit, taken):
    """One of the two files states its unit; --unit applies to the other one."""
    pytest.importorskip("pyarrow")
    one = write_swing(tmp_path / "stated.csv", 10**3)
    two = write_swing(tmp_path / "b.csv", ticks, late=0.02)
    options = [] if unit is None else ["--unit", unit]
    command = ["sync", one, "--a", "stated", "--b", "b", "--other", two, *options]
    out = told(*command)
    assert out["units"] == {"a": "ms", "b": taken}
    assert out["offset"] == pytest.approx(-0.02, abs=1e-3)
    assert f"assumed units of times: stated in ms, b in {taken}\n" in run(*command)
    if unit is not None:
        back = ["sync", two, "--a", "b", "--b", "stated", "--other", one, *options]
        assert told(*back)["units"] == {"a": taken, "b": "ms"}


def test_sync_refuses_a_unit_that_no_file_takes(tmp_path):
    pytest.importorskip("pyarrow")
    one = write_swing(tmp_path / "stated.csv", 10**3)
    (tmp_path / "other").mkdir()
    two = write_swing(tmp_path / "other" / "stated.csv", 10**6)
    command = ["sync", one, "--a", "stated", "--b", "stated", "--other", two]
    assert told(*command)["units"] == {"a": "ms", "b": "us"}
    result = RUNNER.invoke(app, [*map(str, command), "--unit", "us"])
    assert result.exit_code == 1 and "column time_ms says milliseconds" in result.stderr
    far = write_swing(tmp_path / "b.csv", 10**6, begin=5e3)
    result = RUNNER.invoke(app, [*map(str, command[:4]), "--b", "b", "--other", str(far)])
    assert result.exit_code == 1
    assert "no time in common; assumed units of times: stated in ms, b in ms" in result.stderr


def test_sync_names_the_units_of_a_folder(tmp_path):
    pytest.importorskip("pyarrow")
    write_swing(tmp_path / "stated.csv", 10**6)
    write_swing(tmp_path / "b.csv", 10**3)
    out = told("sync", tmp_path, "--a", "stated", "--b", "b", "--unit", "ms")
    assert out["units"] == {"a": "us", "b": "ms"} and out["offset"] == pytest.approx(0, abs=1e-3)


def test_sync_of_tracks(tmp_path, lerobot):
    source = faults.episodes(8, 300)
    state = source["observation.state"]
    values = np.cumsum(state.values, axis=0)
    late = np.concatenate([np.roll(v, 3, axis=0) for v in np.split(values, 8)])
    tracks = {
        "action": Track(values, state.episode_offsets, times=state.times),
        "state": Track(late, state.episode_offsets, times=state.times),
    }
    data.save(Episodes(tracks), tmp_path / "lag", "lerobot")
    out = told("sync", tmp_path / "lag", "--a", "action", "--b", "state:[0]", "--kind-b", "change")
    assert out["offset"] == pytest.approx(-0.3, abs=0.01)


def test_sync_names_what_there_is(tmp_path):
    path = faults.save(tmp_path / "two.npz", *swings(0))
    for arguments, words in (
        (("--a", "/c", "--b", "/b"), "--a /c: no such stream. This recording has: /a, /b"),
        (
            ("--a", "/a", "--b", "/b:speed"),
            "--b /b: no such channel 'speed', expected one of 'position.x'",
        ),
    ):
        result = RUNNER.invoke(app, ["sync", str(path), *arguments])
        assert result.exit_code == 1 and words in result.stderr
    assert RUNNER.invoke(app, ["sync", str(path)]).exit_code == 2


# ---- resample -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["npz", "zarr", "lerobot"])
def test_resample_writes_what_align_gives(tmp_path, kind):
    pytest.importorskip({"zarr": "zarr", "lerobot": "pyarrow"}.get(kind, "numpy"))
    streams = [faults.stream("/a"), faults.stream("/b", 130, 33 * faults.MS, seed=3)]
    path = faults.save(tmp_path / "in put.npz", *streams)
    target = tmp_path / {"npz": "out.npz", "zarr": "out.zarr", "lerobot": "out"}[kind]
    out = told("resample", path, "--rate", "50", "-o", target, "--task", "wave")
    assert out["format"] == kind and out["episodes"] == 1
    aligned = faults.recording(*streams).align(50)
    back = data.open(target)
    for name in ("/a", "/b"):
        stored = next(track for key, track in back.tracks.items() if key.endswith(name[1:]))
        np.testing.assert_array_equal(stored.values, aligned[name].values)
    assert [p.name for p in tmp_path.iterdir() if ".part" in p.name] == []


def test_resample_with_what_had_arrived(tmp_path):
    rng = np.random.default_rng(0)

    def sensor(name, rate):
        stamps = 10**18 + np.arange(3 * rate) * (10**9 // rate)
        log = stamps + rng.integers(0, 30_000_000, len(stamps))
        order = np.argsort(log, kind="stable")
        clocks = {"log": log[order], "header": stamps[order]}
        values = rng.normal(size=(len(stamps), 2))
        return data.RecordedStream(name, "test", ("x", "y"), values, clocks, "ns")

    recording = data.Recording.from_streams([sensor("arm", 100), sensor("/imu", 200)])
    path, target = tmp_path / "r.npz", tmp_path / "a.npz"
    data.save(recording, path)
    seen = ("--available", "arrival", "--lag", "0.01", "--max-age", "0.05", "--late-bound", "1")
    options = (*seen, "--clock-offset", "/imu=-0.002", "--label", "arm")
    out = told("resample", path, "--rate", "50", "-o", target, *options)
    expected = data.open(path).align(
        50,
        available="arrival",
        lag=0.01,
        max_age=0.05,
        late_bound=1,
        clock_offset={"/imu": -0.002},
        labels=["arm"],
    )
    written = data.open(target)
    for name in ("arm", "/imu", "valid"):
        assert np.array_equal(written[name].values, expected[name].values, equal_nan=True)
    assert any("after more than --late-bound newer ones" in note for note in out["notes"])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--available", "all"], "--available all: expected stamp or arrival"),
        (["--max-age", "1"], "--max-age: only valid with --available arrival"),
        (["--available", "arrival"], "has no times of arrival"),
        (["--clock-offset", "a=x"], "--clock-offset a=x: expected STREAM=SECONDS"),
        (["--clock-offset", "a"], "--clock-offset a: expected STREAM=SECONDS"),
        (["--available", "arrival", "--label", "no"], "labels: has 'no', expected one of"),
    ],
)
def test_resample_refuses_what_cannot_arrive(tmp_path, options, error):
    times = {"time": np.arange(20) * 10**8}
    stream = data.RecordedStream("a", "test", ("x",), np.ones((20, 1)), times, "ns")
    path = tmp_path / "r.npz"
    data.save(data.Recording.from_streams([stream]), path)
    call = ["resample", str(path), "--rate", "9", "-o", str(tmp_path / "o.npz"), *options]
    result = RUNNER.invoke(app, call)
    assert result.exit_code == 1
    assert error in " ".join(result.output.split())
    assert not (tmp_path / "o.npz").exists()


def test_resample_options(tmp_path):
    path = faults.save(tmp_path / "in.npz", faults.FAULTS["gaps"](), faults.stream("b"))
    target = tmp_path / "out.npz"
    text = run("resample", path, "--rate", "100", "--max-gap", "0.05", "-o", target,
               "--method", "b=previous")  # fmt: skip
    assert "wrote" in text and "92." in text  # a part of arm is not valid
    run("resample", path, "--rate", "100", "-o", target, "-s", "b", "--overwrite")
    assert list(data.open(target).tracks) == ["b"]
    result = RUNNER.invoke(app, ["resample", str(path), "--rate", "9", "-o", str(target)])
    assert result.exit_code == 1 and "--overwrite replaces it" in result.stderr
    bad = RUNNER.invoke(
        app, ["resample", str(path), "--rate", "9", "-o", str(tmp_path / "n.npz"), "-s", "c"]
    )
    assert (
        bad.exit_code == 1
        and "--stream c: no such stream. This recording has: arm, b" in bad.stderr
    )


# ---- voxelize -----------------------------------------------------------------------------------


def write_pcd(path, points, fields="x y z intensity"):
    names = fields.split()
    head = (
        f"VERSION 0.7\nFIELDS {fields}\nSIZE {' '.join('4' * len(names))}\n"
        f"TYPE {' '.join('F' * len(names))}\nCOUNT {' '.join('1' * len(names))}\n"
        f"WIDTH {len(points)}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {len(points)}\n"
        "DATA binary\n"
    )
    path.write_bytes(head.encode() + np.ascontiguousarray(points, "f4").tobytes())


@pytest.fixture
def sweeps(tmp_path):
    folder = tmp_path / "sweeps"
    folder.mkdir()
    rng = np.random.default_rng(7)
    clouds = [rng.normal(0, [3, 3, 1, 50], (n, 4)).astype("f4") for n in (500, 800)]
    clouds[1][5] = np.nan
    for i, points in enumerate(clouds):
        write_pcd(folder / f"{i}.pcd", points)
    return folder, clouds


def test_voxelize_a_list(sweeps, tmp_path):
    folder, clouds = sweeps
    out = told("voxelize", folder, "--voxel-size", "0.5", "-o", tmp_path / "v.npz")
    with np.load(tmp_path / "v.npz") as made:
        cuts = made["offsets"]
        assert made["fields"].tolist() == ["x", "y", "z", "intensity"]
        for i, points in enumerate(clouds):
            rows = slice(cuts[i], cuts[i + 1])
            grid = {k: out[k] for k in ("origin", "voxel_size", "shape")}
            grid["voxel_size"] = [grid["voxel_size"]] * 3
            index, inside = voxel_reference.indices_of(points, **grid)
            places, counts = np.unique(index[inside], axis=0, return_counts=True)
            np.testing.assert_array_equal(made["coords"][rows], places)
            np.testing.assert_array_equal(made["points_per_voxel"][rows], counts)
            assert out["clouds"][i]["outside"] == i  # the one that is NaN
            sums = np.zeros((len(places), 4))
            at = {tuple(p): k for k, p in enumerate(places.tolist())}
            for row, place in zip(points[inside], index[inside].tolist()):
                sums[at[tuple(place)]] += row
            np.testing.assert_allclose(
                made["features"][rows], sums / counts[:, None], rtol=1e-4, atol=1e-4
            )


def test_voxelize_a_grid(sweeps, tmp_path):
    folder, clouds = sweeps
    box = ["--range", *"-2 -2 -1 2 2 1".split()]
    text = run("voxelize", folder, "--voxel-size", "0.25", *box, "--dense", "count",
               "-o", tmp_path / "v.npz")  # fmt: skip
    assert "grid of 16 x 16 x 8 voxels" in text
    with np.load(tmp_path / "v.npz") as made:
        grids = made["grids"]
    for grid, points in zip(grids, clouds):
        inside = ((points[:, :3] >= [-2, -2, -1]) & (points[:, :3] < [2, 2, 1])).all(axis=1)
        assert grid.shape == (16, 16, 8) and grid.sum() == inside.sum()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--voxel-size", "0"], 2, "--voxel-size"),
        (["--voxel-size", "1", "--dense", "sume"], 2, "--dense"),
        (["--voxel-size", "1", "--range", *"0 0 0 1 1 0".split()], 2, "--range"),
        (["--voxel-size", "1e-5", "--dense", "count"], 1, "use a larger --voxel-size"),
    ],
)
def test_voxelize_refuses(sweeps, tmp_path, arguments, code, words):
    out = ["-o", str(tmp_path / "v.npz")]
    result = RUNNER.invoke(app, ["voxelize", str(sweeps[0]), *arguments, *out])
    assert result.exit_code == code and words in result.stderr
    assert not (tmp_path / "v.npz").exists()


def test_a_gpu_is_used_where_there_is_one(monkeypatch):
    from types import SimpleNamespace

    from robocache.cli import _common as common

    assert common.device_of("cpu") == "cpu" and common.device_of("cuda:1") == "cuda:1"
    for contexts, library, where in (
        (("cpu",), True, "cpu"),
        (("cpu", "cuda:0"), False, "cpu"),
        (("cpu", "cuda:0"), True, "cuda"),
    ):
        facts = SimpleNamespace(contexts=dict.fromkeys(contexts))
        monkeypatch.setattr(common, "info", lambda facts=facts: facts)
        found = object() if library else None
        monkeypatch.setattr(common.importlib.util, "find_spec", lambda _, found=found: found)
        assert common.device_of("auto") == where
