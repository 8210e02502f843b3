"""Random calls of rbc.fuse."""

import dataclasses
import math

import numpy as np
from hypothesis import strategies as st

import robocache as rbc
from reference import STEPS
from resample_problems import FLOATS, INTEGERS, methods, names_of


@dataclasses.dataclass
class Problem:
    """Some streams, as keywords of rbc.Stream, and the other arguments of a call of rbc.fuse."""

    streams: list
    query_times: np.ndarray
    options: dict

    def fuse(self, **more):
        streams = [rbc.Stream(**stream) for stream in self.streams]
        return rbc.fuse(streams, self.query_times, return_valid=True, **self.options, **more)


@st.composite
def problems(draw):
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    batch = draw(st.one_of(st.none(), st.integers(0, 4)))
    time_dtype = np.dtype(draw(st.sampled_from(["float32", "float64", "int64"])))
    start = 1_700_000_000_000_000_000 if time_dtype == np.int64 and draw(st.booleans()) else 0
    streams = [
        draw(stream_of(random, batch, time_dtype, start))
        for _ in range(draw(st.sampled_from([1, 2, 3, 3, 5, 20])))
    ]
    queries = draw(st.integers(0, 9))
    shape = (queries,) if batch is None or draw(st.booleans()) else (batch, queries)
    query_times = (random.integers(-10, 130, shape) / 2 + start).astype(time_dtype)
    if start:
        query_times = random.integers(-10, 70, shape) + start
    options = {"dtype": draw(st.sampled_from([None, *FLOATS]))}
    if batch is not None and draw(st.booleans()):
        options["query_lengths"] = random.integers(0, queries + 1, batch)
    return Problem(streams, query_times, options)


@st.composite
def stream_of(draw, random, batch, time_dtype, start):
    samples, channels = draw(st.integers(0, 9)), draw(st.sampled_from([0, 1, 2, 4, 7, 8, 33]))
    method = draw(methods(channels))
    names = names_of(method)
    dtype = np.dtype(draw(st.sampled_from(FLOATS + INTEGERS * names.issubset(STEPS))))
    stream = {
        "method": method,
        "outside": draw(st.sampled_from(["hold", "fill"] + ["extrapolate"] * ("linear" in names))),
        "fill_value": draw(st.sampled_from([0.0, -2.5, math.nan])),
    }
    if draw(st.booleans()):
        stream["max_gap"] = draw(st.sampled_from([0, 3, 10]))
    if not names.isdisjoint(STEPS) and draw(st.booleans()):
        stream["tolerance"] = draw(st.sampled_from([0, 1, 5]))
    if draw(st.booleans()):
        stream["clock_offset"] = draw(st.sampled_from([-3, 7]))
    if draw(st.booleans()):
        stream["mean"] = random.normal(size=channels)
    if draw(st.booleans()):
        stream["std"] = random.random(channels) + 0.25
    form = "single" if batch is None else draw(st.sampled_from(["padded", "shared", "packed"]))
    rows = () if form in ("single", "packed") else (batch,)
    shape = (samples,) if form == "shared" else (*rows, samples)
    times = np.sort(random.integers(0, 60, shape), axis=-1)
    if form == "packed":
        cuts = np.sort(random.integers(0, samples + 1, max(batch - 1, 0)))
        stream["batch_offsets"] = np.concatenate([[0], cuts, [samples]] if batch else [[0]]).astype(
            int
        )
        for begin, end in zip(stream["batch_offsets"], stream["batch_offsets"][1:]):
            random.shuffle(times[begin:end])
            times[begin:end].sort()
    elif form != "single" and draw(st.booleans()):
        stream["lengths"] = random.integers(0, samples + 1, batch)
    shape = (*rows, samples, channels)
    if dtype.kind == "f":
        values = random.normal(size=shape).astype(dtype)
        values[values == 0] = 0.5  # no quaternion of length 0
    else:
        values = random.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)
    return {"values": values, "times": (times + start).astype(time_dtype), **stream}
