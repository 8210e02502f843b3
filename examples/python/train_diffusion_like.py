#!/usr/bin/env python3
"""Train a small diffusion policy on frames of a camera: it removes noise from sixteen actions.

    train_diffusion_like.py               a simulated arm, whose goal only its camera sees
    train_diffusion_like.py --data DIR    a LeRobot data set with a camera
    train_diffusion_like.py --resume      go on where the last run ended, bit for bit
    train_diffusion_like.py --cache DIR   decode each frame once, and keep it

The policy sees two frames and two states. In training it predicts the noise that was added to the
actions, as a velocity: noise and actions follow from it at every level of noise. To act, it begins
with noise and removes it in ten steps (DDIM). The program writes checkpoint.pt and
normalization.json to --out, and tests the policy on other episodes.
"""

from __future__ import annotations

import math

import torch
from torch import nn

import robocache as rbc
from camera_training import Batch, Eyes, arguments_of, episodes_of, split, test, train, windows_of

PAST, FUTURE, SIZE, WIDTH = 2, 16, (48, 64), 64
LEVELS, STEPS = 100, 10  # of noise in training, and to act
KEPT = torch.cos((torch.arange(LEVELS) + 0.5) / LEVELS * math.pi / 2) ** 2  # of the signal's power


def images_of(camera: str) -> rbc.Images:
    """Describe the frames: random crops of 9 tenths in training, the centre on the robot."""
    return rbc.Images(camera, SIZE, crop=0.9, normalize="x / 127.5 - 1", dtype="float32")


class Policy(nn.Module):
    """Noisy actions, the level of their noise, frames and states to the velocity."""

    def __init__(self, states: int, actions: int) -> None:
        super().__init__()
        self.eyes = Eyes(SIZE, WIDTH)
        tokens = len(self.eyes.places)
        self.see = nn.Linear(tokens * WIDTH, 2 * WIDTH)
        size = FUTURE * actions
        seen = PAST * (2 * WIDTH + states)
        self.level = nn.Embedding(LEVELS, WIDTH)
        self.layers = nn.Sequential(
            nn.Linear(size + seen + WIDTH, 512), nn.SiLU(),
            nn.Linear(512, 512), nn.SiLU(),
            nn.Linear(512, size),
        )  # fmt: skip

    def seen(self, frames: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        tokens = self.eyes(frames.flatten(0, 1)).flatten(1)
        return torch.cat([self.see(tokens).view(len(frames), -1), state.flatten(1)], dim=1)

    def forward(self, noisy: torch.Tensor, level: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        parts = [noisy.flatten(1), seen, self.level(level)]
        return self.layers(torch.cat(parts, dim=1)).view_as(noisy)

    def act(self, frames: torch.Tensor, state: torch.Tensor, actions: int) -> torch.Tensor:
        """Return actions [B,FUTURE,D], the same for the same input."""
        seen = self.seen(frames, state)
        generator = torch.Generator().manual_seed(0)
        shape = (1, FUTURE, actions)
        noisy = torch.randn(shape, generator=generator).to(seen.device).expand(len(seen), -1, -1)
        levels = torch.linspace(LEVELS - 1, 0, STEPS).long().tolist()
        for level, following in zip(levels, [*levels[1:], None]):
            signal, spread = KEPT[level].sqrt(), (1 - KEPT[level]).sqrt()
            velocity = self(noisy, torch.full((len(seen),), level, device=seen.device), seen)
            clean = (signal * noisy - spread * velocity).clamp(-1.5, 1.5)
            if following is None:
                return clean
            noise = (noisy - signal * clean) / spread
            noisy = KEPT[following].sqrt() * clean + (1 - KEPT[following]).sqrt() * noise
        raise AssertionError


def main(command: list[str] | None = None) -> list[float]:
    arguments = arguments_of(__doc__, "build/train_diffusion_like", 64).parse_args(command)
    episodes = episodes_of(arguments)
    camera = arguments.camera or next(iter(episodes.cameras))
    learned, others = split(episodes)
    spec = windows_of(learned, images_of(camera), PAST, FUTURE, "quantiles")
    torch.manual_seed(0)
    sizes = [episodes.track_info(name).channels for name in ("observation.state", "action")]
    policy = Policy(*sizes).to(arguments.device)

    def loss_of(batch: Batch, step: int) -> torch.Tensor:
        actions = batch["action"]
        generator = torch.Generator().manual_seed(step)  # so that a resumed run has the same noise
        noise = torch.randn(actions.shape, generator=generator).to(actions.device)
        level = torch.randint(LEVELS, (len(actions),), generator=generator).to(actions.device)
        power = KEPT.to(actions.device)[level][:, None, None]
        signal, spread = power.sqrt(), (1 - power).sqrt()
        seen = policy.seen(batch["frames"], batch["state"])
        found = policy(signal * actions + spread * noise, level, seen)
        target = signal * noise - spread * actions
        valid = batch.valid["action"]  # past the end of an episode there is nothing to learn
        return (((found - target) ** 2).mean(2) * valid).sum() / valid.sum()

    def act(batch: Batch) -> torch.Tensor:
        return policy.act(batch["frames"], batch["state"], sizes[1])

    losses = train(policy, spec, learned, loss_of, arguments)
    if len(others):
        test(act, spec, others, arguments)
    return losses


if __name__ == "__main__":
    main()
