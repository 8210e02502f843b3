"""Windows by RoboCache and by torch, eager and compiled, called and replayed as CUDA graphs.

    python benchmarks/window_peers.py            # needs a GPU

Rows of 64 or 14 channels in bf16 out of a million, held at the ends of their episodes and
normalized. Peers take turns, and must give the same numbers, within the rounding of bf16.
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

import torch
from comparison.cuda import Cuda
from comparison.timing import Peer, bind, guarded, time_peers

import robocache as rbc

ROWS, EPISODE = 1_000_000, 1000


@dataclasses.dataclass(frozen=True)
class Case:
    batch: int
    offsets: int
    channels: int

    def __str__(self) -> str:
        return f"B {self.batch}, {self.offsets} x {self.channels} bf16, normalized"

    @property
    def bytes(self) -> int:
        """Written, and read at least."""
        return 2 * self.batch * self.offsets * self.channels * 2


class Windows(Cuda):
    """Peers of windows."""

    def require_same(self, actual: Any, expected: Any, case: Any) -> None:
        torch.testing.assert_close(actual, expected, rtol=1.6e-2, atol=1.6e-2)

    def peers_of(self, case: Case) -> list[Peer]:
        generator = torch.Generator("cuda").manual_seed(1)
        numbers = {"generator": generator, "device": "cuda"}
        values = torch.randn(ROWS, case.channels, **numbers).to(torch.bfloat16)
        ends = torch.arange(0, ROWS + 1, EPISODE, device="cuda")
        which = torch.randint(ROWS // EPISODE, (case.batch,), **numbers)
        anchors = torch.randint(EPISODE, (case.batch,), **numbers)
        mean = torch.randn(case.channels, **numbers)
        scale = torch.rand(case.channels, **numbers) + 0.5
        steps = torch.arange(case.offsets, device="cuda")
        stream = rbc.WindowStream(
            values,
            range(case.offsets),
            episode_offsets=ends,
            normalization=rbc.Normalization(mean.cpu().numpy(), scale.cpu().numpy()),
        )
        shape = (case.batch, case.offsets)
        out = torch.empty(*shape, case.channels, dtype=values.dtype, device="cuda")
        valid = torch.empty(shape, dtype=torch.bool, device="cuda")

        def ours() -> Any:
            rbc.windows([stream], which, anchors, out=[(out, valid)])
            return out

        def indexing(which: Any, anchors: Any) -> Any:
            first = ends[which][:, None]
            last = ends[which + 1][:, None] - 1
            rows = first + anchors[:, None] + steps
            held = torch.minimum(torch.maximum(rows, first), last)
            inside = held == rows
            taken = ((values[held].float() - mean) * scale).to(values.dtype)
            return taken, inside

        compiled = torch.compile(indexing, dynamic=False)
        eager = lambda: indexing(which, anchors)[0]  # noqa: E731
        fast = lambda: compiled(which, anchors)[0]  # noqa: E731
        calls = 64
        return [
            Peer("robocache", ours),
            self.graph("robocache, graph", ours, calls),
            Peer("torch", eager),
            self.graph("torch, graph", eager, 8),
            Peer("torch.compile", fast, error=guarded(bind(fast))),
            self.graph("torch.compile, graph", fast, calls),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        parser.exit(1, "window_peers.py: torch sees no GPU\n")
    bench = Windows(torch)
    for case in (Case(1024, 50, 64), Case(256, 100, 14), Case(4096, 16, 14)):
        torch._dynamo.reset()
        found = time_peers(bench, case, bench.peers_of(case), arguments.rounds)
        print(f"{case}; {case.bytes / 1e6:.1f} MB:")
        for name, each in found.items():
            shown = each["error"] if "error" in each else f"{each['median_us']:9.2f} us"
            print(f"  {name:22} {shown}")


if __name__ == "__main__":
    main()
