"""RoboCache's own calls."""

from __future__ import annotations

from typing import Any

import robocache as rbc

from .cases import Case
from .timing import Work

LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)  # of statistics


def call(case: Case, values: list[Any], times: list[Any], queries: Any, **options: Any) -> Work:
    """One call for the whole case. The streams of a fusion are described once, ahead of it."""
    if case.op == "fuse":
        streams = [rbc.Stream(v, t) for v, t in zip(values, times)]
        return lambda: rbc.fuse(streams, queries, **options)
    if case.method != "linear":
        options["method"] = case.method
    return lambda: rbc.resample(values[0], times[0], queries, **options)


def voxelize(case: Case, points: Any, features: Any, offsets: Any, **options: Any) -> Work:
    """A grid; of a sparse case coords, features, and how many of their rows are voxels."""
    grid = {"origin": case.origin, "voxel_size": case.voxel_size, "shape": case.shape}
    options.update(grid, batch_offsets=offsets)
    if not case.sparse:
        return lambda: rbc.voxelize(points, features, reduction=case.result, **options)

    def sparse() -> tuple[Any, ...]:
        voxels = rbc.voxelize_sparse(points, features, **options)
        return voxels.coords, voxels.features, voxels.num_voxels

    return sparse


def statistics(case: Case, values: Any, **options: Any) -> Work:
    """min, max, mean, std and, where the case has them, quantiles."""
    options.update(quantiles=LEVELS if case.quantiles else (), per_row=values.ndim == 3)

    def work() -> tuple[Any, ...]:
        result = rbc.statistics(values, **options)
        moments = (result.min, result.max, result.mean, result.std)
        return (*moments, result.quantiles) if case.quantiles else moments

    return work
