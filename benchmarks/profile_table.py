"""Turn ncu's CSV into a Markdown table.

    python benchmarks/profile_table.py build/gpu/profile.csv

The file is what scripts/profile.sh writes: the raw page, in base units, of calls in ranges that
are named case=NAME; by robocache_bench.
"""

from __future__ import annotations

import csv
import pathlib
import re
import sys

from render import number, table

# Columns by patterns: their names differ between versions of ncu.
TIME = re.compile(r"gpu__time_duration\.sum$")
SHARES = {
    "DRAM %": re.compile(r"(^|_)dram_+throughput\.avg\.pct_of_peak_sustained_elapsed$"),
    "L2 %": re.compile(r"^lts__throughput\.avg\.pct_of_peak_sustained_elapsed$"),
    "SM %": re.compile(r"^sm__throughput\.avg\.pct_of_peak_sustained_elapsed$"),
    "occupancy %": re.compile(r"^sm__warps_active\.avg\.pct_of_peak_sustained_active$"),
}
# Warps that wait for this, for each instruction that is issued.
STALL = re.compile(r"issue_stalled_(?P<reason>\w+?)_per_(warp|issue)_active\.ratio$")
CASE = re.compile(r"case=(?P<name>[^;]*);")
MOST_STALLS = 3
LEAST_STALL = 0.05  # of all


def rows_of(path: pathlib.Path) -> list[dict[str, str]]:
    lines = path.read_text().splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        sys.exit(f"profile_table.py: {path} has no table: " + " ".join(lines[-3:]))
    rows = list(csv.DictReader(lines[begin:]))
    return [row for row in rows if row["ID"]]  # but that of the units


def value(row: dict[str, str], pattern: re.Pattern[str]) -> float | None:
    for name, text in row.items():
        if name and pattern.search(name) and text:
            return float(text.replace(",", ""))
    return None


def stalls(row: dict[str, str]) -> str:
    found = {}
    for name, text in row.items():
        match = STALL.search(name or "")
        if match and text and "not_issued" not in name and match["reason"] != "selected":
            found[match["reason"]] = float(text.replace(",", ""))
    total = sum(found.values())
    largest = sorted(found.items(), key=lambda item: -item[1])[:MOST_STALLS]
    return ", ".join(
        f"{reason.replace('_', ' ')} {100 * count / total:.0f} %"
        for reason, count in largest
        if count > LEAST_STALL * total
    )


def render(path: pathlib.Path) -> str:
    cells = []
    before = None
    for row in rows_of(path):
        text = " ".join(cell for cell in row.values() if isinstance(cell, str))
        case = match["name"] if (match := CASE.search(text)) else ""
        time = value(row, TIME)
        cells.append(
            ["" if case == before else case, f"`{row['Kernel Name'].partition('(')[0]}`"]
            + [number(None if time is None else time * 1e-3)]
            + [number(value(row, pattern)) for pattern in SHARES.values()]
            + [stalls(row)]
        )
        before = case
    return table(["case", "kernel", "us", *SHARES, "warps wait for"], cells)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(render(pathlib.Path(sys.argv[1])))
