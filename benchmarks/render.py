"""Convert benchmark results to Markdown tables.

    python benchmarks/render.py build/gpu/bench.json build/gpu/peers-cuda.json

The files come from `robocache_bench --benchmark_out=FILE --benchmark_out_format=json` and from
`--json FILE` of peers.py and training.py.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from typing import Any

import numpy as np
import tabulate  # noqa: F401 - to_markdown needs it: better to miss it before measuring than after
from pandas import DataFrame, Series, isna

Result = dict[str, Any]
CONTEXT = "date robocache commit gpu cuda_driver cuda_runtime cpu cpu_simd cpu_threads".split()
TITLES = {"us": "us", "spread": "p10..p90", "floor_us": "floor us", "x_floor": "x floor"}
TITLES |= {"x_copy": "x copy", "GB/s": "GB/s", "in_range": "in range"}
TITLES |= {"p99_us": "p99", "p999_us": "p99.9", "most_us": "longest", "x_one": "x one GPU"}
TITLES |= {name: name for name in ("rows", "G points/s", "/ linear", "/ linear, a byte")}
BOUND = "1.5 x floor + 3 us"


def number(value: Any) -> Any:
    """Format numbers with three significant digits; missing ones are empty, other objects
    unchanged.
    """
    if not isinstance(value, float):
        return value
    return "" if isna(value) else f"{value:.{sum(abs(value) < bound for bound in (1, 10, 100))}f}"


def table(frame: DataFrame, titles: dict[str, str]) -> str:
    """Return a table of these columns, the first with names; empty columns are dropped."""
    cells = frame.reindex(columns=list(titles)).dropna(axis=1, how="all").map(number)
    sides = ["left"] + ["right"] * (len(cells.columns) - 1)
    cells = cells.rename(columns=titles)
    return cells.to_markdown(index=False, colalign=sides, disable_numparse=True)


def text(frame: DataFrame, key: str, form: str) -> Series:
    """Return a line for each row that has this key."""
    rows = frame.dropna(subset=key)
    lines = [form.format_map(row) for row in rows.map(number).to_dict("records")]
    return Series(lines, rows.index, dtype=object)


def rounded(values: Series, form: str) -> Series:
    return values.map(form.format, na_action="ignore")


def facts(pairs: Result) -> str:
    return ", ".join(f"{key} {value}" for key, value in pairs.items() if value not in (None, ""))


def render_bench(result: Result) -> list[str]:
    parts = [facts({key: result["context"].get(key) for key in CONTEXT})]
    for group, frame in bench_frame(result).groupby("group", sort=False):
        is_sweep = group == "cuda/sweep"
        parts += sweep_table(frame) if is_sweep else [table(frame, {"case": group, **TITLES})]
    entries = DataFrame(result["benchmarks"], columns=["name", "error_message"])
    return [*parts, *text(entries, "error_message", "FAILED {name}: {error_message}")]


def bench_frame(result: Result) -> DataFrame:
    """Return a row for each successful benchmark. Its group is the first two parts of its name,
    such as cuda/resample, its kind the last one, such as hot or cold, and its case the rest.
    """
    columns = ["name", "real_time", "error_message", "low_us", "high_us", "bytes", "points"]
    frame = DataFrame(result["benchmarks"], columns=[*columns, *TITLES])
    frame = frame[frame["error_message"].isna()].assign(us=frame["real_time"])
    frame["name"] = frame["name"].str.removesuffix("/iterations:1/manual_time")
    parts = frame["name"].str.split("/")
    frame["group"] = parts.str[:2].str.join("/")
    frame["case"] = parts.map(lambda names: " ".join(names[2:] or names[1:]))
    frame["kind"] = parts.str[-1]
    frame["spread"] = text(frame, "low_us", "{low_us}..{high_us}")
    least = frame.groupby("group")["in_range"].transform("min")
    frame["in_range"] = frame["in_range"].where(least < 1)  # see the text
    frame["rows"] = frame["rows"].where(frame["points"].notna()).astype("Int64")
    frame["G points/s"] = frame["points"] / frame["us"] * 1e-3

    # The ratio of a case of methods to the same case with linear.
    linear = frame["name"].where(frame["group"].str.endswith("/methods"))
    linear = linear.str.replace(r" [^ /]+(?=/|$)", " linear", n=1, regex=True)
    for title, per in (("/ linear", 1), ("/ linear, a byte", frame["bytes"])):
        time = frame["us"] / per
        frame[title] = rounded(time / linear.map(dict(zip(frame["name"], time))), "{:.2f}")

    # The ratio of cold calls, and of hot ones that leave nothing in L2 for the next, to copies of
    # the same bytes.
    calls = frame[frame["group"].str.match("cuda/(?!copy)") & frame["kind"].isin(["hot", "cold"])]
    calls = calls[~calls["name"].str.rsplit("/", n=1).str[0].duplicated(keep="last")]
    large = calls["bytes"] > float(result["context"].get("gpu_l2_bytes", 0))
    calls = calls[large | (calls["kind"] == "cold")]
    if len(measured := copies(frame)):
        copy = np.interp(calls["bytes"], measured.index, measured, left=np.nan, right=np.nan)
        frame["x_copy"] = calls["us"] / copy
    return frame


def copies(frame: DataFrame) -> Series:
    """Return the microseconds of copies by bytes: the faster kind, and cold if that differs."""
    runs = frame[frame["group"] == "cuda/copy"]
    cold_first = runs.groupby(["bytes", runs["kind"] == "hot"])["us"].min()
    return cold_first.groupby("bytes").first()


def sweep_points(frame: DataFrame) -> DataFrame:
    """Return the sweep, with the axis and the type of each point's line, and the size along it."""
    points = frame[frame["group"] == "cuda/sweep"]
    names = points["case"].str.extract(r"^(?P<axis>\w)=(?P<size>\d+): \S+ (?P<type>\w+)")
    points = points.join(names.astype({"size": int}))
    points["bound_us"] = 1.5 * points["floor_us"] + 3
    points["x_bound"] = points["us"] / points["bound_us"]
    return points.drop_duplicates(["axis", "type", "size"], keep="last")


def sweep_table(frame: DataFrame) -> list[str]:
    """Return the worst point of each line of the sweep, and of all."""
    points = sweep_points(frame)
    lines = points.groupby(["axis", "type"], sort=False)
    worst = points.loc[lines["x_bound"].idxmax()].set_index(["axis", "type"])
    worst = worst.join(lines["size"].agg(["min", "max", "count"])).reset_index()
    worst["line"] = text(worst, "axis", "{axis} = {min} to {max}, {type}")
    worst["ratio"] = rounded(worst["x_bound"], "{:.2f}")
    titles = {"line": "cuda/sweep", "count": "points", "case": "the worst", "us": "us"}
    titles |= {"floor_us": "floor us", "x_floor": "x floor", "ratio": f"/ ({BOUND})"}
    most = f"The worst point of the sweep is {{case}}: {{us}} us, {{ratio}} of {BOUND}."
    return [table(worst, titles), *text(worst.nlargest(1, "x_bound"), "us", most)]


def timed(entries: list[Result], *columns: str) -> DataFrame:
    """Return a row for each peer that was timed. Its cell has the median, and half the
    interquartile range in percent of it.
    """
    times = ["median_us", "p25_us", "p75_us", "compile_s", "error", "skipped"]
    frame = DataFrame(entries, columns=[*columns, *times])
    half = (frame["p75_us"] - frame["p25_us"]) / 2 / frame["median_us"]
    frame["half"] = rounded(half, " ± {:.0%}")
    instead = frame["error"].notna().map({True: "failed", False: "skipped"})
    frame["cell"] = text(frame, "median_us", "{median_us}{half}")
    frame["cell"] = frame["cell"].fillna(instead)
    frame["spread"] = text(frame, "p25_us", "{p25_us}..{p75_us}")
    return frame


def render_peers(result: Result) -> list[str]:
    rows = [
        {**case, "peer": name, **peer}
        for case in result["cases"]
        for name, peer in {"floor": {"median_us": case["floor_us"]}, **case["peers"]}.items()
    ]
    frame = timed(rows, "op", "case", "device", "peer", "off").drop_duplicates(
        ["op", "case", "peer"]
    )
    parts = [facts(result["environment"])]
    for op, rows in frame.groupby("op", sort=False):
        kinds = rows["case"].str.extract("^([^/]*)/")[0].fillna("")  # for clouds, their result
        parts += [peer_table(op, kind, some) for kind, some in rows.groupby(kinds, sort=False)]
        if rows["off"].notna().any():
            parts.append(off_table(op, rows.dropna(subset="off")))
        for peer, some in rows.dropna(subset="compile_s").groupby("peer", sort=False):
            calls = text(some, "compile_s", "{case}: {compile_s} s")
            parts.append(f"First call of {peer}: " + "; ".join(calls))
        parts.extend(text(rows, "error", "FAILED {case}: {peer}: {error}"))
        reasons = rows.drop_duplicates(["peer", "skipped"])
        parts.extend(text(reasons, "skipped", "Skipped {peer}: {skipped}"))
    if result.get("changing"):
        parts += changing_shapes(timed(result["changing"], "name", "shapes", "first_s"))
    if result["overhead"]:
        titles = {"name": "host time of a call", "median_us": "us", "spread": "p25..p75"}
        parts.append(table(timed(result["overhead"], "name"), titles))
    return parts


def peer_table(op: str, kind: str, rows: DataFrame) -> str:
    """Return cases side by side, with the ratio to our time, and for graphs to our graph."""
    grid = rows.pivot(index="peer", columns="case").reindex(rows["peer"].unique())
    in_graph = grid.index.str.endswith(", graph")
    ours = grid["median_us"].reindex(np.where(in_graph, "robocache, graph", "robocache"))
    ratio = grid["median_us"] / ours.to_numpy()
    ratio[grid.index.str.match("robocache|floor$")] = np.nan
    cells = grid["cell"] + (", " + ratio.map(number) + " x").where(ratio.notna(), "")
    cells = cells[cells.replace("skipped", np.nan).notna().any(axis=1)]
    titles = {"peer": f"{f'{op} {kind}'.strip()}, {rows['device'].iloc[0]}, us"}
    titles |= {case: case.removeprefix(f"{kind}/") for case in rows["case"].unique()}
    return table(cells.reset_index(), titles)


def off_table(op: str, rows: DataFrame) -> str:
    """Return the errors of results, cases side by side."""
    errors = rows["off"].map(lambda off: ", ".join(f"{k} {v:.1g}" for k, v in off.items()))
    grid = rows.assign(errors=errors).pivot(index="peer", columns="case", values="errors")
    titles = {"peer": f"{op}, off by, in standard deviations"}
    titles |= {case: case for case in rows["case"].unique()}
    return table(grid.reindex(rows["peer"].unique()).reset_index(), titles)


def changing_shapes(frame: DataFrame) -> list[str]:
    """Return the first pass through all shapes, and later passes."""
    frame["first_ms"] = frame["first_s"] * 1e3
    parts = []
    for shapes in frame["shapes"].dropna()[:1]:
        titles = {"name": f"{len(shapes)} shapes, one after another", "first_ms": "first pass, ms"}
        titles |= {"median_us": "later, us a call", "spread": "p25..p75"}
        parts = [table(frame.dropna(subset="first_s"), titles), "Shapes: " + "; ".join(shapes)]
    parts.extend(text(frame, "error", "FAILED changing shapes: {name}: {error}"))
    return [*parts, *text(frame, "skipped", "Skipped {name}: {skipped}")]


def render_training(result: Result) -> list[str]:
    parts = [facts(result["environment"])]
    for loop in result["loops"]:
        streams = ", ".join(f"{samples}x{channels}" for samples, channels in loop["streams"])
        title = "{data}, B={batch}: {} -> {ticks} {dtype}, {step} step".format(streams, **loop)
        titles = {"label": title, "cell": "us a step", "over": "/ no alignment"}
        titles |= {"episodes/s": "episodes/s", "wait_us": "waits", "alignment_us": "alignment"}
        titles |= {"share": "its share", "alignment_host_us": "its host time"}
        ways = [{"name": name, **way} for name, way in loop["ways"].items()]
        frame = timed(ways, *titles, "name", "deviates")
        frame["label"] = frame["name"] + np.where(frame["deviates"].isna(), "", " (deviates)")
        without = frame.loc[frame["name"] == "no alignment", "median_us"].max()
        frame["over"] = frame["median_us"] / without
        frame["share"] = rounded(frame["share"], "{:.2%}")
        parts.append(table(frame, titles))
        parts.extend(text(frame, "compile_s", "First call of {name}: {compile_s} s"))
        parts.extend(text(frame, "deviates", "{name} deviates: {deviates}"))
        parts.extend(text(frame, "error", "FAILED {name}: {error}"))
    return parts + [f"Skipped {name}: {reason}" for name, reason in result["skipped"].items()]


def render(result: Result) -> str:
    kinds = {"benchmarks": render_bench, "loops": render_training, "cases": render_peers}
    return "\n\n".join(next(kinds[key] for key in kinds if key in result)(result))


if __name__ == "__main__":
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE.json")
    for path in parser.parse_args().files:
        print(f"### {path.name}\n\n{render(json.loads(path.read_text()))}\n")
