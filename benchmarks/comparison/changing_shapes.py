"""Batches of ever another shape: what a compiler that knows shapes makes of them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from tqdm import tqdm

from . import ours, with_jax
from .cases import Case
from .timing import Bench, Work, bind, guarded, summarize

SHAPES = 12

# Makes a call of a case's arrays: values, times and queries.
Maker = Callable[[Case, tuple[Any, ...]], Work]


def run(bench: Bench, with_compile: bool, passes: int) -> list[dict[str, Any]]:
    """Of each peer the seconds of a first pass through all shapes, with all that it compiles, and
    the time of a call in those that follow.
    """
    cases = _cases()
    inputs = [bench.inputs(case) for case in cases]
    expected = [call() for call in _calls(ours.call_on, cases, inputs)]
    entries = []
    for name, maker in tqdm(_makers(bench, with_compile), desc="changing shapes", disable=None):
        entry: dict[str, Any] = {"name": name, "shapes": [case.name for case in cases]}
        try:
            calls = _calls(maker(), cases, inputs)
        except Exception as error:  # noqa: BLE001 - a wheel may be there without what it needs
            entries.append({"name": name, "skipped": str(error)})
            continue
        error = guarded(bind(_measure, entry, bench, calls, cases, expected, passes))
        entries.append(entry if error is None else {"name": name, "error": error})
    bench.clean()
    return entries


def _cases() -> list[Case]:
    generator = np.random.default_rng(3)
    draws = generator.integers((8, 200, 100), (65, 2001, 1001), (SHAPES, 3))
    return [Case.parse(f"{b},{s},{t},32 f32") for b, s, t in draws]


def _makers(bench: Bench, with_compile: bool) -> list[tuple[str, Callable[[], Maker]]]:
    from . import with_torch

    torch = bench.torch

    def eager() -> Maker:
        return lambda case, arrays: bind(with_torch.fuse, with_torch.gather, *arrays)

    def compiled(dynamic: bool | None) -> Maker:
        torch._dynamo.reset()
        function = torch.compile(with_torch.fuse, dynamic=dynamic)
        return lambda case, arrays: bind(function, with_torch.gather, *arrays)

    def jitted() -> Maker:
        function, array = with_jax.interp()
        return lambda case, arrays: bind(function, *array(arrays))

    makers: list[tuple[str, Callable[[], Maker]]] = [
        ("robocache", lambda: ours.call_on),
        ("torch gather", eager),
    ]
    if with_compile:
        makers += [
            ("torch.compile", functools.partial(compiled, None)),
            ("torch.compile, dynamic=True", functools.partial(compiled, True)),
        ]
    return [*makers, ("jax.numpy.interp", jitted)]


def _calls(make: Maker, cases: list[Case], inputs: list[Any]) -> list[Work]:
    return [make(case, arrays) for case, arrays in zip(cases, inputs)]


def _measure(
    entry: dict[str, Any],
    bench: Bench,
    calls: list[Work],
    cases: list[Case],
    expected: list[Any],
    passes: int,
) -> None:
    entry["first_s"], results = _pass(bench, calls)
    for case, result, right in zip(cases, results, expected):
        if not hasattr(result, "is_cuda"):
            result = bench.torch.from_dlpack(result)
        bench.require_same(result, right, case)
    later = [_pass(bench, calls)[0] / len(calls) for _ in range(passes)]
    entry.update(summarize(later))


def _pass(bench: Bench, calls: list[Work]) -> tuple[float, list[Any]]:
    start = time.perf_counter()
    results = [call() for call in calls]
    # JAX has streams of its own.
    getattr(results[-1], "block_until_ready", bench.synchronize)()
    return time.perf_counter() - start, results
