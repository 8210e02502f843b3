"""Train a small transformer on ragged multi-rate episodes, with different ways to align them.

    python benchmarks/training.py                                   # on the GPU, if any
    python benchmarks/training.py --data ../shared/data/unitree_g1 --json build/training.json

Batches of episodes, padded as they were recorded, go to the GPU and are aligned there, by RoboCache
or by torch; or workers of the data loader align them by NumPy or SciPy. The model, its optimizer,
the raw batches and the threads that read them are the same. RoboCache is also timed on raw batches
from the data loader's workers, and on episodes that stay on the GPU; its windows are then the
batches. "no alignment" loads and copies raw batches too, but trains on a batch that was aligned in
advance.

Every way must return NumPy's numbers, which come from f64, and its masks: within 1e-5 in f32, and
within one unit of the last place in bf16, at most 2^-7 of the number, where rounding once from f32
may be off by half of that. Other ways are listed as deviating, with their times.

Alignment on the device is first timed separately: the device time of a call in a graph of many, and
the host time to enqueue one. Then the ways take turns to train, round after round; the first steps
of each turn use batches that the loader prepared in advance, and are not timed. Steps are launched
one by one (eager) and, on CUDA, also replayed as one graph, which removes the host time: the
shorter a step, the larger the share of the alignment.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import render
import torch
from comparison.environment import environment
from comparison.timing import bind, guarded, host_samples, summarize
from tqdm import tqdm
from training_loop import alignment
from training_loop.episodes import TICKS, Batches, Episodes, g1_episodes, random_episodes, raw_batch
from training_loop.loaders import Resident, Threads, Workers, to
from training_loop.model import Trainer

ROBOCACHE = "robocache"
WINDOWS = f"{ROBOCACHE}, episodes on the device"
COMPILED = "torch.compile"
ALONE = 20  # calls of an alignment that are timed together
LEAST_ROUNDS = 3


@dataclasses.dataclass
class Way:
    """One way to get aligned batches: their source, and how they are aligned."""

    name: str
    source: str  # the name of a loader
    # Aligns a raw batch, or uses an aligned one if the loader's workers align.
    align: Callable[[Any, torch.dtype], alignment.Aligned]
    alone: bool = False  # whether align is also timed separately
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)
    error: str | None = None
    seconds: list[float] = dataclasses.field(default_factory=list)  # per step, by round
    wait: list[float] = dataclasses.field(default_factory=list)  # for the loader, on the host

    def summary(self, batch: int) -> dict[str, Any]:
        if self.error is not None:
            return {"error": self.error}
        result = {**summarize(self.seconds), **self.facts}
        result["episodes/s"] = batch / result["median_us"] * 1e6
        result["wait_us"] = summarize(self.wait)["median_us"]
        if self.alone:
            result["share"] = result["alignment_us"] / result["median_us"]
        return result

    def check(self, aligned: alignment.Aligned, expected: alignment.Aligned) -> None:
        if "deviates" not in self.facts and (text := deviation(aligned, expected)):
            self.facts["deviates"] = text


def main() -> int:
    arguments = parse_arguments()
    device = arguments.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if arguments.compile is None:
        arguments.compile = device == "cuda"
    result: dict[str, Any] = {"environment": environment(torch, device), "loops": [], "skipped": {}}
    data: list[Callable[[], Episodes]] = []
    if arguments.episodes:
        data.append(bind(random_episodes, arguments.episodes))
    folder = g1_folder(arguments.data)
    if folder is not None:
        data.append(bind(g1_episodes, folder))
    else:
        result["skipped"]["Unitree G1"] = "no action.npy in --data, nor in ROBOCACHE_DATA"
    for make in data:
        # Written after each loop, in case a later one crashes.
        result["loops"] += run(make(), device, arguments)
        if arguments.json is not None:
            arguments.json.parent.mkdir(parents=True, exist_ok=True)
            arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    print(render.render(result))
    ways = [pair for loop in result["loops"] for pair in loop["ways"].items()]
    own = (ROBOCACHE, WINDOWS)
    failed = any("error" in way or (name in own and "deviates" in way) for name, way in ways)
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
        "(default: $ROBOCACHE_DATA; without it only random episodes)",
    )
    sizes = (
        ("batch", 32, 1, "episodes a batch"),
        ("episodes", 256, 0, "random episodes; 0: only the recording"),
        ("layers", 4, 1, "of the transformer"),
        ("workers", 8, 0, "of each data loader; 0: in this process"),
        ("steps", 30, 1, "timed in a turn"),
        ("rounds", 7, 1, "turns of each way at most"),
        ("seconds", 10, 0, f"for the turns of a loop, at least {LEAST_ROUNDS}"),
    )
    for name, default, _, what in sizes:
        text = f"{what} (default %(default)s)"
        parser.add_argument(f"--{name}", type=int, default=default, help=text)
    what = "torch.compile as well (default: on CUDA)"
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, help=what)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    for name, _, smallest, _ in sizes:
        if getattr(arguments, name) < smallest:
            parser.error(f"--{name} must be at least {smallest}")
    return arguments


def g1_folder(folder_argument: pathlib.Path | None) -> pathlib.Path | None:
    folder = folder_argument or pathlib.Path(os.environ.get("ROBOCACHE_DATA") or "nowhere")
    for found in (folder, folder / "unitree_g1"):
        if (found / "action.npy").is_file():
            return found
    if folder_argument is not None:
        raise SystemExit(f"training.py: {folder_argument} has no action.npy")
    return None


# ---- the ways to align ---------------------------------------------------------------------------


def make_ways(episodes: Episodes, sample: alignment.Aligned, with_compile: bool) -> list[Way]:
    """`sample` is a batch that was aligned in advance."""

    def on_device(name: str, align: Any, source: str = "threads") -> Way:
        # Timed separately once.
        return Way(name, source, lambda b, dtype: align(episodes, b, dtype), source != "workers")

    ways = [
        on_device(ROBOCACHE, alignment.with_robocache),
        on_device(f"{ROBOCACHE}, raw batches from workers", alignment.with_robocache, "workers"),
        on_device(WINDOWS, alignment.with_windows, "resident"),
        on_device("torch", alignment.with_torch),
    ]
    if with_compile:
        torch._dynamo.reset()
        compiled = torch.compile(alignment.torch_streams, dynamic=False)
        ways.append(
            on_device(
                COMPILED, lambda *arguments: alignment.with_torch(*arguments, streams=compiled)
            )
        )
    ways += [Way(name, name, lambda batch, dtype: batch) for name in alignment.IN_WORKERS]
    return [*ways, Way("no alignment", "threads", lambda batch, dtype: sample)]


def make_loader(
    source: str, episodes: Episodes, dtype: torch.dtype, device: str, arguments: argparse.Namespace
) -> Any:
    if source == "threads":
        return Threads(episodes, arguments.batch, device)
    if source == "resident":
        return Resident(episodes, arguments.batch, device)
    collate: Any = raw_batch
    if source in alignment.IN_WORKERS:
        collate = alignment.AlignedBatch(alignment.IN_WORKERS[source], dtype)
    return Workers(episodes, arguments.batch, collate, device, arguments.workers)


def deviation(aligned: alignment.Aligned, expected: alignment.Aligned) -> str | None:
    values, mask = aligned
    tolerance = 2.0**-7 if values.dtype == torch.bfloat16 else 1e-5
    error = (values.float() - expected[0]).abs()
    # Written so that NaN is wrong.
    wrong = ~(error <= 1e-5 + tolerance * expected[0].abs())
    others = mask != expected[1]
    if not (wrong.any() or others.any()):
        return None
    return (
        f"{wrong.float().mean().item():.2%} of the values in {_name(values.dtype)}, by up to "
        f"{error.max().item():.3g}, and {others.float().mean().item():.2%} of the mask"
    )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# ---- time ----------------------------------------------------------------------------------------


def run(episodes: Episodes, device: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the result of each kind of step."""
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
            batch = first
            if way.source == "resident":
                batch = next(Resident(episodes, arguments.batch, device))
            way.error = guarded(bind(time_alone, way, batch, expected, dtype))

    loaders: dict[str, Any] = {}

    def load(way: Way) -> None:
        if way.source not in loaders:
            loaders[way.source] = make_loader(way.source, episodes, dtype, device, arguments)
            # The first batch has the same episodes as every other loader's.
            way.check(way.align(next(loaders[way.source]), dtype), expected)

    for way in tqdm(ways, desc=f"{episodes.name}: loaders", disable=None):
        way.error = way.error or guarded(bind(load, way))
    about = {
        "data": episodes.name,
        "device": device,
        "batch": arguments.batch,
        "streams": [[sensor.longest, sensor.channels] for sensor in episodes.sensors],
        "ticks": TICKS,
        "dtype": _name(dtype),
        "layers": arguments.layers,
        "workers": arguments.workers,
    }
    results = []
    for kind, error in errors.items():
        result: dict[str, Any] = {"ways": {"all": {"error": error}}}
        if error is None:
            result = train(
                ways, trainers[kind], loaders, f"{episodes.name}, {kind}", dtype, arguments
            )
        results.append({**about, "step": kind, **result})
    return results


def train(
    ways: list[Way],
    trainer: Trainer,
    loaders: dict[str, Any],
    name: str,
    dtype: torch.dtype,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    lost: dict[str, Any] = {}  # ways that failed with this kind of step
    for way in ways:
        way.seconds, way.wait = [], []
    end = time.monotonic() + arguments.seconds
    for turn in tqdm(range(arguments.rounds), desc=name, disable=None):
        if turn >= LEAST_ROUNDS and time.monotonic() > end:
            break
        for way in ways:
            if way.error is None and way.name not in lost:
                work = bind(time_way, way, loaders[way.source], trainer, dtype, arguments.steps)
                if error := guarded(work):
                    lost[way.name] = {"error": error}
    result = {way.name: way.summary(arguments.batch) for way in ways if way.name not in lost} | lost
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
    """Train; return the seconds that the host took for the loader's batches and their copies."""
    wait = 0.0
    for _ in range(steps):
        begin = time.perf_counter()
        batch = next(loader)
        wait += time.perf_counter() - begin
        trainer.step(*way.align(batch, dtype))
    return wait


def time_alone(way: Way, batch: Any, expected: alignment.Aligned, dtype: torch.dtype) -> None:
    """Return the time of only the device on CUDA: many calls in one graph, whose launches cost the
    host nothing. Events in the training loop would include the host's other work.
    """
    device = expected[0].device.type
    begin = time.perf_counter()
    aligned = way.align(batch, dtype)
    synchronize(device)
    if way.name == COMPILED:
        way.facts["compile_s"] = time.perf_counter() - begin
    way.check(aligned, expected)
    way.check(way.align(batch, torch.float32), expected)

    align = bind(way.align, batch, dtype)
    host = host_samples(align, bind(synchronize, device), ALONE, 7)["median_us"]
    way.facts |= {"alignment_us": host, "alignment_host_us": host}
    if device == "cuda":
        from comparison.cuda import Cuda

        bench = Cuda(torch)
        peer = bench.graph(way.name, align, ALONE)
        if peer.error is not None:
            raise RuntimeError(peer.error)
        peer.times = 5
        way.facts["alignment_us"] = statistics.median(bench.seconds(peer) for _ in range(9)) * 1e6


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    sys.exit(main())
