"""The tables that benchmarks/render.py and profile_table.py make of small results, cell by cell."""

import json
import runpy
import sys
from pathlib import Path

import pytest

for name in ("pandas", "tabulate"):
    pytest.importorskip(name)
BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import profile_table  # noqa: E402
import render  # noqa: E402


def lines_of(text: str) -> list:
    """Return lines of text, and rows of tables as lists of cells, without rulers."""
    lines = [line for line in text.splitlines() if line and not line.startswith("|:")]
    return [
        [cell.strip() for cell in line[1:-1].split("|")] if line.startswith("|") else line
        for line in lines
    ]


def bench(name: str, us: float, **counters: float) -> dict:
    return {"name": f"{name}/iterations:1/manual_time", "real_time": us, **counters}


def copied(name: str, us: float, size: float) -> dict:
    return bench(name, us, bytes=size, floor_us=size / 1e6)


def timed(us: float, **more: float) -> dict:
    us = float(us)
    return {"median_us": us, "p25_us": us * 0.96, "p75_us": us * 1.04, **more}


def test_robocache_bench() -> None:
    benchmarks = [
        copied("cuda/copy/1 MB/hot", 1, 1e6),
        copied("cuda/copy/1 MB/cold", 2, 1e6),
        copied("cuda/copy/1 MB, kernel/cold", 4, 1e6),
        copied("cuda/copy/3 MB/hot", 6, 3e6),
        # Over the 4 us of a cold copy, halfway from 2 to 6.
        copied("cuda/resample/a f32/hot", 5, 2e6),
        copied("cuda/resample/a f32/cold", 10, 2e6),
        bench("cuda/methods/b linear/hot", 10, bytes=100, in_range=1),
        bench("cuda/methods/b pchip/hot", 15, bytes=200, in_range=1, low_us=14, high_us=123.4),
        bench("cuda/voxelize/count/c/hot", 1000, points=2e6, rows=7, in_range=1),
        bench("cuda/voxelize/count/d/hot", 1000, points=2e6, rows=8, in_range=0.995),
        bench("cuda/sweep/D=1: x f32/cold", 5, floor_us=1),
        bench("cuda/sweep/D=20: x f32/cold", 9.9, floor_us=2),
        bench("cuda/fuse/e/hot", 0, error_message="wrong"),
    ]
    result = {"context": {"gpu": "G", "cpu": "", "load": 1}, "benchmarks": benchmarks}
    assert lines_of(render.render(result)) == [
        "gpu G",
        ["cuda/copy", "us", "floor us"],
        ["1 MB hot", "1.00", "1.00"],
        ["1 MB cold", "2.00", "1.00"],
        ["1 MB, kernel cold", "4.00", "1.00"],
        ["3 MB hot", "6.00", "3.00"],
        ["cuda/resample", "us", "floor us", "x copy"],
        ["a f32 hot", "5.00", "2.00", ""],
        ["a f32 cold", "10.0", "2.00", "2.50"],
        ["cuda/methods", "us", "p10..p90", "/ linear", "/ linear, a byte"],
        ["b linear hot", "10.0", "", "1.00", "1.00"],
        ["b pchip hot", "15.0", "14.0..123", "1.50", "0.75"],
        ["cuda/voxelize", "us", "in range", "rows", "G points/s"],
        ["count c hot", "1000", "1.00", "7", "2.00"],
        ["count d hot", "1000", "0.995", "8", "2.00"],
        ["cuda/sweep", "points", "the worst", "us", "floor us", "/ (1.5 x floor + 3 us)"],
        ["D = 1 to 20, f32", "2", "D=20: x f32 cold", "9.90", "2.00", "1.65"],
        "The worst point of the sweep is D=20: x f32 cold: 9.90 us, 1.65 of 1.5 x floor + 3 us.",
        "FAILED cuda/fuse/e/hot/iterations:1/manual_time: wrong",
    ]


def test_peers() -> None:
    peers = {
        "robocache": timed(10),
        "robocache, graph": timed(2),
        "torch": timed(30, compile_s=1.5),
        "torch, graph": timed(3),
        "jax": {"error": "no memory"},
        "cupy": {"skipped": "not here"},
    }
    case = {"device": "cuda", "floor_us": 0.25, "peers": peers}
    cases = [{"op": "voxelize", "case": name, **case} for name in ("count/b", "count/a")]
    changing = [{"name": "torch", "shapes": ["s", "t"], "first_s": 0.5, **timed(7)}]
    overhead = [{"name": "call", **timed(5)}]
    result = {"environment": {"gpu": "G", "torch": None}, "cases": cases}
    result |= {"changing": changing, "overhead": overhead}
    assert lines_of(render.render(result)) == [
        "gpu G",
        ["voxelize count, cuda, us", "b", "a"],
        ["floor", "0.250", "0.250"],
        ["robocache", "10.0 ± 4%", "10.0 ± 4%"],
        ["robocache, graph", "2.00 ± 4%", "2.00 ± 4%"],
        ["torch", "30.0 ± 4%, 3.00 x", "30.0 ± 4%, 3.00 x"],
        ["torch, graph", "3.00 ± 4%, 1.50 x", "3.00 ± 4%, 1.50 x"],
        ["jax", "failed", "failed"],
        "First call of torch: count/b: 1.50 s; count/a: 1.50 s",
        "FAILED count/b: jax: no memory",
        "FAILED count/a: jax: no memory",
        "Skipped cupy: not here",
        ["2 shapes, one after another", "first pass, ms", "later, us a call", "p25..p75"],
        ["torch", "500", "7.00", "6.72..7.28"],
        "Shapes: s; t",
        ["host time of a call", "us", "p25..p75"],
        ["call", "5.00", "4.80..5.20"],
    ]


def test_peers_that_are_off() -> None:
    off = {"mean": 1.23e-7, "std": 0.0}
    peers = {"robocache": timed(10), "NumPy": timed(30, off=off)}
    case = {"op": "statistics", "device": "cpu", "floor_us": 1.0, "peers": peers}
    cases = [{"case": name, **case} for name in ("b", "a")]
    lines = lines_of(render.render({"environment": {}, "cases": cases, "overhead": []}))
    assert lines[-2:] == [
        ["statistics, off by, in standard deviations", "b", "a"],
        ["NumPy", "mean 1e-07, std 0", "mean 1e-07, std 0"],
    ]


def test_training() -> None:
    ways = {
        "robocache": {**timed(200, alignment_us=1, share=0.005), "episodes/s": 100.0},
        "torch": {**timed(300), "episodes/s": 50.0, "deviates": "by 1"},
        "scipy": {"error": "gone"},
        "no alignment": {**timed(100), "episodes/s": 200.0},
    }
    loop = {"data": "random", "step": "eager", "batch": 2, "streams": [[100, 3], [20, 4]]}
    loop |= {"ticks": 250, "dtype": "float32", "ways": ways}
    result = {"environment": {"gpu": "G"}, "loops": [loop], "skipped": {"G1": "none"}}
    title = "random, B=2: 100x3, 20x4 -> 250 float32, eager step"
    assert lines_of(render.render(result)) == [
        "gpu G",
        [title, "us a step", "/ no alignment", "episodes/s", "alignment", "its share"],
        ["robocache", "200 ± 4%", "2.00", "100", "1.00", "0.50%"],
        ["torch (deviates)", "300 ± 4%", "3.00", "50.0", "", ""],
        ["scipy", "failed", "", "", "", ""],
        ["no alignment", "100 ± 4%", "1.00", "200", "", ""],
        "torch deviates: by 1",
        "FAILED scipy: gone",
        "Skipped G1: none",
    ]


def test_profile(tmp_path: Path) -> None:
    stall = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio".format
    header = ["ID", "Kernel Name", "range", "gpu__time_duration.sum"]
    header += [stall("long_scoreboard"), stall("wait"), stall("selected"), stall("wait_not_issued")]
    rows = [header, ["", "", "", "ns", "", "", "", ""]]
    rows += [["1", "k(int)", "case=a 1;", "1,234", "9", "1", "5", "5"]]
    rows += [["2", "l", "case=a 1;", "", "0.01", "2", "5", "5"]]
    file = tmp_path / "profile.csv"
    quoted = [",".join(f'"{cell}"' for cell in row) for row in rows]
    file.write_text("\n".join(["==PROF== begins", *quoted]))
    assert lines_of(profile_table.render(file)) == [
        ["case", "kernel", "us", "warps wait for"],
        ["a 1", "`k`", "1.23", "long scoreboard 90 %, wait 10 %"],
        ["", "`l`", "", "wait 100 %"],
    ]


def test_command(tmp_path, monkeypatch, capsys) -> None:
    file = tmp_path / "training.json"
    file.write_text(json.dumps({"environment": {"gpu": "G"}, "loops": [], "skipped": {}}))
    monkeypatch.setattr(sys, "argv", ["render.py", str(file)])
    runpy.run_path(str(BENCHMARKS / "render.py"), run_name="__main__")
    assert capsys.readouterr().out == "### training.json\n\ngpu G\n\n"
