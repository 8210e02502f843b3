"""Resampling written straight from its rules, one query at a time, in double precision.

Slow and plain on purpose: it shares nothing with the library but the rules. Differences of times
are taken in the dtype of the times, which decides ties and limits; everything else is float64.
"""

import math

import numpy as np


def resample(
    values,
    times,
    query_times,
    *,
    method="linear",
    lengths=None,
    query_lengths=None,
    batch_offsets=None,
    sample_mask=None,
    outside="hold",
    fill_value=0.0,
    max_gap=None,
    tolerance=None,
    mean=None,
    std=None,
    clock_offset=0,
    arrivals=None,
    lag=0,
    causal=False,
    max_age=None,
    floats=False,
):
    """Return out as float64 (or in the dtype of values if it is not a float), and the mask.

    Shapes are as of rbc.resample.
    """
    values, times, query_times = np.asarray(values), np.asarray(times), np.asarray(query_times)
    batched = batch_offsets is not None or values.ndim == 3
    if batch_offsets is not None:
        batch = len(batch_offsets) - 1
    else:
        batch = values.shape[0] if values.ndim == 3 else 1
    queries, channels = query_times.shape[-1], values.shape[-1]
    exact = values.dtype.kind in "iub" and not floats
    out = np.full((batch, queries, channels), fill_value, values.dtype if exact else np.float64)
    mask = np.zeros((batch, queries), bool)
    groups = [(0, channels, method)] if isinstance(method, str) else method
    mean = np.zeros(channels) if mean is None else np.asarray(mean, np.float64)
    std = np.ones(channels) if std is None else np.asarray(std, np.float64)
    for b in range(batch):
        row_values = values[b] if values.ndim == 3 else values
        row_times = times[b] if times.ndim == 2 else times
        there = np.ones(len(row_values), bool)
        if sample_mask is not None:
            there = np.asarray(sample_mask)
            there = (there[b] if there.ndim == 2 else there) != 0
        part = slice(0, len(row_values))
        if batch_offsets is not None:
            part = slice(int(batch_offsets[b]), int(batch_offsets[b + 1]))
        elif lengths is not None:
            part = slice(0, int(lengths[b]))
        row_values, row_times, there = row_values[part], row_times[part], there[part]
        arrived = None
        if arrivals is not None:
            arrived = (arrivals[b] if arrivals.ndim == 2 else arrivals)[part][there]
        row_values, row_times = row_values[there], row_times[there]
        row_queries = query_times[b] if query_times.ndim == 2 else query_times
        if query_lengths is not None:
            row_queries = row_queries[: int(query_lengths[b])]
        if not exact:
            row_values = row_values.astype(np.float64)
        for k, q in enumerate(row_queries):
            valid = []
            exists = slice(None) if arrived is None else arrived <= _moved(q, -lag)
            for begin, count, name in groups:
                part = slice(begin, begin + count)
                rule, limit = (_last, max_age) if causal else (_one, tolerance)
                answer, ok = rule(
                    row_values[exists, part],
                    row_times[exists],
                    _moved(q, clock_offset),
                    name,
                    outside,
                    _limit(max_gap, times),
                    _limit(limit, times),
                )
                if answer is not None:
                    out[b, k, part] = answer if exact else (answer - mean[part]) / std[part]
                    if name == "slerp":
                        none = np.isnan(answer)
                        out[b, k, part][none] = fill_value
                        ok = ok and not none.any()
                valid.append(ok)
            mask[b, k] = all(valid)
    return (out, mask) if batched else (out[0], mask[0])


def _moved(q, clock_offset):
    """A query on the clock of the stream, rounded in the dtype of the times; integers saturate."""
    if isinstance(q, np.floating):
        return q - type(q)(clock_offset)
    limits = np.iinfo(np.int64)
    return np.int64(max(limits.min, min(limits.max, int(q) - clock_offset)))


def _limit(limit, times):
    """A duration in the dtype of the times; integers round down."""
    if limit is None or math.isinf(limit):
        return None
    return int(limit) if times.dtype == np.int64 else times.dtype.type(limit)


def _span(later, earlier):
    """A difference of two times: exact for integers, rounded to their dtype for floats."""
    if isinstance(later, np.floating):
        with np.errstate(over="ignore", invalid="ignore"):
            return later - earlier
    return int(later) - int(earlier)


def _one(values, times, q, method, outside, max_gap, tolerance):
    """(a row, or None for invalid; the mask) for one query."""
    n = len(times)
    if n == 0 or q != q:
        return None, False
    if method == "slerp":
        values = _rotations(values)
    same = np.flatnonzero(times == q)
    if len(same):
        return values[same[-1]], True
    before, after = np.flatnonzero(times < q), np.flatnonzero(times > q)
    left = before[-1] if len(before) else None
    right = after[0] if len(after) else None

    if method in STEPS and tolerance is not None:
        chosen = _chosen(times, q, left, right, method)
        if chosen is None:
            return None, False
        distance = _span(q, times[chosen]) if times[chosen] < q else _span(times[chosen], q)
        return (values[chosen], True) if distance <= tolerance else (None, False)
    if left is None or right is None:
        if outside == "fill":
            return None, False
        if outside == "hold" or method != "linear":
            return values[0 if left is None else n - 1], False
        return _extrapolated(values, times, q, left is None)
    if max_gap is not None and _span(times[right], times[left]) > max_gap:
        return None, False
    if method in STEPS:
        return values[_chosen(times, q, left, right, method)], True
    return _weighed(values, times, q, left, right, method), True


def _last(values, times, q, method, outside, max_gap, max_age):
    """The same where methods look back from a query: RBC_FLAG_CAUSAL."""
    before = np.flatnonzero(times <= q)
    if not len(before):  # also if q is NaN
        return None, False
    left = before[-1]
    valid = max_age is None or _span(q, times[left]) <= max_age
    if not valid and outside == "fill":
        return None, False
    right = left + 1
    if times[left] == q or right == len(times) or method == "previous":
        right = left
    elif max_gap is not None and _span(times[right], times[left]) > max_gap:
        right = left
    elif method in STEPS:
        left = right = _chosen(times, q, left, right, method)
    values = _rotations(values) if method == "slerp" else values
    if left == right:
        return values[left], valid
    return _weighed(values, times, q, left, right, method), valid


def _weighed(values, times, q, left, right, method):
    w = float(_span(q, times[left])) / float(_span(times[right], times[left]))
    if w == 0:
        return values[left]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _between(values, times, left, right, w, method)


def _between(values, times, left, right, w, method):
    v1, v2 = values[left], values[right]
    if method == "linear":
        return _line(v1, v2, w)
    if method == "angle":
        return _wrapped(v1 + w * _wrapped(v2 - v1))
    if method in TURNS:
        begin, length = TURNS[method]
        way = np.remainder(v2 - v1, length)
        # Half a turn goes in the direction of the difference.
        way = np.where((way > length / 2) | ((way == length / 2) & (v2 < v1)), way - length, way)
        angle = np.remainder(v1 + w * way - begin, length) + begin
        return np.where(angle < begin + length, angle, begin)
    if method == "slerp":
        runs = [slice(i, i + 4) for i in range(0, len(v1), 4)]
        return np.concatenate([_slerp(v1[run], v2[run], w) for run in runs] or [v1])
    return _hermite(values, times, left, right, w, method)


def _line(v1, v2, w):
    """Interpolate as numpy.interp between samples that are not finite; it does not extrapolate."""
    v1, v2 = np.asarray(v1, np.float64), np.asarray(v2, np.float64)
    line = v1 + w * (v2 - v1)
    odd = ~np.isfinite(v1) | ~np.isfinite(v2)
    if 0 <= w <= 1:
        for i in np.argwhere(odd):
            i = tuple(i)
            line[i] = np.interp(w, [0.0, 1.0], [v1[i], v2[i]])
    else:  # the line from one sample to the other, wherever one of the two forms has a number
        line = np.where(np.isnan(line), v2 + (w - 1) * (v2 - v1), line)
        line = np.where(np.isnan(line) & (v1 == v2), v1, line)
    far = ~odd & np.isinf(v2 - v1)
    return np.where(far, (1 - w) * v1 + w * v2, line)


def _wrapped(angle):
    return angle - 2 * math.pi * np.round(angle / (2 * math.pi))


# Where the range of angles begins, and how long it is.
TURNS = {
    "angle_deg": (-180, 360),
    "angle_turn": (-0.5, 1),
    "angle_positive": (0, 2 * math.pi),
    "angle_deg_positive": (0, 360),
    "angle_turn_positive": (0, 1),
}


def _rotations(values):
    """Quaternions, all NaN where they are zero or not finite."""
    runs = values.reshape(*values.shape[:-1], -1, 4)
    good = np.isfinite(runs).all(axis=-1) & (runs != 0).any(axis=-1)
    return np.where(good[..., None], runs, np.nan).reshape(values.shape)


def _slerp(p, q, w):
    """Shoemake's formula for unit quaternions, by the angle between them from its tangent."""
    if np.isnan([p, q]).any():
        return np.full(4, np.nan)
    p, q = p / math.sqrt(p @ p), q / math.sqrt(q @ q)
    if p @ q < 0:
        q = -q
    angle = 2 * math.atan2(math.sqrt((p - q) @ (p - q)), math.sqrt((p + q) @ (p + q)))
    if angle == 0:
        return p
    return (math.sin((1 - w) * angle) * p + math.sin(w * angle) * q) / math.sin(angle)


def _hermite(values, times, left, right, w, method):
    """The Hermite cubic between two samples, with the slopes of `method` at both."""
    # The samples that make the slopes, and their times from the left one on.
    near = [left, right]
    if left > 0 and times[left - 1] < times[left]:
        near.insert(0, left - 1)
    if right + 1 < len(times) and times[right + 1] > times[right]:
        near.append(right + 1)
    t = [float(_span(times[i], times[left])) for i in near]
    v = [values[i] for i in near]
    slopes = {"cubic": _parabola_slope, "pchip": _pchip_slope}[method]
    i = near.index(left)
    h = t[i + 1] - t[i]
    m1, m2 = slopes(t, v, i) * h, slopes(t, v, i + 1) * h
    a, b = (1 + 2 * w) * (1 - w) ** 2, w**2 * (3 - 2 * w)
    return a * v[i] + w * (1 - w) ** 2 * m1 + b * v[i + 1] - w**2 * (1 - w) * m2


def _parabola_slope(t, v, i):
    """At t[i], of the parabola through it and its neighbours, or through the three at an end."""
    if len(t) == 2:
        return (v[1] - v[0]) / (t[1] - t[0])
    first = min(max(i - 1, 0), len(t) - 3)
    (t0, t1, t2), (v0, v1, v2) = t[first : first + 3], v[first : first + 3]
    at = t[i]
    return (
        v0 * (2 * at - t1 - t2) / ((t0 - t1) * (t0 - t2))
        + v1 * (2 * at - t0 - t2) / ((t1 - t0) * (t1 - t2))
        + v2 * (2 * at - t0 - t1) / ((t2 - t0) * (t2 - t1))
    )


def _pchip_slope(t, v, i):
    """Return a slope as in scipy.interpolate.PchipInterpolator."""
    h = np.diff(t)
    d = [(v[k + 1] - v[k]) / h[k] for k in range(len(h))]
    if len(h) == 1:
        return d[0]
    if 0 < i < len(h):
        w1, w2 = 2 * h[i] + h[i - 1], h[i] + 2 * h[i - 1]
        mean = (w1 + w2) / (w1 / d[i - 1] + w2 / d[i])
        return np.where(np.sign(d[i - 1]) * np.sign(d[i]) <= 0, 0.0, mean)
    here, beside = (0, 1) if i == 0 else (-1, -2)
    slope = ((2 * h[here] + h[beside]) * d[here] - h[here] * d[beside]) / (h[here] + h[beside])
    slope = np.where(np.sign(slope) != np.sign(d[here]), 0.0, slope)
    steep = (np.sign(d[here]) != np.sign(d[beside])) & (np.abs(slope) > 3 * np.abs(d[here]))
    return np.where(steep, 3 * d[here], slope)


def _chosen(times, q, left, right, method):
    if method == "previous":
        return left
    if method == "next":
        return right
    if left is None or right is None:
        return right if left is None else left
    return left if _span(q, times[left]) <= _span(times[right], q) else right


def _extrapolated(values, times, q, at_start):
    """The line through the two outermost distinct times."""
    edge = times[0] if at_start else times[-1]
    others = np.flatnonzero(times != edge)
    if len(others) == 0:
        return None, False
    left = others[0] - 1 if at_start else others[-1]
    return _weighed(values, times, q, left, left + 1, "linear"), False


STEPS = ("nearest", "previous", "next")

_EPS = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
_TINY = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 0.0}


# Roundings on the way to a result, in units of the largest value. Splines weigh it by the ratio of
# neighbouring intervals, which is up to 60 in what is compared.
_ROUNDINGS = {"cubic": 64, "pchip": 16}


def error_bound(values, times, expected, out_dtype, method="linear"):
    """Return the largest error of a correct answer: some roundings on the way, one at the end."""
    groups = [(0, expected.shape[-1], method)] if isinstance(method, str) else method
    compute = _EPS["float64" if values.dtype == np.float64 else "float32"]
    if times.dtype == np.float32:
        compute = _EPS["float32"]
    bound = np.empty(expected.shape)
    for begin, count, name in groups:
        part = slice(begin, begin + count)
        finite = np.abs(values[..., part].astype(np.float64))
        least = 1.0 if name == "slerp" else 0.0  # it normalizes
        largest = np.max(finite, where=np.isfinite(finite), initial=least)
        size = np.abs(np.nan_to_num(expected[..., part], posinf=0.0, neginf=0.0))
        with np.errstate(over="ignore"):
            way = _ROUNDINGS.get(name, 8) * compute * (largest + size)
        bound[..., part] = way + _EPS[out_dtype] * size + _TINY[out_dtype]
    return bound


def distance(got, expected, method="linear"):
    """|got - expected|; of angles the shorter way round."""
    groups = [(0, expected.shape[-1], method)] if isinstance(method, str) else method
    with np.errstate(invalid="ignore"):
        apart = got - expected
        for begin, count, name in groups:
            part = slice(begin, begin + count)
            if name == "angle":
                apart[..., part] = _wrapped(apart[..., part])
            elif name in TURNS:
                length = TURNS[name][1]
                apart[..., part] -= length * np.round(apart[..., part] / length)
    return np.abs(apart)
