"""CuPy, as its users write it: one searchsorted for all recordings, and a lerp."""

from __future__ import annotations

from typing import Any

from .cases import Case
from .timing import Peer, attempt


def fuse(cupy: Any, values: list[Any], times: list[Any], queries: Any) -> Any:
    parts = [_align(cupy, v, t, queries) for v, t in zip(values, times)]
    return parts[0] if len(parts) == 1 else cupy.concatenate(parts, axis=2)


def _align(cupy: Any, values: Any, times: Any, queries: Any) -> Any:
    batch, samples, channels = values.shape
    # searchsorted accepts only one row: the recordings are concatenated, each later than the
    # previous one.
    low = cupy.minimum(times.min(), queries.min()).astype("float64")
    span = cupy.maximum(times.max(), queries.max()) - low + 1
    shift = cupy.arange(batch)[:, None] * span
    keys = (times - low + shift).ravel()
    right = cupy.searchsorted(keys, (queries - low + shift).ravel(), side="right")
    begin = (cupy.arange(batch) * samples)[:, None]
    right = cupy.clip(right.reshape(queries.shape), begin + 1, begin + samples - 1)
    t = times.ravel()
    before = t[right - 1]
    weight = cupy.clip((queries - before) / (t[right] - before), 0, 1)[..., None]
    rows = values.reshape(-1, channels)
    v0 = rows[right - 1]
    return (v0 + weight * (rows[right] - v0)).astype(values.dtype, copy=False)


def peer(case: Case, arrays: tuple[Any, ...]) -> Peer:
    """`arrays` are torch's, on the GPU; both libraries use the same stream."""
    name = "CuPy searchsorted + lerp"

    def make() -> Peer:
        import cupy
        import torch

        if case.dtype == "bf16":
            raise TypeError("CuPy has no bf16; see the cases of f32")
        values, times = ([cupy.asarray(a) for a in part] for part in arrays[:2])
        queries = cupy.asarray(arrays[2])

        def work() -> Any:
            with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
                return fuse(cupy, values, times, queries)

        return Peer(name, work, lambda: torch.from_dlpack(work()))

    return attempt(name, make)
