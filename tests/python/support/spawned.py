"""Functions that tests run in other processes: multiprocessing imports this module there."""

from __future__ import annotations

import multiprocessing
import os
from datetime import timedelta

import numpy as np

import robocache as rbc


def forkserver():
    """Return a context whose processes begin with robocache imported: one server forks them.

    All tests have one server, so that torch, which few of them need, is imported once.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["robocache.data", "robocache.torch"])
    return context


def counted(start, pieces):
    """The state `start` and these pieces, as bytes."""
    accumulator = rbc.StatisticsAccumulator.from_bytes(start)
    for piece in pieces:
        accumulator.update(piece)
    return accumulator.to_bytes()


def ranked(rank, meeting, values, levels):
    """One rank's part of torch.distributed: every rank ends with the state of all of them."""
    import torch.distributed as ranks

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    ranks.init_process_group(
        "gloo", f"file://{meeting}", timedelta(seconds=60), world_size=2, rank=rank
    )
    try:
        total = rbc.StatisticsAccumulator(values.shape[-1], levels)
        more = True
        while more:
            states = [b""] * ranks.get_world_size()
            ranks.all_gather_object(states, counted(total.to_bytes(), np.array_split(values, 3)))
            for state in states:
                total.merge(rbc.StatisticsAccumulator.from_bytes(state))
            more = total.next_pass()
        return total.to_bytes()
    finally:
        ranks.destroy_process_group()


def resample_in_child(queue, context, *arrays):
    """Put the result of a small call into the queue, after a call that takes several threads."""
    out = rbc.resample(*arrays, backend=context)
    big = np.zeros((16, 1000, 64), np.float32)
    rbc.resample(big, np.arange(1000.0), np.linspace(0, 999, 1000), backend=context)
    queue.put(out)
