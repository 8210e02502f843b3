"""RoboCache's calls."""

from __future__ import annotations

from typing import Any

import robocache as rbc

from .cases import Case
from .timing import Work

LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)  # for statistics


def call(case: Case, values: list[Any], times: list[Any], queries: Any, **options: Any) -> Work:
    """Return one call for the whole case; the streams of a fusion are described in advance."""
    if case.op == "fuse":
        streams = [rbc.Stream(v, t) for v, t in zip(values, times)]
        return lambda: rbc.fuse(streams, queries, **options)
    if case.method != "linear":
        options["method"] = case.method
    return lambda: rbc.resample(values[0], times[0], queries, **options)


def voxelize(case: Case, points: Any, features: Any, offsets: Any, **options: Any) -> Work:
    """Return a grid; or for a sparse case coords, features, and the number of voxels."""
    grid = {"origin": case.origin, "voxel_size": case.voxel_size, "shape": case.shape}
    options.update(grid, batch_offsets=offsets)
    if not case.sparse:
        return lambda: rbc.voxelize(points, features, reduction=case.result, **options)

    def sparse() -> tuple[Any, ...]:
        voxels = rbc.voxelize_sparse(points, features, **options)
        return voxels.coords, voxels.features, voxels.num_voxels

    return sparse


def statistics(case: Case, values: Any, **options: Any) -> Work:
    """Return min, max, mean, std and, if the case has them, quantiles."""
    options.update(quantiles=LEVELS if case.quantiles else (), per_row=values.ndim == 3)

    def work() -> tuple[Any, ...]:
        result = rbc.statistics(values, **options)
        moments = (result.min, result.max, result.mean, result.std)
        return (*moments, result.quantiles) if case.quantiles else moments

    return work
