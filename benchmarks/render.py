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
from collections.abc import Callable
from typing import Any

import numpy as np
import tabulate  # noqa: F401 - to_markdown needs it: better to miss it before measuring than after
from pandas import DataFrame, Series, isna

Result = dict[str, Any]


def number(value: Any) -> str:
    """Three digits that matter. Text stays as it is, and what is missing is empty."""
    if isinstance(value, str):
        return value
    return "" if isna(value) else f"{value:.{sum(abs(value) < bound for bound in (1, 10, 100))}f}"


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
_FACTOR, _MARGIN_US = 1.5, 3.0
BOUND = f"{_FACTOR:g} x floor + {_MARGIN_US:g} us"


def render_bench(result: Result) -> str:
    parts = [facts({key: result["context"].get(key) for key in _CONTEXT})]
    for group, frame in bench_frame(result).groupby("group", sort=False):
        if group == "cuda/sweep":
            parts += _sweep_table(sweep_points(frame))
        else:
            parts.append(table(frame, {"case": group, **_TITLES}))
    entries = DataFrame(result["benchmarks"], columns=["name", "error_message"])
    return "\n\n".join(parts + notes(entries, "error_message", "FAILED {name}: {error_message}"))


def bench_frame(result: Result) -> DataFrame:
    """A row for each benchmark that went well. Its group is the first two parts of its name, such
    as cuda/resample, its case the others, and its kind the last one, such as hot or cold.
    """
    columns = ["name", "real_time", "error_message", "low_us", "high_us", "bytes", "points"]
    frame = DataFrame(result["benchmarks"], columns=[*columns, *_TITLES])
    frame = frame[frame["error_message"].isna()].assign(us=frame["real_time"])
    frame["name"] = frame["name"].str.removesuffix("/iterations:1/manual_time")
    parts = frame["name"].str.split("/")
    frame["group"] = parts.str[:2].str.join("/")
    frame["case"] = parts.map(lambda names: " ".join(names[2:] or names[1:]))
    frame["kind"] = parts.str[-1]
    frame["spread"] = spread(frame["low_us"], frame["high_us"])
    frame["x_copy"] = _over_copy(frame, float(result["context"].get("gpu_l2_bytes", 0)))
    least = frame.groupby("group")["in_range"].transform("min")
    frame["in_range"] = frame["in_range"].where(least < 1)  # see the text
    frame["rows"] = formatted(frame["rows"].where(frame["points"].notna()), "{:.0f}")
    frame["G points/s"] = frame["points"] / frame["us"] * 1e-3
    linear = frame["name"].where(frame["group"].str.endswith("/methods"))
    linear = linear.str.replace(r" [^ /]+(?=/|$)", " linear", n=1, regex=True)
    for title, time in (
        ("/ linear", frame["us"]),
        ("/ linear, a byte", frame["us"] / frame["bytes"]),
    ):
        frame[title] = formatted(time / linear.map(dict(zip(frame["name"], time))), "{:.2f}")
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


def sweep_points(frame: DataFrame) -> DataFrame:
    """The sweep's rows, with the axis and the dtype of their lines, and the size along them; of hot
    and cold calls of one size the last.
    """
    points = frame[frame["group"] == "cuda/sweep"]
    names = points["case"].str.extract(r"^(?P<axis>\w)=(?P<size>\d+): \S+ (?P<dtype>\w+)")
    points = points.join(names.astype({"size": int}))
    points["bound_us"] = _FACTOR * points["floor_us"] + _MARGIN_US
    points["x_bound"] = points["us"] / points["bound_us"]
    return points.drop_duplicates(["axis", "dtype", "size"], keep="last")


def _sweep_table(points: DataFrame) -> list[str]:
    """Of each line of the sweep its worst point, and that of all."""
    lines = points.groupby(["axis", "dtype"], sort=False)
    worst = points.loc[lines["x_bound"].idxmax()].set_index(["axis", "dtype"])
    worst = worst.join(lines["size"].agg(["min", "max", "count"])).reset_index()
    worst["line"] = notes(worst, "axis", "{axis} = {min} to {max}, {dtype}")
    worst["points"] = worst["count"].map(str)
    worst["ratio"] = formatted(worst["x_bound"], "{:.2f}")
    titles = {"line": "cuda/sweep", "points": "points", "case": "the worst", "us": "us"}
    titles |= {"floor_us": "floor us", "x_floor": "x floor", "ratio": f"/ ({BOUND})"}
    text = f"The worst point of the sweep is {{case}}: {{us}} us, {{ratio}} of {BOUND}."
    return [table(worst, titles), *notes(worst.nlargest(1, "x_bound"), "us", text)]


# ---- peers.py and training.py --------------------------------------------------------------------


def timed(entries: list[Result], *columns: str) -> DataFrame:
    """A row for each that took its turns. Its cell has the median, and half the distance of the
    quartiles in percent of it.
    """
    times = ["median_us", "p25_us", "p75_us", "compile_s", "error", "skipped"]
    frame = DataFrame(entries, columns=[*columns, *times])
    median, low, high = (frame[name] for name in times[:3])
    frame["spread"] = spread(low, high)
    half = formatted((high - low) / 2 / median, " ± {:.0%}").fillna("")
    instead = frame["error"].notna().map({True: "failed", False: "skipped"})
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
    for op, rows in frame.groupby("op", sort=False):
        parts += _peer_tables(op, rows)
    parts += _changing_shapes(timed(result.get("changing", []), "name", "shapes", "first_s"))
    if result["overhead"]:
        titles = {"name": "host time of a call", "median_us": "us", "spread": "p25..p75"}
        parts.append(table(timed(result["overhead"], "name"), titles))
    return "\n\n".join(parts)


def _peer_tables(op: str, frame: DataFrame) -> list[str]:
    """Cases side by side, those of clouds by what becomes of the points; with the time over ours,
    and under a graph over ours under one.
    """
    parts = []
    kinds = frame["case"].str.extract("^([^/]*)/")[0].fillna("")
    for kind, rows in frame.groupby(kinds, sort=False):
        grid = rows.pivot(index="peer", columns="case").reindex(rows["peer"].unique())
        in_graph = grid.index.str.endswith(", graph")
        ours = grid["median_us"].reindex(np.where(in_graph, "robocache, graph", "robocache"))
        ratio = grid["median_us"] / ours.to_numpy()
        ratio[grid.index.str.match("robocache|floor$")] = np.nan
        cells = grid["cell"] + (", " + ratio.map(number) + " x").where(ratio.notna(), "")
        cells = cells[cells.replace("skipped", np.nan).notna().any(axis=1)].reset_index()
        titles = {"peer": f"{f'{op} {kind}'.strip()}, {rows['device'].iloc[0]}, us"}
        titles |= {case: case.removeprefix(f"{kind}/") for case in rows["case"].unique()}
        parts.append(table(cells, titles))
    for peer, rows in frame.dropna(subset="compile_s").groupby("peer", sort=False):
        calls = notes(rows, "compile_s", "{case}: {compile_s} s")
        parts.append(f"First call of {peer}: " + "; ".join(calls))
    parts += notes(frame, "error", "FAILED {case}: {peer}: {error}")
    skipped = frame.drop_duplicates(["peer", "skipped"])
    return parts + notes(skipped, "skipped", "Skipped {peer}: {skipped}")


def _changing_shapes(frame: DataFrame) -> list[str]:
    """A first pass through all shapes, and those that follow."""
    parts = []
    well = frame.dropna(subset="first_s")
    for shapes in well["shapes"][:1]:
        titles = {"name": f"{len(shapes)} shapes, one after another", "first_ms": "first pass, ms"}
        titles |= {"median_us": "later, us a call", "spread": "p25..p75"}
        parts.append(table(well.assign(first_ms=well["first_s"] * 1e3), titles))
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
    title = "{data}, B={batch}: {} -> {ticks} {dtype}, {step} step".format(streams, **loop)
    titles = {"label": title, "cell": "us a step", "over": "/ no alignment"}
    titles |= {"episodes/s": "episodes/s", "wait_us": "waits", "alignment_us": "alignment"}
    titles |= {"share": "its share", "alignment_host_us": "its host time"}
    ways = [{"name": name, **way} for name, way in loop["ways"].items()]
    frame = timed(ways, "name", "deviates", *list(titles)[3:])
    frame["label"] = frame["name"] + frame["deviates"].notna().map({True: " (deviates)", False: ""})
    without = frame.loc[frame["name"] == "no alignment", "median_us"].max()
    frame["over"] = frame["median_us"] / without
    frame["share"] = formatted(frame["share"], "{:.2%}")
    return [
        table(frame, titles),
        *notes(frame, "compile_s", "First call of {name}: {compile_s} s"),
        *notes(frame, "deviates", "{name} deviates: {deviates}"),
        *notes(frame, "error", "FAILED {name}: {error}"),
    ]


# ---- the command ---------------------------------------------------------------------------------


def render(path: pathlib.Path) -> str:
    result = json.loads(path.read_text())
    if "benchmarks" in result:
        return render_bench(result)
    return render_training(result) if "loops" in result else render_peers(result)


def main(doc: str, text_of: Callable[[pathlib.Path], str], block: str | None = None) -> None:
    """Prints what becomes of files, or puts it into the blocks of their names."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--into", type=pathlib.Path, metavar="DOCUMENT.md")
    arguments = parser.parse_args()
    for path in arguments.files:
        text, name = text_of(path), block or path.stem
        if arguments.into is None:
            print(f"### {path.name}\n\n{text}\n")
            continue
        lines = re.compile(f"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        document = arguments.into.read_text()
        if not lines.search(document):
            parser.error(f"{arguments.into} has no lines <!-- begin {name} --> and <!-- end ...")
        arguments.into.write_text(lines.sub(lambda m: f"{m[1]}\n{text}\n\n{m[2]}", document))


if __name__ == "__main__":
    main(__doc__, render)
