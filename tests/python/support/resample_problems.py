"""Random calls of rbc.resample, and how an answer is compared with the reference's."""

import math

import numpy as np
from hypothesis import strategies as st

from reference import STEPS, distance, error_bound
from reference import resample as expected_resample

METHODS = ["linear", *STEPS, "cubic", "pchip", "slerp", "angle"]
SMOOTH = ("cubic", "pchip", "slerp")
FLOATS = ["float16", "float32", "float64"]
INTEGERS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def same_bits(a, b):
    """Equal shape, dtype and elements, NaN equal to NaN."""
    a, b = np.asarray(a), np.asarray(b)
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    )


def assert_any_layout(data, expected, call):
    """Whether call(out) writes an output of any strides, and nothing between its elements."""
    order = data.draw(st.permutations(range(expected.ndim)))
    poison = expected.dtype.type(99)
    room = np.full([2 * expected.shape[axis] + 5 for axis in order], poison).transpose(
        np.argsort(order)
    )
    steps = data.draw(st.tuples(*[st.sampled_from([1, 2])] * expected.ndim))
    signs = data.draw(st.tuples(*[st.sampled_from([1, -1])] * expected.ndim))
    view = room[tuple(slice(2, 2 + n * step, step) for n, step in zip(expected.shape, steps))]
    view = view[tuple(slice(None, None, sign) for sign in signs)]
    assert call(view) is view
    assert same_bits(view, expected)
    view[...] = poison
    assert (room == poison).all()


def assert_answers(out, mask, values, times, query_times, **rules):
    out = np.asarray(out)
    floats = out.dtype.kind == "f"
    expected, expected_mask = expected_resample(values, times, query_times, floats=floats, **rules)
    np.testing.assert_array_equal(np.asarray(mask), expected_mask)
    if values.dtype.kind in "iub":
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(out, expected.astype(out.dtype))
        return
    got = out.astype(np.float64)
    assert got.shape == expected.shape
    method = rules.get("method", "linear")
    bound = error_bound(values, times, expected, out.dtype.name, method)
    close = (
        (distance(got, expected, method) <= bound)
        | (got == expected)
        | (np.isnan(got) & np.isnan(expected))
    )
    assert close.all(), (
        f"{got[~close][:5]} != {expected[~close][:5]} at {np.argwhere(~close)[:5].tolist()}"
    )


def relaid(draw, array, fill):
    """The same elements in some layout of memory, perhaps read-only; between them lies `fill`."""
    kind = draw(st.sampled_from(["compact", "sliced", "reversed", "permuted", "sliced", "compact"]))
    if kind == "sliced" and array.ndim:
        room = np.full([2 * n + 3 for n in array.shape], fill, array.dtype)
        view = room[tuple(slice(1, 1 + 2 * n, 2) for n in array.shape)]
    elif kind == "reversed" and array.ndim:
        view = np.full(array.shape, fill, array.dtype)[(slice(None, None, -1),) * array.ndim]
    elif kind == "permuted":
        view = np.full(array.shape[::-1], fill, array.dtype).T
    else:
        view = np.full(array.shape, fill, array.dtype)
    view[...] = array
    view.flags.writeable = draw(st.booleans())
    return view


@st.composite
def methods(draw, channels):
    """A name, or groups of channels in any order."""
    fit = METHODS if channels % 4 == 0 else [name for name in METHODS if name != "slerp"]
    if channels == 0 or draw(st.booleans()):
        return draw(st.sampled_from(fit))
    cuts = draw(st.sets(st.integers(1, channels), max_size=4)) | {0, channels}
    groups = []
    for begin, end in zip(sorted(cuts), sorted(cuts)[1:]):
        names = [name for name in METHODS if name != "slerp" or (end - begin) % 4 == 0]
        groups.append((begin, end - begin, draw(st.sampled_from(names))))
    return draw(st.permutations(groups))


def names_of(method):
    return {method} if isinstance(method, str) else {name for _, _, name in method}


@st.composite
def problems(draw):
    """Arrays and options of one call."""
    batch = draw(st.integers(0, 4))
    samples = draw(st.integers(0, 9))
    queries = draw(st.integers(0, 9))
    channels = draw(st.sampled_from([0, 1, 2, 3, 4, 7, 8, 17, 33]))
    form = draw(st.sampled_from(["padded", "padded", "packed", "single"]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    method = draw(methods(channels))
    names = names_of(method)
    dtype = np.dtype(draw(st.sampled_from(FLOATS + INTEGERS * names.issubset(STEPS))))
    time_dtype = np.dtype(draw(st.sampled_from(["float32", "float64", "int64"])))
    options = {
        "method": method,
        "outside": draw(st.sampled_from(["hold", "fill"] + ["extrapolate"] * ("linear" in names))),
        "fill_value": draw(
            st.sampled_from([0.0, 1.0] if dtype.kind in "iub" else [0.0, -2.5, math.nan, math.inf])
        ),
    }
    # Times on a coarse grid, so that ties, duplicates and exact meetings are common.
    unit, start = draw(st.sampled_from([(1, 0), (7, -20), (1000, 10**6)]))
    if time_dtype == np.int64 and draw(st.booleans()):
        start += 1_700_000_000_000_000_000
    if draw(st.booleans()):
        options["max_gap"] = draw(st.sampled_from([0, 1, 2, 3, math.inf])) * unit
    if not names.isdisjoint(STEPS) and draw(st.booleans()):
        half = 0.5 if time_dtype != np.int64 or unit % 2 == 0 else 3
        options["tolerance"] = draw(st.sampled_from([0, half, 1, 2, 100, math.inf])) * unit

    if form == "packed":
        cuts = np.sort(random.integers(0, samples + 1, max(batch - 1, 0)))
        offsets = np.concatenate([[0], cuts, [samples]] if batch else [[0]])
        options["batch_offsets"] = offsets.astype(draw(st.sampled_from(["int32", "int64"])))
        values_shape, times_shape = (samples, channels), (samples,)
    elif form == "single":
        values_shape, times_shape = (samples, channels), (samples,)
    else:
        values_shape = (batch, samples, channels)
        times_shape = draw(st.sampled_from([(samples,), (batch, samples)]))
        if draw(st.booleans()):
            options["lengths"] = random.integers(0, samples + 1, batch).astype(
                draw(st.sampled_from(["int32", "int64"]))
            )
    query_shape = (
        (queries,) if form == "single" else draw(st.sampled_from([(queries,), (batch, queries)]))
    )
    if form != "single" and draw(st.booleans()):
        options["query_lengths"] = random.integers(0, queries + 1, batch).astype(np.int32)

    times = np.sort(random.integers(0, draw(st.sampled_from([3, 12, 60])), times_shape), axis=-1)
    if form == "packed":
        random.shuffle(times)
        for begin, end in zip(options["batch_offsets"], options["batch_offsets"][1:]):
            times[begin:end].sort()
    times = (times * unit + start).astype(time_dtype)
    query_times = (
        random.integers(-8, 2 * 60 + 8, query_shape) * (unit if unit == 1 else unit / 2) / 2 + start
    )
    query_times = np.where(
        random.random(query_shape) < 0.4, np.floor(query_times), query_times
    ).astype(time_dtype)
    if samples and times.size and queries:
        met = random.random(query_shape) < 0.3
        query_times = np.where(met, random.choice(times.ravel(), query_shape), query_times).astype(
            time_dtype
        )
    if time_dtype != np.int64 and queries and draw(st.booleans()):
        query_times[..., 0] = draw(st.sampled_from([math.nan, math.inf, -math.inf]))

    if dtype.kind == "b":
        values = random.random(values_shape) < 0.5
    elif dtype.kind in "iu":
        limits = np.iinfo(dtype)
        values = random.integers(limits.min, limits.max, values_shape, dtype, endpoint=True)
    else:
        values = random.normal(size=values_shape).astype(dtype)
        if "slerp" in names:
            values += (values == 0) * dtype.type(0.5)  # no quaternion of length 0 but by intent
            groups = [(0, channels, "slerp")] if isinstance(method, str) else method
            slerps = [range(i, i + n, 4) for i, n, name in groups if name == "slerp"]
            for begin in [i for group in slerps for i in group]:
                odd = random.choice([0.0, -0.0, math.nan, math.inf], (*values_shape[:-1], 1))
                lost = random.random((*values_shape[:-1], 1)) < 0.1
                lost = lost & (random.random((*values_shape[:-1], 4)) < 0.5) | lost & (odd == 0)
                part = values[..., begin : begin + 4]
                part[...] = np.where(lost, odd, part)
        if names.isdisjoint(SMOOTH) and draw(st.booleans()):
            special = random.choice([math.nan, math.inf, -math.inf, 0.0, -0.0], values_shape)
            values = np.where(random.random(values_shape) < 0.2, special, values).astype(dtype)
    if dtype.kind == "f" or draw(st.booleans()):
        options["dtype"] = draw(st.sampled_from([None, *FLOATS]))
    poison = 77 if dtype.kind in "iub" else math.nan
    values = relaid(draw, values, poison)
    times = relaid(draw, times, -1 if time_dtype == np.int64 else math.nan)
    query_times = relaid(draw, query_times, 0)
    return values, times, query_times, options
