"""What torch.compile leaves of a resampling with a linear layer behind it, beside the plain calls.

    python benchmarks/torch_compile.py                  # on a GPU: both replayed as CUDA graphs
    python benchmarks/torch_compile.py --device cpu     # both called

"plain" is rbc.resample and the layer, "compiled" the operator and the layer in one graph of
torch.compile. They take turns, round after round; a time is that of one step, by the events of CUDA
or the host's clock, of the rounds' median and of the fastest. Both must give the same numbers.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

import robocache as rbc


def main() -> int:
    arguments = parse_arguments()
    device = arguments.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator().manual_seed(1)
    batch, samples, queries, channels = (arguments.batch, arguments.samples, *arguments.out)
    times = torch.rand(batch, samples, generator=generator).cumsum(1)
    clock = times[:, -1:] * torch.linspace(0.1, 0.9, queries)
    values = torch.randn(batch, samples, channels, generator=generator)
    arrays = [each.to(device) for each in (values, times, clock)]
    layer = torch.nn.Linear(channels, arguments.features).to(device)

    def plain() -> torch.Tensor:
        return layer(rbc.resample(*arrays))

    def graph(values: torch.Tensor, times: torch.Tensor, clock: torch.Tensor) -> torch.Tensor:
        return layer(rbc.torch.resample(values, times, clock))

    compiled = torch.compile(graph, fullgraph=True)
    with torch.no_grad():
        ways = {"plain": plain, "compiled": lambda: compiled(*arrays)}
        error = (ways["plain"]() - ways["compiled"]()).abs().max().item()
        steps = {name: captured(way) if device == "cuda" else way for name, way in ways.items()}
        rounds = turns(steps, device, arguments.steps, arguments.rounds)
    print(
        f"[{batch},{samples},{channels}] at {queries} queries, then {channels} to "
        f"{arguments.features}, on {device}; they differ by {error:.1g} at most"
    )
    for name, seconds in rounds.items():
        median, least = statistics.median(seconds) * 1e6, min(seconds) * 1e6
        print(f"{name:10} {median:9.2f} us   at best {least:9.2f} us")
    more = [
        statistics.median(rounds["compiled"]) - statistics.median(rounds["plain"]),
        min(rounds["compiled"]) - min(rounds["plain"]),
    ]
    print(f"compiled takes {more[0] * 1e6:+.2f} us more, at best {more[1] * 1e6:+.2f} us")
    return 0 if error < 1e-4 else 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    sizes = (
        ("batch", 64, "trajectories"),
        ("samples", 500, "of each"),
        ("features", 256, "that the layer gives"),
        ("steps", 200, "timed in a turn"),
        ("rounds", 21, "turns of each"),
    )
    for name, default, what in sizes:
        text = f"{what} (default %(default)s)"
        parser.add_argument(f"--{name}", type=int, default=default, help=text)
    what = "queries and channels (default 250 256)"
    parser.add_argument("--out", type=int, nargs=2, default=(250, 256), metavar="N", help=what)
    return parser.parse_args()


def captured(way: Callable[[], object]) -> Callable[[], object]:
    """A graph of it, to be replayed."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            way()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        way()
    return graph.replay


def turns(
    steps: dict[str, Callable[[], object]], device: str, count: int, rounds: int
) -> dict[str, list[float]]:
    """The seconds of a step, by round. The first one warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(rounds + 1):
        for name, step in steps.items():
            taken = seconds_of(step, device, count)
            if turn > 0:
                seconds[name].append(taken)
    return seconds


def seconds_of(step: Callable[[], object], device: str, count: int) -> float:
    if device == "cpu":
        begin = time.perf_counter()
        for _ in range(count):
            step()
        return (time.perf_counter() - begin) / count
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    events[0].record()
    for _ in range(count):
        step()
    events[1].record()
    events[1].synchronize()
    return events[0].elapsed_time(events[1]) / 1e3 / count


if __name__ == "__main__":
    raise SystemExit(main())
