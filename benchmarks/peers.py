"""Time RoboCache against NumPy, SciPy, torch and others, in one process and in turn.

    python benchmarks/peers.py                                  # on the GPU, if any
    python benchmarks/peers.py --device cpu --cores 2
    python benchmarks/peers.py --only fuse
    python benchmarks/peers.py --case "sparse mean/1M 1000x1000x40 uniform"
    python benchmarks/peers.py --case "1M of 14 f32 normal quantiles"
    python benchmarks/peers.py --case "32,500,250,256 bf16" --case "B=1: 8 streams 100x7 -> 1 f32"

A case is one of these: B,S,T,D and the dtype of the values (B rows of S samples of D channels, each
resampled at T evenly spaced queries), followed by a method if it is not linear (only on the CPU); a
fusion of streams, each SxD, on one such clock; a voxelization of clouds; or the statistics of
channels. The usual cases are in benchmarks/cases. robocache_bench makes the data, and must be
built. Every peer must first return RoboCache's result; for statistics its error is reported. Then
each takes a sample in turn, round after round, so that disturbances affect all. The table has
medians, the JSON file also the quartiles.

On CUDA times are device times: events around many calls, or around replays of a graph of many
calls. JAX has its own streams, and is timed by the host over many calls. On the CPU times are real.
Compilation in a first call is listed separately. Batches whose shape changes each time come last;
some peers compile again for these. The floor is the bytes that must be moved, divided by the
bandwidth of a copy, which is measured here.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import sys
import time
from typing import Any

import render
from comparison.cases import Case, names_of
from comparison.cpu import Cpu
from comparison.environment import environment, import_or_none
from comparison.small_calls import small_calls
from comparison.timing import host_samples, time_peers
from tqdm import tqdm

NO_CASE = 3  # exit status


def main() -> int:
    arguments = parse_arguments()
    if arguments.cores:
        # Before any library starts threads.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.cores])
    bench = make_bench(arguments)
    usual = filter(arguments.only.search, names_of(f"peers-{bench.name}"))
    names = arguments.case or [name.partition("/")[2] for name in usual]
    if not names:
        print("peers.py: --only leaves no case")
        return NO_CASE
    result: dict[str, Any] = {
        "environment": environment(bench.torch, bench.name),
        "cases": [],
        "overhead": [],
    }
    copy_bandwidth = bench.copy_bandwidth()
    for name in tqdm(names, desc="cases", disable=None):
        begin = time.monotonic()
        result["cases"].append(run_case(bench, Case(name), copy_bandwidth, arguments))
        print(f"{name}: {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
        write(arguments.json, result)  # a later case may crash
    if bench.torch is not None and not arguments.no_changing_shapes:
        from comparison import changing_shapes

        result["changing"] = changing_shapes.run(bench, arguments.rounds)
    if not arguments.no_overhead:
        result["overhead"] = overhead(bench, arguments.rounds)
    write(arguments.json, result)
    print(render.render(result))
    peers = [peer for case in result["cases"] for peer in case["peers"].values()]
    peers += result.get("changing", [])
    return 1 if any("error" in peer for peer in peers) else 0


def write(path: pathlib.Path | None, result: dict[str, Any]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument("--case", action="append", metavar='"B,S,T,D DTYPE"')
    parser.add_argument(
        "--only",
        type=re.compile,
        default=re.compile(""),
        metavar="REGEX",
        help="only the usual cases whose resample/NAME, fuse/NAME, methods/NAME, "
        "voxelize/NAME or statistics/NAME contains it",
    )
    text = "samples of each peer (default %(default)s)"
    parser.add_argument("--rounds", type=int, default=15, help=text)
    parser.add_argument("--cores", type=int, help="run on only this many CPU cores")
    for name, what in (
        ("no-changing-shapes", "skip batches whose shape changes each time"),
        ("no-overhead", "skip the host time of calls"),
    ):
        parser.add_argument(f"--{name}", action="store_true", help=what)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    return parser.parse_args()


def make_bench(arguments: argparse.Namespace) -> Any:
    torch = import_or_none("torch")
    usable = torch is not None and torch.cuda.is_available()
    if arguments.device == "cuda" and not usable:
        raise SystemExit("peers.py: --device cuda needs torch with a usable GPU")
    if usable and arguments.device != "cpu":
        from comparison.cuda import Cuda

        return Cuda(torch)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # even if it has a GPU
    return Cpu(torch)


def run_case(
    bench: Any, case: Case, copy_bandwidth: float, arguments: argparse.Namespace
) -> dict[str, Any]:
    floor = case.bytes / copy_bandwidth
    peers = bench.peers(case, floor)
    summaries = time_peers(bench, case, peers, arguments.rounds)
    bench.clean()
    return {
        "op": case.op,
        "case": case.name,
        "device": bench.name,
        "bytes": case.bytes,
        "in_range": case.in_range,
        "copy_GB/s": copy_bandwidth / 1e9,
        "floor_us": floor * 1e6,
        "peers": summaries,
    }


def overhead(bench: Any, rounds: int) -> list[dict[str, Any]]:
    """Return the host time of calls on arrays so small that only the overhead matters."""
    calls = small_calls(bench.torch, bench.name == "cuda")
    # On CUDA the calls of a sample fit into the queue of launches.
    return [
        {"name": name, **host_samples(work, finish, 200, max(rounds, 15))}
        for name, work, finish in tqdm(calls, desc="host time", disable=None)
    ]


if __name__ == "__main__":
    sys.exit(main())
