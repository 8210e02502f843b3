"""Draw the results of robocache_bench: docs/images/roofline.svg and docs/images/sweep.svg.

    python benchmarks/plot.py --into docs/performance/figures.md build/gpu/bench.json

With --into the pictures are shown between the lines `<!-- begin plots -->` and `<!-- end plots -->`
of a document in a folder beside theirs.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import render  # noqa: E402
from pandas import DataFrame  # noqa: E402

IMAGES = pathlib.Path(__file__).resolve().parents[1] / "docs" / "images"
STYLE = {
    "axes.edgecolor": "#8C8C8C",
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10,
    "grid.color": "#E6E6E6",
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "robocache",  # the same bytes from the same results
}
BLUE, ORANGE, GREEN, VIOLET = "#0B62A4", "#D4572A", "#3D8B57", "#8A5BB5"
DARK, LIGHT = "#444444", "#9A9A9A"
GROUPS = {"resample": BLUE, "fuse": ORANGE, "methods": GREEN, "voxelize": VIOLET, "sweep": LIGHT}
DTYPES = {"f32": BLUE, "bf16": ORANGE}
AXES = {
    "D": "channels D",
    "S": "samples S, with S/2 queries",
    "T": "queries T",
    "B": "recordings B",
    "N": "streams N of 64 channels in all",
}


def roofline(frame: DataFrame) -> Any:
    """Bandwidth against bytes, below what a copy reaches and what a launch alone allows."""
    figure, axis = plt.subplots(figsize=(9, 5.5), layout="constrained")
    largest = 0.0
    for label, colour in GROUPS.items():
        # Hot data may come from the caches, faster than from memory.
        for kind, face in (("cold", colour), ("hot", "none")):
            chosen = frame[(frame["group"] == f"cuda/{label}") & (frame["kind"] == kind)]
            if not chosen.empty:
                style = {"color": colour, "markersize": 5, "markerfacecolor": face}
                style |= {"label": f"{label}, {kind}", "zorder": 2 if label == "sweep" else 3}
                axis.plot(chosen["bytes"], chosen["GB/s"], "o", **style)
                largest = max(largest, chosen["bytes"].max())
    copies = render.copies(frame)
    rates = copies.index / copies * 1e-3
    axis.plot(copies.index, rates, "k:", label="copies of that size, cold", linewidth=1)
    first = frame.drop_duplicates("group").set_index("group")
    roof, launch = first.loc["cuda/copy", "GB/s"], first.loc["cuda/empty_kernel", "us"]
    corner = roof * launch * 1e3  # bytes
    axis.plot([corner * 1e-3, corner], [roof * 1e-3, roof], "--", color=DARK, linewidth=1)
    axis.plot([corner, 2 * largest], [roof, roof], color=DARK, linewidth=1)
    axis.text(2 * largest, roof * 1.08, f"copy, {roof:.0f} GB/s", ha="right")
    axis.text(corner * 1e-2, roof * 1.3e-2, f"an empty kernel,\n{launch:.2f} us", ha="right")
    axis.set(xscale="log", yscale="log", xlabel="bytes that must be moved by a call", ylabel="GB/s")
    axis.minorticks_off()
    axis.legend(ncols=2, fontsize=9)
    return figure


def sweeps(frame: DataFrame) -> Any:
    """Time of a call along each size, its floor, and the bound."""
    figure, panels = plt.subplots(2, 3, figsize=(11, 6.5), layout="constrained", sharey=True)
    axes = dict(zip(AXES, panels.flat))
    points = render.sweep_points(frame).sort_values("size")
    for (name, dtype), line in points.groupby(["axis", "dtype"]):
        style = {"color": DTYPES[dtype], "linewidth": 1}
        axes[name].plot(line["size"], line["us"], "o-", color=DTYPES[dtype], markersize=4)
        axes[name].plot(line["size"], line["floor_us"], "--", **style)
        axes[name].plot(line["size"], line["bound_us"], ":", **style)
    for name, axis in axes.items():
        axis.set(xscale="log", yscale="log", xlabel=AXES[name])
        axis.minorticks_off()
    for axis in panels[:, 0]:
        axis.set_ylabel("us a call")
    key = panels.flat[-1]
    key.set_axis_off()
    for dtype, colour in DTYPES.items():
        key.plot([], [], "o-", color=colour, markersize=4, label=dtype)
    key.plot([], [], "--", color=DARK, linewidth=1, label="floor")
    key.plot([], [], ":", color=DARK, linewidth=1, label=render.BOUND)
    key.legend(loc="center")
    return figure


def draw(file: pathlib.Path) -> str:
    result = json.loads(file.read_text())
    frame = render.bench_frame(result)
    with plt.rc_context(STYLE):
        for name, figure in (("roofline", roofline(frame)), ("sweep", sweeps(frame))):
            path = IMAGES / f"{name}.svg"
            figure.savefig(path, metadata={"Date": None})
            # Matplotlib leaves spaces at the ends of lines.
            lines = path.read_text().splitlines()
            path.write_text("".join(line.rstrip() + "\n" for line in lines))
    gpu = result["context"].get("gpu", "")
    return (
        f"![Bandwidth of each case on {gpu} against the bytes that it must move, below the "
        "bandwidth of a copy](../images/roofline.svg)\n\n"
        f"![Time of a call on {gpu} against each size, beside its floor and {render.BOUND}]"
        "(../images/sweep.svg)"
    )


if __name__ == "__main__":
    render.main(__doc__, draw, block="plots")
