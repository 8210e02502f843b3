"""benchmarks/merged_statistics.py: LeRobot's rules, and the whole of it."""

import sys
from pathlib import Path

import numpy as np
import pytest

import robocache as rbc
import warm_python

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
sys.path.append(str(BENCHMARKS))
import merged_statistics as merging  # noqa: E402


def one(count, mean, std, quantiles):
    return rbc.StatisticsResult(
        [count], [0], [0.0], [1.0], [mean], [std], [[q] for q in quantiles], merging.LEVELS
    )


def test_the_rules():
    episodes = [one(1, 2.0, 0.0, [2, 2, 2, 2, 2]), one(3, 6.0, 2.0, [3, 4, 6, 8, 9])]
    merged = merging.merged_moments(episodes)
    assert merged["mean"] == 5 and merged["std"] == np.sqrt((3 * 4 + 9 + 3 * 1) / 4)
    weighted = merging.merged_quantiles(episodes, "weighted mean")
    assert weighted.ravel().tolist() == [2.75, 3.5, 5, 6.5, 7.25]
    ends = merging.merged_quantiles(episodes, "min / max")
    assert ends.ravel().tolist() == [2, 2, 5, 8, 9]


def run(folder):
    script = str(BENCHMARKS / "merged_statistics.py")
    program = f"import runpy; runpy.run_path({script!r}, run_name='__main__')"
    code, out, err = warm_python.run(program, "--data", folder, imported=warm_python.LIBRARY)
    return code, out.decode(), err.decode()


def cells_of(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_two_episodes(tmp_path):
    """Two episodes with different ranges: the mean of their quantiles is far from all values."""
    each = [np.float32(np.linspace(at, at + 1, 101))[:, None] for at in (0, 10)]
    for feature in merging.FEATURES:
        np.save(tmp_path / f"{feature}.npy", np.concatenate(each))
    np.save(tmp_path / "episode_index.npy", np.arange(2).repeat(101))
    rbc.statistics_files.write_lerobot_episodes(
        tmp_path / "episodes_stats.jsonl",
        {i: dict.fromkeys(merging.FEATURES, rbc.statistics(rows)) for i, rows in enumerate(each)},
    )
    code, out, err = run(tmp_path)
    assert code == 0, err
    rows = {tuple(row[:3]): row[3:] for row in map(cells_of, out.splitlines()) if len(row) > 4}
    for feature in merging.FEATURES:
        for kind, rule in (("mean", "weighted mean"), ("std", "pooled")):
            channel, exact, merged, off, _ = rows[feature, kind, rule]
            assert (channel, exact) == ("0", merged) and float(off) < 1e-14
        _, exact, merged, off, _ = rows[feature, "q01", "weighted mean"]
        assert float(exact) == pytest.approx(0.0201) and float(merged) == pytest.approx(5.01)
        assert float(off) == pytest.approx((5.01 - 0.0201) / 5.0084, rel=0.01)
        assert rows[feature, "q01", "min / max"][2] == "0.01"
    outside = {tuple(row[:2]): row[2:] for row in map(cells_of, out.splitlines()) if len(row) == 5}
    assert outside["action", "exact"][0] == "2.97%"  # 6 of 202
    assert outside["action", "weighted mean"][0] == "100.00%"
    assert outside["action", "min / max"][0] == "0.99%"


def test_other_episodes(tmp_path):
    (tmp_path / "episodes_stats.jsonl").write_text('{"episode_index": 3, "stats": {}}\n')
    np.save(tmp_path / "episode_index.npy", np.arange(2))
    code, _, err = run(tmp_path)
    assert code == 2 and "has other episodes than episode_index.npy" in err


def test_the_recordings_of_the_g1(recordings):
    if not (recordings / "unitree_g1").is_dir():
        pytest.skip(f"no unitree_g1 in {recordings}")
    code, out, err = run(recordings / "unitree_g1")
    assert code == 0, err
    assert out.startswith("100 episodes, 35965 rows.")
    rows = [row for row in map(cells_of, out.splitlines()) if len(row) == 8][2:]
    for _, kind, rule, _, _, _, off, _ in rows:
        if kind in ("mean", "std"):
            assert float(off) < 1e-5  # of float32, as published
        elif kind in ("q01", "q99") and rule == "weighted mean":
            assert float(off) > 1
