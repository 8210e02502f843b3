"""Turn ncu's CSV into a Markdown table.

    python benchmarks/profile_table.py build/gpu/profile.csv

The file is what scripts/profile.sh writes: the raw page, in base units, of calls in ranges that
are named case=NAME; by robocache_bench.
"""

from __future__ import annotations

import io
import pathlib
import sys

import pandas
from render import main, table

# Columns by patterns: their names differ between versions of ncu.
NUMBERS = {
    "us": r"gpu__time_duration\.sum$",
    "DRAM %": r"(^|_)dram_+throughput\.avg\.pct_of_peak_sustained_elapsed$",
    "L2 %": r"^lts__throughput\.avg\.pct_of_peak_sustained_elapsed$",
    "SM %": r"^sm__throughput\.avg\.pct_of_peak_sustained_elapsed$",
    "occupancy %": r"^sm__warps_active\.avg\.pct_of_peak_sustained_active$",
}
# Warps that wait for this, for each instruction that is issued.
STALL = r"issue_stalled_(?!selected|\w*not_issued)(\w+?)_per_(?:warp|issue)_active\.ratio$"
MOST_STALLS = 3
LEAST_STALL = 5  # percent of all


def stalls(row: pandas.Series) -> str:
    largest = (100 * row / row.sum()).nlargest(MOST_STALLS)
    return ", ".join(
        f"{why} {share:.0f} %" for why, share in largest.items() if share > LEAST_STALL
    )


def render(path: pathlib.Path) -> str:
    said, header, rows = path.read_text().partition('"ID"')
    if not header:
        sys.exit(f"profile_table.py: {path} has no table: {said[-300:]}")
    frame = pandas.read_csv(io.StringIO(header + rows), dtype=str)
    frame = frame.dropna(subset="ID")  # all but the units
    case = frame.fillna("").agg(" ".join, axis=1).str.extract(r"case=([^;]*);")[0].fillna("")
    shown = pandas.DataFrame({"case": case.where(case != case.shift(), "")})
    shown["kernel"] = "`" + frame["Kernel Name"].str.partition("(")[0] + "`"
    measured = frame.filter(regex="__").replace(",", "", regex=True).astype(float)
    for title, pattern in NUMBERS.items():
        found = measured.filter(regex=pattern).bfill(axis=1)
        shown[title] = found.iloc[:, 0] if len(found.columns) else None
    shown["us"] *= 1e-3  # ncu has ns
    waits = measured.filter(regex=STALL)
    waits.columns = waits.columns.str.extract(STALL)[0].str.replace("_", " ")
    shown["warps wait for"] = waits.apply(stalls, axis=1)
    return table(shown, {title: title for title in shown})


if __name__ == "__main__":
    main(__doc__, render)
