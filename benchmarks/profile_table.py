"""Convert ncu's CSV to a Markdown table.

    python benchmarks/profile_table.py build/gpu/profile.csv

The file comes from scripts/profile.sh: the raw page, in base units, of the calls of
robocache_bench, in ranges named case=NAME.
"""

import io
import pathlib
import sys

import pandas
from render import table

# Columns by patterns: their names differ between versions of ncu.
NUMBERS = {
    "us": r"gpu__time_duration\.sum$",
    "DRAM %": r"(?:^|_)dram_+throughput\.avg\.pct_of_peak_sustained_elapsed$",
    "L2 %": r"^lts__throughput\.avg\.pct_of_peak_sustained_elapsed$",
    "SM %": r"^sm__throughput\.avg\.pct_of_peak_sustained_elapsed$",
    "occupancy %": r"^sm__warps_active\.avg\.pct_of_peak_sustained_active$",
}
# Warps stalled for this reason, per issued instruction.
STALL = r"issue_stalled_(?!selected|\w*not_issued)(\w+?)_per_(?:warp|issue)_active\.ratio$"


def stalls(row: pandas.Series) -> str:
    """Return the three largest shares, if above 5 percent."""
    shares = (100 * row / row.sum()).nlargest(3)
    return ", ".join(f"{reason} {share:.0f} %" for reason, share in shares.items() if share > 5)


def render(path: pathlib.Path) -> str:
    said, header, rows = path.read_text().partition('"ID"')
    if not header:
        sys.exit(f"profile_table.py: {path} has no table: {said[-300:]}")
    frame = pandas.read_csv(io.StringIO(header + rows), dtype=str).dropna(subset="ID")  # no units
    cases = frame.fillna("").agg(" ".join, axis=1).str.extract("case=([^;]*);")[0].fillna("")
    frame["case"] = cases.where(cases != cases.shift(), "")
    frame["kernel"] = "`" + frame["Kernel Name"].str.partition("(")[0] + "`"
    measured = frame.filter(like="__").replace(",", "", regex=True).astype(float)
    for title, pattern in NUMBERS.items():
        found = measured.filter(regex=pattern).assign(none=float("nan"))
        frame[title] = found.bfill(axis=1).iloc[:, 0]  # the first column that exists
    frame["us"] *= 1e-3  # from ns
    waits = measured.filter(regex=STALL)
    waits.columns = waits.columns.str.extract(STALL)[0].str.replace("_", " ")
    frame["warps wait for"] = waits.apply(stalls, axis=1)
    titles = ["case", "kernel", *NUMBERS, "warps wait for"]
    return table(frame, {title: title for title in titles})


if __name__ == "__main__":
    print(render(pathlib.Path(sys.argv[1])))
