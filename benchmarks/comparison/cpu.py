"""The CPU: NumPy, SciPy and torch; real time."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import platform
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from . import ours, voxels, with_jax, with_scipy
from .cases import Case, make_times
from .data import Data
from .timing import Peer, Work, bind, host_samples, nothing
from .voxel_cases import VoxelCase

if TYPE_CHECKING:
    from .timing import AnyCase

_DTYPES = {"f16": "float16", "f32": "float32", "f64": "float64"}

# Calls on these take no time but their own.
SMALL = Case.parse("1,100,8,32 f32")
SMALL_FUSION = Case.parse("B=1: 3 streams 100x32 -> 8 f32")


class Cpu:
    name = "cpu"

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.scipy = importlib.util.find_spec("scipy") is not None
        self.cores = len(os.sched_getaffinity(0))
        if torch is not None:
            torch.set_num_threads(self.cores)

    def facts(self) -> dict[str, Any]:
        import robocache

        with robocache.Context("cpu") as context:
            return {"cpu": cpu_name(), "cores": self.cores, "simd": context.info.simd}

    def copy_bandwidth(self) -> float:
        """By all cores if torch is there, else by one."""
        size = 1 << 28
        if self.torch is not None:
            source = self.torch.randint(255, (size,), dtype=self.torch.uint8)
            destination = self.torch.zeros_like(source)
            copy: Work = bind(destination.copy_, source)
        else:
            array = np.random.default_rng(1).integers(255, size=size, dtype=np.uint8)
            target = np.zeros_like(array)
            copy = bind(np.copyto, target, array)
        microseconds: float = host_samples(copy, nothing, 1, 11)["median_us"]
        return 2 * size / (microseconds * 1e-6)

    def data(self, case: AnyCase) -> Data:
        return case.data()

    def inputs(self, case: Case) -> tuple[Any, ...]:
        """Values, times and queries as torch's."""
        return tuple(map(self._tensors, (make_values(case), *make_times(case))))

    def peers(self, case: AnyCase, data: Data, floor: float) -> list[Peer]:
        import robocache

        if isinstance(case, VoxelCase):
            return voxels.cpu_peers(case, data, self.torch)
        times, queries = data.arrays
        if case.dtype not in _DTYPES:
            raise SystemExit("peers.py: NumPy has no bf16; choose f16, f32 or f64 on the CPU")
        values = make_values(case)
        out = np.empty((case.batch, case.queries, case.channels), values[0].dtype)
        arrays = (values, times, queries)
        one_thread = robocache.Context("cpu", threads=1)
        peers = [
            Peer("robocache", ours.call(case, *arrays)),
            Peer("robocache, out=", ours.call(case, *arrays, out=out)),
            Peer("robocache, 1 thread", ours.call(case, *arrays, backend=one_thread)),
        ]
        if case.method != "linear":
            if self.scipy:
                function = with_scipy.METHODS[case.method]
                peers.append(Peer("scipy", bind(with_scipy.fuse, function, *arrays)))
            return peers
        if self.torch is not None:
            from . import with_torch

            tensors = tuple(self._tensors(array) for array in arrays)
            peers += [
                Peer("robocache, torch in and out", ours.call(case, *tensors)),
                Peer("torch gather", bind(with_torch.fuse, with_torch.gather, *tensors)),
                Peer("torch rows", bind(with_torch.fuse, with_torch.rows, *tensors)),
            ]
        if self.scipy:
            peers.append(
                Peer("scipy interp1d", bind(with_scipy.fuse, with_scipy.interp1d, *arrays))
            )
        peers.append(Peer("np.interp loop", bind(with_scipy.fuse, with_scipy.interp, *arrays)))
        return peers + with_jax.peers(case, arrays, np.asarray)

    def require_same(self, actual: Any, expected: Any, case: AnyCase) -> None:
        if isinstance(case, VoxelCase):
            return voxels.require_same(actual, expected, case)
        tolerance = {"f16": 2e-3, "f32": 2e-6, "f64": 2e-6}[case.dtype]
        actual, expected = np.asarray(actual), np.asarray(expected)
        if case.method == "slerp":  # q and -q are one rotation
            quaternions = (*actual.shape[:-1], -1, 4)
            actual, expected = actual.reshape(quaternions), expected.reshape(quaternions)
            actual = actual * np.sign((actual * expected).sum(-1, keepdims=True))
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=4 * tolerance)

    def times(self, peer: Peer, sample_seconds: float) -> int:
        peer.times = 1
        peer.work()
        return max(1, min(100_000, int(sample_seconds / self.seconds(peer))))

    def seconds(self, peer: Peer) -> float:
        start = time.perf_counter()
        for _ in range(peer.times):
            peer.work()
        return (time.perf_counter() - start) / (peer.times * peer.calls_per_work)

    def synchronize(self) -> None:
        pass

    def clean(self) -> None:
        pass

    def small_calls(self) -> list[tuple[str, Work, Work]]:
        arrays = (make_values(SMALL), *make_times(SMALL))
        streams = (make_values(SMALL_FUSION), *make_times(SMALL_FUSION))
        out = np.empty((1, SMALL.queries, SMALL.channels), "float32")
        fused = np.empty((1, SMALL_FUSION.queries, SMALL_FUSION.channels), "float32")
        values, times, queries = arrays
        works: list[tuple[str, Work]] = [
            ("rbc.resample, NumPy", ours.call(SMALL, *arrays)),
            ("rbc.resample, NumPy, out=", ours.call(SMALL, *arrays, out=out)),
            ("rbc.fuse of 3 streams, NumPy", ours.call(SMALL_FUSION, *streams)),
            ("rbc.fuse of 3 streams, NumPy, out=", ours.call(SMALL_FUSION, *streams, out=fused)),
            (
                "rbc.fuse of 3 streams made anew, NumPy",
                lambda: ours.call(SMALL_FUSION, *streams)(),
            ),
            (
                "np.interp, one channel",
                bind(np.interp, queries[0], times[0][0], values[0][0, :, 0]),
            ),
        ]
        if self.torch is not None:
            from . import with_torch

            tensors = tuple(self._tensors(array) for array in arrays)
            target = self.torch.from_numpy(out)
            works += [
                ("rbc.resample, torch CPU", ours.call(SMALL, *tensors)),
                ("rbc.resample, torch CPU, out=", ours.call(SMALL, *tensors, out=target)),
                (
                    "torch gather, torch CPU",
                    bind(with_torch.fuse, with_torch.gather, *tensors),
                ),
                ("torch.add, torch CPU, for scale", bind(self.torch.add, target, target)),
            ]
        return [(name, work, nothing) for name, work in works]

    def _tensors(self, arrays: Any) -> Any:
        if isinstance(arrays, list):
            return [self.torch.from_numpy(array) for array in arrays]
        return self.torch.from_numpy(arrays)


def make_values(case: Case) -> list[Any]:
    generator = np.random.default_rng(2)
    values = []
    for samples, channels in case.streams:
        array = generator.uniform(-2, 2, (case.batch, samples, channels))
        if case.method == "slerp":
            quaternions = array.reshape(case.batch, samples, -1, 4)
            quaternions /= np.linalg.norm(quaternions, axis=-1, keepdims=True)
        values.append(array.astype(_DTYPES[case.dtype]))
    return values


def cpu_name() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()
