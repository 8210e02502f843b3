"""Cases of rbcResample."""

import numpy as np
from streams import (
    CAUSAL,
    CHECK_TIMES,
    OUTSIDE,
    STREAM_CHOICES,
    arrivals_of,
    interpolated,
    put_lag,
    put_stream,
    quaternions,
    with_no_rotations,
    without,
)
from vectors import DTYPES, EPOCH, Case, ascending, dyadic, queries

CHOICES = STREAM_CHOICES
FLAGS = {"check_times": CHECK_TIMES, "causal": CAUSAL}


def resample(name, values, times, query_times, dtype, mask="u8", flags=0, **options):
    case = Case(f"resample/{name}", "resample")
    out, valid = interpolated(values, times, query_times, dtype, **options)
    if options.get("causal"):
        flags |= CAUSAL
    if flags:
        case.set(flags=flags)
    put_lag(case, options.get("lag"), times)
    put_stream(case, options)
    case.input(values=values, times=times, query_times=query_times)
    case.input(query_lengths=options.get("query_lengths"))
    case.output(out=out, valid=None if mask is None else valid.astype(DTYPES[mask]))
    return case


def cases():
    random = np.random.RandomState(1)

    times = ascending(random, (2, 6), "f32")
    times[1, 3] = times[1, 2]  # equal times: the last one is used
    asked = queries(random, (2, 9), "f32", 12)
    asked[0, 4] = np.nan
    asked[1, :2] = times[1, 2], times[1, 5]
    values = dyadic(random, (2, 6, 3), "f32")
    yield resample("linear f32, times f32, NaN query, equal times", values, times, asked, "f32")

    yield resample(
        "linear f16 to f32, times f64, extrapolated, shared times, bool mask",
        dyadic(random, (3, 5, 2), "f16"),
        ascending(random, (5,), "f64"),
        queries(random, (7,), "f64", 10),
        "f32",
        mask="bool",
        outside="extrapolate",
    )
    yield resample(
        "linear bf16 to f16, affine, outside filled, checked",
        dyadic(random, (2, 5, 3), "bf16"),
        ascending(random, (2, 5), "f32"),
        queries(random, (2, 8), "f32", 10),
        "f16",
        flags=1,
        outside="fill",
        fill_value=-2.5,
        mean=np.array([0.5, -1, 0.25], np.float32),
        std=np.array([2, 0.5, 4], np.float32),
    )
    yield resample(
        "linear f64, times i64 (nanoseconds), lengths, query_lengths",
        dyadic(random, (3, 6, 2), "f64", 30),
        ascending(random, (3, 6), "i64", EPOCH),
        queries(random, (3, 7), "i64", 12, EPOCH),
        "f64",
        lengths=np.array([6, 0, 3], np.int32),
        query_lengths=np.array([7, 4, 5], np.int64),
        fill_value=np.nan,
    )
    yield resample(
        "linear f32, max_gap, without batch, no mask",
        dyadic(random, (7, 2), "f32"),
        ascending(random, (7,), "f64"),
        queries(random, (11,), "f64", 14),
        "f32",
        mask=None,
        max_gap=2.0,
        fill_value=9.0,
    )
    values = dyadic(random, (1, 5, 3), "f32")
    values[0, 1, 0], values[0, 2, 1], values[0, 3, 2] = np.nan, np.inf, -np.inf
    yield resample(
        "linear f32, values that are NaN and infinite",
        values,
        np.arange(5, dtype=np.float32)[None],
        np.array([[0.5, 1, 1.5, 2, 2.5, 3, 3.25]], np.float32),
        "f32",
    )
    most = 1.5 * 2.0**1023
    yield resample(
        "linear f64, infinite values, differences that overflow",
        np.array([[[np.inf, 1, -most], [np.inf, np.inf, most], [1, -np.inf, most / 2]]]),
        np.arange(3, dtype=np.float64)[None],
        np.array([[0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2]]),
        "f64",
    )
    yield resample(
        "linear f32 to bf16, packed by offsets, with an empty row",
        dyadic(random, (9, 2), "f32"),
        np.concatenate([ascending(random, (4,), "f64"), ascending(random, (5,), "f64")]),
        queries(random, (3, 5), "f64", 8),
        "bf16",
        batch_offsets=np.array([0, 4, 4, 9], np.int64),
    )
    steps = np.array([0, 4, 8, 8, 20], np.int64) * 1_000_000 + EPOCH
    asked = np.array([-9, -1, 0, 1, 2, 3, 6, 8, 13, 14, 15, 22, 30], np.int64) * 1_000_000 + EPOCH
    for method in ("nearest", "previous", "next"):
        for more in ({}, {"tolerance": 2e6, "fill_value": -1.0}):
            what = "tolerance" if more else "hold"
            yield resample(
                f"{method} f32, times i64, {what}",
                dyadic(random, (5, 2), "f32"),
                steps,
                asked,
                "f32",
                method=method,
                **more,
            )
    for method, dtype in (
        ("previous", "bool"),
        ("next", "u8"),
        ("nearest", "i8"),
        ("previous", "i16"),
        ("nearest", "i32"),
        ("next", "i64"),
    ):
        high = {"bool": 2, "u8": 256}.get(dtype, 128)
        yield resample(
            f"{method} {dtype}, outside filled, max_gap",
            random.randint(0 if dtype in ("bool", "u8") else -128, high, (2, 5, 2)).astype(
                DTYPES[dtype]
            ),
            ascending(random, (2, 5), "f32"),
            queries(random, (2, 6), "f32", 10),
            dtype,
            method=method,
            outside="fill",
            max_gap=3.0,
            fill_value=1.0,
        )
    yield resample(
        "previous i16 to f16, affine",
        random.randint(-500, 500, (2, 4, 2)).astype(np.int16),
        ascending(random, (2, 4), "f64"),
        queries(random, (5,), "f64", 8),
        "f16",
        method="previous",
        mean=np.array([4, -8], np.float32),
        std=np.array([8, 16], np.float32),
    )
    for method, dtype, out_dtype in (
        ("cubic", "f32", "bf16"),
        ("cubic", "f64", "f32"),
        ("pchip", "bf16", "bf16"),
        ("pchip", "f64", "f32"),
        ("angle", "f32", "bf16"),
        ("angle", "f64", "f32"),
    ):
        yield resample(
            f"{method} {dtype} to {out_dtype}",
            dyadic(random, (2, 7, 2), dtype),
            ascending(random, (2, 7), "f64"),
            queries(random, (2, 8), "f64", 12),
            out_dtype,
            method=method,
        )
    for dtype, out_dtype in (("f32", "bf16"), ("f64", "f32")):
        yield resample(
            f"slerp {dtype} to {out_dtype}",
            quaternions(random, (2, 5), dtype),
            ascending(random, (2, 5), "f64"),
            queries(random, (2, 6), "f64", 10),
            out_dtype,
            method="slerp",
        )
    for dtype, out_dtype in (("f32", "bf16"), ("f64", "f32")):
        yield resample(
            f"slerp {dtype} to {out_dtype}, zeros, NaN and infinities",
            with_no_rotations(np.random.RandomState(3), (2, 9), dtype),
            np.tile(np.arange(9.0), (2, 1)),
            np.array([-1, 0, 0.5, 1, 1.25, 2, 2.5, 3, 3.75, 4, 5.5, 6, 6.5, 7.5, 8, 9]),
            out_dtype,
            method="slerp",
            fill_value=-2.0,
            mean=np.array([0.5, 0, 0.25, 0, 0, 0, 1, 0], np.float32),
        )
    pose = np.concatenate(
        [
            dyadic(random, (6, 3), "f32"),
            quaternions(random, (6,), "f32"),
            np.array([[0], [1], [1], [0], [0], [1]], np.float32),
        ],
        axis=-1,
    )
    yield resample(
        "a pose in groups: linear, slerp, previous; f32 to bf16",
        pose,
        ascending(random, (6,), "f64"),
        queries(random, (8,), "f64", 12),
        "bf16",
        method=[(0, 3, "linear"), (3, 4, "slerp"), (7, 1, "previous")],
        mean=np.array([1, 0.5, 0, 0, 0, 0, 0, 0], np.float32),
        std=np.array([0.5, 2, 1, 1, 1, 1, 1, 1], np.float32),
    )
    for name, (batch, samples, asked, channels) in {
        "no batch rows": (0, 3, 2, 2),
        "no samples": (2, 0, 3, 2),
        "no queries": (2, 3, 0, 2),
        "no channels": (2, 3, 2, 0),
    }.items():
        yield resample(
            name,
            np.zeros((batch, samples, channels), np.float32),
            np.tile(np.arange(samples, dtype=np.float32), (batch, 1)),
            np.zeros((batch, asked), np.float32),
            "f32",
            fill_value=4.5,
        )
    yield from missing_cases()


def missing_cases():
    """Yield cases with missing samples. Values between the others are powers of two: lines stay
    exact.
    """
    random = np.random.RandomState(8)
    times = np.array([0, 1, 2, 2, 2, 4, 8, 9])
    # Equal times with the last one missing; the ends; all of a row; none.
    there = np.array(
        [
            [1, 0, 1, 1, 0, 1, 1, 0],
            [0, 1, 0, 0, 1, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 0],
            [1, 1, 1, 1, 1, 1, 1, 1],
        ],
        np.uint8,
    )
    asked = np.array([-1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 7, 8, 8.5, 9, 10])
    for bounds in OUTSIDE:
        yield resample(
            f"missing samples, linear f32, {bounds}, equal times",
            without(dyadic(random, (4, 8, 3), "f32"), there),
            times.astype(np.float32),
            asked.astype(np.float32),
            "f32",
            flags=1,
            sample_mask=there * np.uint8(3),
            outside=bounds,
            fill_value=-7.0,
        )
    for method, more in (
        ("nearest", {"tolerance": 1.0}),
        ("previous", {"max_gap": 4.0}),
        ("next", {"outside": "fill"}),
    ):
        yield resample(
            f"missing samples, {method} i16, packed",
            without(random.randint(-500, 500, (9, 2)).astype(np.int16), there[:1, [0, *range(8)]]),
            np.array([0, 2, 4, 6, 0, 1, 2, 3, 4]) * 1.0,
            np.tile(np.arange(-1, 8) / 1.0, (3, 1)),
            "i16",
            batch_offsets=np.array([0, 4, 6, 9], np.int64),
            sample_mask=there[0, [0, *range(8)]] != 0,
            method=method,
            fill_value=99.0,
            **more,
        )
    for method in ("cubic", "pchip", "angle", "slerp"):
        width = 4 if method == "slerp" else 2
        values = dyadic(random, (2, 9, width), "f64")
        if method == "slerp":
            values = quaternions(random, (2, 9), "f64")
        there = np.array([1, 1, 0, 1, 0, 0, 1, 1, 0], bool)
        yield resample(
            f"missing samples, {method} f64 to f32, one mask for all, lengths",
            without(values, np.tile(there, (2, 1))),
            ascending(random, (2, 9), "i64", EPOCH),
            queries(random, (2, 9), "i64", 16, EPOCH),
            "f32",
            sample_mask=there,
            method=method,
            lengths=np.array([9, 7], np.int32),
        )
    # Across the ends of the ranges, at an end, by half a turn in both directions, and from any
    # turn.
    turns = np.array([0.4375, -0.4375, 0.0, 0.5, -0.5, 0.25, 0.75, 2.875, -3.0, 0.9990234375])
    for dtype, out_dtype in (("f32", "f32"), ("f64", "f64"), ("f64", "bf16"), ("f32", "f16")):
        yield resample(
            f"angles of all periods in groups {dtype} to {out_dtype}",
            np.stack([360 * turns, turns, 360 * turns, turns], axis=-1).astype(DTYPES[dtype]),
            np.arange(len(turns)) * 1.0,
            np.arange(0, len(turns), 0.25) - 0.5,
            out_dtype,
            method=[
                (0, 1, "angle_deg"),
                (1, 1, "angle_turn"),
                (2, 1, "angle_deg_positive"),
                (3, 1, "angle_turn_positive"),
            ],
        )
    yield resample(
        "angles from 0 to 2 pi, f64 to f32",
        np.array([[0.5], [6.0], [3.0], [-20.0], [2.0]]),
        np.arange(5.0),
        np.array([0, 0.25, 0.5, 0.875, 1.5, 2.25, 2.75, 3.5, 4]),
        "f32",
        method=[(0, 1, "angle_positive")],
    )
    yield from _that_arrive()


def _that_arrive():
    """Samples that exist for some queries only, and methods that look back."""
    random = np.random.RandomState(14)
    for method in ("linear", "nearest", "previous", "cubic", "pchip", "angle", "slerp"):
        slerp = method == "slerp"
        exact = method in ("linear", "nearest", "previous")
        for times in (ascending(random, (2, 9), "i64", EPOCH), ascending(random, (9,), "f32")):
            ticks = times.dtype == np.int64
            unit = 1 << 20 if ticks else 1
            yield resample(
                f"{method} f32, times {'i64' if ticks else 'f32'}, arrivals, looks back",
                quaternions(random, (2, 9), "f32") if slerp else dyadic(random, (2, 9, 2), "f32"),
                times,
                queries(random, (2, 13), "i64" if ticks else "f32", 18, EPOCH if ticks else 0),
                "f32" if exact else "bf16",
                method=method,
                arrivals=arrivals_of(random, times),
                lag=unit // 2 if ticks else 0.5,
                causal=True,
                max_age=3.0 * unit,
                **({"outside": "fill", "fill_value": -2.0} if ticks else {"max_gap": 2.0}),
            )
    for method in ("linear", "nearest", "next", "cubic"):
        times = ascending(random, (3, 8), "f64")
        yield resample(
            f"{method} f32, arrivals, ragged, the rows extrapolated"
            if method == "linear"
            else f"{method} f32, arrivals, ragged",
            dyadic(random, (3, 8, 2), "f32"),
            times,
            queries(random, (11,), "f64", 16),
            "bf16" if method == "cubic" else "f32",
            method=method,
            arrivals=arrivals_of(random, times),
            lag=-0.25,
            lengths=np.array([8, 0, 5], np.int64),
            **({"outside": "extrapolate"} if method == "linear" else {}),
            **({"tolerance": 1.5} if method == "nearest" else {}),
        )
    times = np.concatenate([ascending(random, (n,), "f32") for n in (4, 5)])
    there = random.randint(0, 4, 9).astype(bool)
    yield resample(
        "previous i16, packed, arrivals and a sample mask, max_age 0",
        without(random.randint(-9, 99, (9, 3)).astype(np.int16), there),
        times,
        np.concatenate([times[:5], times[4:]])[None].repeat(3, 0),
        "i16",
        method="previous",
        batch_offsets=np.array([0, 4, 4, 9], np.int32),
        arrivals=times + np.float32(0.5) * random.randint(0, 2, 9).astype(np.float32),
        sample_mask=there,
        lag=0.25,
        causal=True,
        max_age=0.0,
        fill_value=7.0,
    )
    times = ascending(random, (9,), "f64")
    yield resample(
        "linear f32, looks back without arrivals, holds across gaps",
        dyadic(random, (9, 2), "f32"),
        times,
        queries(random, (14,), "f64", 18),
        "f32",
        causal=True,
        max_age=2.0,
        max_gap=1.0,
    )
    times = np.arange(700, dtype=np.float32)
    late = times + np.float32(300)
    late[::350] = times[::350]
    for causal in (False, True):
        yield resample(
            f"linear f16, arrivals of 700 samples, most of them late{', looks back' * causal}",
            dyadic(random, (700, 1), "f16"),
            times,
            np.array([-1, 0, 0.5, 100, 299, 300.5, 349.25, 350, 351.5, 650, 699, 800], np.float32),
            "f32",
            arrivals=late,
            **({"causal": True, "max_age": 200.0} if causal else {}),
        )
