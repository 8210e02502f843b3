"""Progress bars for reading large files: with Rich if installed, else in plain text."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

_LATE = 1.0  # seconds before a bar is shown


@contextmanager
def progress(
    title: str, total: int, shown: bool | None, unit: str = "bytes"
) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of bytes, or of another unit, that were processed.

    ``shown`` None: show a bar on a terminal, if reading takes longer than a second.
    """
    # sys.stderr is None if the process was started with closed streams.
    nowhere = sys.stderr is None or (shown is None and not sys.stderr.isatty())
    if shown is False or nowhere or total <= 0:
        yield lambda count: None
        return
    bar = _Bar(title, total, unit, delay=0.0 if shown else _LATE)
    try:
        yield bar.advance
    finally:
        bar.close()


class _Bar:
    def __init__(self, title: str, total: int, unit: str, delay: float) -> None:
        self.title, self.total, self.unit, self.done = title, total, unit, 0
        self.begin, self.last = time.monotonic(), 0.0
        self.delay = delay
        self.rich: Any = None
        self.plain = False

    def advance(self, count: int) -> None:
        self.done = min(self.total, self.done + count)
        now = time.monotonic()
        if now - self.begin < self.delay or (now - self.last < 0.2 and self.done < self.total):
            return
        self.last = now
        if self.rich is None and not self.plain:
            self.rich = _rich(self.title, self.total, self.unit)
            self.plain = self.rich is None
        if self.rich is not None:
            self.rich.update(0, completed=self.done)
            return
        rate = self.done / max(now - self.begin, 1e-9)
        left = (self.total - self.done) / max(rate, 1e-9)
        speed = f"{rate / 1e6:.0f} MB/s" if self.unit == "bytes" else f"{rate:.0f} {self.unit}/s"
        print(
            f"\r{self.title}: {self.done / self.total:4.0%}, {speed}, {left:.0f} s left ",
            end="",
            file=sys.stderr,
            flush=True,
        )

    def close(self) -> None:
        if self.rich is not None:
            self.rich.stop()
        elif self.plain:
            print(file=sys.stderr, flush=True)


def _rich(title: str, total: int, unit: str) -> Any:
    """Return a running bar; None without Rich, or not on a terminal."""
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )
    except ModuleNotFoundError:
        return None
    console = Console(stderr=True)
    if not console.is_terminal:
        return None
    count = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), count)
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
    bar.add_task(title, total=total)
    bar.start()
    return bar
