"""Statistics by fractions, as numpy.quantile has quantiles."""

import math
from fractions import Fraction

import numpy as np

NAN = np.float64(math.nan)


def _root(square):
    """The float64 nearest to the root of a fraction."""
    if square == 0:
        return 0.0
    # Enough bits to decide on which side of the middle between two numbers the root is.
    shift = max(0, 2400 - square.numerator.bit_length() + square.denominator.bit_length())
    shift += shift % 2
    scaled, rest = divmod(square.numerator << shift, square.denominator)
    root = math.isqrt(scaled)
    sticky = 0 if root * root == scaled and rest == 0 else 1
    return float(Fraction(2 * root + sticky, 1 << (shift // 2 + 1)))


def of_channel(values, levels, ddof):
    finite = [float(x) + 0.0 for x in values if np.isfinite(x)]  # -0 counts as 0
    n = len(finite)
    result = {"count": n, "nonfinite": len(values) - n}
    if n == 0:
        names = ("min", "max", "mean", "std")
        return {**result, **dict.fromkeys(names, NAN), "quantiles": np.full(len(levels), NAN)}
    exact = [Fraction(x) for x in finite]
    total = sum(exact)
    square = None
    if n > ddof:
        square = (sum(x * x for x in exact) - total * total / n) / (n - ddof)
    return {
        **result,
        "min": min(finite),
        "max": max(finite),
        "mean": float(total / n),
        "std": NAN if square is None else _root(square),
        "quantiles": np.quantile(np.array(finite), levels),
    }


def statistics(values, levels, ddof=0):
    """Return statistics of [N,D] as a dict of arrays [D] and quantiles [Q,D]."""
    values = np.asarray(values).astype(np.float64)
    channels = [of_channel(column, levels, ddof) for column in values.T]
    result = {name: np.array([channel[name] for channel in channels]) for name in channels[0]}
    result["quantiles"] = result["quantiles"].reshape(len(channels), len(levels)).T
    return result
