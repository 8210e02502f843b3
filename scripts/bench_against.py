"""Compare a run of robocache_bench with a recorded one.

    bench_against.py --measured RUN.json --record FILE
    bench_against.py --measured RUN.json --against FILE [--bench PROGRAM] [--limit 8] [--rounds 3]

The script compares the ratio of each case's time to that of a copy in the same run, so that the
load and the clock of the machine matter little. A case that is slower by more than `limit` percent
is measured again by PROGRAM, and its best ratio counts; if it stays slower, the status is 1. The
status is 2 if nothing can be compared: another processor, or no common case.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

SUFFIX = "/iterations:1/manual_time"
# By the first part of names.
DEVICES = {"cpu": ("cpu", "cpu_simd", "cpu_threads"), "cuda": ("gpu",)}


def ratios(run: dict) -> dict[str, float]:
    """Return for each case that moves memory its time divided by the copy's."""
    return {
        entry["name"].removesuffix(SUFFIX): entry["x_floor"]
        for entry in run["benchmarks"]
        if "x_floor" in entry and "error_message" not in entry
    }


def summary(run: dict) -> dict:
    """Return the recorded part of a run."""
    context = run["context"]
    keys = ("commit", "robocache", *DEVICES["cpu"], *DEVICES["cuda"])
    kept = {key: context[key] for key in keys if key in context}
    return {"context": kept, "ratios": {k: round(v, 4) for k, v in sorted(ratios(run).items())}}


def others(recorded: dict, measured: dict) -> list[str]:
    """Return the differences between the devices of two runs."""
    kinds = {name.partition("/")[0] for name in measured["ratios"]}
    return [
        f"{key} is {measured['context'].get(key)}, recorded was {recorded['context'].get(key)}"
        for kind in sorted(kinds & set(DEVICES))
        for key in DEVICES[kind]
        if recorded["context"].get(key) != measured["context"].get(key)
    ]


def slower(recorded: dict, measured: dict, limit: float) -> dict[str, float]:
    """Return by how much cases are slower, if that exceeds the limit."""
    changes = {
        name: ratio / recorded["ratios"][name]
        for name, ratio in measured["ratios"].items()
        if recorded["ratios"].get(name, 0) > 0
    }
    return {name: change for name, change in changes.items() if change > 1 + limit / 100}


def measure(bench: str, names: list[str]) -> dict[str, float]:
    """Measure the ratios of these cases again."""
    filters = "|".join(re.sub(r"([.\[\]{}()*+?^$|\\])", r"\\\1", name) for name in names)
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "again.json"
        command = [bench, f"--benchmark_filter=^({filters})(/|$)", f"--benchmark_out={out}"]
        subprocess.run([*command, "--benchmark_out_format=json"], check=True, stdout=sys.stderr)
        return ratios(json.loads(out.read_text()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measured", type=pathlib.Path, required=True)
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--against", type=pathlib.Path)
    parser.add_argument("--bench")
    parser.add_argument("--limit", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    measured = summary(json.loads(options.measured.read_text()))
    if options.record:
        options.record.write_text(json.dumps(measured, indent=1) + "\n")
        print(f"{options.record}: {len(measured['ratios'])} cases")
    if not options.against:
        return 0 if options.record else 2

    recorded = json.loads(options.against.read_text())
    common = set(recorded["ratios"]) & set(measured["ratios"])
    wrong = others(recorded, measured) or ([] if common else ["no case is in both"])
    for line in wrong:
        print(f"{options.against}: {line}")
    if wrong:
        return 2
    found = slower(recorded, measured, options.limit)
    for _ in range(options.rounds if options.bench else 0):
        if not found:
            break
        for name, ratio in measure(options.bench, sorted(found)).items():
            if name in measured["ratios"]:
                measured["ratios"][name] = min(ratio, measured["ratios"][name])
        found = slower(recorded, measured, options.limit)
    for name, change in sorted(found.items(), key=lambda one: -one[1]):
        was, now = recorded["ratios"][name], measured["ratios"][name]
        print(f"{change:5.2f} x slower: {name}, {was:.2f} to {now:.2f} of a copy")
    left_out = len(set(recorded["ratios"]) - common)
    more = f", {left_out} recorded ones were not measured" if left_out else ""
    verdict = f"slower by more than {options.limit:g} %: {len(found)}"
    print(f"{len(common)} cases against {recorded['context'].get('commit', '?')}, {verdict}{more}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
