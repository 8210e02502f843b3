"""The CPU: NumPy, SciPy and torch; real time."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from . import ours, statistics_peers, voxels, with_jax, with_scipy
from .cases import Case
from .environment import import_or_none
from .timing import SAMPLE_SECONDS, Peer, Work, bind, host_samples, nothing


class Cpu:
    name = "cpu"

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        if torch is not None:
            torch.set_num_threads(len(os.sched_getaffinity(0)))

    def copy_bandwidth(self) -> float:
        """With all cores if torch is available, else with one."""
        size = 1 << 28
        source = np.random.default_rng(1).integers(255, size=size, dtype=np.uint8)
        destination = np.zeros_like(source)
        copy: Work = bind(np.copyto, destination, source)
        if self.torch is not None:
            to, from_ = map(self.torch.from_numpy, (destination, source))
            copy = bind(to.copy_, from_)
        microseconds: float = host_samples(copy, nothing, 1, 11)["median_us"]
        return 2 * size / (microseconds * 1e-6)

    def peers(self, case: Case, floor: float) -> list[Peer]:
        import robocache

        if case.voxels:
            return voxels.cpu_peers(case, self.torch)
        if case.statistics:
            return statistics_peers.cpu_peers(case, self.torch)
        arrays = case.data()
        out = np.empty((case.batch, case.queries, case.channels), arrays[0][0].dtype)
        one_thread = robocache.Context("cpu", threads=1)
        peers = [
            Peer("robocache", ours.call(case, *arrays)),
            Peer("robocache, out=", ours.call(case, *arrays, out=out)),
            Peer("robocache, 1 thread", ours.call(case, *arrays, backend=one_thread)),
        ]
        scipy = import_or_none("scipy")
        if case.method != "linear":
            if scipy:
                align = with_scipy.METHODS[case.method]
                peers.append(Peer("scipy", bind(with_scipy.fuse, align, *arrays)))
            return peers
        if self.torch is not None:
            from . import with_torch

            tensors = case.data(self.torch)
            peers += [
                Peer("robocache, torch in and out", ours.call(case, *tensors)),
                Peer("torch gather", bind(with_torch.fuse, with_torch.gather, *tensors)),
                Peer("torch rows", bind(with_torch.fuse, with_torch.rows, *tensors)),
            ]
        if scipy:
            work = bind(with_scipy.fuse, with_scipy.interp1d, *arrays)
            peers.append(Peer("scipy interp1d", work))
        peers.append(
            Peer("np.interp loop", bind(with_scipy.fuse, with_scipy.interp_channels, *arrays))
        )
        return peers + with_jax.peers(case, arrays, np.asarray)

    def require_same(self, actual: Any, expected: Any, case: Case) -> dict[str, float] | None:
        """Return the errors of a peer that may be inexact; else check that it is exact."""
        if case.statistics:
            return statistics_peers.off_by(actual, expected)
        if case.voxels:
            voxels.require_same(actual, expected, case)
            return None
        tolerance = 2e-3 if case.dtype == "f16" else 2e-6
        actual, expected = np.asarray(actual), np.asarray(expected)
        if case.method == "slerp":  # q and -q are the same rotation
            quaternions = (*actual.shape[:-1], -1, 4)
            actual, expected = actual.reshape(quaternions), expected.reshape(quaternions)
            actual = actual * np.sign((actual * expected).sum(-1, keepdims=True))
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=4 * tolerance)
        return None

    def times(self, peer: Peer) -> int:
        peer.times = 1
        peer.work()
        return max(1, min(100_000, int(SAMPLE_SECONDS / self.seconds(peer))))

    def seconds(self, peer: Peer) -> float:
        start = time.perf_counter()
        for _ in range(peer.times):
            peer.work()
        return (time.perf_counter() - start) / (peer.times * peer.calls_per_work)

    def synchronize(self) -> None:
        pass

    def clean(self) -> None:
        pass
