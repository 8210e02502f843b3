"""`robocache stats --fix`: the statistics in a LeRobot data set, and of its cameras."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from typer.testing import CliRunner

import camera_sets
import recordings_with_faults as faults
from robocache import data, statistics_files
from robocache.cli._app import app
from robocache.data._formats.lerobot.image_statistics import sampled

pytest.importorskip("pyarrow")
STATS, EPISODES = "meta/stats.json", "meta/episodes/chunk-000/file-000.parquet"
LINES = "meta/episodes_stats.jsonl"
LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def json_of(*arguments, code=0):
    result = CliRunner().invoke(app, [*(str(a) for a in arguments), "--json"])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def spoil(folder):
    """Put wrong numbers into all stored statistics."""
    if (folder / STATS).exists():
        stored = json.loads((folder / STATS).read_text())
        stored["action"]["mean"][0] = 99.0
        del stored["observation.state"]
        (folder / STATS).write_text(json.dumps(stored))
    if (folder / LINES).exists():
        lines = [json.loads(line) for line in (folder / LINES).read_text().splitlines()]
        lines[2]["stats"]["action"]["std"][1] = 99.0
        del lines[3]
        (folder / LINES).write_text("".join(json.dumps(line) + "\n" for line in lines))
    if (folder / EPISODES).exists():
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        table = parquet.read_table(folder / EPISODES)
        values = table["stats/action/max"].to_pylist()
        values[1][0] = 99.0
        at = table.schema.get_field_index("stats/action/max")
        parquet.write_table(
            table.set_column(at, "stats/action/max", pyarrow.array(values)), folder / EPISODES
        )


@pytest.mark.parametrize("version", ["v2.0", "v2.1", "v3.0"])
def test_all_statistics_are_repaired(tmp_path, version):
    folder = camera_sets.without_camera(tmp_path / "set", version)
    files = [f for f in (STATS, LINES, EPISODES) if (folder / f).exists()]
    spoil(folder)
    old = {name: (folder / name).read_bytes() for name in files}
    written = json_of("stats", "--fix", folder)["written"]
    assert sorted(written["files"]) == sorted(files)
    assert sorted(written["backups"]) == sorted(f"{name}.bak" for name in files)
    for name in files:
        assert (folder / f"{name}.bak").read_bytes() == old[name]
    exact = faults.episodes().statistics(per_episode=True)
    if version != "v2.0":
        stored = statistics_files.read_lerobot_episodes(folder)
        assert sorted(stored) == [0, 1, 2, 3, 4]
        for e in stored:
            for name in ("action", "observation.state"):
                row = exact[name].row(e)
                for key in ("min", "max", "mean", "std"):
                    np.testing.assert_array_equal(
                        getattr(stored[e][name], key), getattr(row, key), f"{e} {name} {key}"
                    )
    if version != "v2.1":
        values = faults.episodes()["action"].values.astype("f8")
        found = statistics_files.read_lerobot(folder)
        np.testing.assert_array_equal(found["action"].quantiles[2], np.median(values, axis=0))
        assert {"timestamp", "index", "observation.state"} <= set(found)
    assert json_of("inspect", folder, "--check")["ok"]
    run("stats", folder, "--check")
    before = {name: (folder / name).read_bytes() for name in files}
    assert len(json_of("stats", "--fix", folder)["written"]["backups"]) == len(files)
    if version != "v3.0":
        assert {name: (folder / name).read_bytes() for name in files} == before
    assert (folder / f"{files[0]}.bak2").exists()  # the first backup is still there
    assert (folder / f"{files[0]}.bak").read_bytes() == old[files[0]]


def test_other_columns_and_the_schema_of_episodes_stay(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = camera_sets.without_camera(tmp_path / "set")
    old = parquet.read_table(folder / EPISODES)
    spoil(folder)
    run("stats", "--fix", folder)
    assert parquet.read_table(folder / EPISODES).equals(old)


def test_a_failure_leaves_all_files_as_they_were(tmp_path, monkeypatch):
    folder = camera_sets.without_camera(tmp_path / "set")
    spoil(folder)
    old = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    result = CliRunner().invoke(app, ["stats", "--fix", str(folder)])
    assert result.exit_code == 1 and ".part" not in result.output
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == old


def test_what_cannot_be_repaired(tmp_path):
    file = faults.save(tmp_path / "r.npz")
    assert "--fix works on LeRobot data sets" in run("stats", "--fix", file, code=1)
    folder = camera_sets.without_camera(tmp_path / "set")
    for option in (["--check"], ["-s", "action"], ["--relative", 3], ["--damaged", "keep"]):
        assert "cannot be combined with --fix" in run("stats", "--fix", folder, *option, code=2)
    assert "choose sample or all" in run("stats", folder, "--images", "some", code=2)
    stats = folder / STATS
    outside = tmp_path / "blob"
    os.rename(stats, outside)
    os.symlink(outside, stats)
    content = outside.read_bytes()
    assert "is a link out of the data set" in run("stats", "--fix", folder, code=1)
    assert outside.read_bytes() == content


# ---- cameras ------------------------------------------------------------------------------------


def exact_of(pixels):
    """Return what LeRobot defines, by NumPy in float64."""
    flat = pixels.reshape(-1, 3).astype("f8") / 255
    return {
        "min": flat.min(axis=0),
        "max": flat.max(axis=0),
        "mean": flat.mean(axis=0),
        "std": flat.std(axis=0),
        "quantiles": np.quantile(flat, LEVELS, axis=0),
    }


def check_camera(stored, pixels):
    for key, right in exact_of(pixels).items():
        np.testing.assert_allclose(getattr(stored, key), right, rtol=1e-12, err_msg=key)


@pytest.mark.parametrize("make", [camera_sets.with_pictures, camera_sets.with_video])
@pytest.mark.parametrize("how", ["sample", "all"])
def test_statistics_of_cameras(tmp_path, make, how):
    pixels = camera_sets.frames(2 * 130)
    folder = make(tmp_path / "set", pixels, count=2, rows=130)
    found = json_of("inspect", folder)["findings"]
    (missing,) = [f for f in found if f["kind"] == "image_statistics"]
    assert missing["stream"] == camera_sets.NAME and missing["severity"] == "warning"
    text = run("stats", "--fix", folder)
    assert f"without statistics: {camera_sets.NAME} (--images" in text
    written = json_of("stats", "--fix", folder, "--images", how)["written"]
    assert camera_sets.NAME in written["computed"] and not written["missing"]
    of_each = [range(130)] * 2 if how == "all" else [sampled(130)] * 2
    parts = [pixels[130 * e + np.asarray(rows)] for e, rows in enumerate(of_each)]
    stored = statistics_files.read_lerobot(folder)[camera_sets.NAME]
    check_camera(stored, np.concatenate(parts))
    assert stored.count.tolist() == [2 * len(parts[0])] * 3
    by_episode = statistics_files.read_lerobot_episodes(folder)
    for e, part in enumerate(parts):
        check_camera(by_episode[e][camera_sets.NAME], part)
    raw = json.loads((folder / STATS).read_text())[camera_sets.NAME]
    assert np.shape(raw["mean"]) == (3, 1, 1) and np.shape(raw["q01"]) == (3, 1, 1)
    found = json_of("inspect", folder)["findings"]
    assert not [f for f in found if f["kind"] == "image_statistics"]
    shown = json_of("stats", folder, "--images", how)["streams"][camera_sets.NAME]
    assert shown["names"] == ["red", "green", "blue"]


def test_large_frames_are_sampled_as_lerobot_does(tmp_path):
    pixels = camera_sets.frames(4, 320, 460)
    folder = camera_sets.with_pictures(tmp_path / "set", pixels, count=2, rows=2)
    run("stats", "--fix", folder, "--images", "sample")
    check_camera(statistics_files.read_lerobot(folder)[camera_sets.NAME], pixels[:, ::3, ::3])


def test_sampled_frames():
    """The numbers of LeRobot's sample_indices."""
    assert len(sampled(1000)) == 177 and len(sampled(20_000)) == 1681 and len(sampled(7)) == 7
    assert len(sampled(500)) == 105 and len(sampled(10**6)) == 10_000
    assert sampled(1000)[0] == 0 and sampled(1000)[-1] == 999


def test_a_deviation_that_the_quantiles_exclude(tmp_path):
    """LeRobot 0.4 squares pixels as uint8, so that its deviations are nearly 0."""
    folder = camera_sets.with_pictures(tmp_path / "set", camera_sets.frames(10), count=2, rows=5)
    run("stats", "--fix", folder, "--images", "all")
    stored = json.loads((folder / STATS).read_text())
    stored[camera_sets.NAME]["std"] = [[[1e-4]], [[0.2]], [[0.2]]]
    (folder / STATS).write_text(json.dumps(stored))
    found = json_of("inspect", folder)["findings"]
    (wrong,) = [f for f in found if f["kind"] == "image_statistics"]
    assert wrong["severity"] == "error" and wrong["place"] == "red"
    assert "std is stored as 0.0001" in wrong["text"]


def test_deviations_of_episodes_that_the_quantiles_exclude(tmp_path):
    """The deviation of the data set is right, but the ones of two episodes are not."""
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = camera_sets.with_pictures(tmp_path / "set", camera_sets.frames(15), count=3, rows=5)
    run("stats", "--fix", folder, "--images", "all")
    assert not [
        f for f in json_of("inspect", folder)["findings"] if f["kind"] == "image_statistics"
    ]
    path = folder / "meta/episodes/chunk-000/file-000.parquet"
    table = parquet.read_table(path)
    name = f"stats/{camera_sets.NAME}/std"
    values = table[name].to_pylist()
    values[0], values[2] = [[[0.0]]] * 3, [[[0.0]], [[0.2]], [[0.2]]]
    at = table.column_names.index(name)
    parquet.write_table(table.set_column(at, table.schema.field(at), [values]), path)
    found = json_of("inspect", folder)["findings"]
    (wrong,) = [f for f in found if f["kind"] == "image_statistics"]
    assert wrong["severity"] == "error" and wrong["place"] == "episode 2, red"
    assert "std is stored as 0, but" in wrong["text"]
    assert wrong["text"].endswith("(wrong for 2 of 3 episodes)")


def test_a_video_that_is_too_short(tmp_path):
    folder = camera_sets.with_video(tmp_path / "set", camera_sets.frames(8), count=2, rows=5)
    old = (folder / STATS).read_bytes()
    text = run("stats", "--fix", folder, "--images", "all", code=1)
    assert "file-000.mp4: episode 1, row 3: has no frame at 0.800000 s" in text
    assert (folder / STATS).read_bytes() == old


def test_damaged_pictures_and_videos_are_named(tmp_path):
    folder = camera_sets.with_video(tmp_path / "video", camera_sets.frames(10), count=2, rows=5)
    (folder / "videos" / camera_sets.NAME / "chunk-000/file-000.mp4").write_bytes(b"no video" * 99)
    text = run("stats", folder, "--images", "all", code=1)
    assert "file-000.mp4: is not a video that can be opened" in text


# ---- files next to a data set-------------------------------------------------------------------


def test_write_lerobot_keeps_what_it_did_not_compute(tmp_path):
    folder = camera_sets.without_camera(tmp_path / "set")
    stored = json.loads((folder / STATS).read_text())
    camera = {"mean": [[[0.5]], [[0.4]], [[0.3]]], "own": "text"}
    stored["observation.images.top"] = camera
    stored["action"]["mean"] = [7.0, 7.0]
    (folder / STATS).write_text(json.dumps(stored))
    for options in (["-o", tmp_path / "out.json"], ["-o", folder / STATS, "--overwrite"]):
        text = run("stats", folder, "--write", "lerobot", *options)
        assert "kept as stored, not computed: observation.images.top" in text
        out = json.loads(options[1].read_text())
        assert out["observation.images.top"] == camera and out["action"]["mean"] != [7.0, 7.0]
        assert {"timestamp", "index", "observation.state"} <= set(out)
    written = json_of(
        "stats", folder, "-s", "action", "--write", "lerobot", "-o", tmp_path / "one.json"
    )["written"]
    assert written["keys"] == ["action"] and "observation.state" in written["kept"]
    (tmp_path / "bad.json").write_text("{")
    text = run("stats", folder, "--write", "lerobot", "-o", tmp_path / "bad.json", "--overwrite")
    assert "no feature of" in text and "was kept" in text


def test_features_with_other_names_than_their_tracks(tmp_path):
    """`save` renames tracks that LeRobot has no names for; files have the names of features."""
    given = faults.episodes()
    renamed = data.Episodes({"a/b": given["action"], "index": given["action"]})
    data.save(renamed, tmp_path / "set", "lerobot")
    opened = data.open(tmp_path / "set")
    names = opened.info["robocache"]["names"]
    assert names and set(names.values()) <= {"a/b", "index"}
    run("stats", tmp_path / "set", "--write", "lerobot", "-o", tmp_path / "out.json")
    assert set(names) <= set(json.loads((tmp_path / "out.json").read_text()))


def test_gr00t_finds_all_its_features(tmp_path):
    """It computes a file again, and replaces it, if a float feature or a key is missing."""
    folder = camera_sets.without_camera(tmp_path / "set")
    run("stats", folder, "--write", "gr00t", "-o", tmp_path / "stats.json")
    out = json.loads((tmp_path / "stats.json").read_text())
    features = json.loads((folder / "meta/info.json").read_text())["features"]
    floats = [name for name, each in features.items() if "float" in each["dtype"]]
    assert "timestamp" in floats
    for name in floats:
        assert set(out[name]) == {"mean", "std", "min", "max", "q01", "q99"}
        assert np.shape(out[name]["q99"]) == tuple(features[name]["shape"])
