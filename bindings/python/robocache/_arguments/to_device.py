"""Transfer of arrays to a device."""

from __future__ import annotations

import importlib.util
from typing import Any

from .._library.context import CPU
from .._library.errors import shown
from .arrays import framework_of
from .to_numpy import on_host


def moved(array: Any, device: Any, name: str) -> Any:
    """Return an array on a device: unchanged if it is there, or else a copy.

    The device is a string or a torch.device for arrays of torch, or a cupy.cuda.Device. Arrays of
    CuPy stay arrays of CuPy; NumPy arrays that leave the CPU become torch tensors.
    """
    root = type(device).__module__.partition(".")[0]
    own = type(array).__module__.partition(".")[0]
    if root == "cupy" or (own == "cupy" and not _is_cpu(device)):
        return _to_cupy(array, device, name)
    if own != "torch" and root != "torch" and _is_cpu(device):
        return on_host(array, name)
    if importlib.util.find_spec("torch") is None:
        return _to_cupy(array, device, name)
    return _to_torch(array, device, name)


def _is_cpu(device: Any) -> bool:
    return str(device) == "cpu"


def _to_torch(array: Any, device: Any, name: str) -> Any:
    import torch
    from torch.utils.dlpack import from_dlpack

    try:
        target = torch.device(device)
    except (RuntimeError, TypeError) as error:
        line = str(error).partition("\n")[0]
        raise ValueError(f"device: is {shown(device)}, which torch refuses: {line}") from None
    if isinstance(array, torch.Tensor):
        return array.to(target)
    if framework_of(array, name).device(array, name) != CPU:
        return from_dlpack(array).to(target)
    host = on_host(array, name)
    if host.dtype.name == "bfloat16":  # of ml_dtypes, which torch does not support
        import numpy as np

        return torch.tensor(host.view(np.int16)).view(torch.bfloat16).to(target)
    if not host.flags.writeable or target.type == "cpu":
        return torch.tensor(host, device=target)
    return torch.from_numpy(host).to(target)


def _to_cupy(array: Any, device: Any, name: str) -> Any:
    try:
        import cupy
    except ImportError:
        raise ImportError(
            f"device: is {shown(device)}, which needs torch or CuPy; neither is installed"
        ) from None
    if not isinstance(device, cupy.cuda.Device):
        kind, _, number = str(device).partition(":")
        if kind != "cuda" or (number and not number.isdigit()):
            raise ValueError(f"device: is {shown(device)}, expected 'cpu', 'cuda' or 'cuda:N'")
        device = cupy.cuda.Device(int(number)) if number else cupy.cuda.Device()
    with device:
        return cupy.asarray(array if isinstance(array, cupy.ndarray) else on_host(array, name))
