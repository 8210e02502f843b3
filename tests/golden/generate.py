#!/usr/bin/env python3
"""Writes the golden vectors beside this file: see README.md for the format.

The answers are those of the references in tests/python, in double precision. Inputs are dyadic
fractions of few bits, so that lines, samples and affines are exact up to the last rounding; what is
not exact is settled by a narrower output.
"""

import dataclasses
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import ml_dtypes
import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

import reference  # noqa: E402
import rotation_reference  # noqa: E402
import voxel_reference  # noqa: E402

METHODS = ["linear", "nearest", "previous", "next", "cubic", "pchip", "slerp", "angle"]
EXACT = {"linear", "nearest", "previous", "next"}  # on these inputs
BOUNDS = ["hold", "fill", "extrapolate"]
MODES = ["occupancy", "count", "sum", "mean", "max", "min"]
ORDERS = ["lexicographic", "first_point"]
WEIGHTINGS = ["constant", "inverse_square"]
ROTATIONS = {value: name for name, value in rotation_reference.NAMES.items()}
# What Python calls the values of the fields that are enumerations.
CHOICES = {
    "method": METHODS,
    "bounds": BOUNDS,
    "mode": MODES,
    "reduce": MODES,
    "order": ORDERS,
    "weighting": WEIGHTINGS,
    "source": ROTATIONS,
    "target": ROTATIONS,
}
BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = {
    "f16": np.dtype(np.float16),
    "bf16": BF16,
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "bool": np.dtype(bool),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
EPOCH = 1_700_000_000_000_000_000  # in nanoseconds


class Case:
    """One case as lines of text."""

    def __init__(self, name, op):
        self.lines = [f"case {name}", f"op {op}"]

    def set(self, **fields):
        self.lines += [
            f"set {name} {value:.17g}" if isinstance(value, float) else f"set {name} {value}"
            for name, value in fields.items()
        ]

    def grid(self, origin, voxel_size, shape):
        numbers = [f"{x:.17g}" for x in (*origin, *voxel_size)]
        self.lines.append(" ".join(["grid", *numbers, *map(str, shape)]))

    def input(self, **tensors):
        self._tensors("in", tensors)

    def output(self, **tensors):
        self._tensors("out", tensors)

    def _tensors(self, direction, tensors):
        for name, tensor in tensors.items():
            if tensor is None:
                continue
            shape = "x".join(map(str, tensor.shape)) or "scalar"
            data = _bytes(tensor).hex() or "-"
            self.lines.append(f"{direction} {name} {NAMES[tensor.dtype]} {shape} {data}")

    def text(self):
        return "\n".join([*self.lines, "end", ""])


def _bytes(tensor):
    """In the one form of NaN that the library writes: positive, all payload bits set."""
    tensor = np.array(tensor, order="C")
    if tensor.dtype in (DTYPES["f16"], BF16, DTYPES["f32"], DTYPES["f64"]):
        bits = tensor.view(f"u{tensor.dtype.itemsize}")
        bits[np.isnan(tensor)] = np.iinfo(bits.dtype).max >> 1
    return tensor.tobytes()


# ---- inputs --------------------------------------------------------------------------------------


def dyadic(random, shape, dtype, bits=None):
    """Fractions in -4 .. 4, exact in `dtype`."""
    dtype = DTYPES[dtype]
    bits = bits or {DTYPES["f16"]: 8, BF16: 5, DTYPES["f64"]: 45}.get(dtype, 20)
    return (random.randint(-(4 << bits), 4 << bits, shape) / (1 << bits)).astype(dtype)


def ascending(random, shape, dtype, start=0):
    """Times with steps of 0 (not first), 1, 2 or 4; i64: in steps of 2^20 ticks from `start`."""
    steps = random.choice([1, 2, 4, 4, 2, 1, 0], shape)
    steps[..., :1] = 1
    return _as_times(np.cumsum(steps, axis=-1), dtype, start)


def queries(random, shape, dtype, last, start=0):
    """Multiples of 1/8 (where steps are 1) from before the first time to behind `last`."""
    return _as_times(random.randint(-8, (last + 3) * 8, shape) / 8, dtype, start)


def _as_times(times, dtype, start):
    if dtype == "i64":
        return (times * (1 << 20)).astype(np.int64) + start
    return times.astype(DTYPES[dtype])


# ---- resample and fuse ---------------------------------------------------------------------------


def interpolated(values, times, query_times, dtype, **options):
    """Out in `dtype`, and the mask; sure to be right to the bit."""
    out_dtype = DTYPES[dtype]
    with np.errstate(all="ignore"):
        out, mask = reference.resample(
            values, times, query_times, floats=out_dtype.kind not in "iub", **options
        )
    if out.dtype.kind in "iub":
        return out.astype(out_dtype), mask
    method = options.get("method", "linear")
    bound = reference.error_bound(values, times, out, "float64", method)
    for begin, count, name in [(0, None, method)] if isinstance(method, str) else method:
        if name in EXACT:
            bound[..., begin : None if count is None else begin + count] = 0
    # The fill value, or a sample; of quaternions one may be none, and those beside it have a value.
    exact = np.repeat(~mask[..., None], out.shape[-1], axis=-1)
    if "slerp" in str(method):
        exact &= out == options.get("fill_value", 0.0)
    bound[exact] = 0
    for apart in (out - bound, out + bound):
        np.testing.assert_array_equal(rounded(apart, out_dtype), rounded(out, out_dtype))
    computed_in_f64 = values.dtype in (np.float64, np.int32, np.int64)
    return rounded(out if computed_in_f64 else rounded(out, np.float32), out_dtype), mask


def rounded(x, dtype):
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(dtype)


def put_stream(case, options):
    """The params of a stream, from keywords of the reference."""
    method = options.get("method", "linear")
    if isinstance(method, str):
        case.set(method=METHODS.index(method))
    else:
        case.lines += [f"group {begin} {n} {METHODS.index(name)}" for begin, n, name in method]
    if "bounds" in options:
        case.set(bounds=BOUNDS.index(options["bounds"]))
    case.set(**{k: options[k] for k in ("fill_value", "max_gap", "tolerance") if k in options})
    case.input(**{k: options.get(k) for k in ("lengths", "offsets", "mean", "sample_mask")})
    if "std" in options:
        case.input(inv_std=1 / options["std"])


def resample(name, values, times, query_times, dtype, mask="u8", flags=0, **options):
    case = Case(f"resample/{name}", "resample")
    out, valid = interpolated(values, times, query_times, dtype, **options)
    if flags:
        case.set(flags=flags)
    put_stream(case, options)
    case.input(values=values, times=times, query_times=query_times)
    case.input(query_lengths=options.get("query_lengths"))
    case.output(out=out, mask=None if mask is None else valid.astype(DTYPES[mask]))
    return case


def fuse(name, streams, query_times, dtype, mask="u8", query_lengths=None):
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
                **options,
            )
        )
    case.input(query_times=query_times, query_lengths=query_lengths)
    valid = np.stack([valid for _, valid in answers], axis=-1).astype(DTYPES[mask])
    case.output(out=np.concatenate([out for out, _ in answers], axis=-1), mask=valid)
    for stream in streams:
        case.lines.append("stream")
        put_stream(case, stream)
        if "clock_offset" in stream:
            ticks = query_times.dtype == np.int64
            case.set(**{"clock_offset_ticks" if ticks else "clock_offset": stream["clock_offset"]})
        case.input(values=stream["values"], times=stream["times"])
    return case


def resample_cases():
    random = np.random.RandomState(1)

    times = ascending(random, (2, 6), "f32")
    times[1, 3] = times[1, 2]  # equal times: the last counts
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
        bounds="extrapolate",
    )
    yield resample(
        "linear bf16 to f16, affine, outside filled, checked",
        dyadic(random, (2, 5, 3), "bf16"),
        ascending(random, (2, 5), "f32"),
        queries(random, (2, 8), "f32", 10),
        "f16",
        flags=1,
        bounds="fill",
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
    yield resample(
        "linear f32 to bf16, packed by offsets, with an empty row",
        dyadic(random, (9, 2), "f32"),
        np.concatenate([ascending(random, (4,), "f64"), ascending(random, (5,), "f64")]),
        queries(random, (3, 5), "f64", 8),
        "bf16",
        offsets=np.array([0, 4, 4, 9], np.int64),
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
            bounds="fill",
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
    """Where samples are missing. What is between the others are powers of two: lines stay exact."""
    random = np.random.RandomState(8)
    times = np.array([0, 1, 2, 2, 2, 4, 8, 9])
    # Equal times of which the last is missing; the ends; all of a row; none.
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
    for bounds in BOUNDS:
        yield resample(
            f"missing samples, linear f32, {bounds}, equal times",
            without(dyadic(random, (4, 8, 3), "f32"), there),
            times.astype(np.float32),
            asked.astype(np.float32),
            "f32",
            flags=1,
            sample_mask=there * np.uint8(3),
            bounds=bounds,
            fill_value=-7.0,
        )
    for method, more in (
        ("nearest", {"tolerance": 1.0}),
        ("previous", {"max_gap": 4.0}),
        ("next", {"bounds": "fill"}),
    ):
        yield resample(
            f"missing samples, {method} i16, packed",
            without(random.randint(-500, 500, (9, 2)).astype(np.int16), there[:1, [0, *range(8)]]),
            np.array([0, 2, 4, 6, 0, 1, 2, 3, 4]) * 1.0,
            np.tile(np.arange(-1, 8) / 1.0, (3, 1)),
            "i16",
            offsets=np.array([0, 4, 6, 9], np.int64),
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


def without(values, there):
    """With what none may use where samples are missing."""
    odd = np.nan if values.dtype.kind == "f" else 12345
    rows = np.reshape(there, values.shape[:-1]) if values.ndim == 3 else np.ravel(there)
    values[rows == 0] = odd
    return values


def quaternions(random, shape, dtype):
    q = random.randint(-64, 64, (*shape, 4)) + np.array([0.5, 0.25, 0, 0])
    return (q / np.linalg.norm(q, axis=-1, keepdims=True)).astype(DTYPES[dtype])


def with_no_rotations(random, shape, dtype):
    """Two quaternions a sample, some of them none; such may be the last."""
    q = np.stack([quaternions(random, shape, dtype) for _ in range(2)], axis=-2)
    q[0, 1, 0], q[0, 4, 1], q[0, 8, 1] = 0, [0, -0.0, 0, -0.0], 0
    q[1, 0, 0, 2], q[1, 3, 1, 3], q[1, 6, 0, 0] = np.nan, np.inf, -np.inf
    return q.reshape(*shape, 8)


def fuse_cases():
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
                "bounds": "fill",
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
                "bounds": "fill",
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
                "offsets": np.array([0, 4, 7], np.int32),
                "method": [(0, 3, "linear"), (3, 4, "slerp")],
                "clock_offset": tick // 2,
            },
            {
                "values": dyadic(random, (2, 4, 2), "bf16"),
                "times": np.array([0, 2, 2, 5], np.int64) * tick + EPOCH,
                "bounds": "extrapolate",
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
                "bounds": "fill",
                "fill_value": -1.0,
            },
            {"values": dyadic(random, (2, 3, 1), "f32"), "times": np.arange(3.0)},
        ],
        np.array([[-1, 0, 0.375, 0.5, 1.0, 1.25, 3], [0, 0.25, 1.5, 1.625, 1.75, 2, np.nan]]),
        "f32",
    )


# ---- voxelize ------------------------------------------------------------------------------------

GRID = {"origin": (-1.0, -1.0, 0.0), "voxel_size": (0.5, 0.5, 0.25), "shape": (4, 3, 2)}


def cloud(random, shape, dtype, channels=3):
    """Points in and around GRID, on faces too, some of them NaN or infinite."""
    points = random.randint(-10, 10, (*shape, channels)) / 8
    points[..., 2] = random.randint(-1, 9, shape) / 16
    points = points.astype(DTYPES[dtype])
    flat = points.reshape(-1, channels)
    flat[1, 0], flat[4, 2], flat[6, 1] = np.nan, np.inf, -np.inf
    return points


def ragged(options):
    return {k: options[k] for k in ("lengths", "offsets") if k in options}


def voxelize(name, points, mode, dtype, features=None, empty_value=None, **options):
    case = Case(f"voxelize/{name}", "voxelize")
    out, dropped = voxel_reference.dense(
        points,
        features,
        mode=mode,
        dtype=DTYPES[dtype],
        empty_value=empty_value or 0,
        **ragged(options),
        **GRID,
    )
    case.set(mode=MODES.index(mode))
    if empty_value is not None:
        case.set(empty_value=empty_value)
    case.grid(**GRID)
    case.input(points=points, features=features, **ragged(options))
    case.output(out=out, dropped=np.asarray(dropped, np.int64))
    return case


def voxelize_cases():
    random = np.random.RandomState(3)
    padded = {"lengths": np.array([12, 7], np.int64)}
    packed = {"offsets": np.array([0, 9, 9, 20], np.int32)}

    points = cloud(random, (2, 12), "f32")
    yield voxelize("occupancy u8, padded", points, "occupancy", "u8", **padded)
    yield voxelize("count i32, padded", points, "count", "i32", **padded)
    yield voxelize("count f16, whole rows, empty_value -1", points, "count", "f16", None, -1.0)
    points = cloud(random, (20,), "f32")
    yield voxelize("occupancy bool, packed", points, "occupancy", "bool", **packed)
    yield voxelize("count i64, packed, empty_value 7", points, "count", "i64", None, 7.0, **packed)
    features = (random.standard_normal((20, 3)) * 10).astype(np.float32)
    yield voxelize("sum f32, packed", points, "sum", "f32", features, **packed)
    yield voxelize("mean f32 to f64, packed", points, "mean", "f64", features, **packed)
    points, features = cloud(random, (2, 12), "f32"), dyadic(random, (2, 12, 2), "f16")
    features -= np.float16(5)  # the largest are negative, too
    yield voxelize("max f16 to f32, padded", points, "max", "f32", features, **padded)
    yield voxelize("min f16, empty NaN, padded", points, "min", "f16", features, np.nan, **padded)
    features = dyadic(random, (2, 12, 2), "f32")
    features[0, 2, 0], features[0, 5, 1], features[1, 0, 1] = np.nan, np.inf, -np.inf
    yield voxelize("mean f32 to bf16, NaN and infinite features", points, "mean", "bf16", features)
    points = cloud(random, (24,), "f64", 4)
    yield voxelize("mean of f64 points themselves, without batch", points, "mean", "f64")
    yield voxelize("sum of f64 points to f32, without batch", points, "sum", "f32")
    points = cloud(random, (24,), "f16", 4)
    yield voxelize("max of f16 points, without batch", points, "max", "f16", None, -9.0)
    points = np.zeros((2, 0, 3), np.float32)
    yield voxelize("no points", points, "occupancy", "u8")


def voxelize_sparse(
    name, points, dtype, capacity, features=None, *, reduce="mean", order="lexicographic", **options
):
    case = Case(f"voxelize_sparse/{name}", "voxelize_sparse")
    voxels = voxel_reference.sparse(
        points,
        features,
        reduce=reduce,
        order=order,
        capacity=capacity,
        dtype=DTYPES[dtype],
        max_points=options.get("max_points"),
        **ragged(options),
        **GRID,
    )
    voxels["num_voxels"] = np.asarray(voxels["num_voxels"], np.int64)
    voxels["dropped"] = np.asarray(voxels["dropped"], np.int64)
    index = DTYPES[options.get("point_to_voxel", "i64")]
    voxels["point_to_voxel"] = voxels["point_to_voxel"].astype(index)
    case.set(reduce=MODES.index(reduce), order=ORDERS.index(order))
    case.grid(**GRID)
    case.input(points=points, features=features, **ragged(options))
    case.output(**voxels)
    return case


def voxelize_sparse_cases():
    random = np.random.RandomState(4)
    padded = {"lengths": np.array([12, 9], np.int32)}
    packed = {"offsets": np.array([0, 11, 11, 20], np.int64)}

    points = cloud(random, (2, 12), "f32")
    features = (random.standard_normal((2, 12, 2)) * 10).astype(np.float32)
    yield voxelize_sparse("lexicographic, mean, padded", points, "f32", 30, features, **padded)
    yield voxelize_sparse(
        "lexicographic, max, beyond the capacity", points, "f16", 5, reduce="max", **padded
    )
    points = cloud(random, (20,), "f32", 4)
    points[10:, :3] = points[0, :3]  # one voxel with many points
    yield voxelize_sparse(
        "first points, grouped by 3, packed, beyond the capacity",
        points,
        "f32",
        6,
        order="first_point",
        max_points=3,
        point_to_voxel="i32",
        **packed,
    )
    yield voxelize_sparse(
        "lexicographic, grouped by 2, without batch", points, "bf16", 16, max_points=2
    )
    points = cloud(random, (20,), "f64")
    yield voxelize_sparse("f64 points, sum, packed", points, "f64", 25, reduce="sum", **packed)


def voxelize_tsdf(name, points, sensors, *, tsdf, weight, truncation, max_weight=None, **options):
    case = Case(f"voxelize_tsdf/{name}", "voxelize_tsdf")
    carve, inverse_square = options.get("carve", False), options.get("inverse_square", False)
    setting = {
        **GRID,
        "truncation": truncation,
        "carve": carve,
        "weight_of": (lambda r: min(1, 1 / r**2)) if inverse_square else None,
    }
    clouds, batched = voxel_reference.clouds_of(points, None, **ragged(options))
    distances, weights, dropped = np.zeros(GRID["shape"]), np.zeros(GRID["shape"]), []
    with np.errstate(all="ignore"):
        for b, (_, one, _) in enumerate(clouds):
            sensor = sensors[b] if sensors.ndim == 2 else sensors
            d, w, touched = voxel_reference.tsdf(one[:, :3], sensor, **setting)
            assert not touched.any(), "a ray that just touches a voxel may pass it or not"
            distances, weights = distances + d, weights + w
            rays = [voxel_reference.tsdf(p[None, :3], sensor, **setting)[1] for p in one]
            dropped.append(sum(not passed.any() for passed in rays))
        after = (tsdf.astype(np.float64) * weight + distances) / (weight + weights)
    seen = weights > 0
    case.set(flags=int(carve), weighting=int(inverse_square), truncation=truncation)
    if max_weight is not None:
        case.set(max_weight=max_weight)
    case.grid(**GRID)
    case.input(points=points, sensors=sensors, tsdf=tsdf, weight=weight, **ragged(options))
    most = np.inf if max_weight is None else max_weight
    case.output(
        tsdf=np.where(seen, after, tsdf).astype(np.float32),
        weight=np.where(seen, np.minimum(weight + weights, most), weight).astype(np.float32),
        dropped=np.array(dropped if batched else dropped[0], np.int64),
    )
    return case


def voxelize_tsdf_cases():
    """Rays along the axes, through the inside of voxels: exact."""
    random = np.random.RandomState(5)
    shape = GRID["shape"]

    def along(axis, sensor, distances):
        points = np.tile(np.asarray(sensor, np.float64), (len(distances), 1))
        points[:, axis] += distances
        return points

    sensors = np.array([[-3.25, -0.625, 0.0625], [0.125, 2.75, 0.375]])
    points = np.stack(
        [
            along(0, sensors[0], [2.625, 3.0, 3.375, 9, np.nan, 0]),
            along(1, sensors[1], [-2.875, -3.125, -3.25, -0.5, np.inf, -3.5]),
        ]
    )
    new = {"tsdf": np.full(shape, 0.125, np.float32), "weight": np.zeros(shape, np.float32)}
    yield voxelize_tsdf(
        "two clouds, a new volume",
        points.astype(np.float32),
        sensors.astype(np.float32),
        truncation=0.3125,
        **new,
    )
    old = {
        "tsdf": dyadic(random, shape, "f32", 4) / np.float32(16),
        "weight": random.randint(0, 4, shape).astype(np.float32),
    }
    yield voxelize_tsdf(
        "two clouds of f64 points, packed, an old volume up to max_weight",
        points.reshape(-1, 3),
        sensors,
        truncation=0.3125,
        max_weight=4.0,
        offsets=np.array([0, 5, 12], np.int64),
        **old,
    )
    sensor = np.array([-1.75, 0.125, 0.1875])
    yield voxelize_tsdf(
        "carved, inverse square, without batch",
        along(0, sensor, [1, 2, 0.5, 4]).astype(np.float32),
        sensor.astype(np.float32),
        truncation=0.375,
        carve=True,
        inverse_square=True,
        **old,
    )


# ---- rotations -----------------------------------------------------------------------------------


def convert_rotations(rotations, source, target, dtype):
    """A case; sure to be right to the bit, unless the output is as exact as the library."""
    out_dtype, numbers = DTYPES[dtype], rotation_reference.NAMES
    exact = rotation_reference.convert(rotations, source, target)
    out = rounded(exact.astype(np.float64), out_dtype)
    angles = target == "rotvec" or target.startswith("euler")
    bound = np.where(exact == 0, 0, 2.0**-49 if angles else 2.0**-50)
    if dtype != "f64":
        for apart in (exact - bound, exact + bound):
            assert _bytes(rounded(apart.astype(np.float64), out_dtype)) == _bytes(out)
    name = f"{source} to {target}, {NAMES[rotations.dtype]} to {dtype}"
    case = Case(f"convert_rotations/{name}", "convert_rotations")
    case.set(source=numbers[source], target=numbers[target])
    case.input(rotations=rotations)
    case.output(out=out)
    return case


def convert_rotations_cases():
    """Every representation into two others, by and by between all dtypes of floats."""
    random = np.random.RandomState(6)
    names = list(rotation_reference.NAMES)
    floats = ["f64", "f32", "bf16", "f16"]
    for i, source in enumerate(names):
        for step in (1, 12):
            quaternions = random.standard_normal((2, 3, 4))
            written = rotation_reference.convert(quaternions, "quat_xyzw", source)
            rotations = rounded(written.astype(np.float64), DTYPES[floats[(i + step) % 4]])
            rotations[1, 2, 0] = np.nan
            target = names[(i + step) % len(names)]
            yield convert_rotations(rotations, source, target, floats[1 + (i // 4) % 3])

    # One of two signs, also where w is 0; and what is no rotation.
    quaternions = [[0, 0, 0, -2], [0, 4, 0, 0], [0, 0, -1, 0], [-0.5, 0.5, 0.5, -0.5], [0, 0, 0, 0]]
    quaternions = np.array([*quaternions, [np.inf, 0, 0, 1]])
    yield convert_rotations(quaternions, "quat_xyzw", "quat_wxyz", "f64")
    vectors = np.array([[1, 0, 0, 2, 0, 0], [0, 0, 0, 0, 1, 0], [0, 3, 0, 1, 5, 0]], np.float32)
    yield convert_rotations(vectors, "rot6d_rows", "quat_xyzw", "f32")
    mirrored = np.array([[-1, 0, 0, 0, 1, 0, 0, 0, 1], [3, 0, 0, 0, 3, 0, 0, 0, 3]], np.float16)
    yield convert_rotations(mirrored, "matrix", "quat_xyzw", "f64")
    yield convert_rotations(np.zeros((0, 3), np.float32), "rotvec", "matrix", "f32")


# ---- files ---------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Operation:
    cases: Callable[[], Iterator[Case]]
    signature: str  # see README.md
    flags: tuple[str, ...] = ()  # what Python calls the bits of the params' flags, from the lowest


OPERATIONS = {
    "resample": Operation(
        resample_cases,
        "values:in times:in query_times:in out:out mask:out params:struct",
        flags=("check_times",),
    ),
    "fuse": Operation(
        fuse_cases, "streams:structs query_times:in out:out mask:out params:struct"
    ),
    "voxelize": Operation(
        voxelize_cases, "points:in features:in out:out dropped:out params:struct"
    ),
    "voxelize_sparse": Operation(
        voxelize_sparse_cases, "points:in features:in voxels:struct params:struct"
    ),
    "voxelize_tsdf": Operation(
        voxelize_tsdf_cases,
        "points:in sensors:in tsdf:out weight:out dropped:out params:struct",
        flags=("carve",),
    ),
    "convert_rotations": Operation(
        convert_rotations_cases, "rotations:in out:out source:int target:int"
    ),
}


def files():
    """{name: text} of all files."""
    return {
        f"{name}.txt": "# Written by generate.py.\n\n"
        f"signature {name} {operation.signature}\n\n"
        + "\n".join(case.text() for case in operation.cases())
        for name, operation in OPERATIONS.items()
    }


if __name__ == "__main__":
    for name, text in files().items():
        (HERE / name).write_text(text)
