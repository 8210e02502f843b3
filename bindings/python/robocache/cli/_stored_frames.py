"""Frames of cameras in ``robocache cache build``."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from .. import Images, Window, WindowSpec
from .._cache.sizes import text_of_bytes
from .._printable import plural
from ..data._frames.window_images import fillings
from ._common import Failure, open_data
from ._images import resize_of

FULL = "full"

ImagesOption = Annotated[
    Optional[list[str]],
    typer.Option(
        "--images",
        help="Also store the frames of cameras: resized, as a preset such as openpi makes them, or "
        "full. Name one camera with CAMERA=SIZE. Repeatable.",
        metavar="[CAMERA=]WIDTHxHEIGHT",
    ),
]


def images_of(texts: Optional[list[str]], options: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return the arguments of Images by camera; "" for all cameras."""
    found: dict[str, dict[str, Any]] = {}
    for text in texts or []:
        camera, _, size = text.rpartition("=")
        if camera in found:
            raise typer.BadParameter(f"{text!r}: is there twice", param_hint="--images")
        if size == FULL:
            if options:
                name = next(iter(options))
                raise typer.BadParameter("full frames are not resized", param_hint=f"--{name}")
            found[camera] = {"store": FULL}
            continue
        resize = resize_of(size, options, "--images")
        found[camera] = {"model": resize} if isinstance(resize, str) else dict(resize)
    if options and not texts:
        raise typer.BadParameter("needs --images", param_hint=f"--{next(iter(options))}")
    return found


def spec_of(episodes: Any, images: dict[str, dict[str, Any]], path: Path) -> WindowSpec:
    """Return a specification with the cameras that are stored."""
    cameras = list(episodes.cameras)
    if not cameras:
        raise Failure(f"{path}: has no cameras")
    for camera in images:
        if camera and camera not in cameras:
            known = ", ".join(cameras)
            raise Failure(f"--images {camera}=...: no such camera; {path} has {known}")
    chosen = {name: images.get(name, images.get("")) for name in cameras}
    return WindowSpec(
        {
            name: Window([0], images=Images(name, **options))
            for name, options in chosen.items()
            if options is not None
        }
    )


def store(
    path: Path,
    episodes: Any,
    images: dict[str, dict[str, Any]],
    opening: Any,
    processes: int,
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Store the frames of a data set, after saying how many; return what is in the cache then."""
    missing = fillings(episodes, spec_of(episodes, images, path))
    for each in missing:
        if each.missing:
            count, room = plural(each.missing_frames, "frame"), text_of_bytes(each.missing_bytes)
            say(f"{path}: storing {count} of {each.source.name}, {room}")
    reasons = [episodes._about.cache.last_miss if each.missing else None for each in missing]
    counts = [(each.missing_frames, each.missing_bytes) for each in missing]
    if processes > 1 and any(each.missing for each in missing):
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, context) as pool:
            tasks = [pool.submit(_fill, path, images, opening) for _ in range(processes)]
            for task in tasks:
                task.result()
        missing = fillings(episodes, spec_of(episodes, images, path))
    found = []
    for each, reason, (frames, size) in zip(missing, reasons, counts):
        done = each.fill()
        shape = "x".join(map(str, reversed(each.steps.stored_shape[:2])))
        found.append(
            {
                "path": str(path),
                "what": f"frames of {each.source.name} in {shape}",
                "episodes": sum(len(group.lengths) for group in each.groups),
                "frames": frames,
                "bytes": size,
                "stored": done,
                "reason": reason if done else each.unstored,
            }
        )
    return found


def _fill(path: Path, images: dict[str, dict[str, Any]], opening: dict[str, Any]) -> None:
    episodes = open_data(path, **opening)
    for each in fillings(episodes, spec_of(episodes, images, path)):
        each.fill(show=False)
