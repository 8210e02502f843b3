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
from collections.abc import Iterable
from typing import Any

Entry = dict[str, Any]


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    rows = [header, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    rows.insert(1, ["-" * widths[0], *("-" * (w - 1) + ":" for w in widths[1:])])
    cells = [[r[0].ljust(widths[0]), *map(str.rjust, r[1:], widths[1:])] for r in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in cells)


def number(value: Any) -> str:
    """Three digits that matter."""
    if value is None:
        return ""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def spread(entry: Entry, low: str = "p25_us", high: str = "p75_us") -> str:
    return f"{number(entry[low])}..{number(entry[high])}" if low in entry else ""


def facts(pairs: Entry) -> str:
    return ", ".join(f"{key} {value}" for key, value in pairs.items() if value not in (None, ""))


# ---- robocache_bench -----------------------------------------------------------------------------

_MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}


def bench_entries(result: Entry) -> dict[str, list[Entry]]:
    """Benchmarks by the first two parts of the name, such as cuda/resample; each with the other
    parts and its time in microseconds.
    """
    groups: dict[str, list[Entry]] = {}
    for entry in result["benchmarks"]:
        if entry.get("run_type") == "aggregate":
            continue
        parts = entry["name"].removesuffix("/iterations:1/manual_time").split("/")
        failed = entry.get("error_occurred") or entry.get("skipped")
        time = None if failed else entry["real_time"] * _MICROSECONDS[entry["time_unit"]]
        entry = {**entry, "parts": parts[2:], "failed": failed, "us": time}
        groups.setdefault("/".join(parts[:2]), []).append(entry)
    return groups


def copies(groups: dict[str, list[Entry]]) -> list[tuple[float, float]]:
    """Bytes and microseconds of copies, by size: the faster kind, cold where that differs."""
    found: dict[tuple[float, bool], float] = {}
    for entry in groups.get("cuda/copy", []):
        if not entry["failed"]:
            size = (entry["bytes"], entry["parts"][-1:] == ["hot"])
            found[size] = min(entry["us"], found.get(size, entry["us"]))
    return sorted(
        (size, us) for (size, hot), us in found.items() if not hot or (size, 0) not in found
    )


def _add_over_copy(groups: dict[str, list[Entry]], l2_bytes: float) -> None:
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


_COUNTERS = {
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


def _bench_table(group: str, entries: list[Entry]) -> str:
    """Columns that nobody fills are left out, and shares in range that are all 1: see the text."""
    rows: list[Entry] = []
    by_name = {tuple(entry["parts"]): entry for entry in entries}
    for entry in entries:
        row = {group: " ".join(entry["parts"]) or group.split("/")[1]}
        rows.append(row)
        if entry["failed"]:
            row["us"] = f"FAILED: {entry.get('error_message') or entry.get('skip_message', '')}"
            continue
        row |= {"us": number(entry["us"]), "p10..p90": spread(entry, "low_us", "high_us")}
        row |= {title: number(entry.get(key)) for title, key in _COUNTERS.items()}
        if group.endswith("/voxelize"):
            row["rows"] = f"{entry['rows']:.0f}"
            row["G points/s"] = number(entry["points"] / entry["us"] * 1e-3)
        if group.endswith("/methods"):
            case, *others = entry["parts"]
            linear = by_name.get((f"{case.rpartition(' ')[0]} linear", *others))
            if linear is not None and not linear["failed"]:
                ratio = entry["us"] / linear["us"]
                row["/ linear"] = f"{ratio:.2f}"
                row["/ linear, a byte"] = f"{ratio * linear['bytes'] / entry['bytes']:.2f}"
    titles = [group, "us", "p10..p90", *_COUNTERS, "rows", "G points/s", "/ linear"]
    used = [
        title for title in [*titles, "/ linear, a byte"] if any(map(lambda r: r.get(title), rows))
    ]
    if min((entry.get("in_range", 1) for entry in entries), default=1) == 1:
        used = [title for title in used if title != "in range"]
    return table(used, [[row.get(title, "") for title in used] for row in rows])


# ---- its sweep: one size at a time ---------------------------------------------------------------

_FACTOR, _MARGIN_US = 1.5, 3.0
BOUND = f"{_FACTOR:g} x floor + {_MARGIN_US:g} us"


def sweep_lines(entries: list[Entry]) -> dict[tuple[str, str], dict[int, Entry]]:
    """Entries by the axis and the dtype of its line, and by the size along it."""
    found: dict[tuple[str, str], dict[int, Entry]] = {}
    for entry in entries:
        name = re.fullmatch(r"(\w)=(\d+): \S+ (\w+)", entry["parts"][0])
        if name is not None and not entry["failed"]:
            found.setdefault((name[1], name[3]), {})[int(name[2])] = entry
    return found


def bound_us(entry: Entry) -> float:
    return _FACTOR * entry["floor_us"] + _MARGIN_US


def _over_bound(entry: Entry) -> float:
    return entry["us"] / bound_us(entry)


def _sweep_tables(entries: list[Entry]) -> list[str]:
    """Of each line of the sweep its worst point, and that of all."""
    rows, worst_points = [], []
    for (axis, dtype), points in sweep_lines(entries).items():
        worst = max(points.values(), key=_over_bound)
        worst_points.append(worst)
        row = [f"{axis} = {min(points)} to {max(points)}, {dtype}", str(len(points))]
        row += [
            " ".join(worst["parts"]),
            *(number(worst[k]) for k in ("us", "floor_us", "x_floor")),
        ]
        rows.append([*row, f"{_over_bound(worst):.2f}"])
    header = ["cuda/sweep", "points", "the worst", "us", "floor us", "x floor", f"/ ({BOUND})"]
    parts = [table(header, rows)]
    if worst_points:
        worst = max(worst_points, key=_over_bound)
        name = " ".join(worst["parts"])
        parts.append(
            f"The worst point of the sweep is {name}: {number(worst['us'])} us, "
            f"{_over_bound(worst):.2f} of {BOUND}."
        )
    failed = [e for e in entries if e["failed"]]
    return parts + [f"FAILED {' '.join(e['parts'])}: {e.get('error_message', '')}" for e in failed]


def render_bench(result: Entry) -> str:
    keys = "date robocache commit gpu cuda_driver cuda_runtime cpu cpu_simd cpu_threads".split()
    parts = [facts({key: result["context"].get(key) for key in keys})]
    groups = bench_entries(result)
    _add_over_copy(groups, float(result["context"].get("gpu_l2_bytes", 0)))
    for group, entries in groups.items():
        is_sweep = group.endswith("/sweep")
        parts += _sweep_tables(entries) if is_sweep else [_bench_table(group, entries)]
    return "\n\n".join(parts)


# ---- peers.py ------------------------------------------------------------------------------------

_MOST_COLUMNS = 8


def render_peers(result: Entry) -> str:
    parts = [facts(result["environment"])]
    for op in dict.fromkeys(case["op"] for case in result["cases"]):
        parts += _peer_tables(op, [case for case in result["cases"] if case["op"] == op])
    if result.get("changing"):
        parts += _changing_shapes(result["changing"])
    if result["overhead"]:
        rows = [[e["name"], number(e["median_us"]), spread(e)] for e in result["overhead"]]
        parts.append(table(["host time of a call", "us", "p25..p75"], rows))
    return "\n\n".join(parts)


def _changing_shapes(entries: list[Entry]) -> list[str]:
    """A first pass through all shapes, and those that follow."""
    parts = []
    if well := [entry for entry in entries if "first_s" in entry]:
        title = f"{len(well[0]['shapes'])} shapes, one after another"
        header = [title, "first pass, ms", "later, us a call", "p25..p75"]
        rows = [
            [e["name"], number(e["first_s"] * 1e3), number(e["median_us"]), spread(e)] for e in well
        ]
        parts = [table(header, rows), "Shapes: " + "; ".join(well[0]["shapes"])]
    parts += [f"FAILED changing shapes: {e['name']}: {e['error']}" for e in entries if "error" in e]
    return parts + [f"Skipped {e['name']}: {e['skipped']}" for e in entries if "skipped" in e]


def _peer_tables(op: str, cases: list[Entry]) -> list[str]:
    """Cases side by side; those of voxels by what becomes of the points, as others do each."""
    parts = []
    for kind in dict.fromkeys(map(_kind, cases)):
        some = [case for case in cases if _kind(case) == kind]
        count = -(-len(some) // (_MOST_COLUMNS - 1))  # of tables
        for k in range(count):
            part = some[k * len(some) // count : (k + 1) * len(some) // count]
            parts.append(_peer_table(f"{op} {kind}".strip(), part))
    peers = [(case["case"], *pair) for case in cases for pair in case["peers"].items()]
    for name in dict.fromkeys(name for _, name, _ in peers):
        compiled = [
            f"{case}: {number(peer['compile_s'])} s"
            for case, n, peer in peers
            if n == name and "compile_s" in peer
        ]
        if compiled:
            parts.append(f"First call of {name}: " + "; ".join(compiled))
    parts += [f"FAILED {case}: {n}: {peer['error']}" for case, n, peer in peers if "error" in peer]
    reasons = {name: peer["skipped"] for _, name, peer in peers if "skipped" in peer}
    return parts + [f"Skipped {name}: {reason}" for name, reason in reasons.items()]


def _kind(case: Entry) -> str:
    kind, slash, _ = case["case"].partition("/")
    return kind if slash else ""


def _peer_table(title: str, cases: list[Entry]) -> str:
    names = list(dict.fromkeys(name for case in cases for name in case["peers"]))
    rows = [["floor", *(number(case["floor_us"]) for case in cases)]]
    for name in names:
        cells = [_cell(case["peers"].get(name)) + _over_ours(case["peers"], name) for case in cases]
        if any(cell not in ("", "skipped") for cell in cells):
            rows.append([name, *cells])
    within = (case["case"].removeprefix(_kind(case)).removeprefix("/") for case in cases)
    return table([f"{title}, {cases[0]['device']}, us", *within], rows)


def _cell(peer: Any) -> str:
    """The median, and half the distance of the quartiles in percent of it."""
    if peer is None or "median_us" not in peer:
        return "" if peer is None else "failed" if "error" in peer else "skipped"
    half = (peer["p75_us"] - peer["p25_us"]) / 2 / peer["median_us"]
    return f"{number(peer['median_us'])} ± {half:.0%}"


def _over_ours(peers: Entry, name: str) -> str:
    """A peer's time over ours: under a graph over ours under one."""
    own = "robocache, graph" if name.endswith(", graph") else "robocache"
    times = [peers.get(n, {}).get("median_us") for n in (name, own)]
    if name.startswith("robocache") or None in times:
        return ""
    return f", {number(times[0] / times[1])} x"


# ---- training.py ---------------------------------------------------------------------------------


def render_training(result: Entry) -> str:
    parts = [facts(result["environment"])]
    for loop in result["loops"]:
        parts += _loop_table(loop)
    parts += [f"Skipped {name}: {reason}" for name, reason in result["skipped"].items()]
    return "\n\n".join(parts)


def _loop_table(loop: Entry) -> list[str]:
    streams = ", ".join(f"{samples}x{channels}" for samples, channels in loop["streams"])
    title = (
        f"{loop['data']}, B={loop['batch']}: {streams} -> {loop['ticks']} {loop['dtype']}, "
        f"{loop['step']} step"
    )
    header = [title, "us a step", "/ no alignment", "episodes/s", "waits", "alignment", "its share"]
    ways = loop["ways"]
    without = ways.get("no alignment", {}).get("median_us")
    rows = []
    for name, way in ways.items():
        row = [f"{name} (deviates)" if "deviates" in way else name, _cell(way)]
        if "median_us" in way:
            row.append(number(without and way["median_us"] / without))
            row += [number(way["episodes/s"]), number(way["wait_us"])]
            row += [
                number(way.get("alignment_us")),
                f"{way['share']:.2%}" if "share" in way else "",
            ]
            row.append(number(way.get("alignment_host_us")))
        rows.append(row + [""] * (len(header) + 1 - len(row)))
    notes = []
    for key, text in (
        ("compile_s", "First call of {}: {} s"),
        ("deviates", "{} deviates: {}"),
        ("error", "FAILED {}: {}"),
    ):
        some = [(name, way[key]) for name, way in ways.items() if key in way]
        notes += [text.format(n, number(v) if key == "compile_s" else v) for n, v in some]
    return [table([*header, "its host time"], rows), *notes]


def render(result: Entry) -> str:
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
