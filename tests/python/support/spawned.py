"""Functions that tests run in other processes: multiprocessing imports this module there."""

from __future__ import annotations

import numpy as np

import robocache as rbc


def counted(start, pieces):
    """The state `start` and these pieces, as bytes."""
    accumulator = rbc.StatisticsAccumulator.from_bytes(start)
    for piece in pieces:
        accumulator.update(piece)
    return accumulator.to_bytes()


def resample_in_child(queue, context, *arrays):
    """Put the result of a small call into the queue, after a call that takes several threads."""
    out = rbc.resample(*arrays, backend=context)
    big = np.zeros((16, 1000, 64), np.float32)
    rbc.resample(big, np.arange(1000.0), np.linspace(0, 999, 1000), backend=context)
    queue.put(out)
