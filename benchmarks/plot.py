"""Draw the results of robocache_bench: roofline.svg and sweep.svg, in the folder of the results.

python benchmarks/plot.py build/gpu/bench.json
"""

import json
import pathlib
import sys

from matplotlib import rc
from matplotlib.figure import Figure
from pandas import DataFrame
from render import BOUND, bench_frame, copies, sweep_points

BLUE, ORANGE, GREEN, VIOLET = "#0B62A4", "#D4572A", "#3D8B57", "#8A5BB5"
DARK, GREY = "#444444", "#9A9A9A"
GROUPS = {"resample": BLUE, "fuse": ORANGE, "methods": GREEN, "voxelize": VIOLET, "sweep": GREY}
DTYPES = {"f32": BLUE, "bf16": ORANGE}
AXES = {
    "D": "channels D",
    "S": "samples S, with S/2 queries",
    "T": "queries T",
    "B": "recordings B",
    "N": "streams N of 64 channels in all",
}
rc("axes", edgecolor="#8C8C8C", grid=True)
rc("axes.spines", right=False, top=False)
rc("font", size=10)
rc("grid", color="#E6E6E6")
rc("legend", frameon=False)
rc("svg", fonttype="none", hashsalt="robocache")  # text stays text; the same bytes each time


def roofline(frame: DataFrame) -> Figure:
    """Plot bandwidth against bytes, with the limits of a copy and of a launch."""
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axis = figure.subplots()
    for label, colour in GROUPS.items():
        # Hot data may come from the caches, faster than from memory.
        for kind, face in (("cold", colour), ("hot", "none")):
            calls = frame[(frame["group"] == f"cuda/{label}") & (frame["kind"] == kind)]
            style = {"color": colour, "markersize": 5, "markerfacecolor": face}
            style |= {"label": f"{label}, {kind}", "zorder": 2 if label == "sweep" else 3}
            axis.plot(calls["bytes"], calls["GB/s"], "o", **style)
    times = copies(frame)
    rates = times.index / times * 1e-3
    axis.plot(times.index, rates, "k:", label="copies of that size, cold", linewidth=1)
    first = frame.drop_duplicates("group").set_index("group")
    largest = frame["bytes"].max()
    roof, launch = first.loc["cuda/copy", "GB/s"], first.loc["cuda/empty_kernel", "us"]
    corner = roof * launch * 1e3  # bytes
    axis.plot([corner * 1e-3, corner], [roof * 1e-3, roof], "--", color=DARK, linewidth=1)
    axis.plot([corner, 2 * largest], [roof, roof], color=DARK, linewidth=1)
    axis.text(2 * largest, roof * 1.08, f"copy, {roof:.0f} GB/s", ha="right")
    axis.text(corner * 1e-2, roof * 1.3e-2, f"an empty kernel,\n{launch:.2f} us", ha="right")
    axis.set(xscale="log", yscale="log", xlabel="bytes that must be moved by a call", ylabel="GB/s")
    axis.legend(ncols=2, fontsize=9)
    return figure


def sweeps(frame: DataFrame) -> Figure:
    """Plot the time of a call along each size, its floor, and the bound."""
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    panels = figure.subplots(2, 3, sharey=True).flat
    points = sweep_points(frame).sort_values("size").set_index("size")
    for axis, (name, label) in zip(panels, AXES.items()):
        for dtype, colour in DTYPES.items():
            line = points[(points["axis"] == name) & (points["type"] == dtype)]
            lines = line[["us", "floor_us", "bound_us"]].set_axis([dtype, "floor", BOUND], axis=1)
            style = {"color": colour, "style": ["o-", "--", ":"], "markersize": 4, "legend": False}
            lines.plot(ax=axis, loglog=True, xlabel=label, ylabel="us a call", **style)
    panels[-1].set_axis_off()
    panels[-1].legend(handles=panels[0].get_lines(), loc="center", ncols=len(DTYPES))
    return figure


if __name__ == "__main__":
    results = pathlib.Path(sys.argv[1])
    frame = bench_frame(json.loads(results.read_text()))
    for name, draw in (("roofline", roofline), ("sweep", sweeps)):
        draw(frame).savefig(results.parent / f"{name}.svg", metadata={"Date": None})
