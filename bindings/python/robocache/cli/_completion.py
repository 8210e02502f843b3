"""Completion of the names of streams in a shell: ``robocache --install-completion`` sets it up."""

import contextlib
import inspect
import os
from collections.abc import Iterable
from typing import Callable

import typer

_OPTIONS = ("a", "action", "b", "exclude", "extra", "ignore_topic", "kind", "state", "stream")


def stream_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the streams or tracks of the source on the command line that begin so.

    Only the index of the source is read. Completion never fails: without a source that can be
    opened, there are no names.
    """
    named = ctx.params.get("path") or ctx.params.get("paths") or []
    # While the last option lacks its value, all arguments are still unparsed.
    given = [*(named if isinstance(named, (list, tuple)) else [named]), *ctx.args]
    path = next((each for each in given if os.path.exists(each)), None)
    if path is None:
        return []
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        try:
            from ..data import Episodes, Recording
            from ..data import open as open_source

            source = open_source(path, damaged="keep", progress=False)
            if not isinstance(source, (Recording, Episodes)):
                return []
            names = source.names if isinstance(source, Recording) else source.tracks
        except Exception:
            return []
    return [name for name in names if name.startswith(incomplete)]


def complete_streams(commands: Iterable[Callable[..., None]]) -> None:
    """Complete the options of commands that take names of streams."""
    for command in commands:
        for parameter in inspect.signature(command).parameters.values():
            if parameter.name not in _OPTIONS:
                continue
            for option in getattr(parameter.annotation, "__metadata__", ()):
                option.autocompletion = stream_names
