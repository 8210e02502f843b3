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
TIME = r"gpu__time_duration\.sum$"
SHARES = {
    "DRAM %": r"(^|_)dram_+throughput\.avg\.pct_of_peak_sustained_elapsed$",
    "L2 %": r"^lts__throughput\.avg\.pct_of_peak_sustained_elapsed$",
    "SM %": r"^sm__throughput\.avg\.pct_of_peak_sustained_elapsed$",
    "occupancy %": r"^sm__warps_active\.avg\.pct_of_peak_sustained_active$",
}
# Warps that wait for this, for each instruction that is issued.
STALL = r"issue_stalled_(?P<reason>\w+?)_per_(warp|issue)_active\.ratio$"
MOST_STALLS = 3
LEAST_STALL = 5  # percent of all


def rows_of(path: pathlib.Path) -> list[dict[str, str]]:
    lines = path.read_text().splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        sys.exit(f"profile_table.py: {path} has no table: " + " ".join(lines[-3:]))
    rows = list(csv.DictReader(lines[begin:]))
    return [row for row in rows if row["ID"]]  # but that of the units


def values(row: dict[str, str], pattern: str) -> list[tuple[re.Match[str], float]]:
    pairs = ((re.search(pattern, name or ""), text) for name, text in row.items())
    return [(match, float(text.replace(",", ""))) for match, text in pairs if match and text]


def cell(row: dict[str, str], pattern: str, unit: float = 1) -> str:
    found = values(row, pattern)
    return number(found[0][1] * unit) if found else ""


def stalls(row: dict[str, str]) -> str:
    found = {
        match["reason"]: count
        for match, count in values(row, STALL)
        if "not_issued" not in match.string and match["reason"] != "selected"
    }
    total = sum(found.values())
    shares = sorted(((100 * n / total, reason.replace("_", " ")) for reason, n in found.items()))
    largest = [pair for pair in reversed(shares) if pair[0] > LEAST_STALL][:MOST_STALLS]
    return ", ".join(f"{reason} {share:.0f} %" for share, reason in largest)


def render(path: pathlib.Path) -> str:
    rows = []
    before = None
    for row in rows_of(path):
        text = " ".join(cell for cell in row.values() if isinstance(cell, str))
        match = re.search(r"case=([^;]*);", text)
        case = match[1] if match else ""
        kernel = f"`{row['Kernel Name'].partition('(')[0]}`"
        shares = [cell(row, pattern) for pattern in SHARES.values()]
        rows.append(
            ["" if case == before else case, kernel, cell(row, TIME, 1e-3), *shares, stalls(row)]
        )
        before = case
    return table(["case", "kernel", "us", *SHARES, "warps wait for"], rows)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(render(pathlib.Path(sys.argv[1])))
