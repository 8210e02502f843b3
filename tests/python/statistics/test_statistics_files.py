"""The files of statistics of LeRobot, openpi and GR00T: what is written, and what is refused."""

import json
import os
import stat

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import robocache as rbc
from random_share import share_of
from robocache import statistics_files as files

LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)
PARTS = ("min", "max", "mean", "std")


def result_of(values, levels=LEVELS):
    """Return statistics by NumPy; for [B,S,D], of each row separately."""
    rows = np.full(values.shape[:-2] + values.shape[-1:], values.shape[-2])
    quantiles = np.moveaxis(np.quantile(values, levels, axis=-2), 0, -2)
    moments = (getattr(values, part)(axis=-2) for part in PARTS)
    return rbc.StatisticsResult(rows, 0 * rows, *moments, quantiles, levels)


def example(channels=3, seed=0):
    return result_of(np.random.default_rng(seed).standard_normal((50, channels)))


def same(one, other, names=(*PARTS, "quantiles", "count")):
    assert one.levels == other.levels
    for name in names:
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype and np.array_equal(a, b), name


# ---- contents of the files ----------------------------------------------------------------------


def test_lerobot(tmp_path):
    results = {"action": example(), "observation.images.top": example(seed=1)}
    files.write_lerobot(tmp_path / "stats.json", results)
    told = json.loads((tmp_path / "stats.json").read_text())
    assert list(told) == list(results)
    keys = ["min", "max", "mean", "std", "count", "q01", "q10", "q50", "q90", "q99"]
    assert list(told["action"]) == keys
    assert told["action"]["count"] == [50]
    assert told["action"]["q10"] == results["action"].quantile(0.1).tolist()
    image = told["observation.images.top"]
    assert np.shape(image["q99"]) == np.shape(image["mean"]) == (3, 1, 1)
    assert image["count"] == [50]
    for name, result in files.read_lerobot(tmp_path / "stats.json").items():
        same(result, results[name])
        assert result.nonfinite.tolist() == [-1] * 3


def test_images_by_name(tmp_path):
    results = {"rgb": example(), "image_score": example()}
    files.write_lerobot(tmp_path / "s.json", results, images=["rgb"])
    told = json.loads((tmp_path / "s.json").read_text())
    assert np.shape(told["rgb"]["min"]) == (3, 1, 1)
    assert np.shape(told["image_score"]["min"]) == (3,)


def test_lerobot_without_quantiles_and_with_flags(tmp_path):
    feature = {"min": [False], "max": [True], "mean": [0.25], "std": [0.5], "count": [8]}
    (tmp_path / "s.json").write_text(json.dumps({"next.done": {**feature, "note": "x"}}))
    result = files.read_lerobot(tmp_path / "s.json")["next.done"]
    assert (result.min[0], result.max[0], result.count[0]) == (0, 1, 8)
    assert result.levels == () and result.quantiles.shape == (0, 1)


def test_the_count_is_of_the_channel_with_the_most(tmp_path):
    result = rbc.StatisticsResult(
        [5, 9], [4, 0], [0.0, 0.0], [1.0, 1.0], [0.5, 0.5], [0.1, 0.1], np.empty((0, 2))
    )
    files.write_lerobot(tmp_path / "s.json", {"action": result})
    assert json.loads((tmp_path / "s.json").read_text())["action"]["count"] == [9]


def test_episodes(tmp_path):
    rows = result_of(np.random.default_rng(1).standard_normal((4, 20, 3)))
    episodes = {index: {"action": rows.row(i)} for i, index in enumerate((0, 1, 2, 7))}
    files.write_lerobot_episodes(tmp_path / "e.jsonl", episodes)
    lines = (tmp_path / "e.jsonl").read_text().split("\n")
    assert len(lines) == 5 and lines[-1] == ""
    last = json.loads(lines[3])
    assert last["episode_index"] == 7 and last["stats"]["action"]["count"] == [20]
    read = files.read_lerobot_episodes(tmp_path / "e.jsonl")
    assert list(read) == [0, 1, 2, 7]
    for index in read:
        same(read[index]["action"], episodes[index]["action"])


def test_openpi(tmp_path):
    results = {"state": example(), "actions": result_of(np.random.randn(9, 2), (0.5,))}
    files.write_openpi(tmp_path, results)
    told = json.loads((tmp_path / "norm_stats.json").read_text())
    assert list(told) == ["norm_stats"]
    assert list(told["norm_stats"]["state"]) == ["mean", "std", "q01", "q99"]
    assert told["norm_stats"]["actions"]["q01"] is None
    read = files.read_openpi(tmp_path)
    assert read["state"].levels == (0.01, 0.99) and read["actions"].levels == ()
    assert np.array_equal(read["state"].quantile(0.99), results["state"].quantile(0.99))
    for name in results:
        assert np.array_equal(read[name].std, results[name].std)
        assert np.isnan(read[name].min).all() and (read[name].count == -1).all()
    made = rbc.Normalization.of(read["state"], "quantiles", style="openpi")
    assert made == rbc.Normalization.of(results["state"], "quantiles", style="openpi")


def test_gr00t(tmp_path):
    (tmp_path / "meta").mkdir()
    results = {"observation.state": example(), "action": example(seed=1)}
    files.write_gr00t(tmp_path, results)
    told = json.loads((tmp_path / "meta" / "stats.json").read_text())
    assert sorted(told["action"]) == ["max", "mean", "min", "q01", "q99", "std"]
    read = files.read_gr00t(tmp_path)
    for name in results:
        same(read[name], result_of_levels(results[name], (0.01, 0.99)), (*PARTS, "quantiles"))


def result_of_levels(result, levels):
    arrays = [getattr(result, name) for name in ("count", "nonfinite", *PARTS)]
    quantiles = np.stack([result.quantile(level) for level in levels], axis=-2)
    return rbc.StatisticsResult(*arrays, quantiles, levels)


def test_relative_actions_of_gr00t(tmp_path):
    steps = result_of(np.random.default_rng(1).standard_normal((16, 40, 7)), (0.01, 0.99))
    files.write_gr00t(tmp_path / "relative_stats.json", {"left_arm": steps})
    told = json.loads((tmp_path / "relative_stats.json").read_text())
    assert np.shape(told["left_arm"]["q99"]) == (16, 7)
    read = files.read_gr00t(tmp_path / "relative_stats.json")["left_arm"]
    same(read, steps, (*PARTS, "quantiles"))
    actions = np.random.default_rng(2).standard_normal((5, 16, 7))
    made = rbc.Normalization.of(read, "min_max", style="gr00t").apply(actions)
    assert made.shape == actions.shape and np.abs(made).max() <= 1


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(FINITE, FINITE, FINITE, FINITE), min_size=1, max_size=5))
def test_numbers_come_back_as_they_were(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("files")
    low, high, mean, std = np.array(rows).T
    quantiles = np.stack([mean, high])
    result = rbc.StatisticsResult(
        np.full(len(rows), 7), np.full(len(rows), 0), np.minimum(low, high),
        np.maximum(low, high), mean, np.abs(std), quantiles, (0.01, 0.99),
    )  # fmt: skip
    ways = (files.write_lerobot, files.read_lerobot), (files.write_gr00t, files.read_gr00t)
    for write, read in ways:
        write(folder / "s.json", {"x": result})
        back = read(folder / "s.json")["x"]
        for name in (*PARTS, "quantiles"):
            assert getattr(back, name).tobytes() == getattr(result, name).tobytes()


# ---- what is refused ----------------------------------------------------------------------------

GOOD = {
    "min": [0.0, 1.0], "max": [2.0, 3.0], "mean": [1.0, 2.0], "std": [0.5, 0.5], "count": [4],
    "q01": [0.0, 1.0], "q99": [2.0, 3.0],
}  # fmt: skip
NAN, INF = float("nan"), float("inf")

MALFORMED = [
    *(({"action": {k: v for k, v in GOOD.items() if k != missing}}, ValueError,
       rf"^action.{missing}: is missing$") for missing in ("min", "max", "mean", "std", "count")),
    ([], TypeError, r"stats.json: is a list of 0, expected an object$"),
    ({"action": []}, TypeError, r"^action: is a list of 0, expected an object$"),
    ({"action": None}, TypeError, r"^action: is null, expected an object$"),
    *(({"action": {**GOOD, key: value}}, error, message) for key, value, error, message in (
        ("mean", 1.0, TypeError, r"^action.mean: is 1.0, expected a list of numbers$"),
        ("mean", "1, 2", TypeError, r"^action.mean: is a string, expected a list of numbers$"),
        ("std", None, TypeError, r"^action.std: is null, expected a list of numbers$"),
        ("std", [0.5, "0.5"], TypeError, r"^action.std\[1\]: is a string, expected a number$"),
        ("max", [2.0, None], TypeError, r"^action.max\[1\]: is null, expected a number$"),
        ("max", [2.0], ValueError, r"^action.max: shape is \(1,\), expected \(2,\) as for mean$"),
        ("q01", [0.0, 1.0, 2.0], ValueError, r"^action.q01: shape is \(3,\)"),
        ("min", [[0.0, 1.0], [0.0]], ValueError, r"^action.min\[1\]: is a list of 1, expected a l"),
        ("min", [[0.0], 1.0], ValueError, r"^action.min\[1\]: is a number, expected a list of 1"),
        ("min", [], ValueError, r"^action.min: shape is \(0,\)"),
        ("min", [[[0.0]], [[1.0, 2.0]]], ValueError, r"^action.min: its inner lists have"),
        ("min", [[[[0.0]]]], ValueError, r"^action.min\[0\]\[0\]\[0\]: is a list, expected"),
        ("mean", [[[1.0, 2.0]]], ValueError, r"^action.mean: shape is \(1, 1, 2\)"),
        ("mean", [NAN, 1.0], ValueError, r"^action.mean\[0\]: is nan, expected a finite number$"),
        ("q99", [2.0, INF], ValueError, r"^action.q99\[1\]: is inf, expected a finite number$"),
        ("max", [2.0, 10**400], ValueError, r"^action.max\[1\]: is 10+, expected a finite number$"),
        ("std", [0.5, -0.5], ValueError, r"^action.std\[1\]: is below 0$"),
        ("min", [0.0, 9.0], ValueError, r"^action.min\[1\]: is above max$"),
        ("count", 4, TypeError, r"^action.count: is 4, expected a list of one integer$"),
        ("count", [4, 4], TypeError, r"^action.count: is a list of 2, expected a list of one int"),
        ("count", [4.5], TypeError, r"^action.count\[0\]: is 4.5, expected an integer$"),
        ("count", [NAN], TypeError, r"^action.count\[0\]: is nan, expected an integer$"),
        ("count", [True], TypeError, r"^action.count\[0\]: is a bool, expected an integer$"),
        ("count", [-1], ValueError, r"^action.count\[0\]: is -1, expected 0 to 2.63 - 1$"),
    )),
]  # fmt: skip


@pytest.mark.parametrize("content, error, message", MALFORMED)
def test_malformed(tmp_path, content, error, message):
    (tmp_path / "stats.json").write_text(json.dumps(content))
    with pytest.raises(error, match=message):
        files.read_lerobot(tmp_path / "stats.json")
    if isinstance(content, dict):
        line = json.dumps({"episode_index": 0, "stats": {"action": GOOD}})
        bad = json.dumps({"episode_index": 1, "stats": content})
        (tmp_path / "e.jsonl").write_text(f"{line}\n{bad}\n")
        with pytest.raises(error, match=message.replace("^", r"^line 2\.stats\.", 1)):
            files.read_lerobot_episodes(tmp_path / "e.jsonl")


@pytest.mark.parametrize(
    "content, error, message",
    [
        ({"stats": {}}, ValueError, r"json.norm_stats: is missing$"),
        ({"norm_stats": []}, TypeError, r"^norm_stats: is a list of 0, expected an object$"),
        ({"norm_stats": {"state": {"mean": [1.0]}}}, ValueError, r"^norm_stats.state.std: is miss"),
        ({"norm_stats": {"state": {"mean": [1], "std": [1], "q01": 3}}}, TypeError,
         r"^norm_stats.state.q01: is 3, expected a list"),
    ],
)  # fmt: skip
def test_malformed_of_openpi(tmp_path, content, error, message):
    (tmp_path / "norm_stats.json").write_text(json.dumps(content))
    with pytest.raises(error, match=message):
        files.read_openpi(tmp_path)


@pytest.mark.parametrize("missing", ["mean", "std", "min", "max", "q01", "q99"])
def test_malformed_of_gr00t(tmp_path, missing):
    content = {"action": {key: value for key, value in GOOD.items() if key != missing}}
    (tmp_path / "s.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"^action.{missing}: is missing$"):
        files.read_gr00t(tmp_path / "s.json")


@pytest.mark.parametrize(
    "line, error, message",
    [
        ('{"stats": {}}', ValueError, r"^line 2.episode_index: is missing$"),
        ('{"episode_index": 3}', ValueError, r"^line 2.stats: is missing$"),
        ('{"episode_index": "3", "stats": {}}', TypeError, r"^line 2.episode_index: is '3'"),
        (
            '{"episode_index": 0, "stats": {}}',
            ValueError,
            r"^line 2.episode_index: 0 appears twice",
        ),
        (
            '{"episode_index": 3, "sta',
            ValueError,
            r"e.jsonl: line 2: is not valid JSON, or is truncated: ",
        ),
        ("3", TypeError, r"^line 2: is 3, expected an object$"),
    ],
)
def test_malformed_lines(tmp_path, line, error, message):
    (tmp_path / "e.jsonl").write_text(f'{{"episode_index": 0, "stats": {{}}}}\n{line}\n')
    with pytest.raises(error, match=message):
        files.read_lerobot_episodes(tmp_path / "e.jsonl")


def test_every_truncation_is_refused(tmp_path):
    for write, read in (
        (files.write_lerobot, files.read_lerobot),
        (files.write_openpi, files.read_openpi),
        (files.write_gr00t, files.read_gr00t),
    ):
        write(tmp_path / "whole.json", {"action": example(2)})
        whole = (tmp_path / "whole.json").read_bytes()
        for end in share_of(range(len(whole.rstrip()))):
            (tmp_path / "part.json").write_bytes(whole[:end])
            with pytest.raises(
                ValueError, match=r"part.json: is not valid JSON, or is truncated: "
            ):
                read(tmp_path / "part.json")


def test_what_is_no_text(tmp_path):
    (tmp_path / "s.json").write_bytes(b"\x89PNG\xff")
    with pytest.raises(ValueError, match=r"s.json: is not UTF-8 text"):
        files.read_lerobot(tmp_path / "s.json")
    (tmp_path / "s.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"s.json: is not valid JSON"):
        files.read_lerobot(tmp_path / "s.json")
    with pytest.raises(FileNotFoundError):
        files.read_lerobot(tmp_path / "none.json")


def unknown():
    nothing = np.full(2, np.nan)
    return rbc.StatisticsResult(
        [-1, -1], [-1, -1], nothing, nothing, [0.0, 1.0], [1.0, 1.0], np.empty((0, 2))
    )


@pytest.mark.parametrize(
    "write, results, error, message",
    [
        (files.write_lerobot, {"a": unknown()}, ValueError, r"^a.min: is nan at \[0\]"),
        (files.write_lerobot, {"a": result_of(np.ones((2, 2)), (0.001,))}, ValueError,
         r"^a.levels: is 0.001, expected a whole percent"),
        (files.write_gr00t, {"a": result_of(np.ones((2, 2)), (0.5,))}, ValueError,
         r"^a.q01: is unknown, but the file requires it$"),
        (files.write_openpi, {"a": {"mean": [1]}}, TypeError, r"^results\['a'\]: is a dict"),
        (files.write_openpi, {3: unknown()}, TypeError, r"^results: has the key 3"),
        (files.write_lerobot, [unknown()], TypeError, r"^results: is a list, expected a dict"),
        (files.write_lerobot_episodes, [{}], TypeError, r"^episodes: is a list, expected a dict"),
        (files.write_lerobot_episodes, {0: {"a": unknown()}}, ValueError, r"^a.min: is nan"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_leaves_the_file(tmp_path, write, results, error, message):
    (tmp_path / "s.json").write_text("before")
    with pytest.raises(error, match=message):
        write(tmp_path / "s.json", results)
    assert (tmp_path / "s.json").read_text() == "before"
    assert os.listdir(tmp_path) == ["s.json"]


def test_a_count_that_is_not_known(tmp_path):
    known = example(2)
    result = rbc.StatisticsResult(
        [-1, -1], known.nonfinite, known.min, known.max, known.mean, known.std, np.empty((0, 2))
    )
    with pytest.raises(ValueError, match=r"^a.count: is unknown, but the file requires it$"):
        files.write_lerobot(tmp_path / "s.json", {"a": result})


# ---- in one step --------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch, failing):
    target = tmp_path / "stats.json"
    files.write_lerobot(target, {"action": example()})
    before = target.read_bytes()

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match="No space"):
        files.write_lerobot(target, {"action": example(seed=5)})
    assert target.read_bytes() == before
    assert os.listdir(tmp_path) == ["stats.json"]


def test_the_file_is_never_seen_half_written(tmp_path, monkeypatch):
    target = tmp_path / "stats.json"
    files.write_lerobot(target, {"action": example()})
    before, replace, seen = target.read_bytes(), os.replace, []

    def look(*arguments):
        seen.append(target.read_bytes())
        replace(*arguments)

    monkeypatch.setattr(os, "replace", look)
    files.write_lerobot(target, {"action": example(seed=5)})
    assert seen == [before] and target.read_bytes() != before


def test_permissions_and_links_are_those_of_any_file(tmp_path):
    mask = os.umask(0o027)
    try:
        files.write_lerobot(tmp_path / "stats.json", {"action": example()})
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "stats.json").stat().st_mode) == 0o640
    (tmp_path / "link.json").symlink_to("stats.json")
    files.write_lerobot(tmp_path / "link.json", {"action": example(seed=5)})
    assert (tmp_path / "link.json").is_symlink()
    same(files.read_lerobot(tmp_path / "stats.json")["action"], example(seed=5))


# ---- real files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lerobot_v3_so101", "lerobot_v3_pusht"])
def test_real_statistics(recordings, tmp_path, name):
    folder = recordings / name
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    told = json.loads((folder / "meta" / "stats.json").read_text())
    results = files.read_lerobot(folder)
    files.write_lerobot(tmp_path / "stats.json", results)
    again = json.loads((tmp_path / "stats.json").read_text())
    assert list(again) == list(told)
    for feature in told:
        assert list(again[feature]) == list(told[feature])
        for key in told[feature]:
            assert again[feature][key] == told[feature][key], (feature, key)


@pytest.mark.parametrize(
    "name, episodes",
    [("lerobot_v21_cr5/meta/episodes_stats.jsonl", 81), ("unitree_g1/episodes_stats.jsonl", 100)],
)
def test_real_episodes(recordings, tmp_path, name, episodes):
    if not (recordings / name).is_file():
        pytest.skip(f"no {recordings / name}")
    results = files.read_lerobot_episodes(recordings / name)
    assert list(results) == list(range(episodes))
    files.write_lerobot_episodes(tmp_path / "e.jsonl", results)
    before, after = (
        [json.loads(line) for line in path.read_text().splitlines()]
        for path in (recordings / name, tmp_path / "e.jsonl")
    )
    assert before == after


def test_a_folder_is_not_replaced(tmp_path):
    folder = tmp_path / "norm_stats.json"
    folder.mkdir()
    (folder / "kept").write_text("x")
    result = result_of(np.random.default_rng(1).normal(size=(9, 2)))
    with pytest.raises(IsADirectoryError):
        files.write_openpi(tmp_path, {"state": result})
    assert [path.name for path in folder.iterdir()] == ["kept"]
