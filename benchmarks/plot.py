"""Draw the results of robocache_bench: docs/images/roofline.svg and docs/images/sweep.svg.

    python benchmarks/plot.py build/gpu/bench.json
    python benchmarks/plot.py --into docs/performance/figures.md build/gpu/bench.json

With --into the pictures are shown between the lines `<!-- begin plots -->` and `<!-- end plots -->`
of a document beside their folder.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import render  # noqa: E402

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
DARK = "#444444"
GROUPS = {
    "resample": "#0B62A4",
    "fuse": "#D4572A",
    "methods": "#3D8B57",
    "voxelize": "#8A5BB5",
    "sweep": "#9A9A9A",
}
AXES = {
    "D": "channels D",
    "S": "samples S, with S/2 queries",
    "T": "queries T",
    "B": "recordings B",
    "N": "streams N of 64 channels in all",
}
COLOURS = {"f32": "#0B62A4", "bf16": "#D4572A"}


def roofline(groups: dict[str, list[dict[str, Any]]]) -> Any:
    """Bandwidth against bytes, below what a copy reaches and what a launch alone allows."""
    figure, axis = plt.subplots(figsize=(9, 5.5), layout="constrained")
    largest = 0.0
    for label, colour in GROUPS.items():
        entries = [e for e in groups.get(f"cuda/{label}", []) if e["us"] and e.get("GB/s")]
        # Hot data may come from the caches, faster than from memory.
        for kind, face in (("cold", colour), ("hot", "none")):
            chosen = [e for e in entries if e["parts"][-1] == kind]
            sizes, rates = ([e[key] for e in chosen] for key in ("bytes", "GB/s"))
            style = {"color": colour, "markersize": 5, "markerfacecolor": face}
            style["label"] = f"{label}, {kind}" if chosen else None
            axis.plot(sizes, rates, "o", zorder=2 if label == "sweep" else 3, **style)
            largest = max([largest, *sizes])
    copies = render.copies(groups)
    rates = [size / us * 1e-3 for size, us in copies]
    label = "copies of that size, cold" if len(copies) > 1 else None
    axis.plot([size for size, _ in copies], rates, "k:", label=label, linewidth=1)
    roof = groups["cuda/copy"][0]["GB/s"]
    launch = groups["cuda/empty_kernel"][0]["us"]
    corner = roof * 1e9 * launch * 1e-6  # bytes
    axis.plot([corner * 1e-3, corner], [roof * 1e-3, roof], "--", color=DARK, linewidth=1)
    axis.plot([corner, 2 * largest], [roof, roof], color=DARK, linewidth=1)
    axis.text(2 * largest, roof * 1.08, f"copy, {roof:.0f} GB/s", ha="right")
    axis.text(corner * 1e-2, roof * 1.3e-2, f"an empty kernel,\n{launch:.2f} us", ha="right")
    axis.set(xscale="log", yscale="log", ylabel="GB/s")
    axis.minorticks_off()
    axis.set_xlabel("bytes that must be moved by a call")
    axis.legend(ncols=2, fontsize=9)
    return figure


def sweeps(groups: dict[str, list[dict[str, Any]]]) -> Any:
    """Time of a call along each size, its floor, and the bound."""
    styles = {"o-": lambda e: e["us"], "--": lambda e: e["floor_us"], ":": render.bound_us}
    widths = {"o-": {"markersize": 4}, "--": {"linewidth": 1}, ":": {"linewidth": 1}}
    figure, panels = plt.subplots(2, 3, figsize=(11, 6.5), layout="constrained", sharey=True)
    for (axis_name, dtype), points in render.sweep_lines(groups["cuda/sweep"]).items():
        axis = panels.flat[list(AXES).index(axis_name)]
        sizes = sorted(points)
        for style, value in styles.items():
            times = [value(points[size]) for size in sizes]
            axis.plot(sizes, times, style, color=COLOURS[dtype], **widths[style])
    for label, axis in zip(AXES.values(), panels.flat):
        axis.set(xscale="log", yscale="log", xlabel=label)
        axis.minorticks_off()
    for axis in panels[:, 0]:
        axis.set_ylabel("us a call")
    key = panels.flat[-1]
    key.set_axis_off()
    for dtype, colour in COLOURS.items():
        key.plot([], [], "o-", color=colour, markersize=4, label=dtype)
    key.plot([], [], "--", color=DARK, linewidth=1, label="floor")
    key.plot([], [], ":", color=DARK, linewidth=1, label=render.BOUND)
    key.legend(loc="center")
    return figure


def save(figure: Any, path: pathlib.Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    # Matplotlib leaves spaces at the ends of lines.
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=pathlib.Path, metavar="FILE.json")
    parser.add_argument("--into", type=pathlib.Path, metavar="DOCUMENT.md")
    arguments = parser.parse_args()
    result = json.loads(arguments.file.read_text())
    groups = render.bench_entries(result)
    for needed in ("cuda/copy", "cuda/empty_kernel", "cuda/sweep"):
        if needed not in groups:
            parser.error(f"{arguments.file} has no {needed}")
    with plt.rc_context(STYLE):
        save(roofline(groups), IMAGES / "roofline.svg")
        save(sweeps(groups), IMAGES / "sweep.svg")
    if arguments.into is None:
        return
    folder = pathlib.Path(os.path.relpath(IMAGES, arguments.into.parent)).as_posix()
    gpu = result["context"].get("gpu", "")
    text = (
        f"![Bandwidth of each case on {gpu} against the bytes that it must move, below the "
        f"bandwidth of a copy]({folder}/roofline.svg)\n\n"
        f"![Time of a call on {gpu} against each size, beside its floor and {render.BOUND}]"
        f"({folder}/sweep.svg)"
    )
    arguments.into.write_text(render.insert(arguments.into.read_text(), "plots", text))


if __name__ == "__main__":
    main()
