"""scripts/bench_against.py: slower cases are found, measured again, and reported."""

import json
import pathlib
import stat
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).parents[3] / "scripts/bench_against.py"
CONTEXT = {"cpu": "Some CPU", "cpu_simd": "avx2", "cpu_threads": "2", "commit": "abc"}


def run_file(path, ratios, **context):
    entries = [
        {"name": f"{name}/iterations:1/manual_time", "real_time": 5.0, "x_floor": ratio}
        for name, ratio in ratios.items()
    ]
    entries.append({"name": "cpu/call/resample/iterations:1/manual_time", "real_time": 1.0})
    path.write_text(json.dumps({"context": {**CONTEXT, **context}, "benchmarks": entries}))
    return path


def script(*arguments):
    command = [sys.executable, SCRIPT, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True)
    return run.returncode, run.stdout


def recorded(tmp_path, ratios):
    file = tmp_path / "recorded.json"
    measured = run_file(tmp_path / "old.json", ratios)
    assert script("--measured", measured, "--record", file)[0] == 0
    return file


RATIOS = {"cpu/resample/1,2 f32/hot": 1.5, "cpu/fuse/B=1: (a+b)/hot": 2.0, "cpu/voxelize/x": 3.0}


def test_as_fast_as_before(tmp_path):
    file = recorded(tmp_path, RATIOS)
    now = run_file(tmp_path / "new.json", {name: 1.07 * r for name, r in RATIOS.items()})
    code, output = script("--measured", now, "--against", file)
    assert code == 0 and "3 cases against abc, slower by more than 8 %: 0" in output


def test_slower(tmp_path):
    file = recorded(tmp_path, RATIOS)
    now = run_file(tmp_path / "new.json", {**RATIOS, "cpu/voxelize/x": 3.4})
    code, output = script("--measured", now, "--against", file)
    assert code == 1 and "1.13 x slower: cpu/voxelize/x, 3.00 to 3.40 of a copy" in output
    assert script("--measured", now, "--against", file, "--limit", 20)[0] == 0


def bench(tmp_path, ratio):
    """A program that measures the case with the odd name, and only the requested cases."""
    program = tmp_path / "bench"
    program.write_text(
        f"#!{sys.executable}\nimport json, re, sys\n"
        "flags = dict(a[2:].split('=', 1) for a in sys.argv[1:])\n"
        f"names = {list(RATIOS)!r}\n"
        "names = [n for n in names if re.search(flags['benchmark_filter'], n + '/iterations:1')]\n"
        "assert names == ['cpu/fuse/B=1: (a+b)/hot'], names\n"
        f"entries = [dict(name=n + '/iterations:1/manual_time', x_floor={ratio}) for n in names]\n"
        "json.dump(dict(context={}, benchmarks=entries), open(flags['benchmark_out'], 'w'))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def test_what_seems_slower_is_measured_again(tmp_path):
    file = recorded(tmp_path, RATIOS)
    now = run_file(tmp_path / "new.json", {**RATIOS, "cpu/fuse/B=1: (a+b)/hot": 9.0})
    arguments = ["--measured", now, "--against", file, "--bench"]
    assert script(*arguments, bench(tmp_path, 2.1))[0] == 0
    code, output = script(*arguments, bench(tmp_path, 2.5))
    assert code == 1 and "2.00 to 2.50" in output


def test_another_processor_or_other_cases_cannot_be_compared(tmp_path):
    file = recorded(tmp_path, RATIOS)
    now = run_file(tmp_path / "new.json", RATIOS, cpu="Another CPU")
    code, output = script("--measured", now, "--against", file)
    assert code == 2 and "cpu is Another CPU, recorded was Some CPU" in output
    now = run_file(tmp_path / "new.json", {"cpu/windows/x": 1.0})
    assert script("--measured", now, "--against", file)[0] == 2
