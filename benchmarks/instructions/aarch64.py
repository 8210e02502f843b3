"""Count the 64-bit ARM instructions of a call, by level of vector instructions, under QEMU.

    cmake --preset aarch64 && cmake --build --preset aarch64 --target robocache
    python benchmarks/instructions/aarch64.py [BUILD_FOLDER]

QEMU runs the program one instruction at a time and writes a line for each. A call is the difference
between a program with three calls and one with one. This does not measure time: the cost of an
instruction depends on the machine.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "build/aarch64"
EMULATOR = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu", "-E", f"LD_LIBRARY_PATH={BUILD}"]
LEVELS = {"portable": 1, "neon": 4}


def instructions(program: str, case: int, level: int, calls: int) -> int:
    counted = ["-singlestep", "-d", "exec,nochain", "-D", "/dev/stdout"]
    command = [*EMULATOR, *counted, program, str(case), str(level), str(calls)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = sum(part.count(b"\n") for part in iter(lambda: process.stdout.read(1 << 20), b""))
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return lines


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/calls"
        source = pathlib.Path(__file__).with_name("calls.c")
        compiler = ["aarch64-linux-gnu-gcc", "-O2", "-std=c11", f"-I{ROOT / 'include'}", source]
        subprocess.run([*compiler, "-o", program, f"-L{BUILD}", "-lrobocache", "-lm"], check=True)
        listing = subprocess.run([*EMULATOR, program], check=True, capture_output=True, text=True)
        print("| 64 rows by `resample` | portable | NEON | portable / NEON |\n|---|---|---|---|")
        for case, name in enumerate(listing.stdout.splitlines()):
            counts = {
                level: (instructions(program, case, n, 3) - instructions(program, case, n, 1)) // 2
                for level, n in LEVELS.items()
            }
            portable, neon = counts["portable"], counts["neon"]
            print(f"| {name} | {portable:,} | {neon:,} | {portable / neon:.1f} |", flush=True)


if __name__ == "__main__":
    main()
