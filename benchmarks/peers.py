"""Time rbc.resample against NumPy, SciPy and torch, in one process and in turn.

    python benchmarks/peers.py                                  # on the GPU if there is one
    python benchmarks/peers.py --device cpu --cores 2
    python benchmarks/peers.py --case "32,500,250,256 bf16" --case "8,100,50,7 f32"

A case is B,S,T,D and the dtype of the values: B rows of S samples of D channels, each put onto a
clock of T evenly spaced queries. Every peer must first give RoboCache's answer. Then each takes a
sample in turn, round after round, so that what disturbs the machine disturbs all; the table has
medians, the JSON file the quartiles as well.

On CUDA times are the device's: events around many calls, or around replays of a graph of many
calls. On the CPU they are real time. The floor is the bytes that must be moved over the bandwidth
of a copy, measured here.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import render
from tqdm import tqdm

CUDA_CASES = [
    "64,4096,1024,32 f32",
    "64,4096,1024,32 bf16",
    "256,500,250,32 bf16",
    "32,500,250,256 bf16",
    "1024,500,250,256 bf16",
    "2048,1000,500,512 bf16",
    "4096,4096,1024,32 f32",
]
CPU_CASES = ["1,500,1,32 f32", "32,500,250,256 f32"]

Work = Callable[[], Any]


@dataclasses.dataclass(frozen=True)
class Case:
    batch: int
    samples: int
    queries: int
    channels: int
    dtype: str

    @staticmethod
    def parse(text: str) -> Case:
        try:
            sizes, dtype = text.split()
            numbers = [int(n) for n in sizes.split(",")]
            if len(numbers) != 4 or min(numbers) < 1 or dtype not in ("f16", "bf16", "f32", "f64"):
                raise ValueError
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not like '32,500,250,256 bf16'"
            ) from None
        return Case(*numbers, dtype)

    def __str__(self) -> str:
        return f"{self.batch},{self.samples},{self.queries},{self.channels} {self.dtype}"


def main() -> int:
    arguments = parse_arguments()
    if arguments.cores:
        # Before anything starts threads.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.cores])
    bench = make_bench(arguments)
    default = CUDA_CASES if bench.name == "cuda" else CPU_CASES
    cases = arguments.case or [Case.parse(text) for text in default]
    result: dict[str, Any] = {"environment": environment(bench), "cases": [], "overhead": []}
    if not arguments.overhead_only:
        copy_bandwidth = bench.copy_bandwidth()
        for case in tqdm(cases, desc="cases", disable=None):
            result["cases"].append(run_case(bench, case, copy_bandwidth, arguments))
    if not arguments.no_overhead:
        result["overhead"] = overhead(bench, arguments)
    text = render.render_peers(result)
    print(text)
    for path, content in (
        (arguments.json, json.dumps(result, indent=1)),
        (arguments.markdown, text),
    ):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content + "\n")
    return (
        1
        if any("error" in peer for case in result["cases"] for peer in case["peers"].values())
        else 0
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument("--case", type=Case.parse, action="append", metavar='"B,S,T,D DTYPE"')
    parser.add_argument(
        "--rounds", type=int, default=15, help="samples of each peer (default %(default)s)"
    )
    parser.add_argument(
        "--sample-ms", type=float, default=2.0, help="least length of one (default %(default)s)"
    )
    parser.add_argument("--cores", type=int, help="run on so many CPU cores alone")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument(
        "--no-overhead", action="store_true", help="leave the host time of calls out"
    )
    parser.add_argument("--overhead-only", action="store_true", help="the host time of calls alone")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE")
    return parser.parse_args()


def make_bench(arguments: argparse.Namespace) -> Cpu | Cuda:
    torch = import_or_none("torch")
    usable = torch is not None and torch.cuda.is_available()
    if arguments.device == "cuda" and not usable:
        raise SystemExit("peers.py: --device cuda needs torch with a usable GPU")
    if usable and arguments.device != "cpu":
        return Cuda(torch, arguments)
    return Cpu(torch, arguments)


def import_or_none(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        return None


def environment(bench: Cpu | Cuda) -> dict[str, Any]:
    import robocache

    scipy = import_or_none("scipy")
    return {
        **bench.facts(),
        "robocache": robocache.__version__,
        "commit": commit(),
        "torch": getattr(bench.torch, "__version__", None),
        "numpy": np.__version__,
        "scipy": getattr(scipy, "__version__", None),
        "python": platform.python_version(),
    }


def commit() -> str:
    """Of this checkout; where it comes without its history, of ROBOCACHE_COMMIT."""
    command = ["git", "-C", str(pathlib.Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("ROBOCACHE_COMMIT", "unknown")


def cpu_name() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


# ---- torch, as its users write it ----------------------------------------------------------------


def torch_bracket(times: Any, queries: Any) -> tuple[Any, Any, Any]:
    import torch

    right = torch.searchsorted(times, queries, right=True).clamp_(1, times.shape[1] - 1)
    left = right - 1
    t0, t1 = times.gather(1, left), times.gather(1, right)
    weight = ((queries - t0) / (t1 - t0)).clamp_(0, 1)
    return left, right, weight.unsqueeze(-1)


def torch_gather(values: Any, times: Any, queries: Any) -> Any:
    import torch

    left, right, weight = torch_bracket(times, queries)
    channels = values.shape[2]
    v0 = values.gather(1, left.unsqueeze(-1).expand(-1, -1, channels)).to(weight.dtype)
    v1 = values.gather(1, right.unsqueeze(-1).expand(-1, -1, channels)).to(weight.dtype)
    return torch.lerp(v0, v1, weight).to(values.dtype)


def torch_rows(values: Any, times: Any, queries: Any) -> Any:
    """The same by index_select, which moves whole rows."""
    import torch

    left, right, weight = torch_bracket(times, queries)
    batch, samples, channels = values.shape
    base = torch.arange(batch, device=values.device).unsqueeze(1) * samples
    rows = values.view(batch * samples, channels)
    v0 = rows.index_select(0, (left + base).view(-1)).view(*left.shape, channels).to(weight.dtype)
    v1 = rows.index_select(0, (right + base).view(-1)).view(*left.shape, channels).to(weight.dtype)
    return torch.lerp(v0, v1, weight).to(values.dtype)


# ---- NumPy and SciPy -----------------------------------------------------------------------------


def numpy_interp(values: Any, times: Any, queries: Any) -> Any:
    out = np.empty((values.shape[0], queries.shape[1], values.shape[2]), values.dtype)
    for b in range(values.shape[0]):
        for d in range(values.shape[2]):
            out[b, :, d] = np.interp(queries[b], times[b], values[b, :, d])
    return out


def scipy_interp1d(values: Any, times: Any, queries: Any) -> Any:
    from scipy.interpolate import interp1d

    out = np.empty((values.shape[0], queries.shape[1], values.shape[2]), values.dtype)
    for b in range(values.shape[0]):
        edges = (values[b, 0], values[b, -1])
        line = interp1d(
            times[b],
            values[b],
            axis=0,
            copy=False,
            bounds_error=False,
            fill_value=edges,
            assume_sorted=True,
        )
        out[b] = line(queries[b])
    return out


# ---- what is measured, and how -------------------------------------------------------------------


class Peer:
    def __init__(
        self, name: str, work: Work, result: Work | None = None, calls_per_work: int = 1
    ) -> None:
        self.name = name
        self.work = work  # what is timed
        self.result = result or work  # gives the answer
        self.calls_per_work = calls_per_work  # a graph holds many
        self.compile_seconds: float | None = None
        self.times = 1  # work() a sample
        self.samples: list[float] = []
        self.error: str | None = None

    def summary(self) -> dict[str, Any]:
        if self.error is not None:
            return {"error": self.error}
        result = summarize(self.samples)
        if self.compile_seconds is not None:
            result["compile_s"] = self.compile_seconds
        return result


def summarize(seconds: list[float]) -> dict[str, Any]:
    quartiles = statistics.quantiles(seconds, n=4) if len(seconds) > 1 else [seconds[0]] * 3
    return {
        "median_us": quartiles[1] * 1e6,
        "min_us": min(seconds) * 1e6,
        "p25_us": quartiles[0] * 1e6,
        "p75_us": quartiles[2] * 1e6,
        "samples": len(seconds),
    }


def make_arrays(case: Case, samples_of: Callable[[tuple[int, ...]], Any]) -> tuple[Any, Any]:
    """Times around 100 Hz, with intervals that vary by 17 % as those of the PX4 recordings do, and
    clocks over them; samples_of draws from [0, 1).
    """
    steps = 0.01 * (0.7 + 0.6 * samples_of((case.batch, case.samples)))
    times = (3 + steps.cumsum(1)).astype("float32")
    first, last = times[:, :1].astype("float64"), times[:, -1:].astype("float64")
    ticks = (np.arange(case.queries)[None] + samples_of((case.batch, 1))) / case.queries
    return times, (first + (last - first) * ticks).astype("float32")


def traffic(case: Case, times: Any, queries: Any) -> tuple[int, float]:
    """The bytes that must be moved, and the share of queries in range.

    Each row of values that a query needs, each time and each query read once; the result written.
    """
    size = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}[case.dtype]
    rows = 0
    for t, q in zip(times, queries):
        right = np.searchsorted(t, q, side="right")
        left = np.clip(right - 1, 0, case.samples - 1)
        between = (right > 0) & (right < case.samples) & (t[left] != q)
        rows += np.unique(np.concatenate([left, left[between] + 1])).size
    in_range = (queries >= times[:, :1]) & (queries <= times[:, -1:])
    moved = (rows + case.batch * case.queries) * case.channels * size
    return int(moved + times.nbytes + queries.nbytes), float(in_range.mean())


def run_case(
    bench: Cpu | Cuda, case: Case, copy_bandwidth: float, arguments: argparse.Namespace
) -> dict[str, Any]:
    generator = np.random.default_rng(1)
    times, queries = make_arrays(case, generator.random)
    moved, in_range = traffic(case, times, queries)
    floor = moved / copy_bandwidth
    peers = time_peers(bench, case, bench.peers(case, times, queries, floor), arguments)
    bench.clean()
    return {
        "case": str(case),
        "device": bench.name,
        "bytes": moved,
        "in_range": in_range,
        "copy_GB/s": copy_bandwidth / 1e9,
        "floor_us": floor * 1e6,
        "peers": peers,
    }


def time_peers(
    bench: Cpu | Cuda, case: Case, peers: list[Peer], arguments: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Summaries by name, of peers that give the first one's answer."""
    expected = peers[0].result()

    def check(peer: Peer) -> None:
        bench.require_same(peer.result(), expected, case)

    for peer in tqdm(peers, desc=f"{case}: check", leave=False, disable=None):
        peer.error = peer.error or guarded(bind(check, peer))
    alive = [peer for peer in peers if peer.error is None]
    for peer in alive:
        peer.times = bench.times(peer, arguments.sample_ms * 1e-3)
    for _ in tqdm(range(arguments.rounds), desc=f"{case}: time", leave=False, disable=None):
        for peer in alive:
            peer.samples.append(bench.seconds(peer))
    return {peer.name: peer.summary() for peer in peers}


def guarded(work: Work) -> str | None:
    try:
        work()
    except Exception as error:  # noqa: BLE001 - a peer that fails must not hide the others
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return None


def host_samples(work: Work, finish: Work, calls: int, rounds: int) -> dict[str, Any]:
    for _ in range(3):
        work()
    finish()
    samples = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            work()
        samples.append((time.perf_counter() - start) / calls)
        finish()
    return summarize(samples)


def overhead(bench: Cpu | Cuda, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Host time of calls on arrays so small that nothing else is left of it."""
    entries = []
    for name, work, finish in tqdm(bench.small_calls(), desc="host time", disable=None):
        # On CUDA the calls of a sample fit into the queue of launches.
        entries.append({"name": name, **host_samples(work, finish, 200, max(arguments.rounds, 15))})
    return entries


def nothing() -> None:
    pass


SMALL = Case(1, 100, 8, 32, "f32")


# ---- CPU -----------------------------------------------------------------------------------------


class Cpu:
    name = "cpu"

    def __init__(self, torch: Any, arguments: argparse.Namespace) -> None:
        self.torch = torch
        self.scipy = import_or_none("scipy")
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
        return 2 * size / (host_samples(copy, nothing, 1, 11)["median_us"] * 1e-6)

    def peers(self, case: Case, times: Any, queries: Any, floor: float) -> list[Peer]:
        import robocache

        dtype = {"f16": "float16", "f32": "float32", "f64": "float64"}.get(case.dtype)
        if dtype is None:
            raise SystemExit("peers.py: NumPy has no bf16; choose f16, f32 or f64 on the CPU")
        shape = (case.batch, case.samples, case.channels)
        values = np.random.default_rng(2).uniform(-2, 2, shape).astype(dtype)
        out = np.empty((case.batch, case.queries, case.channels), dtype)
        context = robocache.Context("cpu", threads=1)
        peers = [
            Peer("robocache", lambda: robocache.resample(values, times, queries)),
            Peer("robocache, out=", lambda: robocache.resample(values, times, queries, out=out)),
            Peer(
                "robocache, 1 thread",
                lambda: robocache.resample(values, times, queries, backend=context),
            ),
        ]
        if self.torch is not None:
            tensors = [self.torch.from_numpy(array) for array in (values, times, queries)]
            peers.append(Peer("robocache, torch in and out", lambda: robocache.resample(*tensors)))
            peers.append(Peer("torch gather", lambda: torch_gather(*tensors)))
            peers.append(Peer("torch rows", lambda: torch_rows(*tensors)))
        if self.scipy is not None:
            peers.append(Peer("scipy interp1d", lambda: scipy_interp1d(values, times, queries)))
        peers.append(Peer("np.interp loop", lambda: numpy_interp(values, times, queries)))
        return peers

    def require_same(self, actual: Any, expected: Any, case: Case) -> None:
        tolerance = {"f16": 2e-3, "f32": 2e-6, "f64": 2e-6}[case.dtype]
        np.testing.assert_allclose(
            np.asarray(actual), np.asarray(expected), rtol=tolerance, atol=4 * tolerance
        )

    def times(self, peer: Peer, sample_seconds: float) -> int:
        peer.work()
        peer.times = 1
        return max(1, min(100_000, int(sample_seconds / self.seconds(peer))))

    def seconds(self, peer: Peer) -> float:
        start = time.perf_counter()
        for _ in range(peer.times):
            peer.work()
        return (time.perf_counter() - start) / (peer.times * peer.calls_per_work)

    def clean(self) -> None:
        pass

    def small_calls(self) -> list[tuple[str, Work, Work]]:
        import robocache

        times, queries = make_arrays(SMALL, np.random.default_rng(1).random)
        values = np.random.default_rng(2).random((1, SMALL.samples, SMALL.channels), "float32")
        out = np.empty((1, SMALL.queries, SMALL.channels), "float32")
        calls = [
            ("rbc.resample, NumPy", lambda: robocache.resample(values, times, queries), nothing),
            (
                "rbc.resample, NumPy, out=",
                lambda: robocache.resample(values, times, queries, out=out),
                nothing,
            ),
            (
                "np.interp, one channel",
                lambda: np.interp(queries[0], times[0], values[0, :, 0]),
                nothing,
            ),
        ]
        if self.torch is not None:
            tensors = [self.torch.from_numpy(array) for array in (values, times, queries)]
            target = self.torch.from_numpy(out)
            calls += [
                ("rbc.resample, torch CPU", lambda: robocache.resample(*tensors), nothing),
                (
                    "rbc.resample, torch CPU, out=",
                    lambda: robocache.resample(*tensors, out=target),
                    nothing,
                ),
                ("torch gather, torch CPU", lambda: torch_gather(*tensors), nothing),
                (
                    "torch.add, torch CPU, for scale",
                    lambda: self.torch.add(target, target),
                    nothing,
                ),
            ]
        return calls


# ---- CUDA ----------------------------------------------------------------------------------------


class Cuda:
    name = "cuda"

    def __init__(self, torch: Any, arguments: argparse.Namespace) -> None:
        self.torch = torch
        self.compile = not arguments.no_compile
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

    def peers(self, case: Case, times: Any, queries: Any, floor: float) -> list[Peer]:
        import robocache

        torch = self.torch
        dtype = {
            "f16": torch.float16,
            "bf16": torch.bfloat16,
            "f32": torch.float32,
            "f64": torch.float64,
        }[case.dtype]
        generator = torch.Generator("cuda").manual_seed(2)
        values = torch.rand(
            (case.batch, case.samples, case.channels),
            generator=generator,
            device="cuda",
            dtype=dtype,
        )
        values.mul_(4).sub_(2)
        times, queries = torch.from_numpy(times).cuda(), torch.from_numpy(queries).cuda()
        out = torch.empty((case.batch, case.queries, case.channels), device="cuda", dtype=dtype)
        robocache.Context("cuda").warm_up()

        calls_per_graph = max(1, min(64, int(100e-6 / max(floor, 2e-6))))
        peers = [
            Peer("robocache", lambda: robocache.resample(values, times, queries)),
            self.graph(
                "robocache, graph",
                lambda: robocache.resample(values, times, queries, out=out),
                calls_per_graph,
            ),
        ]
        for name, function in (("torch gather", torch_gather), ("torch rows", torch_rows)):
            work = bind(function, values, times, queries)
            peers.append(Peer(name, work))
            peers.append(self.graph(f"{name}, graph", work, min(calls_per_graph, 8)))
        if self.compile:
            torch._dynamo.reset()  # each case has the limit of recompilations to itself
            work = bind(torch.compile(torch_gather, dynamic=False), values, times, queries)
            plain = Peer("torch.compile", work)
            start = time.perf_counter()
            plain.error = guarded(work)
            torch.cuda.synchronize()
            plain.compile_seconds = time.perf_counter() - start
            peers.append(plain)
            if plain.error is None:
                peers.append(self.graph("torch.compile, graph", work, calls_per_graph))
        return peers

    def graph(self, name: str, work: Work, calls: int) -> Peer:
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
            results[0].fill_(float("nan"))
            graph.replay()
            torch.cuda.synchronize()
            return results[0]

        error = guarded(capture)
        peer = Peer(name, graph.replay, replay_once, calls)
        peer.error = error
        return peer

    def require_same(self, actual: Any, expected: Any, case: Case) -> None:
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
        return self.start.elapsed_time(self.stop) * 1e-3 / (peer.times * peer.calls_per_work)

    def clean(self) -> None:
        self.torch.cuda.synchronize()
        self.torch.cuda.empty_cache()

    def small_calls(self) -> list[tuple[str, Work, Work]]:
        import robocache

        torch = self.torch
        times, queries = (
            torch.from_numpy(a).cuda() for a in make_arrays(SMALL, np.random.default_rng(1).random)
        )
        values = torch.rand((1, SMALL.samples, SMALL.channels), device="cuda")
        out = torch.empty((1, SMALL.queries, SMALL.channels), device="cuda")
        finish = torch.cuda.synchronize
        calls = [
            (
                "rbc.resample, torch CUDA",
                lambda: robocache.resample(values, times, queries),
                finish,
            ),
            (
                "rbc.resample, torch CUDA, out=",
                lambda: robocache.resample(values, times, queries, out=out),
                finish,
            ),
            ("torch gather, torch CUDA", lambda: torch_gather(values, times, queries), finish),
            ("torch.add, torch CUDA, for scale", lambda: torch.add(out, out), finish),
        ]
        if self.compile:
            compiled = torch.compile(torch_gather, dynamic=False)
            calls.append(
                ("torch.compile, torch CUDA", lambda: compiled(values, times, queries), finish)
            )
        return calls + Cpu.small_calls(Cpu(torch, argparse.Namespace()))


def bind(function: Callable[..., Any], *arguments: Any) -> Work:
    return lambda: function(*arguments)


if __name__ == "__main__":
    sys.exit(main())
