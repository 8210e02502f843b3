"""Data, windows, loop, checkpoints and test of the training programs with a camera.

The loop can be interrupted after any step. With ``--resume``, the next losses equal the losses of a
run without an interruption, bit for bit.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

import robocache as rbc

Batch = rbc.torch.WindowBatch


def arguments_of(text: str, out: str, batch: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="a LeRobot data set; default: a simulated arm")
    parser.add_argument("--camera", help="default: the first one of the data set")
    parser.add_argument("--cache", type=Path, help="a folder for decoded frames; default: none")
    parser.add_argument("--out", type=Path, default=Path(out))
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser


def episodes_of(arguments: argparse.Namespace) -> rbc.Episodes:
    """Open the data set; without one, record and convert a simulated arm."""
    path = arguments.data
    if path is None:
        from reaching import demonstrations

        path = demonstrations(arguments.out / "data")
    cache = None if arguments.cache is None else rbc.Cache(arguments.cache)
    return rbc.data.open(path, cache=cache)


def windows_of(
    episodes: rbc.Episodes, images: rbc.Images, past: int, future: int, scale: str
) -> rbc.WindowSpec:
    """Past states and frames, and the next actions, normalized by statistics of the windows."""
    spec = rbc.WindowSpec(
        {
            "state": rbc.Window(range(1 - past, 1), track="observation.state"),
            "action": rbc.Window(range(future), track="action"),
            "frames": rbc.Window(range(1 - past, 1), images=images),
        }
    )
    quantiles = (0.01, 0.99) if scale == "quantiles" else ()
    numbers = rbc.WindowSpec({name: spec.windows[name] for name in ("state", "action")})
    found = numbers.statistics(episodes, rows="valid", quantiles=quantiles)
    return spec.normalized({name: rbc.Normalization.of(found[name], scale) for name in found})


@dataclass
class Training:
    """A model and its optimizer, the loader, and where the checkpoint is."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    loader: rbc.torch.WindowLoader
    path: Path

    def resume(self) -> list[float]:
        """Load the checkpoint; return the losses so far."""
        saved = torch.load(self.path, weights_only=True)
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.loader.load_state_dict(saved["loader"])
        return list(saved["losses"])

    def save(self, losses: list[float]) -> None:
        """Write a checkpoint, which replaces the one before as a whole."""
        parts = {"model": self.model, "optimizer": self.optimizer, "loader": self.loader}
        saved = {name: part.state_dict() for name, part in parts.items()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        torch.save({**saved, "losses": losses}, part)
        part.replace(self.path)

    def run(self, loss_of: Callable[[Batch, int], torch.Tensor], steps: int) -> list[float]:
        """Train up to a number of steps; ``loss_of`` takes a batch and the number of the step."""
        losses = self.resume() if self.path.exists() else []
        while len(losses) < steps:
            for batch in self.loader:
                loss = loss_of(batch, len(losses))
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
                if len(losses) % 50 == 0 or len(losses) == 1:
                    print(f"step {len(losses):5d}  loss {losses[-1]:.4f}", flush=True)
                if len(losses) % 200 == 0 or len(losses) == steps:
                    self.save(losses)
                if len(losses) == steps:
                    break
        return losses


def train(
    model: nn.Module,
    spec: rbc.WindowSpec,
    episodes: rbc.Episodes,
    loss_of: Callable[[Batch, int], torch.Tensor],
    arguments: argparse.Namespace,
) -> list[float]:
    """Train a model; save a checkpoint and the normalizations."""
    out, device = arguments.out, arguments.device
    torch.use_deterministic_algorithms(True)
    loader = rbc.torch.WindowLoader(
        episodes, spec, arguments.batch, seed=0, device=device, drop_last=True
    )
    print(loader, spec, sep="\n")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
    training = Training(model, optimizer, loader, out / "checkpoint.pt")
    if not arguments.resume:
        training.path.unlink(missing_ok=True)
    losses = training.run(loss_of, arguments.steps)
    norms = {name: spec.windows[name].normalization.to_dict() for name in ("state", "action")}
    (out / "normalization.json").write_text(json.dumps(norms))
    return losses


@torch.no_grad()
def test(
    act: Callable[[Batch], torch.Tensor],
    spec: rbc.WindowSpec,
    episodes: rbc.Episodes,
    arguments: argparse.Namespace,
) -> tuple[float, float]:
    """Return how far actions of other episodes are off, in the units of the data.

    The second number is that of standing still.
    """
    loader = rbc.torch.WindowLoader(
        episodes, spec, arguments.batch, device=arguments.device, shuffle=False, train=False
    )
    state, action = (spec.windows[name].normalization for name in ("state", "action"))
    sums = torch.zeros(3, dtype=torch.float64)
    for batch in loader:
        valid = batch.valid["action"][..., None]
        actions = action.invert(batch["action"])
        still = state.invert(batch["state"])[:, -1:]
        guesses = [action.invert(act(batch))]
        if still.shape[2] == actions.shape[2]:
            guesses.append(still)
        for i, guess in enumerate(guesses):
            sums[i] += ((guess - actions).abs() * valid).sum().cpu()
        sums[2] += (valid.sum() * actions.shape[2]).cpu()
    off, unmoved = (sums[:2] / sums[2]).tolist()
    print(f"{len(episodes)} other episodes: off by {off:.4f}; standing still {unmoved:.4f}")
    return off, unmoved


def split(episodes: rbc.Episodes) -> tuple[rbc.Episodes, rbc.Episodes]:
    """Return the episodes to train on, and those that are kept from the training."""
    last = max(1, len(episodes) * 5 // 6)
    return episodes.select(slice(last)), episodes.select(slice(last, None))


class Eyes(nn.Module):
    """Convolutions that turn frames [B,C,h,w] into tokens [B,N,width] with their places."""

    def __init__(self, size: tuple[int, int], width: int) -> None:
        super().__init__()
        steps: list[nn.Module] = []
        channels = [3, 16, 32, width]
        for before, after in zip(channels[:-1], channels[1:]):
            steps += [nn.Conv2d(before, after, 3, 2, 1), nn.GroupNorm(4, after), nn.SiLU()]
        self.layers = nn.Sequential(*steps)
        count = -(-size[0] // 8) * -(-size[1] // 8)
        self.places = nn.Parameter(0.02 * torch.randn(count, width))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return self.layers(frames.float()).flatten(2).transpose(1, 2) + self.places
