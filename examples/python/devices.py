"""The device of the demo's arrays: torch tensors on a GPU if possible, else NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import robocache as rbc


@dataclass(frozen=True)
class Device:
    """How to move arrays to a device; an operation runs on the device of its arrays."""

    words: str  # a description to print
    put: Callable[[np.ndarray], Any] = np.asarray
    get: Callable[[Any], np.ndarray] = np.asarray
    wait: Callable[[], Any] = lambda: None  # for all enqueued work


def choose_device() -> Device:
    info = rbc.info()
    gpu = info.contexts.get("cuda:0")
    if gpu is None:
        return Device(f"on the CPU ({info.cuda_unavailable})")
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        return Device(f"on the CPU (the {gpu.device_name} would take tensors of a torch with CUDA)")
    return Device(
        f"on the GPU, {gpu.device_name}, from tensors of torch",
        put=lambda array: torch.from_numpy(array).to("cuda:0"),
        get=lambda tensor: tensor.cpu().numpy(),
        wait=torch.cuda.synchronize,
    )
