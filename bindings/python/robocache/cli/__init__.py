"""The command line: ``robocache`` or ``python -m robocache``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_NEEDED = ("click", "rich", "shellingham", "typer")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, by default with the arguments of ``sys.argv``, and return its exit code.

    0: done. 1: an error, or a check that failed. 2: wrong usage. 130: Ctrl-C. Without Typer and
    Rich (``pip install 'robocache[cli]'``) only ``info`` works.
    """
    command_line = list(sys.argv[1:] if arguments is None else arguments)
    try:
        from ._app import run
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _NEEDED:
            raise
        if command_line == ["info"]:
            from .._library.info import info

            print(info())
            return 0
        words = f"needs {missing}, which is not installed: pip install 'robocache[cli]'"
        print(f"robocache: error: the command line {words}", file=sys.stderr)
        return 1
    return run(command_line)
