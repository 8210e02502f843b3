"""CUDA: torch, eager and compiled, called and in graphs; time on the device."""

from __future__ import annotations

import statistics
import time
from typing import Any

from . import ours, statistics_peers, voxels, with_cupy, with_jax, with_torch
from .cases import Case
from .timing import SAMPLE_SECONDS, Peer, Work, bind, guarded


class Cuda:
    name = "cuda"

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.start = torch.cuda.Event(enable_timing=True)
        self.stop = torch.cuda.Event(enable_timing=True)

    def copy_bandwidth(self) -> float:
        torch = self.torch
        size = 2 << 30
        source = torch.randint(255, (size,), dtype=torch.uint8, device="cuda")
        destination = torch.empty_like(source)
        copy = Peer("copy", bind(destination.copy_, source), times=5)
        self.seconds(copy)
        return 2 * size / statistics.median(self.seconds(copy) for _ in range(7))

    def peers(self, case: Case, floor: float) -> list[Peer]:
        import robocache

        torch = self.torch
        robocache.Context("cuda").warm_up()
        calls_per_graph = max(1, min(64, int(100e-6 / max(floor, 2e-6))))
        if case.voxels:
            return voxels.cuda_peers(case, self.graph, calls_per_graph)
        if case.statistics:
            return statistics_peers.cuda_peers(case, self.graph, calls_per_graph)
        if case.method != "linear":
            raise SystemExit("peers.py: methods other than linear have peers only on the CPU")
        arrays = case.data(torch, "cuda")
        shape = (case.batch, case.queries, case.channels)
        out = torch.empty(shape, device="cuda", dtype=arrays[0][0].dtype)
        peers = [
            Peer("robocache", ours.call(case, *arrays)),
            self.graph("robocache, graph", ours.call(case, *arrays, out=out), calls_per_graph),
        ]
        for name, align in (("torch gather", with_torch.gather), ("torch rows", with_torch.rows)):
            work = bind(with_torch.fuse, align, *arrays)
            peers.append(Peer(name, work))
            peers.append(self.graph(f"{name}, graph", work, min(calls_per_graph, 8)))
        peers += self._compiled(arrays, calls_per_graph)
        peers.append(with_cupy.peer(case, arrays))
        return peers + with_jax.peers(case, arrays, torch.from_dlpack)

    def _compiled(self, arrays: tuple[Any, ...], calls_per_graph: int) -> list[Peer]:
        torch = self.torch
        torch._dynamo.reset()  # each case gets the full limit of recompilations
        work = bind(torch.compile(with_torch.fuse, dynamic=False), with_torch.gather, *arrays)
        start = time.perf_counter()
        plain = Peer("torch.compile", work, error=guarded(work))
        torch.cuda.synchronize()
        plain.compile_seconds = time.perf_counter() - start
        if plain.error is not None:
            return [plain]
        return [plain, self.graph("torch.compile, graph", work, calls_per_graph)]

    def graph(self, name: str, work: Work, calls: int) -> Peer:
        """Capture `calls` calls in one graph."""
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
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                for _ in range(calls):
                    results[:] = [work()]

        def replay_once() -> Any:
            for tensor in results[0] if isinstance(results[0], tuple) else results:
                tensor.fill_(float("nan") if tensor.is_floating_point() else 85)
            graph.replay()
            torch.cuda.synchronize()
            return results[0]

        return Peer(name, graph.replay, replay_once, calls, error=guarded(capture))

    def require_same(self, actual: Any, expected: Any, case: Case) -> dict[str, float] | None:
        """Return the errors of a peer that may be inexact; else check that it is exact."""
        if case.statistics:
            return statistics_peers.off_by(actual, expected)
        if case.voxels:
            voxels.require_same(actual, expected, case)
            return None
        tolerance = {"f16": 2e-3, "bf16": 1.6e-2}.get(case.dtype, 2e-6)
        atol = tolerance if case.dtype == "bf16" else 4 * tolerance
        for a, e in zip(actual.split(256), expected.split(256)):
            self.torch.testing.assert_close(a, e, rtol=tolerance, atol=atol)
        return None

    def times(self, peer: Peer) -> int:
        peer.times = 1
        self.seconds(peer)
        peer.times = 3
        return max(1, min(200, int(SAMPLE_SECONDS / (self.seconds(peer) * peer.calls_per_work))))

    def seconds(self, peer: Peer) -> float:
        """Return the device time per call. An additional call goes first, so that the device does
        not wait.
        """
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
