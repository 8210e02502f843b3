"""Numbers of rows and tasks of LeRobot sets, and quantiles as LeRobot aggregates them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import data_files
import robocache as rbc
from robocache.cli._app import app

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

data = rbc.data
LENGTHS = (30, 50, 20)
EPISODES = "meta/episodes/chunk-000/file-000.parquet"
LEVELS = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
KINDS = ("index", "tasks", "index_statistics", "quantiles_aggregated", "statistics")


@pytest.fixture(params=["v2.1", "v3.0"])
def written(request, tmp_path):
    folder = tmp_path / "x"
    data_files.write_lerobot(folder, LENGTHS, request.param)
    return folder, request.param


def found(given):
    """Return the findings of the checks tested here."""
    given = data.open(given, damaged="keep") if not isinstance(given, rbc.Episodes) else given
    return [each for each in data.checks.check(given) if each.kind in KINDS]


def data_file(folder, version, episode):
    if version == "v3.0":
        return folder / f"data/chunk-000/file-{episode // 2:03d}.parquet"
    return folder / f"data/chunk-{episode // 2:03d}/episode_{episode:06d}.parquet"


def set_column(path, name, change):
    table = pq.read_table(path)
    values = change(np.array(table[name]))
    at = table.column_names.index(name)
    pq.write_table(table.set_column(at, name, pa.array(values)), path)


def one(findings, severity, kind, *parts):
    assert [(each.severity, each.kind) for each in findings] == [(severity, kind)], findings
    for part in parts:
        assert part in str(findings[0]), findings[0]


def test_nothing_is_found_in_a_clean_set(written):
    assert found(written[0]) == []


def test_a_set_that_is_saved_is_clean(written, tmp_path):
    data.open(written[0]).save(tmp_path / "y", "lerobot")
    assert found(tmp_path / "y") == []


def test_index_that_starts_again(written):
    folder, version = written
    set_column(data_file(folder, version, 2), "index", lambda values: values - values[0])
    first = "episode 2, row 0: is 0, expected 80 (row 0 of data"
    one(found(folder), "error", "index", "index " + first, "20 of 100 rows do not count up")
    assert CliRunner().invoke(app, ["inspect", str(folder), "--check"]).exit_code == 1


def test_frame_index_that_skips(written):
    folder, version = written
    at = 40 if version == "v3.0" else 10  # of episode 1, in its file

    def change(values):
        values = values.copy()
        values[at : at + 5] += 3
        return values

    set_column(data_file(folder, version, 1), "frame_index", change)
    one(found(folder), "error", "index", "frame_index episode 1, row 10: is 13, expected 10",
        "5 of 100 rows do not count up from 0")  # fmt: skip
    # Only chosen episodes are checked.
    assert found(data.open(folder).select([0, 2])) == []
    one(found(data.open(folder).select([2, 1]).select([1])), "error", "index", "5 of 50 rows")


@pytest.mark.parametrize(
    "change", [lambda v: v.astype(float) + 0.5, lambda v: np.array(["a"] * len(v))]
)
def test_index_of_other_kinds(written, change):
    folder, version = written
    set_column(data_file(folder, version, 2), "index", change)
    one(found(folder), "error", "index", "expected")


def test_a_column_that_is_missing(written):
    folder, version = written
    path = data_file(folder, version, 2)
    pq.write_table(pq.read_table(path).drop_columns(["frame_index"]), path)
    one(found(folder), "error", "index", "frame_index data", "the column is missing")


@pytest.mark.parametrize(
    ("begins", "text"),
    [
        ([7, 37, 87], "episode 0: dataset_from_index is 7, expected 0 (wrong for 3 of 3 episodes)"),
        ([80, 0, 30], "episode 0: dataset_from_index is 80, expected 0 (wrong for 3 of 3"),
        ([0, 0, 0], "episode 1: dataset_from_index is 0, expected 30 (wrong for 2 of 3"),
        ([0, 30, 81], "episode 2: dataset_from_index is 81, expected 80 (wrong for 1 of 3"),
    ],
)
def test_rows_at_which_episodes_begin(tmp_path, begins, text):
    data_files.write_lerobot(tmp_path / "x", LENGTHS, "v3.0")
    set_column(tmp_path / "x" / EPISODES, "dataset_from_index", lambda _: np.array(begins))
    one(found(tmp_path / "x"), "error", "index", text)


def test_rows_at_which_episodes_end(tmp_path):
    data_files.write_lerobot(tmp_path / "x", LENGTHS, "v3.0")
    set_column(tmp_path / "x" / EPISODES, "dataset_to_index", lambda v: v - 1)
    one(found(tmp_path / "x"), "error", "index", "dataset_to_index is 29, expected 30")
    table = pq.read_table(tmp_path / "x" / EPISODES)
    table = table.drop_columns(["dataset_from_index", "dataset_to_index"])
    pq.write_table(table, tmp_path / "x" / EPISODES)
    assert found(tmp_path / "x") == []


# ---- tasks --------------------------------------------------------------------------------------


def write_tasks(folder, version, words):
    """Write the tasks by number."""
    if version == "v3.0":
        table = pa.table({"task_index": list(words), "__index_level_0__": list(words.values())})
        pq.write_table(table, folder / "meta/tasks.parquet")
    else:
        lines = [json.dumps({"task_index": n, "task": w}) for n, w in words.items()]
        (folder / "meta/tasks.jsonl").write_text("\n".join(lines) + "\n")


def test_tasks_that_are_not_there(written):
    folder, version = written
    set_column(data_file(folder, version, 2), "task_index", lambda values: values * 0 + 7)
    one(found(folder), "error", "tasks", "task_index episode 2, row 0: is 7, but meta/tasks.",
        "has 0 to 1 (20 rows)")  # fmt: skip


def test_tasks_of_other_words(written):
    folder, version = written
    write_tasks(folder, version, {0: "task 1", 1: "task 0"})
    text = "is 0 ('task 1'), but the tasks of the episode are 'task 0' (100 rows)"
    one(found(folder), "error", "tasks", text)


def test_tasks_without_words(written):
    folder, version = written
    for path in (folder / "meta").glob("tasks.*"):
        path.unlink()
    one(found(folder), "warning", "tasks", "task_index has no texts")


def test_tasks_that_are_damaged(written):
    folder, version = written
    for path in (folder / "meta").glob("tasks.*"):
        path.write_bytes(b"x")
    one(found(folder), "error", "tasks", "meta/tasks.")


# ---- statistics ---------------------------------------------------------------------------------


def exact(values):
    told = {
        "min": values.min(0),
        "max": values.max(0),
        "mean": values.mean(0),
        "std": values.std(0),
    }
    told.update({key: np.quantile(values, level, axis=0) for key, level in LEVELS.items()})
    return {**{key: each.tolist() for key, each in told.items()}, "count": [len(values)]}


def write_statistics(folder, version, rule, change=None, spoil=None):
    """Write statistics of observation.state by a rule, and statistics of its episodes."""
    values = data.open(folder)["observation.state"].values.astype(np.float64)
    values += np.repeat([0.0, 10.0, 30.0], LENGTHS)[:, None]  # episodes of different ranges
    cuts = np.concatenate([[0], np.cumsum(LENGTHS)])
    for e, (begin, end) in enumerate(zip(cuts, cuts[1:])):
        path = data_file(folder, version, e)
        table = pq.read_table(path)
        numbers = np.array(table["episode_index"])
        state = np.array(table["observation.state"].to_pylist(), np.float32)
        state[numbers == e] = values[begin:end]
        column = pa.FixedSizeListArray.from_arrays(pa.array(state.reshape(-1)), 3)
        pq.write_table(table.set_column(0, "observation.state", column), path)
    values = values.astype(np.float32).astype(np.float64)
    each = [exact(values[b:e]) for b, e in zip(cuts, cuts[1:])]
    if spoil:
        spoil(each)
    told = exact(values)
    weights = np.array(LENGTHS) / sum(LENGTHS)
    for key, level in LEVELS.items():
        rows = np.array([own[key] for own in each])
        if rule == "mean":
            told[key] = (weights @ rows).tolist()
        elif rule == "envelope":
            told[key] = (rows.min(0) if level <= 0.5 else rows.max(0)).tolist()
    if change:
        change(told)
    (folder / "meta/stats.json").write_text(json.dumps({"observation.state": told}))
    if version == "v3.0":
        table = pq.read_table(folder / EPISODES)
        for key in each[0]:
            column = pa.array([own[key] for own in each])
            table = table.append_column(f"stats/observation.state/{key}", column)
        pq.write_table(table, folder / EPISODES)
    else:
        lines = [json.dumps({"episode_index": e, "stats": {"observation.state": own}})
                 for e, own in enumerate(each)]  # fmt: skip
        (folder / "meta/episodes_stats.jsonl").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("rule", "text"), [("mean", "weighted by rows"), ("envelope", "the smallest of the quantiles")]
)
def test_quantiles_that_lerobot_aggregated(written, rule, text):
    folder, version = written
    write_statistics(folder, version, rule)
    one(found(folder), "note", "quantiles_aggregated", text, "the quantile of all rows is")
    command = ["inspect", str(folder), "--check", "--ignore", "image_statistics"]
    assert CliRunner().invoke(app, command).exit_code == 0
    result = CliRunner().invoke(app, ["stats", str(folder), "--check", "-s", "observation.state"])
    assert result.exit_code == 0 and "note" in result.stdout


def test_exact_statistics(written):
    write_statistics(*written, "exact")
    assert found(written[0]) == []


@pytest.mark.parametrize("rule", ["exact", "mean", "envelope"])
@pytest.mark.parametrize("key", ["mean", "std", "q50", "q99"])
def test_corrupt_statistics_stay_errors(written, rule, key):
    folder, version = written
    write_statistics(folder, version, rule, lambda told: told[key].__setitem__(1, told[key][1] + 5))
    errors = [each for each in found(folder) if each.severity == "error"]
    one(errors, "error", "statistics", f"{key} is stored as")
    notes = [each for each in found(folder) if each.severity == "note"]
    assert len(notes) == (rule != "exact")


@pytest.mark.parametrize("rule", ["mean", "envelope"])
def test_wrong_quantiles_of_episodes_explain_nothing(written, rule):
    """The quantiles of all rows follow a rule, but from numbers other than the episodes'."""

    def spoil(each):
        each[1]["q99"] = each[1]["q50"]

    folder, version = written
    write_statistics(folder, version, rule, spoil=spoil)
    assert {each.severity for each in found(folder)} == {"error"}


@pytest.mark.parametrize("key", ["min", "max", "mean", "std", "count"])
@pytest.mark.parametrize("whole", [True, False])
def test_wrong_statistics_of_an_episode(written, key, whole):
    """They are found although the data set's statistics are right, or missing as in v2.1."""

    def spoil(each):
        each[1][key][-1] += 3

    folder, version = written
    write_statistics(folder, version, "exact", spoil=spoil)
    if not whole:
        (folder / "meta/stats.json").unlink()
    place = "episode 1" if key == "count" else "episode 1, channel 2"
    text = f"{key} is stored as"
    one(found(folder), "error", "statistics", place, text, "(1 of 3 episodes have wrong")
    command = ["stats", str(folder), "--check", "-s", "observation.state", "--json"]
    if whole or version == "v2.1":
        result = CliRunner().invoke(app, command)
        errors = [
            finding
            for finding in json.loads(result.stdout)["findings"]
            if finding["severity"] != "note"
        ]
        assert result.exit_code == 1 and len(errors) == 1 and text in errors[0]["text"]


def test_statistics_of_other_channels_in_episodes(written):
    def spoil(each):
        for own in each:
            own.update({key: own[key][:2] for key in own if key != "count"})

    write_statistics(*written, "exact", spoil=spoil)
    one(
        found(written[0]),
        "error",
        "statistics",
        "stored for 2 channels per episode; the data have 3",
    )


def test_rounding_of_the_statistics_of_episodes(written):
    """LeRobot subtracts squares of float32 numbers, and takes quantiles from a histogram."""

    def spoil(each):
        for own in each:
            own["std"] = [np.sqrt(s**2 + 1e-5 * m**2) for s, m in zip(own["std"], own["max"])]
            own["q50"] = [0.5 * (low + high) for low, high in zip(own["min"], own["max"])]

    write_statistics(*written, "exact", spoil=spoil)
    assert found(written[0]) == []


def test_statistics_of_numbers_that_a_merge_left(written):
    folder, _ = written
    of = {"min": [0], "max": [49], "mean": [24.5], "std": [14.4], "count": [100]}
    (folder / "meta/stats.json").write_text(json.dumps({"index": of}))
    one(
        found(folder),
        "warning",
        "index_statistics",
        "index: max is stored as 49, but the rows have 99 (",
    )
    right = np.arange(100)
    for name, values in (
        ("index", right),
        ("frame_index", np.concatenate([np.arange(n) for n in LENGTHS])),
        ("episode_index", np.repeat([0, 1, 2], LENGTHS)),
    ):
        told = {name: exact(values[:, None].astype(float))}
        (folder / "meta/stats.json").write_text(json.dumps(told))
        assert found(folder) == []
