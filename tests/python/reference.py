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
    offsets=None,
    bounds="hold",
    fill_value=0.0,
    max_gap=None,
    tolerance=None,
):
    """Out as float64 (or the integer dtype of values), and the mask; shapes as rbc.resample."""
    values, times, query_times = np.asarray(values), np.asarray(times), np.asarray(query_times)
    batched = offsets is not None or values.ndim == 3
    if offsets is not None:
        batch = len(offsets) - 1
    else:
        batch = values.shape[0] if values.ndim == 3 else 1
    queries, channels = query_times.shape[-1], values.shape[-1]
    exact = values.dtype.kind in "iub"
    out = np.full((batch, queries, channels), fill_value, values.dtype if exact else np.float64)
    mask = np.zeros((batch, queries), bool)
    for b in range(batch):
        row_values = values[b] if values.ndim == 3 else values
        row_times = times[b] if times.ndim == 2 else times
        if offsets is not None:
            part = slice(int(offsets[b]), int(offsets[b + 1]))
            row_values, row_times = row_values[part], row_times[part]
        elif lengths is not None:
            row_values, row_times = row_values[: int(lengths[b])], row_times[: int(lengths[b])]
        row_queries = query_times[b] if query_times.ndim == 2 else query_times
        if query_lengths is not None:
            row_queries = row_queries[: int(query_lengths[b])]
        if not exact:
            row_values = row_values.astype(np.float64)
        for k, q in enumerate(row_queries):
            answer, mask[b, k] = _one(
                row_values,
                row_times,
                q,
                method,
                bounds,
                _limit(max_gap, times),
                _limit(tolerance, times),
            )
            if answer is not None:
                out[b, k] = answer
    return (out, mask) if batched else (out[0], mask[0])


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


def _one(values, times, q, method, bounds, max_gap, tolerance):
    """(a row, or None for invalid; the mask) for one query."""
    n = len(times)
    if n == 0 or q != q:
        return None, False
    same = np.flatnonzero(times == q)
    if len(same):
        return values[same[-1]], True
    before, after = np.flatnonzero(times < q), np.flatnonzero(times > q)
    left = before[-1] if len(before) else None
    right = after[0] if len(after) else None

    if method != "linear" and tolerance is not None:
        chosen = _chosen(times, q, left, right, method)
        if chosen is None:
            return None, False
        distance = _span(q, times[chosen]) if times[chosen] < q else _span(times[chosen], q)
        return (values[chosen], True) if distance <= tolerance else (None, False)
    if left is None or right is None:
        if bounds == "hold":
            return values[0 if left is None else n - 1], False
        if bounds == "fill":
            return None, False
        return _extrapolated(values, times, q, left is None)
    if max_gap is not None and _span(times[right], times[left]) > max_gap:
        return None, False
    if method != "linear":
        return values[_chosen(times, q, left, right, method)], True
    return _line(values, times, q, left, right), True


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
    if at_start:
        return _line(values, times, q, others[0] - 1, others[0]), False
    return _line(values, times, q, others[-1], others[-1] + 1), False


def _line(values, times, q, left, right):
    w = float(_span(q, times[left])) / float(_span(times[right], times[left]))
    with np.errstate(over="ignore", invalid="ignore"):
        return values[left] if w == 0 else values[left] + w * (values[right] - values[left])


_EPS = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
_TINY = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 0.0}


def error_bound(values, times, expected, out_dtype):
    """How far from `expected` a right answer may be: a few roundings on the way, one at the end."""
    compute = _EPS["float64" if values.dtype == np.float64 else "float32"]
    if times.dtype == np.float32:
        compute = _EPS["float32"]
    finite = np.abs(values.astype(np.float64))
    largest = np.max(finite, where=np.isfinite(finite), initial=0.0)
    size = np.abs(np.nan_to_num(expected, posinf=0.0, neginf=0.0))
    return 8 * compute * (largest + size) + _EPS[out_dtype] * size + _TINY[out_dtype]
