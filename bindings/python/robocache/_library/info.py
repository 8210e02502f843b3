"""Information about the library and the devices that it can use."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from .context import Context, ContextInfo
from .version import abi_version, version


@dataclass(frozen=True)
class Info:
    """The loaded library and the devices it can use; ``python -m robocache info`` prints it."""

    version: str
    abi_version: int
    built_with_cuda: bool
    cuda_unavailable: str  #: why CUDA cannot be used; "" if it can
    contexts: dict[str, ContextInfo]  #: "cpu", and "cuda:0" if it can be used

    def __str__(self) -> str:
        lines = [f"RoboCache {self.version}, ABI {self.abi_version}"]
        lines += [self.cuda_unavailable or "CUDA: usable"]
        for name, context in self.contexts.items():
            lines += [f"{name}:"]
            for field in dataclasses.fields(context):
                value = getattr(context, field.name)
                if (
                    field.name
                    not in ("device", "built_with_cuda", "cuda_unavailable", "last_launch")
                    and value is not None
                ):
                    lines += [f"  {field.name}: {value}"]
        return "\n".join(lines)


def info() -> Info:
    """Return information about the library and the devices that it can use here.

    Returns
    -------
    Info
        It can be printed. If CUDA cannot be used, it says why.

    Raises
    ------
    MemoryError
        Not enough memory.

    Examples
    --------
    >>> import robocache as rbc
    >>> rbc.info().contexts["cpu"].backend
    'cpu'
    """
    with Context("auto") as auto, Context("cpu") as cpu:
        facts = auto.info
        contexts = {each.device: each for each in (cpu.info, facts)}
    return Info(version, abi_version, facts.built_with_cuda, facts.cuda_unavailable, contexts)
