"""Turn benchmark results into Markdown tables.

    python benchmarks/render.py build/gpu/bench.json build/gpu/peers-cuda.json
    python benchmarks/render.py --into docs/performance/figures.md build/gpu/bench.json

Takes what `robocache_bench --benchmark_out=FILE --benchmark_out_format=json` and
`--json FILE` of peers.py and training.py write. With --into the tables of NAME.json go between the
lines `<!-- begin NAME -->` and `<!-- end NAME -->` of a document.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
from typing import Any

import numpy as np
import tabulate  # noqa: F401 - to_markdown needs it: better to miss it before hours of measuring
from pandas import DataFrame, Series, isna

Result = dict[str, Any]


def number(value: Any) -> str:
    """Three digits that matter. Text stays as it is, and what is missing is empty."""
    if isinstance(value, str):
        return value
    if isna(value):
        return ""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def table(frame: DataFrame, titles: dict[str, str]) -> str:
    """These columns, the first with names; those that nobody fills are left out."""
    cells = frame.reindex(columns=list(titles)).dropna(axis=1, how="all").map(number)
    sides = ["left"] + ["right"] * (len(cells.columns) - 1)
    cells = cells.rename(columns=titles)
    return cells.to_markdown(index=False, colalign=sides, disable_numparse=True)


def formatted(values: Series, form: str) -> Series:
    return values.map(form.format, na_action="ignore")


def spread(low: Series, high: Series) -> Series:
    return (low.map(number) + ".." + high.map(number)).where(low.notna())


def notes(frame: DataFrame, key: str, form: str) -> list[str]:
    """A line for each row that has this key."""
    rows = frame.dropna(subset=key).to_dict("records")
    return [form.format_map({**row, key: number(row[key])}) for row in rows]


def facts(pairs: Result) -> str:
    return ", ".join(f"{key} {value}" for key, value in pairs.items() if value not in (None, ""))


# ---- robocache_bench -----------------------------------------------------------------------------

_CONTEXT = "date robocache commit gpu cuda_driver cuda_runtime cpu cpu_simd cpu_threads".split()
_TITLES = {"us": "us", "spread": "p10..p90", "floor_us": "floor us", "x_floor": "x floor"}
_TITLES |= {"x_copy": "x copy", "GB/s": "GB/s", "in_range": "in range"}
_TITLES |= {"p99_us": "p99", "p999_us": "p99.9", "most_us": "longest", "x_one": "x one GPU"}
_TITLES |= {name: name for name in ("rows", "G points/s", "/ linear", "/ linear, a byte")}


def render_bench(result: Result) -> str:
    parts = [facts({key: result["context"].get(key) for key in _CONTEXT})]
    for group, frame in bench_frame(result).groupby("group", sort=False):
        parts += _sweep_table(frame) if group == "cuda/sweep" else [_bench_table(group, frame)]
    entries = DataFrame(result["benchmarks"], columns=["name", "error_message"])
    return "\n\n".join(parts + notes(entries, "error_message", "FAILED {name}: {error_message}"))


def bench_frame(result: Result) -> DataFrame:
    """A row for each benchmark that went well. Its group is the first two parts of its name, such
    as cuda/resample, its case the others, and its kind the last one, such as hot or cold.
    """
    counters = ["low_us", "high_us", "bytes", "points", *_TITLES]
    frame = DataFrame(
        result["benchmarks"], columns=["name", "real_time", "error_message", *counters]
    )
    frame = frame[frame["error_message"].isna()].assign(us=frame["real_time"])
    frame["name"] = frame["name"].str.removesuffix("/iterations:1/manual_time")
    parts = frame["name"].str.split("/")
    frame["group"] = parts.str[:2].str.join("/")
    frame["case"] = parts.map(lambda names: " ".join(names[2:] or names[1:]))
    frame["kind"] = parts.str[-1]
    frame["spread"] = spread(frame["low_us"], frame["high_us"])
    frame["x_copy"] = _over_copy(frame, float(result["context"].get("gpu_l2_bytes", 0)))
    return frame


def copies(frame: DataFrame) -> Series:
    """Microseconds of copies by their bytes: the faster kind, cold where that differs."""
    runs = frame[frame["group"] == "cuda/copy"]
    cold_first = runs.groupby(["bytes", runs["kind"] == "hot"])["us"].min()
    return cold_first.groupby("bytes").first()


def _over_copy(frame: DataFrame, l2_bytes: float) -> Series | None:
    """The time over that of a copy of as many bytes, between the sizes that were measured; of cold
    calls, and of those that leave nothing of themselves in L2.
    """
    measured = copies(frame)
    if measured.empty:
        return None
    copy = np.interp(frame["bytes"], measured.index, measured, left=np.nan, right=np.nan)
    cold = frame["kind"] == "cold"
    also_cold = cold.groupby(frame["name"].str.rpartition("/")[0]).transform("any")
    large = (frame["kind"] == "hot") & ~also_cold & (frame["bytes"] > l2_bytes)
    calls = frame["group"].str.startswith("cuda/") & (frame["group"] != "cuda/copy")
    return (frame["us"] / copy).where(calls & (cold | large))


def _bench_table(group: str, frame: DataFrame) -> str:
    if frame["in_range"].min() == 1:
        frame = frame.assign(in_range=np.nan)  # of all: see the text
    if group.endswith("/methods"):
        linear = frame["name"].str.replace(r" [^ /]+(?=/|$)", " linear", n=1, regex=True)
        for title, time in (
            ("/ linear", frame["us"]),
            ("/ linear, a byte", frame["us"] / frame["bytes"]),
        ):
            ratio = time / linear.map(dict(zip(frame["name"], time)))
            frame = frame.assign(**{title: formatted(ratio, "{:.2f}")})
    rows = formatted(frame["rows"].where(frame["points"].notna()), "{:.0f}")
    frame = frame.assign(**{"rows": rows, "G points/s": frame["points"] / frame["us"] * 1e-3})
    return table(frame, {"case": group, **_TITLES})


# ---- its sweep: one size at a time ---------------------------------------------------------------

_FACTOR, _MARGIN_US = 1.5, 3.0
BOUND = f"{_FACTOR:g} x floor + {_MARGIN_US:g} us"


def sweep_points(frame: DataFrame) -> DataFrame:
    """The sweep's rows, with the axis, the dtype and the ends of their lines, and the size along
    them; of hot and cold calls of one size the last.
    """
    points = frame[frame["group"] == "cuda/sweep"]
    names = points["case"].str.extract(r"^(?P<axis>\w)=(?P<size>\d+): \S+ (?P<dtype>\w+)")
    points = points.join(names.astype({"size": int}))
    points = points.drop_duplicates(["axis", "dtype", "size"], keep="last")
    points["bound_us"] = _FACTOR * points["floor_us"] + _MARGIN_US
    points["x_bound"] = points["us"] / points["bound_us"]
    return points


def _sweep_table(frame: DataFrame) -> list[str]:
    """Of each line of the sweep its worst point, and that of all."""
    points = sweep_points(frame)
    lines = points.groupby(["axis", "dtype"], sort=False)
    sizes = [lines["size"].transform(what).map(str) for what in ("min", "max", "count")]
    points["line"] = points["axis"] + " = " + sizes[0] + " to " + sizes[1] + ", " + points["dtype"]
    points["points"] = sizes[2]
    points["ratio"] = formatted(points["x_bound"], "{:.2f}")
    titles = {"line": "cuda/sweep", "points": "points", "case": "the worst", "us": "us"}
    titles |= {"floor_us": "floor us", "x_floor": "x floor", "ratio": f"/ ({BOUND})"}
    worst = points.loc[[points["x_bound"].idxmax()]]
    return [
        table(points.loc[lines["x_bound"].idxmax()], titles),
        *notes(
            worst,
            "us",
            f"The worst point of the sweep is {{case}}: {{us}} us, {{ratio}} of {BOUND}.",
        ),
    ]


# ---- peers.py and training.py --------------------------------------------------------------------


def timed(entries: list[Result], *columns: str) -> DataFrame:
    """A row for each that took its turns. Its cell has the median, and half the distance of the
    quartiles in percent of it.
    """
    times = ["median_us", "p25_us", "p75_us", "compile_s", "error", "skipped"]
    frame = DataFrame(entries, columns=[*columns, *times])
    median, low, high = (frame[name] for name in times[:3])
    frame["spread"] = spread(low, high)
    instead = frame["error"].notna().map({True: "failed", False: "skipped"})
    half = formatted((high - low) / 2 / median, " ± {:.0%}").fillna("")
    frame["cell"] = (median.map(number) + half).where(median.notna(), instead)
    return frame


def render_peers(result: Result) -> str:
    rows = [
        {**case, "peer": name, **peer}
        for case in result["cases"]
        for name, peer in {"floor": {"median_us": case["floor_us"]}, **case["peers"]}.items()
    ]
    frame = timed(rows, "op", "case", "device", "peer").drop_duplicates(["op", "case", "peer"])
    parts = [facts(result["environment"])]
    for op, rows in _with_ours(frame).groupby("op", sort=False):
        parts += _peer_tables(op, rows)
    parts += _changing_shapes(timed(result.get("changing", []), "name", "shapes", "first_s"))
    if result["overhead"]:
        titles = {"name": "host time of a call", "median_us": "us", "spread": "p25..p75"}
        parts.append(table(timed(result["overhead"], "name"), titles))
    return "\n\n".join(parts)


def _with_ours(frame: DataFrame) -> DataFrame:
    """Cells with the time over ours as well: under a graph over ours under one."""
    in_graph = frame["peer"].str.endswith(", graph")
    frame["ours"] = in_graph.map({True: "robocache, graph", False: "robocache"})
    ours = frame[["op", "case", "peer", "median_us"]].rename(columns={"peer": "ours"})
    frame = frame.merge(ours, how="left", on=["op", "case", "ours"], suffixes=("", "_ours"))
    ratio = frame["median_us"] / frame["median_us_ours"]
    ratio = ratio.where(~frame["peer"].str.match("robocache|floor$")).map(number)
    frame["cell"] += (", " + ratio + " x").where(ratio != "", "")
    return frame


def _peer_tables(op: str, frame: DataFrame) -> list[str]:
    """Cases side by side, those of clouds by what becomes of the points."""
    parts = []
    names = frame["case"].str.extract("^(?P<kind>[^/]*(?=/))?/?(?P<column>.*)").fillna("")
    for kind, rows in frame.join(names).groupby("kind", sort=False):
        grid = rows.pivot(index="peer", columns="column", values="cell")
        grid = grid.loc[rows["peer"].unique(), rows["column"].unique()]
        grid = grid[grid.replace("skipped", np.nan).notna().any(axis=1)].reset_index()
        title = f"{f'{op} {kind}'.strip()}, {rows['device'].iloc[0]}, us"
        parts.append(table(grid, {name: name for name in grid} | {"peer": title}))
    for peer, rows in frame.dropna(subset="compile_s").groupby("peer", sort=False):
        calls = notes(rows, "compile_s", "{case}: {compile_s} s")
        parts.append(f"First call of {peer}: " + "; ".join(calls))
    parts += notes(frame, "error", "FAILED {case}: {peer}: {error}")
    skipped = frame.dropna(subset="skipped").drop_duplicates("peer", keep="last")
    return parts + notes(skipped, "skipped", "Skipped {peer}: {skipped}")


def _changing_shapes(frame: DataFrame) -> list[str]:
    """A first pass through all shapes, and those that follow."""
    parts = []
    for shapes in frame["shapes"].dropna()[:1]:
        titles = {"name": f"{len(shapes)} shapes, one after another", "first_ms": "first pass, ms"}
        titles |= {"median_us": "later, us a call", "spread": "p25..p75"}
        well = frame.dropna(subset="first_s")
        parts = [table(well.assign(first_ms=well["first_s"] * 1e3), titles)]
        parts.append("Shapes: " + "; ".join(shapes))
    parts += notes(frame, "error", "FAILED changing shapes: {name}: {error}")
    return parts + notes(frame, "skipped", "Skipped {name}: {skipped}")


def render_training(result: Result) -> str:
    parts = [facts(result["environment"])]
    for loop in result["loops"]:
        parts += _loop_table(loop)
    parts += [f"Skipped {name}: {reason}" for name, reason in result["skipped"].items()]
    return "\n\n".join(parts)


def _loop_table(loop: Result) -> list[str]:
    streams = ", ".join(f"{samples}x{channels}" for samples, channels in loop["streams"])
    name = "{data}, B={batch}: {} -> {ticks} {dtype}, {step} step".format(streams, **loop)
    titles = {"label": name, "cell": "us a step", "over": "/ no alignment"}
    titles |= {"episodes/s": "episodes/s", "wait_us": "waits", "alignment_us": "alignment"}
    titles |= {"share": "its share", "alignment_host_us": "its host time"}
    ways = [{"name": name, **way} for name, way in loop["ways"].items()]
    frame = timed(ways, "name", "deviates", *list(titles)[3:])
    frame["label"] = frame["name"] + frame["deviates"].notna().map({True: " (deviates)", False: ""})
    without = frame.loc[frame["name"] == "no alignment", "median_us"].max()
    frame["over"] = frame["median_us"] / without
    frame["share"] = formatted(frame["share"], "{:.2%}")
    parts = [
        table(frame, titles),
        *notes(frame, "compile_s", "First call of {name}: {compile_s} s"),
    ]
    parts += notes(frame, "deviates", "{name} deviates: {deviates}")
    return parts + notes(frame, "error", "FAILED {name}: {error}")


def render(result: Result) -> str:
    if "benchmarks" in result:
        return render_bench(result)
    return render_training(result) if "loops" in result else render_peers(result)


def insert(document: pathlib.Path, name: str, text: str) -> None:
    block = re.compile(f"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    new, found = block.subn(lambda ends: f"{ends[1]}\n{text}\n\n{ends[2]}", document.read_text(), 1)
    if not found:
        raise SystemExit(f"render.py: {document} has no lines <!-- begin {name} --> and its end")
    document.write_text(new)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE.json")
    parser.add_argument("--into", type=pathlib.Path, metavar="DOCUMENT.md")
    arguments = parser.parse_args()
    for path in arguments.files:
        text = render(json.loads(path.read_text()))
        if arguments.into is None:
            print(f"### {path.name}\n\n{text}\n")
        else:
            insert(arguments.into, path.stem, text)


if __name__ == "__main__":
    main()
