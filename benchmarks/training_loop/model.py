"""A causal transformer that predicts the next tick, and one step of its training."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, HIDDEN = 256, 8, 1024


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, ticks, _ = x.shape
        qkv = self.qkv(self.norms[0](x)).view(batch, ticks, 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, ticks, WIDTH))
        return x + self.feed(self.norms[1](x))


class Transformer(nn.Module):
    def __init__(self, channels: int, ticks: int, layers: int) -> None:
        super().__init__()
        self.enter = nn.Linear(channels, WIDTH)
        self.position = nn.Parameter(0.02 * torch.randn(ticks, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
        self.leave = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.leave(self.blocks(self.enter(x) + self.position))


class Trainer:
    """Forward, backward and AdamW, in bf16 by autocast on CUDA; as launches, or as one graph."""

    def __init__(
        self, values: torch.Tensor, mask: torch.Tensor, layers: int, as_graph: bool
    ) -> None:
        self.device = values.device.type
        self.as_graph = as_graph
        torch.manual_seed(1)
        self.model = Transformer(values.shape[2], values.shape[1], layers).to(values.device)
        on_cuda = self.device == "cuda"
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=3e-4, fused=on_cuda, capturable=as_graph
        )
        self.inputs = (values.clone(), mask.clone())
        self.loss = torch.zeros((), device=values.device)
        self.graph: Any = None
        if as_graph:
            self._capture()

    @property
    def parameters(self) -> int:
        return sum(p.numel() for p in self.model.parameters())

    def step(self, values: torch.Tensor, mask: torch.Tensor) -> None:
        if self.graph is None:
            self._launch(values, mask)
            return
        for mine, array in zip(self.inputs, (values, mask)):
            mine.copy_(array, non_blocking=True)
        self.graph.replay()

    def _launch(self, values: torch.Tensor, mask: torch.Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        on_cuda = self.device == "cuda"
        # A graph must not contain casts of the weights that another step's cache owns.
        with torch.autocast(
            self.device, torch.bfloat16, enabled=on_cuda, cache_enabled=not self.as_graph
        ):
            predicted = self.model(values)
        wrong = (predicted[:, :-1].float() - values[:, 1:].float()).square().mean(-1)
        valid = mask.all(-1)
        valid = valid[:, :-1] & valid[:, 1:]
        self.loss = (wrong * valid).sum() / valid.sum().clamp(min=1)
        self.loss.backward()
        self.optimizer.step()

    def _capture(self) -> None:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._launch(*self.inputs)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._launch(*self.inputs)
        self.graph = graph
