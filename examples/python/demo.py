#!/usr/bin/env python3
"""Align a recording of several sensors, voxelize a LiDAR sweep, turn depth images into points.

Each part is also a separate program with more options: align_recording.py, voxelize_scan.py and
depth_to_policy.py.

    demo.py               all three, simulated
    demo.py --data PATH   a recording, a data set, point clouds, or depth images
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import align_recording
import depth_to_policy
import voxelize_scan


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="PATH", help="default: simulated")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("build/demo"), help="default: %(default)s"
    )
    options = parser.parse_args(arguments)

    passed = ["--out", str(options.out)]
    if options.data is None:
        programs = [align_recording, voxelize_scan, depth_to_policy]
    else:
        passed += ["--data", str(options.data)]
        if any(options.data.glob("*.pcd")):
            programs = [voxelize_scan]
        else:
            depth = (options.data / "depth").is_dir()
            programs = [depth_to_policy if depth else align_recording]
    for index, program in enumerate(programs):
        if index > 0:
            print()
        if program.main(passed) != 0:
            return 1
    if options.data is None:
        print(f"\nlook at {options.out / 'arm.html'} and {options.out / 'arm.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
