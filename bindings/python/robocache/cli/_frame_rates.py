"""Speed and memory of loaders of frames, for ``robocache windows --bench --images``."""

import importlib
import importlib.util
import itertools
import os
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Optional

from .. import Images, Window, WindowSpec
from ._common import Failure
from ._stored_frames import images_of

_SECONDS = 5.0  # least duration of a measurement
_BEFORE = 2  # batches before it
_WORKERS = 8  # of LeRobot's loader


def with_cameras(
    spec: WindowSpec, episodes: Any, texts: list[str], options: dict[str, str], path: Path
) -> WindowSpec:
    """Return a specification with a window of one image of each camera."""
    cameras = list(episodes.cameras)
    if not cameras:
        raise Failure(f"{path}: has no cameras")
    images = images_of(texts, options)
    for camera in images:
        if camera and camera not in cameras:
            raise Failure(f"--images {camera}=...: no such camera; {path} has {', '.join(cameras)}")
    windows: dict[str, Any] = dict(spec.windows)
    for name in cameras:
        own = images.get(name, images.get(""))
        if own is not None:
            windows[name] = Window([0], images=Images(name, **own))
    return WindowSpec(windows, anchor=spec.anchor)


def measured(
    path: Path, episodes: Any, spec: WindowSpec, batch: int, device: str, stored: Optional[Any]
) -> list[dict[str, Any]]:
    """Return the samples per second of each loader; ``stored``: the episodes from a cache."""
    if importlib.util.find_spec("torch") is None:
        raise Failure("--bench --images needs torch: pip install torch")
    from .. import torch

    def loader(data: Any) -> Any:
        return torch.WindowLoader(data, spec, min(batch, len(spec.samples(data)[0])), device=device)

    name = "robocache.torch.WindowLoader"
    found = [_timed(f"{name}, decoding", loader(episodes))]
    if stored is not None:
        found.append(_timed(f"{name}, from the cache", loader(stored)))
    if episodes.format.startswith("LeRobot") and importlib.util.find_spec("lerobot") is not None:
        title = f"LeRobotDataset, {_WORKERS} workers"
        try:
            found.append(_timed(title, _lerobot(path, episodes, spec, batch)))
        except Exception as error:
            warnings.warn(f"{title}: {str(error).splitlines()[0]}", RuntimeWarning, stacklevel=2)
    return found


def _lerobot(path: Path, episodes: Any, spec: WindowSpec, batch: int) -> Any:
    """Return LeRobot's own loader of the same windows, with resized frames."""
    from torch.utils.data import DataLoader

    package = importlib.import_module("lerobot.datasets.lerobot_dataset")
    transforms: Any = importlib.import_module("torchvision.transforms.v2")

    size = next(window.images.size for window in spec.windows.values() if window.images)
    seconds = {
        spec.track(name): [offset / episodes.rate for offset in window.offsets]
        for name, window in spec.windows.items()
    }
    resize = None if size is None else transforms.Resize(size)
    data = package.LeRobotDataset(
        "local/set",
        root=path,
        delta_timestamps=seconds,
        image_transforms=resize,
        video_backend=_backend(episodes),
    )
    return DataLoader(data, batch, shuffle=True, num_workers=_WORKERS, drop_last=True)


def _backend(episodes: Any) -> str:
    """Return the decoder for LeRobot: torchcodec, unless it finds no FFmpeg that it can use.

    A frame that this process decodes with LeRobot would break the decoders of its workers.
    """
    (file, *_) = next(iter(episodes.cameras.values())).files(0)
    try:
        importlib.import_module("torchcodec.decoders").VideoDecoder(file)
    except (ImportError, RuntimeError):
        return "pyav"
    return "torchcodec"


def _timed(name: str, loader: Iterable[Any]) -> dict[str, Any]:
    before = _memory()
    batches = itertools.chain.from_iterable(itertools.repeat(loader))
    for _ in range(_BEFORE):
        next(batches)
    count, samples, begin = 0, 0, time.perf_counter()
    while time.perf_counter() - begin < _SECONDS:
        found = next(batches)
        count += 1
        samples += len(found) if hasattr(found, "anchors") else len(next(iter(found.values())))
    seconds = time.perf_counter() - begin
    memory = _memory()
    del batches
    return {
        "by": name,
        "seconds_a_batch": seconds / count,
        "windows_a_second": samples / seconds,
        "memory_bytes": None if memory is None or before is None else max(memory - before, 0),
    }


def _memory() -> Optional[int]:
    """Return the memory of this process and its children, shared parts divided; None if unknown."""
    total = 0
    for process in (os.getpid(), *_children(os.getpid())):
        try:
            with open(f"/proc/{process}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except OSError:
            if process == os.getpid():
                return None
    return total * 1024


def _children(process: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    except OSError:
        pass
    return [each for child in found for each in (child, *_children(child))]
