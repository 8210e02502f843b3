"""Calls on arrays so small that only their overhead takes time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import ours
from .cases import Case
from .timing import Work, bind, nothing

Calls = list[tuple[str, Work, Work]]


def small_calls(torch: Any, on_cuda: bool) -> Calls:
    """Return names and calls, and a function that waits for them."""
    small, fusion = Case("1,100,8,32 f32"), Case("B=1: 3 streams 100x32 -> 8 f32")

    def make(kind: str, arguments: tuple[Any, ...], empty: Callable[..., Any]) -> Any:
        arrays, streams = small.data(*arguments), fusion.data(*arguments)
        out, fused = (empty((1, case.queries, case.channels)) for case in (small, fusion))
        calls = [
            (f"rbc.resample, {kind}", ours.call(small, *arrays)),
            (f"rbc.resample, {kind}, out=", ours.call(small, *arrays, out=out)),
            (f"rbc.fuse of 3 streams, {kind}", ours.call(fusion, *streams)),
            (f"rbc.fuse of 3 streams, {kind}, out=", ours.call(fusion, *streams, out=fused)),
        ]
        return calls, arrays, out

    def make_torch(device: str) -> Any:
        from . import with_torch

        kind = f"torch {device.upper()}"
        empty = lambda shape: torch.empty(shape, device=device)  # noqa: E731
        calls, arrays, out = make(kind, (torch, device), empty)
        gather = bind(with_torch.fuse, with_torch.gather, *arrays)
        calls += [
            (f"torch gather, {kind}", gather),
            (f"torch.add, {kind}, for scale", bind(torch.add, out, out)),
        ]
        if device == "cuda":
            compiled = torch.compile(with_torch.fuse, dynamic=False)
            calls.append((f"torch.compile, {kind}", bind(compiled, with_torch.gather, *arrays)))
        return calls

    cuda = make_torch("cuda") if on_cuda else []
    cpu, (values, times, queries), _ = make("NumPy", (), lambda shape: np.empty(shape, "f4"))
    streams = fusion.data()
    cpu += [
        ("rbc.fuse of 3 new streams, NumPy", lambda: ours.call(fusion, *streams)()),
        ("np.interp, one channel", bind(np.interp, queries[0], times[0][0], values[0][0, :, 0])),
    ]
    if torch is not None:
        cpu += make_torch("cpu")
    found = [(name, work, torch.cuda.synchronize) for name, work in cuda]
    return found + [(name, work, nothing) for name, work in cpu]
