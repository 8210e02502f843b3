"""Exact statistics of arrays that come in pieces: held if they are small, else in passes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from .accumulator import QUANTILES, StatisticsAccumulator, statistics
from .result import StatisticsResult

HELD = 32 << 20  # bytes of samples, which are read once and not in each pass


def exact_of_pieces(
    read: Callable[[Collection[str]], Iterable[tuple[str, Any]]],
    names: Collection[str],
    quantiles: Sequence[float] = QUANTILES,
) -> dict[str, StatisticsResult]:
    """Return the statistics of each array [N,D] that has pieces.

    ``read(names)`` yields the name and some rows of an array. It is called for all ``names``, and
    then, if the samples are more than HELD bytes, for those that need another pass.
    """
    pieces_of: dict[str, list[Any]] = {}
    accumulators: dict[str, StatisticsAccumulator] = {}
    size = 0
    for name, rows in read(names):
        if not accumulators:
            size += rows.nbytes
            pieces_of.setdefault(name, []).append(rows.copy())
            # Accumulators refuse another dtype by an error; concatenate would convert it.
            if size > HELD or rows.dtype != pieces_of[name][0].dtype:
                for earlier, pieces in pieces_of.items():
                    for piece in pieces:
                        _add(accumulators, earlier, piece, quantiles)
                pieces_of.clear()
        else:
            _add(accumulators, name, rows, quantiles)
    if pieces_of:
        return {name: _together(pieces, quantiles) for name, pieces in pieces_of.items()}
    unfinished = [name for name in accumulators if accumulators[name].next_pass()]
    while unfinished:
        for name, rows in read(unfinished):
            accumulators[name].update(rows)
        unfinished = [name for name in unfinished if accumulators[name].next_pass()]
    return {name: accumulators[name].result() for name in accumulators}


def _add(
    accumulators: dict[str, StatisticsAccumulator],
    name: str,
    rows: Any,
    quantiles: Sequence[float],
) -> None:
    if name not in accumulators:
        accumulators[name] = StatisticsAccumulator(rows.shape[-1], quantiles)
    accumulators[name].update(rows)


def _together(pieces: list[Any], quantiles: Sequence[float]) -> StatisticsResult:
    import numpy as np

    rows = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    return statistics(rows, quantiles=quantiles)
