"""Train a small transformer on ragged multi-rate episodes, aligned in one way after another.

    python benchmarks/training.py                                   # on the GPU if there is one
    python benchmarks/training.py --data ../shared/data/unitree_g1 --json build/training.json

Batches of episodes, padded as they were recorded, go to the GPU and are aligned there, by RoboCache
or by torch; or workers of the data loader align them by NumPy or SciPy. All else is the same: the
batches, the loader and its workers, pinned memory, the model and its optimizer. Every way must
first give RoboCache's numbers and its masks. Then the ways take turns, round after round; of each
turn the steps that the loader's queue was filled ahead for are not timed. "no alignment" loads and
copies raw batches as well, but trains on one that was aligned ahead.

Steps are launched one by one (eager) and, on CUDA, also replayed as one graph, which leaves nothing
of the host's time in them: the less a step takes, the larger is the share of the alignment in it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import sys
import time
from collections.abc import Iterator
from typing import Any

import render
import torch
from comparison.environment import environment
from comparison.timing import bind, guarded, summarize
from tqdm import tqdm
from training_loop import alignment
from training_loop.episodes import TICKS, Batches, Episodes, g1_episodes, random_episodes, raw_batch
from training_loop.model import Trainer

PREFETCH = 2  # batches ahead a worker
COMPILED = "torch.compile"
NO_ALIGNMENT = "no alignment"
ALONE = 20  # calls of an alignment that are timed together


class Way:
    """One way to get aligned batches: what the loader gives, and what is done with it then.

    exact() is the same for the loader's first batch, in f32.
    """

    def __init__(self, name: str, loader: Iterator[Any], align: Any, exact: Any) -> None:
        self.name = name
        self.loader = loader
        self.align = align
        self.exact = exact
        self.seconds: list[float] = []  # a step, by round
        self.wait: list[float] = []  # of it for the loader, by the host
        self.alone: float | None = None  # align by itself
        self.compile_seconds: float | None = None
        self.error: str | None = None

    def summary(self, batch: int) -> dict[str, Any]:
        if self.error is not None:
            return {"error": self.error}
        result = summarize(self.seconds)
        result["episodes/s"] = batch / result["median_us"] * 1e6
        result["wait_us"] = summarize(self.wait)["median_us"]
        if self.alone is not None:
            result["alignment_us"] = self.alone * 1e6
            result["share"] = result["alignment_us"] / result["median_us"]
        if self.compile_seconds is not None:
            result["compile_s"] = self.compile_seconds
        return result


def main() -> int:
    arguments = parse_arguments()
    device = arguments.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    result: dict[str, Any] = {
        "environment": environment(device_facts(device), torch),
        "loops": [],
        "skipped": {},
    }
    if arguments.episodes:
        result["loops"] += run(random_episodes(arguments.episodes), device, arguments)
    folder = g1_folder(arguments.data)
    if folder is not None:
        result["loops"] += run(g1_episodes(folder), device, arguments)
    else:
        result["skipped"]["Unitree G1"] = "no action.npy in --data, nor in ROBOCACHE_DATA"
    text = render.render_training(result)
    print(text)
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    ways = [way for loop in result["loops"] for way in loop["ways"].values()]
    return 1 if any("error" in way for way in ways) else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument(
        "--data",
        type=pathlib.Path,
        metavar="DIR",
        help="the recording of the Unitree G1: action.npy and others "
        "(default: $ROBOCACHE_DATA/unitree_g1; without it random episodes alone)",
    )
    for name, default, what in (
        ("batch", 32, "episodes a batch"),
        ("episodes", 256, "random episodes; 0: the recording alone"),
        ("layers", 4, "of the transformer"),
        ("workers", 8, "of each data loader; 0: in this process"),
        ("steps", 30, "timed in a turn"),
        ("rounds", 5, "turns of each way"),
    ):
        parser.add_argument(
            f"--{name}", type=int, default=default, help=f"{what} (default %(default)s)"
        )
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    for name in ("batch", "episodes", "layers", "workers", "steps", "rounds"):
        smallest = 0 if name in ("episodes", "workers") else 1
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
    if given is not None and not (given / "action.npy").is_file():
        raise SystemExit(f"training.py: {given} has no action.npy")
    if given is None and "ROBOCACHE_DATA" in os.environ:
        given = pathlib.Path(os.environ["ROBOCACHE_DATA"]) / "unitree_g1"
    return given if given is not None and (given / "action.npy").is_file() else None


# ---- the ways ------------------------------------------------------------------------------------


def make_ways(
    episodes: Episodes,
    first: Any,
    sample: alignment.Aligned,
    device: str,
    arguments: argparse.Namespace,
) -> list[Way]:
    """`first` is the first raw batch, `sample` what becomes of it."""
    dtype = sample[0].dtype

    def loader(collate: Any) -> Iterator[Any]:
        workers = arguments.workers
        return iter(
            torch.utils.data.DataLoader(
                Batches(episodes, arguments.batch, collate),
                batch_size=None,
                sampler=range(1 << 40),
                num_workers=workers,
                prefetch_factor=PREFETCH if workers else None,
                pin_memory=device == "cuda",
            )
        )

    def on_device(name: str, align: Any) -> Way:
        return Way(
            name,
            loader(raw_batch),
            lambda batch: align(episodes, batch, dtype),
            lambda: align(episodes, first, torch.float32),
        )

    def in_workers(name: str, interpolate: Any) -> Way:
        exact = alignment.AlignedBatch(interpolate, torch.float32)
        return Way(
            name,
            loader(alignment.AlignedBatch(interpolate, dtype)),
            None,
            lambda: to(device, first_batch(episodes, arguments, exact)),
        )

    ways = [
        on_device("robocache", alignment.with_robocache),
        on_device("torch", alignment.with_torch),
    ]
    if device == "cuda" and not arguments.no_compile:
        torch._dynamo.reset()
        ways.append(on_device(COMPILED, torch.compile(alignment.with_torch, dynamic=False)))
    ways += [
        in_workers("np.interp in workers", alignment.interp_channels),
        in_workers("scipy interp1d in workers", alignment.interp1d),
    ]
    return [*ways, Way(NO_ALIGNMENT, loader(raw_batch), lambda batch: sample, lambda: sample)]


def first_batch(episodes: Episodes, arguments: argparse.Namespace, collate: Any) -> Any:
    return Batches(episodes, arguments.batch, collate)[0]


def to(device: str, batch: Any) -> Any:
    return tuple(tensor.to(device, non_blocking=True) for tensor in batch)


def check(way: Way, expected: alignment.Aligned, device: str) -> None:
    """RoboCache's numbers and masks, of the first batch: as the model takes them, and in f32."""
    begin = time.perf_counter()
    batch = to(device, next(way.loader))
    aligned = batch if way.align is None else way.align(batch)
    synchronize(device)
    if way.name == COMPILED:
        way.compile_seconds = time.perf_counter() - begin
    for values, mask in (aligned, way.exact()):
        tolerance = 2.0**-7 if values.dtype == torch.bfloat16 else 1e-5
        torch.testing.assert_close(values.float(), expected[0], rtol=tolerance, atol=1e-5)
        torch.testing.assert_close(mask, expected[1], rtol=0, atol=0)


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


# ---- time ----------------------------------------------------------------------------------------


def run(episodes: Episodes, device: str, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Of each kind of step its result."""
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    first = to(device, first_batch(episodes, arguments, raw_batch))
    sample = alignment.with_robocache(episodes, first, dtype)
    trainers: dict[str, Trainer] = {}
    errors: dict[str, str | None] = {}

    def make_trainer(kind: str) -> None:
        trainers[kind] = Trainer(*sample, arguments.layers, as_graph=kind == "graph")

    # Before the loaders: their threads pin memory, which a capture does not go well with.
    for kind in ("eager", "graph") if device == "cuda" else ("eager",):
        errors[kind] = guarded(bind(make_trainer, kind))

    ways = make_ways(episodes, first, sample, device, arguments)
    expected = ways[0].exact()
    for way in tqdm(ways, desc=f"{episodes.name}: check", disable=None):
        way.error = guarded(bind(check, way, expected, device))
        if way.error is None and way.align is not None and way.name != NO_ALIGNMENT:
            way.error = guarded(bind(time_alone, way, first, device))
    for kind, error in errors.items():
        result = {
            "data": episodes.name,
            "step": kind,
            "device": device,
            "batch": arguments.batch,
            "streams": [[sensor.longest, sensor.channels] for sensor in episodes.sensors],
            "ticks": TICKS,
            "dtype": str(dtype).removeprefix("torch."),
            "layers": arguments.layers,
            "workers": arguments.workers,
        }
        if error is None:
            train(ways, trainers[kind], f"{episodes.name}, {kind}", device, arguments)
            result["parameters"] = trainers[kind].parameters
            result["ways"] = {way.name: way.summary(arguments.batch) for way in ways}
        else:
            result["ways"] = {"all": {"error": error}}
        yield result


def train(
    ways: list[Way], trainer: Trainer, name: str, device: str, arguments: argparse.Namespace
) -> None:
    for way in ways:
        way.seconds, way.wait = [], []
    ahead = arguments.workers * PREFETCH + 1
    for _ in tqdm(range(arguments.rounds), desc=name, disable=None):
        for way in ways:
            if way.error is None:
                way.error = guarded(bind(time_way, way, trainer, device, ahead, arguments.steps))
    if not math.isfinite(trainer.loss.item()):
        raise RuntimeError(f"{name}: the loss is {trainer.loss.item()}")


def time_way(way: Way, trainer: Trainer, device: str, ahead: int, steps: int) -> None:
    turn(way, trainer, device, ahead)
    synchronize(device)
    begin = time.perf_counter()
    wait = turn(way, trainer, device, steps)
    synchronize(device)
    way.seconds.append((time.perf_counter() - begin) / steps)
    way.wait.append(wait / steps)


def turn(way: Way, trainer: Trainer, device: str, steps: int) -> float:
    """Trains; returns the seconds that the host waited for the loader."""
    wait = 0.0
    for _ in range(steps):
        begin = time.perf_counter()
        batch = next(way.loader)
        wait += time.perf_counter() - begin
        batch = to(device, batch)
        if way.align is not None:
            batch = way.align(batch)
        trainer.step(*batch)
    return wait


def time_alone(way: Way, batch: Any, device: str) -> None:
    """On CUDA the time of the device alone: many calls as one graph, whose launches cost the host
    nothing. Between events in the training loop there would also be what the host does meanwhile.
    """

    def align() -> None:
        for _ in range(ALONE):
            way.align(batch)

    align()
    calls = align
    if device == "cuda":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            align()
        calls = graph.replay
        calls()
    synchronize(device)
    begin = time.perf_counter()
    calls()
    synchronize(device)
    way.alone = (time.perf_counter() - begin) / ALONE


if __name__ == "__main__":
    sys.exit(main())
