"""``robocache windows``: cut training samples from episodes, and measure the speed."""

import importlib.util
import time
from typing import Annotated, Any, Callable, Optional

import numpy as np
import typer

from .. import Cache, WindowSpec
from .._arguments.to_device import moved
from .._cache.sizes import text_of_bytes
from ..data import Episodes
from ..data._format_values import number
from . import _display as show
from . import _frame_rates as frames
from ._actions import (
    MOST_STEPS,
    ActionTrack,
    StateTrack,
    action_windows,
    require_kinds,
    state_and_action,
)
from ._common import (
    AcceptGuesses,
    AsJson,
    AsNumbers,
    Damaged,
    DataPath,
    Definitions,
    Device,
    Failure,
    FollowLinks,
    IgnoreTopics,
    Kind,
    MaxUnpacked,
    device_of,
    guesses,
    open_data,
    warn_problems,
    with_kinds,
)
from ._images import Filter, Fit, Rule, how

_SECONDS = 2.0  # least duration of a measurement
_LEAST = 5  # batches per measurement


def windows(
    path: DataPath,
    bench: Annotated[
        bool, typer.Option("--bench", help="Measure the number of windows per second.")
    ] = False,
    steps: Annotated[int, typer.Option(help="Actions per window.", min=1, max=MOST_STEPS)] = 50,
    history: Annotated[
        int, typer.Option(help="States per window, up to now.", min=1, max=MOST_STEPS)
    ] = 2,
    batch: Annotated[int, typer.Option(help="Windows per batch.", min=1)] = 256,
    relative: Annotated[
        bool, typer.Option("--relative", help="Subtract the current state from the actions.")
    ] = False,
    absolute: Annotated[
        Optional[str],
        typer.Option(help="Action channels to keep absolute, with commas."),
    ] = None,
    images: Annotated[
        Optional[list[str]],
        typer.Option(
            help="With --bench: also load images of all cameras: resized, full, or with the steps "
            "of a model such as openpi. Name one camera with CAMERA=SIZE. Repeatable.",
            metavar="[CAMERA=]WIDTHxHEIGHT",
        ),
    ] = None,
    rule: Rule = None,
    filter: Filter = None,  # noqa: A002
    fit: Fit = None,
    cached: Annotated[
        bool,
        typer.Option("--cached", help="With --images: also store the frames, and measure these."),
    ] = False,
    state: StateTrack = None,
    action: ActionTrack = None,
    ignore_topic: IgnoreTopics = None,
    kind: Kind = None,
    accept_guesses: AcceptGuesses = False,
    as_numbers: AsNumbers = False,
    device: Device = "auto",
    damaged: Damaged = "refuse",
    definition: Definitions = None,
    follow_links: FollowLinks = False,
    max_unpacked: MaxUnpacked = None,
    as_json: AsJson = False,
) -> None:
    """Cut training samples from episodes: some states, and the actions from now on.

    Prints the number of samples, and how many of them lie fully within their episodes. With
    --bench, measures random batches of robocache.windows and, if torch is installed, of
    robocache.torch.WindowLoader; with --images, of loaders of frames: also of LeRobot's, if it is
    installed and the data are in its format.
    """
    resize = how(rule, filter, fit)
    if images and not bench:
        raise typer.BadParameter("--images is only valid with --bench")
    if (cached or resize) and not images:
        name = "cached" if cached else next(iter(resize))
        raise typer.BadParameter(f"--{name} is only valid with --images")
    if absolute is not None and not relative:
        raise typer.BadParameter("--absolute is only valid with --relative")
    source = open_data(
        path,
        damaged=damaged,
        definitions=definition,
        follow_links=follow_links,
        max_unpacked=max_unpacked,
        ignore_topics=ignore_topic,
    )
    source = with_kinds(source, kind)
    decided = any(guesses(accept_guesses, as_numbers).values())
    episodes, *pair = state_and_action(source, state, action, "windows")
    names = (pair[0], pair[1])
    episodes.load()
    warn_problems(source, episodes)
    if not episodes.lengths(names[1]).sum():
        raise Failure("there are no windows: all episodes are empty")
    if relative and not decided:
        require_kinds(episodes, names[1], absolute)
    rows = list(range(1 - history, 1))
    spec = action_windows(episodes, *names, steps, rows, absolute, relative)
    summary = _summary(spec, episodes, steps)
    if bench:
        where = device_of(device)
        summary["device"], summary["batch"] = where, batch
        if images:
            spec = frames.with_cameras(spec, episodes, images, resize, path)
            stored = None
            if cached:
                opened = open_data(path, damaged=damaged, follow_links=follow_links, cache=Cache())
                stored = state_and_action(opened, state, action, "windows")[0]
            summary["bench"] = frames.measured(path, episodes, spec, batch, where, stored)
        else:
            summary["bench"] = _measured(spec, episodes, batch, where)
    if as_json:
        show.print_json(summary)
    else:
        _print(spec, summary)


def _summary(spec: WindowSpec, episodes: Episodes, steps: int) -> dict[str, Any]:
    lengths = episodes.lengths(spec.track("action"))
    whole = int(np.maximum(lengths - steps + 1, 0).sum())
    inside = int(sum(np.clip(lengths - k, 0, None).sum() for k in range(steps)))
    samples = int(lengths.sum())
    return {
        "episodes": len(episodes),
        "samples": samples,
        "whole": whole,
        "valid": inside / (samples * steps) if samples else None,
        "windows": {
            name: {"track": spec.track(name), "offsets": list(window.offsets)}
            for name, window in spec.windows.items()
        },
    }


def _measured(spec: WindowSpec, episodes: Any, batch: int, device: str) -> list[dict[str, Any]]:
    """Return the seconds per batch of each method on a device."""
    indices, anchors = spec.samples(episodes)
    order = np.random.default_rng(0).permutation(len(indices))
    indices, anchors = indices[order], anchors[order]
    if device != "cpu":
        episodes = episodes.to(device)
        indices, anchors = (moved(each, device, "samples") for each in (indices, anchors))
    wait = _waiting(episodes)
    state = {"at": 0}

    def cut() -> int:
        begin = state["at"] % max(len(order) - batch + 1, 1)
        end = min(begin + batch, len(order))
        state["at"] += batch
        spec.cut(episodes, indices[begin:end], anchors[begin:end])
        return end - begin

    timings = [_timed("robocache.windows", cut, wait)]
    if importlib.util.find_spec("torch") is not None:
        from .. import torch

        loader = torch.WindowLoader(episodes, spec, min(batch, len(indices)))
        batches = iter(loader)

        def load() -> int:
            nonlocal batches
            try:
                return len(next(batches))
            except StopIteration:
                batches = iter(loader)
                return len(next(batches))

        timings.append(_timed("robocache.torch.WindowLoader", load, wait))
    return timings


def _timed(name: str, run: Callable[[], int], wait: Callable[[], None]) -> dict[str, Any]:
    for _ in range(3):
        run()
    wait()
    batches = windows = 0
    begin = time.perf_counter()
    while batches < _LEAST or time.perf_counter() - begin < _SECONDS:
        windows += run()
        batches += 1
    wait()
    seconds = time.perf_counter() - begin
    return {
        "by": name,
        "seconds_a_batch": seconds / batches,
        "windows_a_second": windows / seconds,
    }


def _waiting(episodes: Any) -> Callable[[], None]:
    """Return a function that waits for the GPU, if arrays are on one."""
    values = next(t.values for t in episodes.tracks.values() if t.values is not None)
    if hasattr(values, "is_cuda") and values.is_cuda:
        import torch

        return lambda: torch.cuda.synchronize()
    if type(values).__module__.startswith("cupy"):
        import cupy

        return lambda: cupy.cuda.get_current_stream().synchronize()
    return lambda: None


def _print(spec: WindowSpec, facts: dict[str, Any]) -> None:
    out = show.Page()
    for line in str(spec).split("\n"):
        out.print(line)
    part = "" if facts["valid"] is None else f"; {facts['valid']:.1%} of all actions are in them"
    out.print()
    out.print(
        f"{facts['samples']} samples of {facts['episodes']} episodes; {facts['whole']} are entirely"
        f" within their episodes{part}"
    )
    if "bench" in facts:
        rows = [
            [
                stream["by"],
                f"{1e6 * stream['seconds_a_batch']:.1f}us",
                number(stream["windows_a_second"], 4),
            ]
            for stream in facts["bench"]
        ]
        head: tuple[str, ...] = (
            f"on {facts['device']}, {facts['batch']} windows per batch",
            "batch",
            "windows/s",
        )
        if any("memory_bytes" in stream for stream in facts["bench"]):
            head = (*head, "memory")
            for row, stream in zip(rows, facts["bench"]):
                memory = stream["memory_bytes"]
                row.append("-" if memory is None else text_of_bytes(memory))
        out.print()
        out.print(show.table(head, rows))
