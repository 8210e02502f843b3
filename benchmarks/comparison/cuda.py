"""CUDA: torch, eager and compiled, called and under graphs; the device's time."""

from __future__ import annotations

import statistics
import subprocess
import time
from typing import TYPE_CHECKING, Any

from . import ours, voxels, with_cupy, with_jax, with_torch
from .cases import Case, make_times
from .cpu import SMALL, SMALL_FUSION, Cpu, cpu_name
from .data import Data
from .timing import Peer, Work, bind, guarded
from .voxel_cases import VoxelCase

if TYPE_CHECKING:
    from .timing import AnyCase


class Cuda:
    name = "cuda"

    def __init__(self, torch: Any, with_compile: bool) -> None:
        self.torch = torch
        self.compile = with_compile
        self.start = torch.cuda.Event(enable_timing=True)
        self.stop = torch.cuda.Event(enable_timing=True)

    def facts(self) -> dict[str, Any]:
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        try:
            driver = subprocess.run(
                query, capture_output=True, text=True, check=True
            ).stdout.split()[0]
        except (OSError, subprocess.CalledProcessError, IndexError):
            driver = None
        return {
            "gpu": self.torch.cuda.get_device_name(),
            "driver": driver,
            "CUDA": self.torch.version.cuda,
            "cpu": cpu_name(),
        }

    def copy_bandwidth(self) -> float:
        torch = self.torch
        size = 2 << 30
        source = torch.randint(255, (size,), dtype=torch.uint8, device="cuda")
        destination = torch.empty_like(source)
        copy = Peer("copy", lambda: destination.copy_(source))
        copy.times = 5
        self.seconds(copy)
        return 2 * size / statistics.median(self.seconds(copy) for _ in range(7))

    def data(self, case: AnyCase) -> Data:
        return case.data(self.torch)

    def inputs(self, case: Case) -> tuple[Any, ...]:
        """Values, times and queries."""
        return self._arrays(case, *make_times(case))

    def peers(self, case: AnyCase, data: Data, floor: float) -> list[Peer]:
        import robocache

        torch = self.torch
        robocache.Context("cuda").warm_up()
        calls_per_graph = max(1, min(64, int(100e-6 / max(floor, 2e-6))))
        if isinstance(case, VoxelCase):
            return voxels.cuda_peers(case, data, self._graph, calls_per_graph)
        times, queries = data.arrays
        if case.method != "linear":
            raise SystemExit("peers.py: methods other than linear have peers on the CPU alone")
        arrays = self._arrays(case, times, queries)
        out = self._out(case)
        peers = [
            Peer("robocache", ours.call(case, *arrays)),
            self._graph("robocache, graph", ours.call(case, *arrays, out=out), calls_per_graph),
        ]
        for name, align in (("torch gather", with_torch.gather), ("torch rows", with_torch.rows)):
            work = bind(with_torch.fuse, align, *arrays)
            peers.append(Peer(name, work))
            peers.append(self._graph(f"{name}, graph", work, min(calls_per_graph, 8)))
        if self.compile:
            peers += self._compiled(arrays, calls_per_graph)
        peers += with_cupy.peers(case, arrays)
        return peers + with_jax.peers(case, arrays, torch.from_dlpack)

    def _compiled(self, arrays: tuple[Any, ...], calls_per_graph: int) -> list[Peer]:
        torch = self.torch
        torch._dynamo.reset()  # each case has the limit of recompilations to itself
        work = bind(torch.compile(with_torch.fuse, dynamic=False), with_torch.gather, *arrays)
        plain = Peer("torch.compile", work)
        start = time.perf_counter()
        plain.error = guarded(work)
        torch.cuda.synchronize()
        plain.compile_seconds = time.perf_counter() - start
        if plain.error is not None:
            return [plain]
        return [plain, self._graph("torch.compile, graph", work, calls_per_graph)]

    def _graph(self, name: str, work: Work, calls: int) -> Peer:
        """`calls` calls in one graph."""
        torch = self.torch
        graph = torch.cuda.CUDAGraph()
        results: list[Any] = []

        def capture() -> None:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    work()
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                for _ in range(calls):
                    results[:] = [work()]

        def replay_once() -> Any:
            for tensor in results[0] if isinstance(results[0], tuple) else results:
                tensor.fill_(float("nan") if tensor.is_floating_point() else 85)
            graph.replay()
            torch.cuda.synchronize()
            return results[0]

        error = guarded(capture)
        peer = Peer(name, graph.replay, replay_once, calls)
        peer.error = error
        return peer

    def require_same(self, actual: Any, expected: Any, case: AnyCase) -> None:
        if isinstance(case, VoxelCase):
            return voxels.require_same(actual, expected, case)
        tolerance = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 2e-6, "f64": 2e-6}[case.dtype]
        for a, e in zip(actual.split(256), expected.split(256)):
            self.torch.testing.assert_close(
                a, e, rtol=tolerance, atol=4 * tolerance if case.dtype != "bf16" else tolerance
            )

    def times(self, peer: Peer, sample_seconds: float) -> int:
        peer.times = 1
        self.seconds(peer)
        peer.times = 3
        return max(1, min(200, int(sample_seconds / (self.seconds(peer) * peer.calls_per_work))))

    def seconds(self, peer: Peer) -> float:
        """Device time of a call. One more goes ahead, lest the device waits for the first."""
        peer.work()
        self.start.record()
        for _ in range(peer.times):
            peer.work()
        self.stop.record()
        self.stop.synchronize()
        milliseconds: float = self.start.elapsed_time(self.stop)
        return milliseconds * 1e-3 / (peer.times * peer.calls_per_work)

    def synchronize(self) -> None:
        self.torch.cuda.synchronize()

    def clean(self) -> None:
        self.torch.cuda.synchronize()
        self.torch.cuda.empty_cache()

    def small_calls(self) -> list[tuple[str, Work, Work]]:
        torch = self.torch
        arrays = self._arrays(SMALL, *make_times(SMALL))
        streams = self._arrays(SMALL_FUSION, *make_times(SMALL_FUSION))
        out, fused = self._out(SMALL), self._out(SMALL_FUSION)
        works: list[tuple[str, Work]] = [
            ("rbc.resample, torch CUDA", ours.call(SMALL, *arrays)),
            ("rbc.resample, torch CUDA, out=", ours.call(SMALL, *arrays, out=out)),
            ("rbc.fuse of 3 streams, torch CUDA", ours.call(SMALL_FUSION, *streams)),
            (
                "rbc.fuse of 3 streams, torch CUDA, out=",
                ours.call(SMALL_FUSION, *streams, out=fused),
            ),
            ("torch gather, torch CUDA", bind(with_torch.fuse, with_torch.gather, *arrays)),
            ("torch.add, torch CUDA, for scale", bind(torch.add, out, out)),
        ]
        if self.compile:
            compiled = torch.compile(with_torch.fuse, dynamic=False)
            works.append(("torch.compile, torch CUDA", bind(compiled, with_torch.gather, *arrays)))
        return [(name, work, torch.cuda.synchronize) for name, work in works] + Cpu(
            torch
        ).small_calls()

    def _arrays(self, case: Case, times: list[Any], queries: Any) -> tuple[Any, Any, Any]:
        torch = self.torch
        generator = torch.Generator("cuda").manual_seed(2)
        values = [
            torch.rand(
                (case.batch, samples, channels),
                generator=generator,
                device="cuda",
                dtype=self._dtype(case),
            )
            .mul_(4)
            .sub_(2)
            for samples, channels in case.streams
        ]
        return values, [torch.from_numpy(t).cuda() for t in times], torch.from_numpy(queries).cuda()

    def _out(self, case: Case) -> Any:
        shape = (case.batch, case.queries, case.channels)
        return self.torch.empty(shape, device="cuda", dtype=self._dtype(case))

    def _dtype(self, case: Case) -> Any:
        torch = self.torch
        return {
            "f16": torch.float16,
            "bf16": torch.bfloat16,
            "f32": torch.float32,
            "f64": torch.float64,
        }[case.dtype]
