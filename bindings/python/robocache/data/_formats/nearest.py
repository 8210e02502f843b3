"""The formats that come closest to a text file that no reader recognizes."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence

from .description import Format
from .strangers import first_text

_MOST = 4  # formats in a message
_ROWS = 5
_TABLES = ("*.csv", "*.tsv", "*.txt")
_SEPARATORS = ((",", "commas"), (";", "semicolons"), ("\t", "tabs"), (None, "spaces"))


def nearest(path: str, formats: Sequence[Format]) -> str:
    """Return sentences about the formats of a text's suffix and columns, or ""."""
    start = first_text(path)
    name = os.path.basename(path).lower()
    layout, patterns = _layout([line for line in start.splitlines() if line.strip()][:_ROWS])
    files = {described: described.files.lower().split(", ") for described in formats}
    by_suffix = [
        described
        for described, named in files.items()
        if start and any(fnmatch.fnmatch(name, each) for each in named)
    ]
    by_columns = [described for described, named in files.items() if {*named} & {*patterns}]
    found = [*by_suffix, *by_columns]
    names = [f"{each.name} ({each.title})" for each in dict.fromkeys(found)][:_MOST]
    if not names:
        return ""
    return f"{layout}Nearest formats: {', '.join(names)}; see robocache formats NAME"


def _layout(lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return a sentence about the columns of some lines, and names of files that have such lines.

    Both are empty if the lines have no columns.
    """
    if lines and lines[0].lstrip().startswith(("{", "[")):
        return "", ("*.json", "*.jsonl")
    for separator, called in _SEPARATORS:
        widths = {len(line.split(separator)) for line in lines}
        if len(lines) > 1 and len(widths) == 1 and max(widths) > 1:
            return f"It has {max(widths)} columns, separated by {called}. ", _TABLES
    return "", ()
