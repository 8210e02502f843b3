"""Train a small transformer on ragged multi-rate episodes, aligned in one way after another.

    python benchmarks/training.py                                   # on the GPU if there is one
    python benchmarks/training.py --data ../shared/data/unitree_g1 --json build/training.json

Batches of episodes, padded as they were recorded, go to the GPU and are aligned there, by RoboCache
or by torch; or workers of the data loader align them by NumPy or SciPy. The model and its optimizer
are the same, and so are the raw batches and the threads that read them; RoboCache is timed on raw
batches from the data loader's workers as well. "no alignment" loads and copies raw batches too, but
trains on one that was aligned ahead.

Every way must give NumPy's numbers, which come from f64, and its masks: within 1e-5 in f32, and
within one unit of the last place in bf16, 2^-7 of the number at most, where rounding once from f32
may be off by half of that. A way that does not is listed as deviating, with its time.

A way to align on the device is timed alone first: the device's time of a call in a graph of many,
and the host's time of enqueueing one. Then the ways take turns to train, round after round; of each
turn the steps that the loader's queue was filled ahead for are not timed. Steps are launched one by
one (eager) and, on CUDA, also replayed as one graph, which leaves nothing of the host's time in
them: the less a step takes, the larger is the share of the alignment in it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import render
import torch
from comparison.environment import environment
from comparison.timing import bind, guarded, host_samples, summarize
from tqdm import tqdm
from training_loop import alignment
from training_loop.episodes import (
    TICKS,
    Batches,
    Episodes,
    g1_episodes,
    random_episodes,
    raw_batch,
    streams_of,
)
from training_loop.loaders import Threads, Workers, to
from training_loop.model import Trainer

ROBOCACHE = "robocache"
COMPILED = "torch.compile"
NO_ALIGNMENT = "no alignment"
ALONE = 20  # calls of an alignment that are timed together
LEAST_ROUNDS = 3

# Of a raw batch, or of an aligned one where the loader's workers align.
Align = Callable[[Any, torch.dtype], alignment.Aligned]


class Way:
    """One way to get aligned batches: where they come from, and what is done with them then."""

    def __init__(self, name: str, source: str, align: Align, alone: bool = False) -> None:
        self.name = name
        self.source = source  # the name of a loader
        self.align = align
        self.alone = alone  # whether align is timed by itself
        self.alone_device: float | None = None
        self.alone_host: float | None = None
        self.compile_seconds: float | None = None
        self.deviates: str | None = None
        self.error: str | None = None
        self.seconds: list[float] = []  # a step, by round
        self.wait: list[float] = []  # of it for the loader, by the host

    def summary(self, batch: int) -> dict[str, Any]:
        if self.error is not None:
            return {"error": self.error}
        result = summarize(self.seconds)
        result["episodes/s"] = batch / result["median_us"] * 1e6
        result["wait_us"] = summarize(self.wait)["median_us"]
        if self.alone_device is not None and self.alone_host is not None:
            result["alignment_us"] = self.alone_device * 1e6
            result["alignment_host_us"] = self.alone_host * 1e6
            result["share"] = result["alignment_us"] / result["median_us"]
        if self.compile_seconds is not None:
            result["compile_s"] = self.compile_seconds
        if self.deviates is not None:
            result["deviates"] = self.deviates
        return result


def main() -> int:
    arguments = parse_arguments()
    device = arguments.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if arguments.compile is None:
        arguments.compile = device == "cuda"
    result: dict[str, Any] = {
        "environment": environment(device_facts(device), torch),
        "loops": [],
        "skipped": {},
    }
    data: list[Callable[[], Episodes]] = []
    if arguments.episodes:
        data.append(lambda: random_episodes(arguments.episodes))
    folder = g1_folder(arguments.data)
    if folder is not None:
        data.append(lambda: g1_episodes(folder))
    else:
        result["skipped"]["Unitree G1"] = "no action.npy in --data, nor in ROBOCACHE_DATA"
    for make in data:
        # Written after each, lest a later one takes it along.
        result["loops"] += run(make(), device, arguments)
        if arguments.json is not None:
            arguments.json.parent.mkdir(parents=True, exist_ok=True)
            arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    print(render.render_training(result))
    ways = [pair for loop in result["loops"] for pair in loop["ways"].items()]
    failed = any("error" in way or (name == ROBOCACHE and "deviates" in way) for name, way in ways)
    return 1 if failed or not ways else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument(
        "--data",
        type=pathlib.Path,
        metavar="DIR",
        help="the recording of the Unitree G1: action.npy and others, there or in unitree_g1 "
        "(default: $ROBOCACHE_DATA; without it random episodes alone)",
    )
    for name, default, what in (
        ("batch", 32, "episodes a batch"),
        ("episodes", 256, "random episodes; 0: the recording alone"),
        ("layers", 4, "of the transformer"),
        ("workers", 8, "of each data loader; 0: in this process"),
        ("steps", 30, "timed in a turn"),
        ("rounds", 7, "turns of each way at most"),
        ("seconds", 10, f"for the turns of a loop, which are {LEAST_ROUNDS} even if it takes more"),
    ):
        parser.add_argument(
            f"--{name}", type=int, default=default, help=f"{what} (default %(default)s)"
        )
    parser.add_argument(
        "--compile",
        action=argparse.BooleanOptionalAction,
        help="torch.compile as well (default: on CUDA)",
    )
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    for name in ("batch", "episodes", "layers", "workers", "steps", "rounds", "seconds"):
        smallest = 0 if name in ("episodes", "workers", "seconds") else 1
        if getattr(arguments, name) < smallest:
            parser.error(f"--{name} must be at least {smallest}")
    return arguments


def device_facts(device: str) -> dict[str, Any]:
    if device == "cuda":
        from comparison.cuda import Cuda

        return Cuda(torch, with_compile=False).facts()
    from comparison.cpu import Cpu

    return Cpu(torch).facts()


def g1_folder(given: pathlib.Path | None) -> pathlib.Path | None:
    folder = given or pathlib.Path(os.environ.get("ROBOCACHE_DATA") or "nowhere")
    for found in (folder, folder / "unitree_g1"):
        if (found / "action.npy").is_file():
            return found
    if given is not None:
        raise SystemExit(f"training.py: {given} has no action.npy")
    return None


# ---- the ways ------------------------------------------------------------------------------------


def make_ways(episodes: Episodes, sample: alignment.Aligned, with_compile: bool) -> list[Way]:
    """`sample` is a batch that was aligned ahead."""

    def on_device(name: str, align: Any, source: str = "threads") -> Way:
        # Timed alone once.
        return Way(name, source, lambda b, dtype: align(episodes, b, dtype), source == "threads")

    ways = [
        on_device(ROBOCACHE, alignment.with_robocache),
        on_device(f"{ROBOCACHE}, raw batches from workers", alignment.with_robocache, "workers"),
        on_device("torch", alignment.with_torch),
    ]
    if with_compile:
        torch._dynamo.reset()
        compiled = torch.compile(alignment.torch_streams, dynamic=False)

        def with_compiled(episodes: Episodes, batch: Any, dtype: torch.dtype) -> alignment.Aligned:
            return compiled(episodes.sensors, streams_of(episodes, batch), batch[0], dtype)

        ways.append(on_device(COMPILED, with_compiled))
    ways += [Way(name, name, lambda batch, dtype: batch) for name in IN_WORKERS]
    return [*ways, Way(NO_ALIGNMENT, "threads", lambda batch, dtype: sample)]


IN_WORKERS = {
    "np.interp in workers": alignment.interp_channels,
    "scipy interp1d in workers": alignment.interp1d,
}


def make_loaders(
    episodes: Episodes, dtype: torch.dtype, device: str, arguments: argparse.Namespace
) -> dict[str, Callable[[], Any]]:
    """Of each name what makes a loader."""

    def workers(collate: Any) -> Callable[[], Any]:
        return lambda: Workers(episodes, arguments.batch, collate, device, arguments.workers)

    loaders: dict[str, Callable[[], Any]] = {
        "threads": lambda: Threads(episodes, arguments.batch, device),
        "workers": workers(raw_batch),
    }
    for name, interpolate in IN_WORKERS.items():
        loaders[name] = workers(alignment.AlignedBatch(interpolate, dtype))
    return loaders


def deviation(aligned: alignment.Aligned, expected: alignment.Aligned) -> str | None:
    values, mask = aligned
    tolerance = 2.0**-7 if values.dtype == torch.bfloat16 else 1e-5
    error = (values.float() - expected[0]).abs()
    # So that not-a-number is wrong.
    wrong = ~(error <= 1e-5 + tolerance * expected[0].abs())
    others = mask != expected[1]
    if not (wrong.any() or others.any()):
        return None
    dtype = str(values.dtype).removeprefix("torch.")
    return (
        f"{wrong.float().mean().item():.2%} of the values in {dtype}, by up to "
        f"{error.max().item():.3g}, and {others.float().mean().item():.2%} of the mask"
    )


def check_align(way: Way, first: Any, expected: alignment.Aligned, dtype: torch.dtype) -> None:
    begin = time.perf_counter()
    aligned = way.align(first, dtype)
    synchronize(first[0].device.type)
    if way.name == COMPILED:
        way.compile_seconds = time.perf_counter() - begin
    way.deviates = deviation(aligned, expected)
    if way.deviates is None and dtype != torch.float32:
        way.deviates = deviation(way.align(first, torch.float32), expected)


def check_loader(way: Way, loader: Any, expected: alignment.Aligned, dtype: torch.dtype) -> None:
    """Of the loader's first batch, which holds the same episodes as every other's."""
    if way.deviates is None:
        way.deviates = deviation(way.align(next(loader), dtype), expected)


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


# ---- time ----------------------------------------------------------------------------------------


def run(episodes: Episodes, device: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Of each kind of step its result."""
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    first = to(device, Batches(episodes, arguments.batch, raw_batch)[0])
    exact = alignment.AlignedBatch(alignment.interp_channels, torch.float32)
    expected = to(device, Batches(episodes, arguments.batch, exact)[0])
    sample = (expected[0].to(dtype), expected[1])
    ways = make_ways(episodes, sample, arguments.compile)

    # Captures first: the loaders' threads allocate and pin memory.
    trainers: dict[str, Trainer] = {}
    errors: dict[str, str | None] = {}

    def make_trainer(kind: str) -> None:
        trainers[kind] = Trainer(*sample, arguments.layers, as_graph=kind == "graph")

    for kind in ("eager", "graph") if device == "cuda" else ("eager",):
        errors[kind] = guarded(bind(make_trainer, kind))
    for way in tqdm(ways, desc=f"{episodes.name}: alone", disable=None):
        if way.alone:
            way.error = guarded(bind(check_align, way, first, expected, dtype))
            way.error = way.error or guarded(bind(time_alone, way, first, dtype))

    loaders: dict[str, Any] = {}
    makers = make_loaders(episodes, dtype, device, arguments)

    def load(way: Way) -> None:
        if way.source not in loaders:
            loaders[way.source] = makers[way.source]()
            check_loader(way, loaders[way.source], expected, dtype)

    for way in tqdm(ways, desc=f"{episodes.name}: loaders", disable=None):
        way.error = way.error or guarded(bind(load, way))
    return [
        {
            "data": episodes.name,
            "step": kind,
            "device": device,
            "batch": arguments.batch,
            "streams": [[sensor.longest, sensor.channels] for sensor in episodes.sensors],
            "ticks": TICKS,
            "dtype": str(dtype).removeprefix("torch."),
            "layers": arguments.layers,
            "workers": arguments.workers,
            **(
                train(ways, trainers[kind], loaders, f"{episodes.name}, {kind}", dtype, arguments)
                if error is None
                else {"ways": {"all": {"error": error}}}
            ),
        }
        for kind, error in errors.items()
    ]


def train(
    ways: list[Way],
    trainer: Trainer,
    loaders: dict[str, Any],
    name: str,
    dtype: torch.dtype,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    lost: dict[str, str] = {}  # ways that failed in this kind of step
    for way in ways:
        way.seconds, way.wait = [], []
    end = time.monotonic() + arguments.seconds
    for turn in tqdm(range(arguments.rounds), desc=name, disable=None):
        if turn >= LEAST_ROUNDS and time.monotonic() > end:
            break
        for way in ways:
            if way.error is None and way.name not in lost:
                work = bind(time_way, way, loaders[way.source], trainer, dtype, arguments.steps)
                error = guarded(work)
                if error is not None:
                    lost[way.name] = error
    result = {way.name: way.summary(arguments.batch) for way in ways if way.name not in lost}
    result |= {name: {"error": error} for name, error in lost.items()}
    loss = trainer.loss.item()
    if not math.isfinite(loss):
        result["the model"] = {"error": f"its loss is {loss}"}
    return {"parameters": trainer.parameters, "ways": result}


def time_way(way: Way, loader: Any, trainer: Trainer, dtype: torch.dtype, steps: int) -> None:
    take_steps(way, loader, trainer, dtype, loader.ahead)
    synchronize(trainer.device)
    begin = time.perf_counter()
    wait = take_steps(way, loader, trainer, dtype, steps)
    synchronize(trainer.device)
    way.seconds.append((time.perf_counter() - begin) / steps)
    way.wait.append(wait / steps)


def take_steps(way: Way, loader: Any, trainer: Trainer, dtype: torch.dtype, steps: int) -> float:
    """Trains; returns the seconds that the host took for the loader's batches and their copies."""
    wait = 0.0
    for _ in range(steps):
        begin = time.perf_counter()
        batch = next(loader)
        wait += time.perf_counter() - begin
        trainer.step(*way.align(batch, dtype))
    return wait


def time_alone(way: Way, batch: Any, dtype: torch.dtype) -> None:
    """On CUDA the time of the device alone: many calls as one graph, whose launches cost the host
    nothing. Between events in the training loop there would also be what the host does meanwhile.
    """
    device = batch[0].device.type

    def align() -> None:
        for _ in range(ALONE):
            way.align(batch, dtype)

    finish = bind(synchronize, device)
    host = host_samples(bind(way.align, batch, dtype), finish, ALONE, 7)
    way.alone_host = host["median_us"] * 1e-6
    if device != "cuda":
        way.alone_device = way.alone_host
        return
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        align()
    seconds = []
    for _ in range(9):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        graph.replay()  # lest the device waits for the first that is timed
        start.record()
        for _ in range(5):
            graph.replay()
        stop.record()
        stop.synchronize()
        seconds.append(start.elapsed_time(stop) * 1e-3 / (5 * ALONE))
    way.alone_device = sorted(seconds)[len(seconds) // 2]


if __name__ == "__main__":
    sys.exit(main())
