"""Epochs of a WindowLoader, each in a child that a test may kill: one for each line of the input.

A line is in JSON a path, and null or the state of a loader, which goes on there. What it says are
lines of JSON: {"pid"} of the child; from the child {"batch", "state"} for each batch, a digest and
where the next one is; and {"status"} when it has ended, as os.waitpid tells.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import sys
from typing import Any

import torch

import robocache as rbc

RATE, BATCH, SEED = 100, 16, 5

# Once, not in each child.
for name in ("robocache.torch", "robocache.data", "pandas", "pyarrow.parquet", "h5py", "rosbags"):
    with contextlib.suppress(ImportError):
        importlib.import_module(name)


def say(**line: Any) -> None:
    """In one write, so that of two processes' lines neither is cut."""
    os.write(1, json.dumps(line).encode() + b"\n")


def digest(batch: Any) -> str:
    told = hashlib.blake2b(digest_size=16)
    for name in sorted(batch.values):
        for each in (batch.values[name], batch.valid[name]):
            told.update(f"{name} {each.dtype} {tuple(each.shape)}".encode())
            told.update(each.contiguous().view(torch.uint8).numpy().tobytes())
    for each in (batch.episodes, batch.anchors):
        told.update(each.numpy().tobytes())
    return told.hexdigest()


def epoch(path: str, state: dict[str, int] | None) -> None:
    """All from the files on: opening and reading them is a part of what is killed."""
    found = rbc.data.open(path)
    if isinstance(found, rbc.data.Recording):
        found = found.align(RATE)
    windows = {name: range(-1, 3) for name in found.tracks if found[name].values is not None}
    loader = rbc.torch.WindowLoader(found, rbc.WindowSpec(windows), BATCH, SEED, ahead=4)
    if state is not None:
        loader.load_state_dict(state)
    for batch in loader:
        say(batch=digest(batch), state=loader.state_dict())


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                say(pid=os.getpid())
                epoch(*json.loads(line))
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
            os._exit(0)
        say(status=os.waitpid(child, 0)[1])


if __name__ == "__main__":
    main()
