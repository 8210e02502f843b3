#!/usr/bin/env python3
"""Align a recording of several sensors at different, jittery rates to one clock.

Writes for each recording the fused features with their mask (.npz), a summary (.txt), a picture of
before and after (.png), and a report on the recording (.html).

    align_recording.py              a robot arm, simulated
    align_recording.py --data DIR   a comma2k19 segment, PX4 flights as CSV, or any format
                                    of robocache.data: ROS bags, LeRobot, HDF5, Zarr, tables
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import robocache as rbc
from any_recording import as_data, open_any, read_any, voxelize_any
from comma2k19 import read_comma2k19
from picture import draw_picture
from px4 import read_px4_flights
from recordings import Aligned, Recording
from report import summarize
from robocache import data
from simulate import simulate_recording


def read_recordings(folder: Path) -> list[Recording]:
    """Read the recordings for which this demo has a special reader."""
    if (folder / "processed_log").is_dir():
        return [read_comma2k19(folder)]
    return read_px4_flights(folder) if folder.is_dir() else []


def run_any(path: Path, rate_hz: float | None, out: Path) -> str:
    """Do the same for any format of `robocache.data`; without times, write only a report."""
    try:
        source = open_any(path)
    except (data.FormatError, FileNotFoundError) as error:
        raise ValueError(f"{path}: not a recording that this demo can read: {error}") from None
    name = path.resolve().name
    if not isinstance(source, (data.Recording, data.Episodes)):
        return voxelize_any(path, out / f"{name}.npz")
    recording = read_any(source, name)
    if recording is None:
        report = out / f"{name}.html"
        data.report_html(source, report, overwrite=True)
        return f"{source!r}\n\nno stream has times to align; wrote {report}\n"
    return run(recording, rate_hz, out, source)


def make_clock(recording: Recording, rate_hz: float | None) -> np.ndarray:
    """Return the times of the clock stream, or regular times from the first sample to the last."""
    if rate_hz is None and recording.clock_stream is not None:
        return recording.stream(recording.clock_stream).times
    rate = rate_hz or recording.clock_hz
    clock = rbc.clock(recording.sensors(), rate, span="union", unit=recording.stamp_unit)
    if len(clock) < 2:
        raise ValueError(f"--rate: {recording.name} is too short for two ticks")
    return clock


def align(recording: Recording, clock: np.ndarray) -> Aligned:
    """Fuse all sensors in one call, each with its methods. Unknown values are 0 with mask 0."""
    sensors = list(recording.sensors().values())
    features, valid = rbc.fuse(sensors, clock, return_valid=True)

    names = [stream.name for stream in recording.streams]
    ends = np.cumsum([len(stream.channels) for stream in recording.streams])
    values = np.split(features, ends[:-1], axis=1)
    return Aligned(clock, features, valid, dict(zip(names, values)), dict(zip(names, valid.T)))


def save_arrays(path: Path, recording: Recording, aligned: Aligned) -> None:
    """Write the training data as one .npz, with the names of the columns."""
    np.savez(
        path,
        clock=aligned.clock,
        features=aligned.features,
        valid=aligned.valid,
        channels=[f"{s.name}.{channel}" for s in recording.streams for channel in s.channels],
        streams=[s.name for s in recording.streams],
    )


def run(recording: Recording, rate_hz: float | None, out: Path, source: Any = None) -> str:
    """Align one recording, write its four files and return the text to print.

    ``source`` is the data to report on, if that is more than the recording.
    """
    clock = make_clock(recording, rate_hz)
    began = time.perf_counter()
    aligned = align(recording, clock)
    took_ms = (time.perf_counter() - began) * 1e3

    summary = summarize(recording, aligned)
    paths = [out / f"{recording.name}.{suffix}" for suffix in ("npz", "txt", "png", "html")]
    save_arrays(paths[0], recording, aligned)
    paths[1].write_text(summary, encoding="utf-8")
    draw_picture(paths[2], recording, aligned)
    data.report_html(as_data(recording) if source is None else source, paths[3], overwrite=True)
    return f"{summary}\naligned in {took_ms:.1f} ms; wrote {', '.join(map(str, paths))}\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, metavar="PATH", help="a recording on disk; default: a simulated one"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("build/demo"), help="default: %(default)s"
    )
    parser.add_argument(
        "--rate",
        type=float,
        metavar="HZ",
        help="a regular clock with this rate; default: depends on the recording",
    )
    parser.add_argument(
        "--seed", type=int, default=7, help="of the simulation; default: %(default)s"
    )
    options = parser.parse_args(arguments)
    if options.rate is not None and not 0 < options.rate <= 10_000:
        parser.error(f"--rate: {options.rate} is not above 0 and at most 10000")

    try:
        if options.data is None:
            recordings = [simulate_recording(options.seed)]
        else:
            recordings = read_recordings(options.data)
        options.out.mkdir(parents=True, exist_ok=True)
        # A progress bar after one second, only on a terminal.
        bar = tqdm(recordings, unit="recording", delay=1, disable=None, leave=False)
        printed = [run(recording, options.rate, options.out) for recording in bar]
        if not recordings:
            printed = [run_any(options.data, options.rate, options.out)]
    except (OSError, ValueError, ModuleNotFoundError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    print("\n".join(printed), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
