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
from collections.abc import Iterable
from typing import Any

import sweep


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    rows = [header, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    lines = []
    for k, row in enumerate(rows):
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))]
        lines.append("| " + " | ".join(cells) + " |")
        if k == 0:
            rule = ["-" * widths[0], *("-" * (w - 1) + ":" for w in widths[1:])]
            lines.append("| " + " | ".join(rule) + " |")
    return "\n".join(lines)


def number(value: Any) -> str:
    """Three digits that matter."""
    if value is None:
        return ""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def spread(low: Any, high: Any) -> str:
    return "" if low is None or high is None else f"{number(low)}..{number(high)}"


def facts(pairs: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in pairs.items() if value not in (None, ""))


# ---- robocache_bench -----------------------------------------------------------------------------

_MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}


def bench_entries(result: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Benchmarks by the first two parts of the name, such as cuda/resample; each with the other
    parts and its time in microseconds.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for entry in result["benchmarks"]:
        if entry.get("run_type") == "aggregate":
            continue
        parts = entry["name"].removesuffix("/iterations:1/manual_time").split("/")
        failed = entry.get("error_occurred") or entry.get("skipped")
        time = None if failed else entry["real_time"] * _MICROSECONDS[entry["time_unit"]]
        entry = {**entry, "parts": parts[2:], "failed": failed, "us": time}
        groups.setdefault("/".join(parts[:2]), []).append(entry)
    return groups


def copies(groups: dict[str, list[dict[str, Any]]]) -> list[tuple[float, float]]:
    """Bytes and microseconds of copies, by size: the faster kind, cold where that differs."""
    found: dict[tuple[float, bool], float] = {}
    for entry in groups.get("cuda/copy", []):
        if not entry["failed"]:
            size = (entry["bytes"], entry["parts"][-1:] == ["hot"])
            found[size] = min(entry["us"], found.get(size, entry["us"]))
    return sorted(
        (size, us) for (size, hot), us in found.items() if not (hot and (size, False) in found)
    )


def _add_over_copy(groups: dict[str, list[dict[str, Any]]], l2_bytes: float) -> None:
    """x_copy: the time over that of a copy of as many bytes, between the sizes that were measured;
    of cold calls, and of those that leave nothing of themselves in L2.
    """
    measured = copies(groups)
    for group, entries in groups.items():
        if not group.startswith("cuda/") or group == "cuda/copy":
            continue
        cold = {tuple(entry["parts"][:-1]) for entry in entries if entry["parts"][-1:] == ["cold"]}
        for entry in entries:
            *case, kind = entry["parts"] or [""]
            large = kind == "hot" and tuple(case) not in cold and entry.get("bytes", 0) > l2_bytes
            if entry["failed"] or not (kind == "cold" or large):
                continue
            for (less, before), (more, after) in zip(measured, measured[1:]):
                if less <= entry["bytes"] <= more:
                    part = (entry["bytes"] - less) / (more - less)
                    entry["x_copy"] = entry["us"] / (before + part * (after - before))
                    break


def _bench_table(group: str, entries: list[dict[str, Any]]) -> str:
    counters = {
        "floor us": "floor_us",
        "x floor": "x_floor",
        "x copy": "x_copy",
        "GB/s": "GB/s",
        "in range": "in_range",
        "p99": "p99_us",
        "p99.9": "p999_us",
        "longest": "most_us",
        "x one GPU": "x_one",
    }
    header = [group, "us", "p10..p90", *counters]
    rows = []
    for entry in entries:
        label = " ".join(entry["parts"]) or group.split("/")[1]
        if entry["failed"]:
            reason = entry.get("error_message") or entry.get("skip_message", "")
            rows.append([label, f"FAILED: {reason}", *[""] * (len(header) - 2)])
            continue
        row = [label, number(entry["us"]), spread(entry.get("low_us"), entry.get("high_us"))]
        rows.append(row + [number(entry.get(key)) for key in counters.values()])
    if group.endswith("/voxelize"):
        header += ["rows", "G points/s"]
        rows = [row + _points_per_second(entry) for row, entry in zip(rows, entries)]
    if group.endswith("/methods"):
        header += ["/ linear", "/ linear, a byte"]
        rows = [row + cells for row, cells in zip(rows, _over_linear(entries))]
    used = [i for i in range(len(header)) if i < 2 or any(row[i] for row in rows)]
    if min((entry.get("in_range", 1) for entry in entries), default=1) == 1:
        used = [i for i in used if header[i] != "in range"]  # see the text
    return table([header[i] for i in used], [[row[i] for i in used] for row in rows])


def _points_per_second(entry: dict[str, Any]) -> list[str]:
    """The voxels found, and points by time."""
    if entry["failed"]:
        return ["", ""]
    return [f"{entry['rows']:.0f}", number(entry["points"] / entry["us"] * 1e-3)]


def _over_linear(entries: list[dict[str, Any]]) -> list[list[str]]:
    """Of each method its time over linear's, and its time for a byte over linear's for one."""

    def key(entry: dict[str, Any], method: str) -> tuple[str, ...]:
        case = entry["parts"][0].rpartition(" ")[0]
        return (f"{case} {method}", *entry["parts"][1:])

    by_name = {tuple(entry["parts"]): entry for entry in entries}
    cells = []
    for entry in entries:
        linear = by_name.get(key(entry, "linear"))
        if entry["failed"] or linear is None or linear["failed"]:
            cells.append(["", ""])
            continue
        ratio = entry["us"] / linear["us"]
        bytes_ratio = entry["bytes"] / linear["bytes"]
        cells.append([f"{ratio:.2f}", f"{ratio / bytes_ratio:.2f}"])
    return cells


def _sweep_tables(entries: list[dict[str, Any]]) -> list[str]:
    """Of each line of the sweep its worst point, and that of all."""
    bound = f"{sweep.FACTOR:g} x floor + {sweep.MARGIN_US:g} us"
    rows = []
    worst_of_all: dict[str, Any] | None = None
    for (axis, dtype), points in sweep.lines(entries).items():
        worst = max(points.values(), key=sweep.over_bound)
        if worst_of_all is None or sweep.over_bound(worst) > sweep.over_bound(worst_of_all):
            worst_of_all = worst
        rows.append(
            [
                f"{axis} = {min(points)} to {max(points)}, {dtype}",
                str(len(points)),
                " ".join(worst["parts"]),
                *map(number, (worst["us"], worst["floor_us"], worst["x_floor"])),
                f"{sweep.over_bound(worst):.2f}",
            ]
        )
    header = ["cuda/sweep", "points", "the worst", "us", "floor us", "x floor", f"/ ({bound})"]
    parts = [table(header, rows)]
    if worst_of_all is not None:
        share = sweep.over_bound(worst_of_all)
        name = " ".join(worst_of_all["parts"])
        parts.append(
            f"The worst point of the sweep is {name}: {number(worst_of_all['us'])} us, "
            f"{share:.2f} of {bound}."
        )
    return parts + [
        f"FAILED {' '.join(e['parts'])}: {e.get('error_message', '')}"
        for e in entries
        if e["failed"]
    ]


def render_bench(result: dict[str, Any]) -> str:
    context = result["context"]
    keys = (
        "date",
        "robocache",
        "commit",
        "gpu",
        "cuda_driver",
        "cuda_runtime",
        "cpu",
        "cpu_simd",
        "cpu_threads",
    )
    parts = [facts({key: context.get(key) for key in keys})]
    groups = bench_entries(result)
    _add_over_copy(groups, float(context.get("gpu_l2_bytes", 0)))
    for group, entries in groups.items():
        is_sweep = group.endswith("/sweep")
        parts += _sweep_tables(entries) if is_sweep else [_bench_table(group, entries)]
    return "\n\n".join(parts)


# ---- peers.py ------------------------------------------------------------------------------------


def render_peers(result: dict[str, Any]) -> str:
    parts = [facts(result["environment"])]
    for op in dict.fromkeys(case["op"] for case in result["cases"]):
        parts += _peer_tables(op, [case for case in result["cases"] if case["op"] == op])
    if result.get("changing"):
        parts += _changing_shapes(result["changing"])
    if result["overhead"]:
        rows = [
            [entry["name"], number(entry["median_us"]), spread(entry["p25_us"], entry["p75_us"])]
            for entry in result["overhead"]
        ]
        parts.append(table(["host time of a call", "us", "p25..p75"], rows))
    return "\n\n".join(parts)


def _changing_shapes(entries: list[dict[str, Any]]) -> list[str]:
    """A first pass through all shapes, and those that follow."""
    well = [entry for entry in entries if "first_s" in entry]
    rows = [
        [
            entry["name"],
            number(entry["first_s"] * 1e3),
            number(entry["median_us"]),
            spread(entry["p25_us"], entry["p75_us"]),
        ]
        for entry in well
    ]
    parts = [f"FAILED changing shapes: {e['name']}: {e['error']}" for e in entries if "error" in e]
    if well:
        title = f"{len(well[0]['shapes'])} shapes, one after another"
        header = [title, "first pass, ms", "later, us a call", "p25..p75"]
        parts = [table(header, rows), "Shapes: " + "; ".join(well[0]["shapes"]), *parts]
    return parts + [f"Skipped {e['name']}: {e['skipped']}" for e in entries if "skipped" in e]


_MOST_COLUMNS = 8


def _peer_tables(op: str, cases: list[dict[str, Any]]) -> list[str]:
    """Cases side by side; those of voxels by what becomes of the points, as others do each."""
    names = list(dict.fromkeys(name for case in cases for name in case["peers"]))
    kinds = list(dict.fromkeys(_kind(case) for case in cases))
    parts = []
    for kind in kinds:
        some = [case for case in cases if _kind(case) == kind]
        count = -(-len(some) // (_MOST_COLUMNS - 1))  # of tables
        for k in range(count):
            part = some[k * len(some) // count : (k + 1) * len(some) // count]
            parts.append(_peer_table(f"{op} {kind}".strip(), part))
    for name in names:
        compiled = [
            f"{case['case']}: {number(case['peers'][name]['compile_s'])} s"
            for case in cases
            if "compile_s" in case["peers"].get(name, {})
        ]
        if compiled:
            parts.append(f"First call of {name}: " + "; ".join(compiled))
    parts += [
        f"FAILED {case['case']}: {name}: {peer['error']}"
        for case in cases
        for name, peer in case["peers"].items()
        if "error" in peer
    ]
    reasons = {
        name: peer["skipped"]
        for case in cases
        for name, peer in case["peers"].items()
        if "skipped" in peer
    }
    parts += [f"Skipped {name}: {reason}" for name, reason in reasons.items()]
    return parts


def _kind(case: dict[str, Any]) -> str:
    kind, slash, _ = case["case"].partition("/")
    return kind if slash else ""


def _peer_table(title: str, cases: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for case in cases for name in case["peers"]))
    rows = [["floor", *(number(case["floor_us"]) for case in cases)]]
    for name in names:
        cells = [_cell(case["peers"].get(name)) + _over_ours(case["peers"], name) for case in cases]
        if any(cell not in ("", "skipped") for cell in cells):
            rows.append([name, *cells])
    header = [f"{title}, {cases[0]['device']}, us", *(_within(case) for case in cases)]
    return table(header, rows)


def _within(case: dict[str, Any]) -> str:
    return str(case["case"]).removeprefix(_kind(case)).removeprefix("/")


def _cell(peer: Any) -> str:
    """The median, and half the distance of the quartiles in percent of it."""
    if peer is None:
        return ""
    if "error" in peer:
        return "failed"
    if "skipped" in peer:
        return "skipped"
    half = (peer["p75_us"] - peer["p25_us"]) / 2 / peer["median_us"]
    return f"{number(peer['median_us'])} ± {half:.0%}"


def _over_ours(peers: dict[str, Any], name: str) -> str:
    """A peer's time over ours: under a graph over ours under one."""
    own = "robocache, graph" if name.endswith(", graph") else "robocache"
    times = [peers.get(n, {}).get("median_us") for n in (name, own)]
    if name.startswith("robocache") or None in times:
        return ""
    return f", {number(times[0] / times[1])} x"


# ---- training.py ---------------------------------------------------------------------------------


def render_training(result: dict[str, Any]) -> str:
    parts = [facts(result["environment"])]
    for loop in result["loops"]:
        parts += _loop_table(loop)
    parts += [f"Skipped {name}: {reason}" for name, reason in result["skipped"].items()]
    return "\n\n".join(parts)


def _loop_table(loop: dict[str, Any]) -> list[str]:
    streams = ", ".join(f"{samples}x{channels}" for samples, channels in loop["streams"])
    title = (
        f"{loop['data']}, B={loop['batch']}: {streams} -> {loop['ticks']} {loop['dtype']}, "
        f"{loop['step']} step"
    )
    header = [
        title,
        "us a step",
        "/ no alignment",
        "episodes/s",
        "waits",
        "alignment",
        "its share",
        "its host time",
    ]
    ways = loop["ways"]
    without = ways.get("no alignment", {}).get("median_us")
    rows = []
    for name, way in ways.items():
        row = [f"{name} (deviates)" if "deviates" in way else name, _cell(way)]
        if "median_us" in way:
            over = None if without is None else way["median_us"] / without
            share = f"{way['share']:.2%}" if "share" in way else ""
            row += [number(over), number(way["episodes/s"]), number(way["wait_us"])]
            row += [number(way.get("alignment_us")), share, number(way.get("alignment_host_us"))]
        rows.append(row + [""] * (len(header) - len(row)))
    notes = [
        f"First call of {name}: {number(way['compile_s'])} s"
        for name, way in ways.items()
        if "compile_s" in way
    ]
    notes += [f"{n} deviates: {way['deviates']}" for n, way in ways.items() if "deviates" in way]
    notes += [f"FAILED {name}: {way['error']}" for name, way in ways.items() if "error" in way]
    return [table(header, rows), *notes]


def render(result: dict[str, Any]) -> str:
    if "benchmarks" in result:
        return render_bench(result)
    return render_training(result) if "loops" in result else render_peers(result)


def insert(document: str, name: str, text: str) -> str:
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    before, found, rest = document.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"render.py: the document has no lines {begin.strip()!r} and {end!r}")
    return f"{before}{begin}\n{text}\n\n{end}{after}"


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
            document = arguments.into.read_text()
            arguments.into.write_text(insert(document, path.stem, text))


if __name__ == "__main__":
    main()
