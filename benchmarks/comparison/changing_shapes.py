"""Batches whose shape changes each time, for compilers that specialize on shapes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from tqdm import tqdm

from . import ours, with_jax, with_torch
from .cases import Case
from .timing import Work, bind, guarded, summarize

SHAPES = 12


def run(bench: Any, passes: int) -> list[dict[str, Any]]:
    """Return for each peer the seconds of a first pass through all shapes, including compilation,
    and the time per call in later passes.
    """
    draws = np.random.default_rng(3).integers((8, 200, 100), (65, 2001, 1001), (SHAPES, 3))
    cases = [Case(f"{b},{s},{t},32 f32") for b, s, t in draws]
    inputs = [case.data(bench.torch, bench.name) for case in cases]
    expected = [ours.call(case, *arrays)() for case, arrays in zip(cases, inputs)]

    def measure(entry: dict[str, Any], calls: list[Work]) -> None:
        entry["first_s"], results = _pass(bench, calls)
        for case, result, right in zip(cases, results, expected):
            if not hasattr(result, "is_cuda"):
                result = bench.torch.from_dlpack(result)
            bench.require_same(result, right, case)
        entry.update(summarize([_pass(bench, calls)[0] / len(calls) for _ in range(passes)]))

    entries = []
    for name, make in tqdm(_makers(bench), desc="changing shapes", disable=None):
        try:
            maker = make()
            calls = [maker(case, arrays) for case, arrays in zip(cases, inputs)]
        except Exception as error:  # noqa: BLE001 - a wheel may be there without what it needs
            entries.append({"name": name, "skipped": str(error)})
            continue
        entry: dict[str, Any] = {"name": name, "shapes": [case.name for case in cases]}
        error = guarded(bind(measure, entry, calls))
        entries.append(entry if error is None else {"name": name, "error": error})
    bench.clean()
    return entries


def _makers(bench: Any) -> list[tuple[str, Callable[[], Any]]]:
    """Return by name a function that makes a call from a case and its arrays."""
    torch = bench.torch

    def compiled(dynamic: bool | None) -> Any:
        torch._dynamo.reset()
        function = torch.compile(with_torch.fuse, dynamic=dynamic)
        return lambda case, arrays: bind(function, with_torch.gather, *arrays)

    def jitted() -> Any:
        function, array = with_jax.interp()
        return lambda case, arrays: bind(function, *array(arrays))

    eager = with_torch.fuse, with_torch.gather
    return [
        ("robocache", lambda: lambda case, arrays: ours.call(case, *arrays)),
        ("torch gather", lambda: lambda case, arrays: bind(*eager, *arrays)),
        ("torch.compile", bind(compiled, None)),
        ("torch.compile, dynamic=True", bind(compiled, True)),
        ("jax.numpy.interp", jitted),
    ]


def _pass(bench: Any, calls: list[Work]) -> tuple[float, list[Any]]:
    start = time.perf_counter()
    results = [call() for call in calls]
    # JAX has its own streams.
    getattr(results[-1], "block_until_ready", bench.synchronize)()
    return time.perf_counter() - start, results
