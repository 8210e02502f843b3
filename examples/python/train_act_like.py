#!/usr/bin/env python3
"""Train a small policy like ACT on frames of a camera: chunks of fifty actions at once.

    train_act_like.py                   a simulated arm, whose goal only its camera sees
    train_act_like.py --data DIR        a LeRobot data set with a camera
    train_act_like.py --resume          go on where the last run ended, bit for bit
    train_act_like.py --cache DIR       decode each frame once, and keep it

A transformer reads the tokens of the newest frame and the state, and decodes a chunk. The program
writes checkpoint.pt and normalization.json to --out, and tests the policy on other episodes.
"""

from __future__ import annotations

import torch
from torch import nn

import robocache as rbc
from camera_training import Batch, Eyes, arguments_of, episodes_of, split, test, train, windows_of

FUTURE, SIZE, WIDTH, HEADS, LAYERS = 50, (48, 64), 64, 4, 2


def images_of(camera: str) -> rbc.Images:
    """Describe the frames: random crops and colours in training, the centre on the robot."""
    color = rbc.ColorJitter(brightness=0.2, contrast=0.2)
    return rbc.Images(camera, SIZE, crop=0.95, augment=color, normalize="imagenet", dtype="float32")


class Policy(nn.Module):
    """A frame and a state to a chunk of actions."""

    def __init__(self, states: int, actions: int) -> None:
        super().__init__()
        self.eyes = Eyes(SIZE, WIDTH)
        self.state = nn.Linear(states, WIDTH)
        options = {"dropout": 0.0, "batch_first": True, "norm_first": True}
        encoder = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, **options)
        decoder = nn.TransformerDecoderLayer(WIDTH, HEADS, 2 * WIDTH, **options)
        self.encoder = nn.TransformerEncoder(encoder, LAYERS, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(decoder, LAYERS)
        self.chunk = nn.Parameter(0.02 * torch.randn(FUTURE, WIDTH))
        self.leave = nn.Linear(WIDTH, actions)

    def forward(self, frames: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        seen = torch.cat([self.eyes(frames[:, -1]), self.state(state)], dim=1)
        chunk = self.chunk.expand(len(seen), -1, -1)
        return self.leave(self.decoder(chunk, self.encoder(seen)))


def main(command: list[str] | None = None) -> list[float]:
    arguments = arguments_of(__doc__, "build/train_act_like", 32).parse_args(command)
    episodes = episodes_of(arguments)
    camera = arguments.camera or next(iter(episodes.cameras))
    learned, others = split(episodes)
    spec = windows_of(learned, images_of(camera), 1, FUTURE, "mean_std")
    torch.manual_seed(0)
    sizes = [episodes.track_info(name).channels for name in ("observation.state", "action")]
    policy = Policy(*sizes).to(arguments.device)

    def act(batch: Batch) -> torch.Tensor:
        return policy(batch["frames"], batch["state"])

    def loss_of(batch: Batch, step: int) -> torch.Tensor:
        valid = batch.valid["action"]  # past the end of an episode there is nothing to learn
        off = (act(batch) - batch["action"]).abs().mean(2)
        return (off * valid).sum() / valid.sum()

    losses = train(policy, spec, learned, loss_of, arguments)
    if len(others):
        test(act, spec, others, arguments)
    return losses


if __name__ == "__main__":
    main()
