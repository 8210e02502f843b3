"""Cases of rbcFuse."""

import numpy as np
from streams import (
    CAUSAL,
    STREAM_CHOICES,
    arrivals_of,
    interpolated,
    put_lag,
    put_stream,
    quaternions,
    with_no_rotations,
    without,
)
from vectors import DTYPES, EPOCH, Case, dyadic

CHOICES = STREAM_CHOICES


def fuse(name, streams, query_times, dtype, mask="u8", query_lengths=None, lag=0):
    case = Case(f"fuse/{name}", "fuse")
    answers = []
    for stream in streams:
        options = {k: v for k, v in stream.items() if k not in ("values", "times")}
        answers.append(
            interpolated(
                stream["values"],
                stream["times"],
                query_times,
                dtype,
                query_lengths=query_lengths,
                lag=lag,
                **options,
            )
        )
    put_lag(case, lag, query_times)
    case.input(query_times=query_times, query_lengths=query_lengths)
    valid = np.stack([valid for _, valid in answers], axis=-1).astype(DTYPES[mask])
    case.output(out=np.concatenate([out for out, _ in answers], axis=-1), valid=valid)
    for stream in streams:
        case.lines.append("stream")
        if stream.get("causal"):
            case.set(flags=CAUSAL)
        put_stream(case, stream)
        if "clock_offset" in stream:
            ticks = query_times.dtype == np.int64
            case.set(**{"clock_offset_ticks" if ticks else "clock_offset": stream["clock_offset"]})
        case.input(values=stream["values"], times=stream["times"])
    return case


def cases():
    random = np.random.RandomState(2)

    yield fuse(
        "three rates, clock offsets, a stream absent from a row",
        [
            {
                "values": dyadic(random, (2, 8, 3), "f32"),
                "times": np.tile(np.arange(8) / 4, (2, 1)),
                "clock_offset": 0.125,
            },
            {
                "values": dyadic(random, (2, 5, 2), "f16"),
                "times": np.arange(5) / 2,
                "method": "nearest",
                "lengths": np.array([5, 0], np.int64),
                "fill_value": -1.0,
                "tolerance": 0.125,
            },
            {
                "values": random.randint(0, 2, (2, 3, 1)).astype(bool),
                "times": np.array([[0, 1, 2], [0.5, 1, 1.5]]),
                "method": "previous",
                "outside": "fill",
                "fill_value": np.nan,
                "clock_offset": -0.25,
            },
        ],
        np.array([[-0.25, 0, 0.375, 0.5, 1.1875, 2.5], [0, 0.25, 0.75, 1.0, 1.375, np.nan]]),
        "f32",
    )
    yield fuse(
        "slerp of zeros, NaN and infinities beside other channels and streams, to bf16",
        [
            {
                "values": np.concatenate(
                    [
                        dyadic(np.random.RandomState(4), (2, 9, 2), "f32"),
                        with_no_rotations(np.random.RandomState(5), (2, 9), "f32"),
                    ],
                    axis=-1,
                ),
                "times": np.arange(9, dtype=np.float64),
                "method": [(2, 8, "slerp"), (0, 2, "linear")],
                "fill_value": 3.0,
                "max_gap": 5.0,
            },
            {
                "values": with_no_rotations(np.random.RandomState(6), (2, 9), "f64"),
                "times": np.arange(9, dtype=np.float64),
                "method": "slerp",
                "outside": "fill",
                "clock_offset": 0.5,
                "std": np.array([2, 1, 1, 4, 1, 1, 0.5, 1], np.float32),
            },
            {
                "values": dyadic(np.random.RandomState(7), (2, 9, 1), "f32"),
                "times": np.arange(9, dtype=np.float64),
            },
        ],
        np.array([-1, 0, 0.5, 1, 1.25, 2, 2.5, 3, 3.75, 4, 5.5, 6, 6.5, 7.5, 8, 9]),
        "bf16",
    )
    tick = 1 << 20
    yield fuse(
        "ticks, packed and shared, groups, affine, query_lengths, to bf16",
        [
            {
                "values": np.concatenate(
                    [dyadic(random, (7, 3), "f32"), quaternions(random, (7,), "f32")], axis=-1
                ),
                "times": np.array([0, 1, 3, 4, 0, 2, 4], np.int64) * tick + EPOCH,
                "batch_offsets": np.array([0, 4, 7], np.int32),
                "method": [(0, 3, "linear"), (3, 4, "slerp")],
                "clock_offset": tick // 2,
            },
            {
                "values": dyadic(random, (2, 4, 2), "bf16"),
                "times": np.array([0, 2, 2, 5], np.int64) * tick + EPOCH,
                "outside": "extrapolate",
                "mean": np.array([0.5, -0.25], np.float32),
                "std": np.array([0.25, 2], np.float32),
            },
            {
                "values": random.randint(-20, 20, (2, 3, 1)).astype(np.int16),
                "times": np.array([[0, 2, 5], [1, 2, 3]], np.int64) * tick + EPOCH,
                "method": "next",
                "max_gap": 2.0 * tick,
                "fill_value": 7.0,
                "clock_offset": -tick,
            },
        ],
        np.array([[0, 8, 12, 20, 40], [-8, 4, 9, 16, 24]], np.int64) * (tick // 8) + EPOCH,
        "bf16",
        query_lengths=np.array([5, 4], np.int32),
    )
    yield fuse(
        "without batch, times f32, f64 streams, bool mask",
        [
            {"values": dyadic(random, (4, 2), "f64"), "times": np.arange(4, dtype=np.float32)},
            {
                "values": dyadic(random, (3, 1), "f64"),
                "times": np.array([0.5, 1, 3], np.float32),
                "max_gap": 1.0,
                "fill_value": 100.0,
            },
        ],
        np.array([0, 0.75, 1.5, 2.25, 3.5], np.float32),
        "f64",
        mask="bool",
    )
    there = np.array([[1, 0, 1, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 1, 0]], np.uint8)
    few = np.array([True, False, True, True])
    random = np.random.RandomState(9)
    yield fuse(
        "missing samples of two streams beside one of all",
        [
            {
                "values": without(dyadic(random, (2, 8, 3), "f32"), there),
                "times": np.arange(8) / 4,
                "sample_mask": there,
                "clock_offset": 0.125,
                "max_gap": 0.5,
            },
            {
                "values": random.randint(0, 255, (2, 4, 2)).astype(np.uint8),
                "times": np.array([[0, 0.5, 1, 2], [0, 0, 0, 0]]),
                "sample_mask": few,
                "method": "nearest",
                "outside": "fill",
                "fill_value": -1.0,
            },
            {"values": dyadic(random, (2, 3, 1), "f32"), "times": np.arange(3.0)},
        ],
        np.array([[-1, 0, 0.375, 0.5, 1.0, 1.25, 3], [0, 0.25, 1.5, 1.625, 1.75, 2, np.nan]]),
        "f32",
    )
    random = np.random.RandomState(15)
    for ticks in (False, True):
        unit = 1 << 20 if ticks else 1.0
        times = np.cumsum(random.randint(0, 3, (2, 10)), axis=-1) / 2
        stamps = [(t * unit).astype(np.int64 if ticks else np.float64) for t in (times, times[0])]
        asked = np.array([-1, 0, 0.5, 1.0, 1.25, 2, 3.75, 4.5, 7, 12]) * unit
        yield fuse(
            f"streams that arrive beside one that does not, {'i64' if ticks else 'f64'} times",
            [
                {
                    "values": dyadic(random, (2, 10, 2), "f32"),
                    "times": stamps[0],
                    "arrivals": arrivals_of(random, stamps[0]),
                    "causal": True,
                    "max_age": 1.5 * unit,
                    "clock_offset": int(0.25 * unit) if ticks else 0.25,
                },
                {
                    "values": dyadic(random, (2, 10, 1), "f16"),
                    "times": stamps[1],
                    "arrivals": arrivals_of(random, stamps[1]),
                    "method": "nearest",
                    "max_gap": 2.0 * unit,
                },
                {
                    "values": random.randint(0, 255, (2, 10, 1)).astype(np.uint8),
                    "times": stamps[1],
                    "method": "previous",
                    "causal": True,
                    "max_age": 1.0 * unit,
                    "outside": "fill",
                    "fill_value": -1.0,
                },
                {"values": dyadic(random, (2, 10, 1), "f32"), "times": stamps[0]},
            ],
            asked.astype(np.int64) if ticks else asked,
            "f32",
            lag=int(0.5 * unit) if ticks else 0.5,
        )
