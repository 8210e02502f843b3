"""Draw the log of robocache_soak: plot_soak.py LOG.csv OUT.svg [--title TEXT]"""

from __future__ import annotations

import argparse
import csv
import pathlib

from matplotlib import rc
from matplotlib.figure import Figure


def columns(log: pathlib.Path) -> dict[str, list[float]]:
    with log.open() as file:
        rows = list(csv.DictReader(file))
    if len(rows) < 2:
        raise SystemExit(f"{log}: has {len(rows)} samples, expected some")
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


def figure(samples: dict[str, list[float]], title: str) -> Figure:
    minutes = [second / 60 for second in samples["seconds"]]
    steps = range(1, len(minutes))
    rates = [
        (samples["calls"][i] - samples["calls"][i - 1]) / (minutes[i] - minutes[i - 1]) / 60
        for i in steps
    ]
    panels = {
        "allocated, KiB": {"": samples["heap_kib"]},
        "resident, KiB": {"": samples["resident_kib"]},
        "GPU, KiB": {"": samples["device_kib"]},
        "held": {name: samples[name] for name in ("threads", "descriptors")},
        "calls a second": {"": rates},
    }
    if max(samples["device_kib"]) == 0:
        del panels["GPU, KiB"]
    drawn = Figure(figsize=(7, 1.4 * len(panels)), layout="constrained")
    drawn.suptitle(title, fontsize=10)
    axes = drawn.subplots(len(panels), 1, sharex=True)
    for axis, (label, curves) in zip(axes, panels.items(), strict=True):
        for name, numbers in curves.items():
            axis.plot(minutes[-len(numbers) :], numbers, linewidth=1, label=name)
        axis.set_ylim(0, 1.1 * max(max(numbers) for numbers in curves.values()))
        axis.set_ylabel(label, fontsize=8)
        axis.tick_params(labelsize=8)
        if len(curves) > 1:
            axis.legend(fontsize=8, frameon=False)
    axes[-1].set_xlabel("minutes", fontsize=8)
    return drawn


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--title", default="robocache_soak")
    options = parser.parse_args()
    rc("svg", hashsalt="robocache", fonttype="none")
    figure(columns(options.log), options.title).savefig(options.out, metadata={"Date": None})
