#!/usr/bin/env python3
"""Train a small action-chunking transformer on windows of episodes, then use it.

    train_windows.py                  two arms, simulated
    train_windows.py --data DIR       the episodes of a Unitree G1: action.npy and others
    train_windows.py --infer          only predict, from the checkpoint

The model predicts the next fifty actions, relative to the current state, from the last two states.
The program writes a checkpoint (model.pt), its normalization (normalization.json) and a plot of the
loss (loss.png) to --out. Then it reads them again and predicts episodes that were not trained on.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import robocache as rbc

PAST, FUTURE = 2, 50  # states and actions of a window
WIDTH, HEADS, LAYERS = 256, 4, 3


# ---- the data ------------------------------------------------------------------------------------


def g1_episodes(folder: Path) -> rbc.Episodes:
    """States and actions of a Unitree G1, 26 joints at 30 Hz."""
    names = ("observation.state", "action", "episode_index")
    state, action, episode = (np.load(folder / f"{name}.npy") for name in names)
    offsets = [*np.flatnonzero(np.diff(episode, prepend=-1)), len(episode)]
    tracks = {"state": rbc.Track(state, offsets), "action": rbc.Track(action, offsets)}
    return rbc.Episodes(tracks, source="Unitree G1")


def simulated_episodes(count: int = 60) -> rbc.Episodes:
    """Simulate two arms of 7 joints that visit four places, with some noise."""
    rng = np.random.default_rng(1)
    places = rng.uniform(-1.5, 1.5, (4, 14))
    states, actions, offsets = [], [], [0]
    for _ in range(count):
        stays = rng.integers(30, 60, 8)  # rows until the next place is commanded
        goals = np.tile(places, (2, 1)) + rng.normal(0, 0.1, (8, 14))
        place, speed, rows = goals[-1], np.zeros(14), []
        for goal in np.repeat(goals, stays, axis=0):  # a spring with a damper
            speed = 0.7 * speed + 0.03 * (goal - place)
            place = place + speed
            rows.append(place)
        actions.append(np.array(rows[1:] + rows[-1:]))  # the command is the next row
        states.append(np.array(rows) + rng.normal(0, 1e-3, (len(rows), 14)))
        offsets.append(offsets[-1] + len(rows))
    state, action = (np.concatenate(each).astype(np.float32) for each in (states, actions))
    tracks = {"state": rbc.Track(state, offsets), "action": rbc.Track(action, offsets)}
    return rbc.Episodes(tracks, source="two simulated arms")


def windows_of(joints: int) -> rbc.WindowSpec:
    """Two states, and fifty actions relative to the last of them; one sample at every row."""
    relative = rbc.Transform("subtract", 0, joints, reference=("state", -1))
    return rbc.WindowSpec(
        {
            "state": range(1 - PAST, 1),
            "action": rbc.Window(range(FUTURE), transforms=relative),
        }
    )


def normalizations(spec: rbc.WindowSpec, episodes: rbc.Episodes) -> dict[str, rbc.Normalization]:
    """Normalize by statistics of the windows, since relative actions are smaller than actions."""
    state = spec.statistics(episodes, quantiles=())["state"]
    action = spec.statistics(episodes, rows="valid", per_step=True, quantiles=())["action"]
    return {
        "state": rbc.Normalization.of(state, "mean_std"),
        "action": rbc.Normalization.of(action, "mean_std"),
    }


# ---- the model -----------------------------------------------------------------------------------


class Chunks(nn.Module):
    """States to a chunk of actions, all at once, as ACT does."""

    def __init__(self, joints: int) -> None:
        super().__init__()
        self.enter = nn.Linear(joints, WIDTH)
        self.past = nn.Parameter(0.02 * torch.randn(PAST, WIDTH))
        self.future = nn.Parameter(0.02 * torch.randn(FUTURE, WIDTH))
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.leave = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, joints))

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        past = self.enter(state) + self.past
        tokens = torch.cat([past, self.future.expand(len(state), -1, -1)], dim=1)
        return self.leave(self.blocks(tokens)[:, PAST:])


# ---- the first half: training --------------------------------------------------------------------


def train(episodes: rbc.Episodes, arguments: argparse.Namespace) -> None:
    device, out = arguments.device, arguments.out
    joints = episodes["state"].num_channels
    spec = windows_of(joints)
    norms = normalizations(spec, episodes)
    spec = spec.normalized(norms)
    print(episodes, spec, sep="\n")

    loader = rbc.torch.WindowLoader(episodes.to(device), spec, arguments.batch, seed=0)
    torch.manual_seed(0)
    model = Chunks(joints).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    losses: list[torch.Tensor] = []
    begin = time.perf_counter()
    while len(losses) < arguments.steps:
        for batch in loader:
            off = F.l1_loss(model(batch["state"]), batch["action"], reduction="none").mean(2)
            valid = batch.valid["action"]  # past the end of an episode there is nothing to learn
            loss = (off * valid).sum() / valid.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
            if len(losses) % 50 == 0 or len(losses) == 1:
                print(f"step {len(losses):5d}  loss {losses[-1].item():.4f}")
            if len(losses) == arguments.steps:
                break
    synchronize(device)
    step = (time.perf_counter() - begin) / len(losses)
    cut = seconds_a_batch(loader, device)
    print(f"a step takes {1e3 * step:.2f} ms, of this {1e3 * cut:.3f} ms to cut its windows")
    print(f"share of RoboCache: {cut / step:.2%}")

    out.mkdir(parents=True, exist_ok=True)
    torch.save({"joints": joints, "model": model.state_dict()}, out / "model.pt")
    texts = {name: norm.to_dict() for name, norm in norms.items()}
    (out / "normalization.json").write_text(json.dumps(texts))
    plot(torch.stack(losses).cpu().numpy(), out / "loss.png")


def seconds_a_batch(loader: rbc.torch.WindowLoader, device: str) -> float:
    """Measure the time of cutting the windows of a batch."""
    count = 0
    synchronize(device)
    begin = time.perf_counter()
    while count < 20 or time.perf_counter() - begin < 0.5:
        for _ in loader:
            count += 1
    synchronize(device)
    return (time.perf_counter() - begin) / count


def synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def plot(losses: np.ndarray, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3), layout="constrained")
    axes.plot(losses)
    axes.set(xlabel="step", ylabel="mean absolute error, normalized", yscale="log")
    figure.savefig(path, dpi=120)


# ---- the second half: what the robot runs --------------------------------------------------------


class Policy:
    """The trained model with its normalization."""

    def __init__(self, folder: Path, device: str) -> None:
        saved = torch.load(folder / "model.pt", map_location=device, weights_only=True)
        texts = json.loads((folder / "normalization.json").read_text())
        self.norms = {name: rbc.Normalization.from_dict(each) for name, each in texts.items()}
        self.model = Chunks(saved["joints"]).to(device).eval()
        self.model.load_state_dict(saved["model"])

    @torch.no_grad()
    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        """Actions [B,50,D] of the last two states [B,2,D], both in radians."""
        relative = self.model(self.norms["state"].apply(states))
        return self.norms["action"].invert(relative) + states[:, -1:]


def infer(episodes: rbc.Episodes, arguments: argparse.Namespace) -> None:
    """Compare predictions for other episodes with the actions, and with standing still."""
    policy = Policy(arguments.out, arguments.device)
    spec = rbc.WindowSpec({"state": range(1 - PAST, 1), "action": range(FUTURE)})
    loader = rbc.torch.WindowLoader(
        episodes.to(arguments.device), spec, arguments.batch, shuffle=False
    )
    errors = torch.zeros(3, dtype=torch.float64, device=arguments.device)
    for batch in loader:
        valid = batch.valid["action"][..., None]
        for i, guess in enumerate((policy(batch["state"]), batch["state"][:, -1:])):
            errors[i] += ((guess - batch["action"]).abs() * valid).sum()
        errors[2] += valid.sum() * batch["action"].shape[2]
    model, still = (errors[:2] / errors[2]).tolist()
    print(f"{len(episodes)} other episodes: off by {model:.4f} rad; standing still {still:.4f} rad")


# ---- the program ---------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    folder = os.environ.get("ROBOCACHE_DATA")
    default = Path(folder) / "unitree_g1" if folder else None
    parser.add_argument("--data", type=Path, default=default, help="default: $ROBOCACHE_DATA")
    parser.add_argument("--out", type=Path, default=Path("build/train_windows"))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--infer", action="store_true", help="only use the checkpoint")
    arguments = parser.parse_args()

    episodes = simulated_episodes() if arguments.data is None else g1_episodes(arguments.data)
    last = len(episodes) * 9 // 10  # the rest is kept from the training
    if not arguments.infer:
        train(episodes.select(slice(last)), arguments)
    infer(episodes.select(slice(last, None)), arguments)


if __name__ == "__main__":
    main()
