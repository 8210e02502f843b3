"""Peers for the statistics of channels, on CUDA and on the CPU, and their errors.

Each returns min, max, mean and std, and quantiles [Q,D] or [B,Q,D] if the case has them. Few are
exact: their results are not required to equal ours, but their errors are reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import ours, running_histogram
from .cases import Case
from .timing import Peer, Work, attempt, bind, guarded

_EPISODE = 300  # rows


def cpu_peers(case: Case, torch: Any) -> list[Peer]:
    import robocache

    (values,) = case.data()
    levels = ours.LEVELS if case.quantiles else None
    one_thread = robocache.Context("cpu", threads=1)
    exact = ours.statistics(case, values)
    in_f64 = bind(_numpy, values, levels, np.float64)
    peers = [
        Peer("robocache", exact),
        Peer("robocache, 1 thread", ours.statistics(case, values, backend=one_thread)),
        Peer("NumPy", bind(_numpy, values, levels, None)),
        Peer("NumPy in f64", in_f64, lambda: _nearly(in_f64(), exact())),
    ]
    if torch is not None:
        peers += [Peer(name, work) for name, work in _torch(torch, *case.data(torch), levels)]
    if values.ndim == 2:
        for name, batch in (("one episode of 300 at a time", _EPISODE), ("at once", len(values))):
            work = bind(running_histogram.statistics, values, levels, batch)
            peers.append(Peer(f"running histogram, {name}", work))
    return peers


def cuda_peers(
    case: Case, graph: Callable[[str, Work, int], Peer], calls_per_graph: int
) -> list[Peer]:
    import torch

    (values,) = case.data(torch, "cuda")
    levels = ours.LEVELS if case.quantiles else None
    work = ours.statistics(case, values)
    peers = [Peer("robocache", work), graph("robocache, graph", work, calls_per_graph)]
    peers += [Peer(name, work) for name, work in _torch(torch, values, levels)]
    if levels is None:
        work = bind(_torch_moments, torch, values)
        peers.append(graph("torch var_mean + aminmax, graph", work, 1))
        work = bind(torch.compile(_torch_moments, dynamic=False), torch, values)
        peers += [_compiled(torch, work), graph("torch.compile, graph", work, 1)]
    return [*peers, attempt("CuPy percentile, mean, std", bind(_cupy, values, levels))]


def _numpy(values: Any, levels: Any, dtype: Any) -> tuple[Any, ...]:
    values = values if dtype is None else values.astype(dtype)
    moments = (getattr(values, name)(axis=-2) for name in ("min", "max", "mean", "std"))
    if levels is None:
        return tuple(moments)
    return (*moments, np.moveaxis(np.quantile(values, levels, axis=-2), 0, -2))


def _nearly(actual: tuple[Any, ...], expected: tuple[Any, ...]) -> tuple[Any, ...]:
    """NumPy in f64 has our quantiles bit for bit, and nearly our moments."""
    low, high, mean, std = actual[:4]
    for a, e in zip((low, high, *actual[4:]), (*expected[:2], *expected[4:])):
        np.testing.assert_array_equal(a, e)
    np.testing.assert_allclose(mean, expected[2], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(std, expected[3], rtol=1e-8, atol=1e-10)
    return actual


def _torch(torch: Any, values: Any, levels: Any) -> list[tuple[str, Work]]:
    if levels is None:
        return [("torch var_mean + aminmax", bind(_torch_moments, torch, values))]
    known = torch.tensor(levels, dtype=values.dtype, device=values.device)
    position = torch.tensor(levels, dtype=torch.float64) * (values.shape[-2] - 1)
    index = position.long()
    weight = (position - index).to(values.device, values.dtype)[:, None]
    index = index.to(values.device)
    return [
        ("torch var_mean + sort", bind(_torch_sort, torch, values, index, weight)),
        ("torch var_mean + quantile", bind(_torch_quantile, torch, values, known)),
    ]


def _torch_moments(torch: Any, values: Any) -> tuple[Any, ...]:
    variance, mean = torch.var_mean(values, dim=-2, correction=0)
    low, high = torch.aminmax(values, dim=-2)
    return low, high, mean, variance.sqrt()


def _torch_sort(torch: Any, values: Any, index: Any, weight: Any) -> tuple[Any, ...]:
    variance, mean = torch.var_mean(values, dim=-2, correction=0)
    ordered = values.sort(dim=-2).values
    below, above = ordered.index_select(-2, index), ordered.index_select(-2, index + 1)
    ends = ordered.select(-2, 0), ordered.select(-2, -1)
    return (*ends, mean, variance.sqrt(), torch.lerp(below, above, weight))


def _torch_quantile(torch: Any, values: Any, levels: Any) -> tuple[Any, ...]:
    """One channel at a time: torch.quantile accepts at most 16 million numbers."""
    channels = [torch.quantile(channel, levels, dim=-1) for channel in values.unbind(-1)]
    return (*_torch_moments(torch, values), torch.stack(channels, -1).movedim(0, -2))


def _compiled(torch: Any, work: Work) -> Peer:
    start = time.perf_counter()
    peer = Peer("torch.compile", work, error=guarded(work))
    torch.cuda.synchronize()
    peer.compile_seconds = time.perf_counter() - start
    return peer


def _cupy(values: Any, levels: Any) -> Peer:
    import cupy
    import torch

    array = cupy.asarray(values)
    percents = None if levels is None else cupy.asarray(levels) * 100

    def work() -> tuple[Any, ...]:
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            answer = tuple(getattr(array, n)(axis=-2) for n in ("min", "max", "mean", "std"))
            if percents is None:
                return answer
            quantiles = cupy.percentile(array, percents, axis=-2)
            return (*answer, cupy.moveaxis(quantiles, 0, -2))

    return Peer("CuPy percentile, mean, std", work, lambda: tuple(map(torch.from_dlpack, work())))


def off_by(actual: Any, expected: Any) -> dict[str, float]:
    """Return the largest error of any channel, in its standard deviations; absolute if the
    deviation is 0.
    """
    actual, expected = (
        [np.asarray(a.cpu() if hasattr(a, "cpu") else a, np.float64) for a in answer]
        for answer in (actual, expected)
    )
    for a, e in zip(actual[:2], expected[:2]):
        np.testing.assert_array_equal(a, e)  # exact for all peers
    unit = np.where(expected[3] > 0, expected[3], 1)
    off = {
        name: np.abs(a - e) / (unit if a.ndim == unit.ndim else unit[..., None, :])
        for name, a, e in zip(("mean", "std", "quantiles"), actual[2:], expected[2:])
    }
    return {name: float(each.max()) for name, each in off.items()}
