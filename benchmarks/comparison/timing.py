"""Peers take turns to be timed, after each has returned the same result as the first."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import Any

from tqdm import tqdm

Work = Callable[[], Any]
SAMPLE_SECONDS = 2e-3  # at least


@dataclasses.dataclass
class Peer:
    name: str
    work: Work  # the work that is timed
    result: Work | None = None  # returns the result, if work() does not
    calls_per_work: int = 1  # a graph has many
    compile_seconds: float | None = None
    times: int = 1  # work() per sample
    samples: list[float] = dataclasses.field(default_factory=list)
    error: str | None = None
    own_seconds: Callable[[], float] | None = None  # measures the time of work() itself
    skipped: str | None = None  # why it is not available here
    off: dict[str, float] | None = None  # the errors, if a peer may be inexact

    def answer(self) -> Any:
        return (self.result or self.work)()

    def summary(self) -> dict[str, Any]:
        if self.skipped is not None:
            return {"skipped": self.skipped}
        if self.error is not None:
            return {"error": self.error}
        more: dict[str, Any] = {}
        if self.compile_seconds is not None:
            more["compile_s"] = self.compile_seconds
        if self.off is not None:
            more["off"] = self.off
        return {**summarize(self.samples), **more}


def attempt(name: str, make: Callable[[], Peer]) -> Peer:
    """Make a peer; a wheel may be missing, or be installed without its dependencies."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - of any kind
        return Peer(name, nothing, skipped=" ".join(str(error).split()))


def summarize(seconds: list[float]) -> dict[str, Any]:
    quartiles = statistics.quantiles(seconds, n=4) if len(seconds) > 1 else [seconds[0]] * 3
    return {
        "median_us": quartiles[1] * 1e6,
        "min_us": min(seconds) * 1e6,
        "p25_us": quartiles[0] * 1e6,
        "p75_us": quartiles[2] * 1e6,
        "samples": len(seconds),
    }


def time_peers(bench: Any, case: Any, peers: list[Peer], rounds: int) -> dict[str, dict[str, Any]]:
    """Return summaries by name, for peers with the same result as the first."""
    expected = peers[0].answer()
    here = [peer for peer in peers if peer.skipped is None]
    for peer in tqdm(here, desc=f"{case}: check", leave=False, disable=None):
        peer.error = peer.error or guarded(bind(_check, bench, peer, expected, case))
    alive = [peer for peer in here if peer.error is None]
    for peer in alive:
        if peer.own_seconds is None:
            peer.times = bench.times(peer)
    for _ in tqdm(range(rounds), desc=f"{case}: time", leave=False, disable=None):
        for peer in alive:
            peer.samples.append((peer.own_seconds or bind(bench.seconds, peer))())
    return {peer.name: peer.summary() for peer in peers}


def _check(bench: Any, peer: Peer, expected: Any, case: Any) -> None:
    peer.off = bench.require_same(peer.answer(), expected, case)


def host_samples(work: Work, finish: Work, calls: int, rounds: int) -> dict[str, Any]:
    """Return the host time per call of work(); finish() waits, untimed, for its result."""
    for _ in range(3):
        work()
    finish()
    samples = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            work()
        samples.append((time.perf_counter() - start) / calls)
        finish()
    return summarize(samples)


def guarded(work: Work) -> str | None:
    try:
        work()
    except Exception as error:  # noqa: BLE001 - a peer that fails must not hide the others
        text = " ".join(f"{type(error).__name__}: {error}".split())
        # A worker's text begins with its stack.
        return text if len(text) <= 300 else f"{text[:100]} ... {text[-200:]}"
    return None


def bind(function: Callable[..., Any], *arguments: Any) -> Work:
    return lambda: function(*arguments)


def nothing() -> None:
    pass
