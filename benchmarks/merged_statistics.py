"""Measure the errors of statistics that are merged from statistics of episodes.

    python benchmarks/merged_statistics.py --data ../shared/data/unitree_g1

LeRobot stores statistics of each episode and merges them: means weighted by the episodes' lengths,
pooled stds, and quantiles by one of two rules, the weighted mean of the episodes' quantiles, or the
minimum of the low ones and the maximum of the high ones. This is correct for moments, but not for
quantiles. The Markdown tables compare the merged statistics of the recording's published episodes
with the exact statistics of all rows.

The quantiles of episodes are exact here, so that only the merging causes errors. LeRobot's own come
from histograms.
"""

from __future__ import annotations

import argparse
import os
import pathlib
from typing import Any

import numpy as np

import robocache as rbc

FEATURES = ("observation.state", "action")
LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)


def merged_moments(episodes: list[rbc.StatisticsResult]) -> dict[str, np.ndarray]:
    """Return the weighted mean and the pooled std, as LeRobot merges them."""
    counts, means, stds = (
        np.stack([getattr(each, name) for each in episodes]) for name in ("count", "mean", "std")
    )
    total = counts.sum(axis=0)
    mean = (means * counts).sum(axis=0) / total
    variance = ((stds**2 + (means - mean) ** 2) * counts).sum(axis=0) / total
    return {"mean": mean, "std": np.sqrt(variance)}


def merged_quantiles(episodes: list[rbc.StatisticsResult], rule: str) -> np.ndarray:
    """Return [Q,D]: by "weighted mean" or by "min / max"; the median only has the first rule."""
    quantiles = np.stack([each.quantiles for each in episodes])
    counts = np.stack([each.count for each in episodes])[:, None]
    merged = (quantiles * counts).sum(axis=0) / counts.sum(axis=0)
    if rule == "min / max":
        for i, level in enumerate(LEVELS):
            if level != 0.5:
                merged[i] = (np.min if level < 0.5 else np.max)(quantiles[:, i], axis=0)
    return merged


def rows_of(feature: str, truth: rbc.StatisticsResult, merged: dict[str, Any]) -> list[list[str]]:
    """Return for each statistic the channel with the largest error, in stds."""
    rows = []
    for (rule, name), found in merged.items():
        known = hasattr(truth, name)
        right = getattr(truth, name) if known else truth.quantile(int(name[1:]) / 100)
        off = np.abs(found - right)
        stds = off / np.where(truth.std > 0, truth.std, 1)
        worst = int(stds.argmax())
        rows.append(
            [feature, name, rule, str(worst), f"{right[worst]:.6g}", f"{found[worst]:.6g}"]
            + [f"{stds[worst]:.2g}", f"{np.median(stds):.2g}"]
        )
    return rows


def share_outside(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return [D]: the share of values beyond the 1 % and 99 % quantiles, which should be 2 %."""
    return ((values < low) | (values > high)).mean(axis=0)


def table(rows: list[list[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--data",
        type=pathlib.Path,
        default=pathlib.Path(os.environ.get("ROBOCACHE_DATA") or ".") / "unitree_g1",
        help="a folder with episodes_stats.jsonl, episode_index.npy and, for each feature, an .npy",
    )
    folder = parser.parse_args().data
    published = rbc.statistics_files.read_lerobot_episodes(folder / "episodes_stats.jsonl")
    index = np.load(folder / "episode_index.npy").ravel()
    if sorted(published) != np.unique(index).tolist():
        parser.error(f"{folder}: episodes_stats.jsonl has other episodes than episode_index.npy")

    off = [["feature", "statistic", "merged by", "channel", "exact", "merged"]]
    off[0] += ["off by, in stds", "median channel"]
    outside = [["feature", "q01 and q99", "values outside", "least channel", "most channel"]]
    for feature in FEATURES:
        values = np.load(folder / f"{feature}.npy").astype(np.float32, casting="same_kind")
        truth = rbc.statistics(values, quantiles=LEVELS)
        episodes = [
            rbc.statistics(values[index == episode], quantiles=LEVELS)
            for episode in sorted(published)
        ]
        moments = merged_moments([published[episode][feature] for episode in sorted(published)])
        merged = {("weighted mean" if n == "mean" else "pooled", n): m for n, m in moments.items()}
        ends = {"exact": truth.quantiles}
        for rule in ("weighted mean", "min / max"):
            ends[rule] = merged_quantiles(episodes, rule)
            for i, level in enumerate(LEVELS):
                if rule != "min / max" or level != 0.5:
                    merged[rule, f"q{round(100 * level):02d}"] = ends[rule][i]
        off += rows_of(feature, truth, merged)
        for rule, quantiles in ends.items():
            share = share_outside(values.astype(np.float64), quantiles[0], quantiles[-1])
            cells = (share.mean(), share.min(), share.max())
            outside.append([feature, rule, *(f"{cell:.2%}" for cell in cells)])
    print(f"{len(published)} episodes, {len(index)} rows. The channel with the largest error:\n")
    print(table(off))
    print("\nValues beyond q01 and q99 (should be 2 %):\n")
    print(table(outside))


if __name__ == "__main__":
    main()
