"""Workers of stages that are killed, in the cluster of ray_cluster.py: from outside, and always."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ray

import robocache as rbc


class Pause:
    """Lets rows through one after the other, and leaves a mark of each."""

    def __init__(self, folder: Path, pause: float) -> None:
        self._folder, self._pause = folder, pause

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        time.sleep(self._pause)
        (self._folder / str(batch["episode"][0])).touch()
        return batch


class Dying(rbc.ray.Windows):
    """Its process dies in the middle of a batch, whoever takes it."""

    def __call__(self, batch: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield next(super().__call__(batch))
        os.kill(os.getpid(), signal.SIGKILL)


def workers(stage: str) -> Iterator[int]:
    """The processes of this cluster that are ready for a stage: Ray gives them its name."""
    own = f"RAY_TMPDIR={os.environ['RAY_TMPDIR']}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            title = (process / "cmdline").read_bytes().partition(b"\0")[0].decode()
            if title.startswith("ray::") and f"({stage})" in title and "__init__" not in title:
                if own in (process / "environ").read_bytes().split(b"\0"):
                    yield int(process.name)


@contextlib.contextmanager
def killed(stage: str, marks: Path, after: list[int]) -> Iterator[list[int]]:
    """Kill a worker of a stage at each of these numbers of marks; yield the actual numbers."""
    done, told = threading.Event(), []

    def kill() -> None:
        for wanted in after:
            while not done.wait(0.01):
                found = len(list(marks.glob("*")))
                victims = list(workers(stage)) if found >= wanted else []
                if victims:
                    os.kill(victims[0], signal.SIGKILL)
                    told.append(found)
                    break

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield told
    finally:
        done.set()
        thread.join()


def windows(data: Path, spec: Any, marks: Path, pool: dict[str, Any]) -> tuple[list[Any], Any]:
    """The rows of a data set whose workers are killed, and after how many episodes."""
    marks.mkdir()
    slow = rbc.ray.episodes(data, num_blocks=4).map_batches(
        Pause, fn_constructor_args=[marks, 0.7], batch_size=1, **pool
    )
    cut = slow.map_batches(rbc.ray.Windows, fn_constructor_args=[spec], batch_size=1, **pool)
    with killed("Windows", marks, [1, 3]) as told:
        return cut.take_all(), told


def statistics(made: Any, marks: Path, pool: dict[str, Any]) -> tuple[Any, list[int]]:
    """Return statistics of a data set whose workers are killed, and the blocks at each kill."""
    with killed("Statistics", marks, [3, 9]) as told:
        return rbc.ray.statistics(made, ["state"], quantiles=(), batch_size=500, **pool), told


def always(data: Path, spec: Any, out: Path, pool: dict[str, Any]) -> str:
    """The error of a job whose worker dies each time, and would replace `out` at its end."""
    cut = rbc.ray.episodes(data).map_batches(
        Dying, fn_constructor_args=[spec], max_task_retries=1, batch_size=2, **pool
    )
    try:
        results = rbc.ray.statistics(cut, ["action"], **pool)
    except ray.exceptions.RayError as error:
        return f"{type(error).__name__}: {error}"
    rbc.statistics_files.write_lerobot(out, results)
    return ""


def run(folder: Path, spec: Any, dataset: Callable[..., Any], pool: dict[str, Any]) -> Any:
    """All of them, for test_ray.py."""
    out = folder / "old" / "stats.json"
    out.parent.mkdir()
    out.write_bytes(b'{"old": {"mean": [0]}}')
    data, marks = folder / "lerobot", folder / "killed"
    return {
        "windows": windows(data, spec, folder / "killed episodes", pool),
        "statistics": statistics(dataset(marks, 0.15), marks, pool),
        "error": always(data, spec, out, pool),
    }
