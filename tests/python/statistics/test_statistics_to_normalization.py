"""From values to statistics to files and back to a normalization, in one go."""

import numpy as np
import pytest

import robocache as rbc
import statistics_reference as reference
from normalization_reference import IDS, LEVELS, PROJECTS, example
from robocache import statistics_files as files

PARTS = ("count", "min", "max", "mean", "std", "quantiles")


def exact(values):
    """Return exact statistics, by fractions."""
    known = reference.statistics(values, LEVELS)
    return rbc.StatisticsResult(**known, levels=LEVELS)


@pytest.mark.parametrize("kind", ["numpy", "torch", "accumulated"])
@pytest.mark.parametrize("style, mode, options, formula", PROJECTS, ids=IDS)
def test_every_project(style, mode, options, formula, kind):
    values = example()
    if kind == "numpy":
        result = rbc.statistics(values)
    elif kind == "torch":
        result = rbc.statistics(pytest.importorskip("torch").from_numpy(values))
    else:
        accumulator = rbc.StatisticsAccumulator(values.shape[1])
        more = True
        while more:
            accumulator.update(values)
            more = accumulator.next_pass()
        result = accumulator.result()
    made = rbc.Normalization.of(result, mode, style=style, **options)
    expected = formula(values, exact(values))
    # A divisor of 1e-8 makes much of the last place of x.
    atol = 1e-14 + 4 * np.spacing(np.abs(values).max(axis=0)) * np.abs(made.scale)
    assert (np.abs(made.apply(values) - expected) <= 4e-16 * np.abs(expected) + atol).all()


def test_each_step_of_a_window_by_itself():
    """Relative actions [N,T,D]: statistics of each of the T steps, by rows of a view."""
    actions = np.random.default_rng(2).standard_normal((40, 16, 7)).cumsum(axis=1)
    steps = rbc.statistics(actions.transpose(1, 0, 2), per_row=True)
    made = rbc.Normalization.of(steps, "min_max", style="gr00t").apply(actions)
    assert (made.min(axis=0) == -1).all() and np.abs(made.max(axis=0) - 1).max() < 1e-15


def same(read, written, parts=PARTS):
    for part in parts:
        np.testing.assert_array_equal(getattr(read, part), getattr(written, part), part)


def test_files(tmp_path):
    """Every bit comes back, f32 or f64, and the same normalization of it."""
    values = {"observation.state": example(), "action": example()[:, :3].astype("f4")}
    results = {name: rbc.statistics(each) for name, each in values.items()}
    files.write_lerobot(tmp_path / "stats.json", results)
    files.write_gr00t(tmp_path / "gr00t.json", results)
    files.write_openpi(tmp_path, results)
    lerobot = files.read_lerobot(tmp_path / "stats.json")
    gr00t = files.read_gr00t(tmp_path / "gr00t.json")
    openpi = files.read_openpi(tmp_path)
    for name, result in results.items():
        same(lerobot[name], result)
        assert lerobot[name].levels == result.levels
        same(gr00t[name], result, ("min", "max", "mean", "std"))
        same(openpi[name], result, ("mean", "std"))
        for read in (lerobot, gr00t, openpi):
            for level in (0.01, 0.99):
                np.testing.assert_array_equal(
                    read[name].quantile(level), result.quantile(level), strict=True
                )
        made = rbc.Normalization.of(result, "quantiles")
        assert rbc.Normalization.of(lerobot[name], "quantiles") == made


def test_files_of_episodes(tmp_path):
    """Episodes apart in one call, by offsets."""
    values, offsets = example(), [0, 120, 121, 500]
    apart = rbc.statistics(values, batch_offsets=offsets, per_row=True)
    episodes = {i: {"action": apart.row(i)} for i in range(3)}
    files.write_lerobot_episodes(tmp_path / "e.jsonl", episodes)
    read = files.read_lerobot_episodes(tmp_path / "e.jsonl")
    for i, (begin, end) in enumerate(zip(offsets, offsets[1:])):
        same(read[i]["action"], apart.row(i))
        same(read[i]["action"], exact(values[begin:end]))
