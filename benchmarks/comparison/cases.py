"""The cases, their times, and the bytes that they must move."""

from __future__ import annotations

import argparse
import dataclasses
import re
from typing import Any

import numpy as np

from .data import Data

SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
METHODS = ("linear", "pchip", "slerp", "angle")

CUDA_CASES = [
    "64,4096,1024,32 f32",
    "64,4096,1024,32 bf16",
    "256,500,250,32 bf16",
    "32,500,250,256 bf16",
    "1024,500,250,256 bf16",
    "2048,1000,500,512 bf16",
    "4096,4096,1024,32 f32",
    "B=4: 30x512, 100x64, 200x12 -> 50 bf16",
    "B=256: 100x512, 200x128, 300x64 -> 128 bf16",
    "B=512: 150x512, 500x64, 1000x16 -> 250 bf16",
    "B=1: 8 streams 100x7 -> 1 f32",
    "B=32: 16 streams 200x7 -> 100 f32",
]
CPU_CASES = [
    "1,500,1,32 f32",
    "32,500,250,256 f32",
    "B=1: 3 streams 100x7 -> 1 f32",
    "B=1: 8 streams 100x7 -> 1 f32",
    "B=4: 30x512, 100x64, 200x12 -> 50 f32",
    "B=32: 16 streams 200x7 -> 100 f32",
    "8,500,250,32 f32 pchip",
    "8,500,250,32 f32 slerp",
    "8,500,250,32 f32 angle",
]


@dataclasses.dataclass(frozen=True)
class Case:
    """B rows of some streams, each of S samples of D channels, put onto T queries."""

    op: str  # the table it stands in: resample, fuse or methods
    name: str
    batch: int
    queries: int
    streams: tuple[tuple[int, int], ...]  # S and D of each
    dtype: str
    method: str = "linear"

    @property
    def channels(self) -> int:
        return sum(channels for _, channels in self.streams)

    @staticmethod
    def parse(text: str) -> Case:
        case = _parse_resample(text) or _parse_fuse(text)
        if case is None or min(case.batch, case.queries, *sum(case.streams, ())) < 1:
            raise argparse.ArgumentTypeError(
                f"{text!r} is like none of '32,500,250,256 bf16', '8,500,250,32 f32 slerp', "
                "'B=4: 30x512, 100x64 -> 50 bf16' and 'B=1: 8 streams 100x7 -> 1 f32'"
            )
        if case.method == "slerp" and case.channels % 4 != 0:
            raise argparse.ArgumentTypeError(f"{text!r}: slerp takes 4 channels a quaternion")
        return case

    def __str__(self) -> str:
        return self.name

    def data(self, torch: Any = None) -> Data:
        """Arrays are times of each stream and queries, NumPy's with torch as well."""
        times, queries = make_times(self)
        return Data((times, queries), *traffic(self, times, queries))


_DTYPE = "|".join(SIZES)


def _parse_resample(text: str) -> Case | None:
    pattern = rf"(\d+),(\d+),(\d+),(\d+) ({_DTYPE})(?: ({'|'.join(METHODS)}))?"
    found = re.fullmatch(pattern, text)
    if found is None:
        return None
    batch, samples, queries, channels = map(int, found.groups()[:4])
    dtype, method = found.groups()[4:]
    op = "resample" if method is None else "methods"
    return Case(op, text, batch, queries, ((samples, channels),), dtype, method or "linear")


def _parse_fuse(text: str) -> Case | None:
    found = re.fullmatch(rf"B=(\d+): (.+) -> (\d+) ({_DTYPE})", text)
    if found is None:
        return None
    streams: list[tuple[int, int]] = []
    for part in found[2].split(", "):
        sizes = re.fullmatch(r"(?:(\d+) streams )?(\d+)x(\d+)", part)
        if sizes is None:
            return None
        streams += [(int(sizes[2]), int(sizes[3]))] * int(sizes[1] or 1)
    return Case("fuse", text, int(found[1]), int(found[3]), tuple(streams), found[4])


def make_times(case: Case) -> tuple[list[Any], Any]:
    """Times of each stream and queries.

    The streams of a row last equally long, the fastest at 100 Hz, with intervals that vary by 17 %
    as those of the PX4 recordings do. The queries are a clock over the time that all of them share.
    """
    generator = np.random.default_rng(1)
    seconds = 0.01 * max(samples for samples, _ in case.streams)
    times = []
    for samples, _ in case.streams:
        steps = seconds / samples * (0.7 + 0.6 * generator.random((case.batch, samples)))
        times.append((3 + steps.cumsum(1)).astype("float32"))
    first = np.max([t[:, :1] for t in times], axis=0).astype("float64")
    last = np.min([t[:, -1:] for t in times], axis=0).astype("float64")
    ticks = (np.arange(case.queries)[None] + generator.random((case.batch, 1))) / case.queries
    return times, (first + (last - first) * ticks).astype("float32")


def traffic(case: Case, times: list[Any], queries: Any) -> tuple[int, float]:
    """The bytes that must be moved, and the share of queries in range of every stream.

    Each row of values that a query needs, each time and each query read once; the result written.
    """
    size = SIZES[case.dtype]
    moved = queries.nbytes + case.batch * case.queries * case.channels * size
    in_range = np.ones(queries.shape, bool)
    for stream_times, (samples, channels) in zip(times, case.streams):
        rows = sum(_rows(t, q, samples, case.method) for t, q in zip(stream_times, queries))
        moved += stream_times.nbytes + rows * channels * size
        in_range &= (queries >= stream_times[:, :1]) & (queries <= stream_times[:, -1:])
    return int(moved), float(in_range.mean())


def _rows(times: Any, queries: Any, samples: int, method: str) -> int:
    """The distinct rows of values that the queries of one recording need."""
    right = np.searchsorted(times, queries, side="right")
    left = np.clip(right - 1, 0, samples - 1)
    between = left[(right > 0) & (right < samples) & (times[left] != queries)]
    needed = [left, between + 1]
    if method == "pchip":
        needed += [np.maximum(between - 1, 0), np.minimum(between + 2, samples - 1)]
    return int(np.unique(np.concatenate(needed)).size)
