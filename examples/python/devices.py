"""Where the demo's arrays live: on a GPU as torch tensors where that can be, else in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import robocache as rbc


@dataclass(frozen=True)
class Device:
    """What an operation is given decides where it runs."""

    words: str  # where that is, for a reader
    put: Callable[[np.ndarray], Any] = np.asarray
    get: Callable[[Any], np.ndarray] = np.asarray
    wait: Callable[[], Any] = lambda: None  # until all that was enqueued is done


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
