"""Correlation of two motions on an even clock over lags, from sums over blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

_RIDGE = 1e-6  # of a variance, to regularize channels that repeat each other
_FEWEST = 0.5  # of the samples at the best lag: with fewer, a correlation is chance


@dataclass(frozen=True)
class Grid:
    """Samples at even times; ``valid`` [n] is a mask of the existing ones."""

    values: Any  # [n,D], with variances of about 1
    valid: Any  # bool [n]


@dataclass(frozen=True)
class Lagged:
    """Covariances of two motions for K blocks and L lags, as sums.

    ``sums`` [K,L,C]: the number of valid pairs, then the covariances of a with a, a with b and b
    with b, whose shapes are ``shapes``: with ``each``, channel c with channel c: [D]. Else all with
    all: [D,D'].
    """

    lags: Any  # [L] in steps of the clock
    sums: Any
    shapes: tuple[tuple[int, ...], ...]
    each: bool

    @property
    def samples(self) -> Any:
        """Number of valid pairs [K,L]."""
        return self.sums[:, :, 0]

    def only(self, blocks: Any) -> Lagged:
        """Return some of the blocks."""
        return replace(self, sums=self.sums[blocks])

    def near(self, begin: int, end: int) -> Lagged:
        """Return some of the lags."""
        some = slice(max(begin, 0), max(end, 0))
        return replace(self, lags=self.lags[some], sums=self.sums[:, some])


def lagged(a: Grid, b: Grid, blocks: list[tuple[int, int]], most: int, each: bool) -> Lagged:
    """Return sums over blocks (begin, end) of ``a`` with ``b``, for lags up to ``most`` steps.

    Sample i of ``a`` is paired with sample i + lag of ``b``; pairs that are not valid are ignored.
    Means are subtracted for the valid pairs of each block and lag, so that neither edges, gaps nor
    loud stretches shift the peak.
    """
    import numpy as np

    parts = [_block(a, b, begin, end, most, each) for begin, end in blocks]
    count = 2 * most + 1
    sums = [np.concatenate([x.reshape(count, -1) for x in part], axis=1) for part in parts]
    shapes = tuple(x.shape[1:] for x in parts[0][1:])
    return Lagged(np.arange(-most, most + 1), np.stack(sums), shapes, each)


def joined(parts: list[Lagged]) -> Lagged:
    """Concatenate blocks."""
    import numpy as np

    return replace(parts[0], sums=np.concatenate([part.sums for part in parts]))


def blocks_of(begin: int, end: int, length: float) -> Iterator[tuple[int, int]]:
    """Cut a stretch into blocks of about a length."""
    count = max(1, round((end - begin) / length))
    for k in range(count):
        yield begin + (end - begin) * k // count, begin + (end - begin) * (k + 1) // count


def correlation(sums: Lagged, shifts: Any) -> tuple[Any, Any]:
    """Return the mean squared correlation [L] over all blocks, and the number of pairs [L].

    Block k is shifted by ``shifts[k]`` more steps. Without ``each`` it is the canonical
    correlation, under the best linear maps between the motions, for any axes.
    """
    import numpy as np

    total = np.zeros(sums.sums.shape[1:])
    for block, shift in zip(sums.sums, shifts):
        total += _shifted(block, shift)
    samples, column, covariances = total[:, 0], 1, []
    for shape in sums.shapes:
        end = column + math.prod(shape)
        covariances.append(total[:, column:end].reshape(-1, *shape))
        column = end
    aa, ab, bb = covariances
    enough = samples > _FEWEST * np.max(samples)
    score = np.zeros(len(samples))
    score[enough] = _squares(aa[enough], ab[enough], bb[enough], sums.each).mean(axis=1)
    return score, samples


def _block(a: Grid, b: Grid, begin: int, end: int, most: int, each: bool) -> Any:
    import numpy as np

    length = 1 << (end - begin + 2 * most - 1).bit_length()
    low, high = max(begin - most, 0), min(end + most, len(b.values))

    def spectra(grid: Grid, begin: int, end: int, put: int) -> Any:
        """Return the spectra of the mask, the values, and their products."""
        mask = np.zeros(length)
        mask[put : put + end - begin] = grid.valid[begin:end]
        values = np.zeros((length, grid.values.shape[1]))
        values[put : put + end - begin] = grid.values[begin:end]
        values *= mask[:, None]
        products = values**2 if each else values[:, :, None] * values[:, None, :]
        return [np.fft.rfft(x, axis=0) for x in (mask, values, products)]

    am, av, ap = spectra(a, begin, end, 0)
    bm, bv, bp = spectra(b, low, max(low, high), low - (begin - most))

    def over_lags(x: Any, y: Any) -> Any:
        return np.fft.irfft(np.conj(x) * y, length, axis=0)[: 2 * most + 1]

    def like(x: Any, other: Any) -> Any:
        return x.reshape(x.shape + (1,) * (other.ndim - 1))

    samples = np.rint(over_lags(am, bm))
    n = np.maximum(samples, 1)
    sum_a, sum_b = over_lags(av, like(bm, bv)), over_lags(like(am, av), bv)
    aa, bb = over_lags(ap, like(bm, ap)), over_lags(like(am, bp), bp)
    if each:
        ab, n = over_lags(av, bv), n[:, None]
        return samples, aa - sum_a**2 / n, ab - sum_a * sum_b / n, bb - sum_b**2 / n
    ab, n = over_lags(av[:, :, None], bv[:, None, :]), n[:, None, None]
    return samples, *(
        product - x[:, :, None] * y[:, None, :] / n
        for product, x, y in ((aa, sum_a, sum_a), (ab, sum_a, sum_b), (bb, sum_b, sum_b))
    )


def _shifted(values: Any, shift: float) -> Any:
    """Shift rows by cubic interpolation; 0 outside."""
    import numpy as np

    if shift == 0:
        return values
    whole = int(np.floor(shift))
    t = shift - whole
    weights = (
        -t * (1 - t) ** 2 / 2,
        1 + t * t * (3 * t - 5) / 2,
        t * (1 + 4 * t - 3 * t * t) / 2,
        -t * t * (1 - t) / 2,
    )
    out = np.zeros_like(values)
    for k, weight in enumerate(weights, whole - 1):
        begin, end = max(0, -k), min(len(values), len(values) - k)
        if begin < end:
            out[begin:end] += weight * values[begin + k : end + k]
    return out


def _squares(aa: Any, ab: Any, bb: Any, each: bool) -> Any:
    import numpy as np

    if each:
        least = _RIDGE * np.sqrt(aa.max(axis=0) * bb.max(axis=0))
        product = aa * bb
        good = product > least**2
        return np.where(good, np.minimum(ab**2 / np.where(good, product, 1.0), 1.0), 0.0)
    inner = _inverse_root(aa) @ ab @ _inverse_root(bb)
    return np.minimum(np.linalg.svd(inner, compute_uv=False) ** 2, 1.0)


def _inverse_root(covariance: Any) -> Any:
    """Return inverse square roots; small eigenvalues are raised, as sums may leave them < 0."""
    import numpy as np

    values, vectors = np.linalg.eigh(covariance)
    least = _RIDGE * np.trace(covariance, axis1=1, axis2=2).max()
    return (vectors / np.sqrt(np.maximum(values, least))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
