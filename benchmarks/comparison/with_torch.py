"""Torch, as its users write it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def fuse(
    align: Callable[..., Any], values: list[Any], times: list[Any], queries: Any
) -> torch.Tensor:
    parts = [align(v, t, queries) for v, t in zip(values, times)]
    return parts[0] if len(parts) == 1 else torch.cat(parts, 2)


def gather(values: Any, times: Any, queries: Any) -> torch.Tensor:
    left, right, weight = _bracket(times, queries)
    channels = values.shape[2]
    v0 = values.gather(1, left.unsqueeze(-1).expand(-1, -1, channels)).to(weight.dtype)
    v1 = values.gather(1, right.unsqueeze(-1).expand(-1, -1, channels)).to(weight.dtype)
    return torch.lerp(v0, v1, weight).to(values.dtype)


def rows(values: Any, times: Any, queries: Any) -> torch.Tensor:
    """Gather rows by index_select, which moves whole rows."""
    left, right, weight = _bracket(times, queries)
    batch, samples, channels = values.shape
    base = torch.arange(batch, device=values.device).unsqueeze(1) * samples
    flat = values.view(batch * samples, channels)
    v0 = flat.index_select(0, (left + base).view(-1)).view(*left.shape, channels).to(weight.dtype)
    v1 = flat.index_select(0, (right + base).view(-1)).view(*left.shape, channels).to(weight.dtype)
    return torch.lerp(v0, v1, weight).to(values.dtype)


def _bracket(times: Any, queries: Any) -> tuple[Any, Any, Any]:
    right = torch.searchsorted(times, queries, right=True).clamp_(1, times.shape[1] - 1)
    left = right - 1
    t0, t1 = times.gather(1, left), times.gather(1, right)
    weight = ((queries - t0) / (t1 - t0)).clamp_(0, 1)
    return left, right, weight.unsqueeze(-1)
