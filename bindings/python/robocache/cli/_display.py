"""Output of commands: tables, lists and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .._printable import UNSAFE, printable
from ..data._format_values import plain
from ._messages import in_cli_words

_WIDEST = 120
_MOST_REMARKS = 12  # of one kind
COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def _cell(value: Any) -> Text:
    return Text(printable(value))


class Page:
    """Output of a command: colours only on a terminal; as wide as the terminal, else 80 columns."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, markup=False, emoji=False)
        self.console.width = min(self.console.width, _WIDEST)

    def print(self, what: Any = "", style: str | None = None, wrap: bool = True) -> None:
        """Print a string, a table or another Rich renderable, without trailing spaces."""
        what = printable(what) if isinstance(what, str) else what
        with self.console.capture() as captured:
            self.console.print(what, style=style, soft_wrap=not wrap)
        print("\n".join(line.rstrip() for line in captured.get().split("\n")), end="")

    def items(self, parts: Iterable[str]) -> None:
        """Print parts separated by commas, breaking lines only between parts."""
        lines: list[str] = []
        for part in parts:
            if lines and len(lines[-1]) + len(part) + 3 <= self.console.width:
                lines[-1] += f", {part}"
            else:
                lines = [*lines[:-1], *(f"{line}," for line in lines[-1:]), part]
        for line in lines:
            self.print(line)


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], left: int = 1) -> Table:
    """Return a table: the first ``left`` columns flush left and folded, the others flush right."""
    head = [printable(title) for title in head]
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    made.show_header = any(head)
    for i, title in enumerate(head):
        if i < left:
            made.add_column(title, overflow="fold", min_width=min(12, max(len(title), 8)))
        else:
            made.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        made.add_row(*map(_cell, row))
    return made


def listed(lines: Iterable[tuple[str, str, str]]) -> Table:
    """Return a list of marks, their colours and texts; texts are wrapped next to the mark."""
    made = Table.grid(padding=(0, 2, 0, 0))
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    for mark, colour, text in lines:
        made.add_row(Text(mark, style=colour), _cell(text))
    return made


def print_remarks(page: Page, remarks: Mapping[str, Sequence[object]]) -> None:
    """Print the first texts of a result by their marks, and the number of the others."""
    lines = []
    for mark, texts in remarks.items():
        colour = "" if mark == "omitted" else COLOURS["warning"]
        lines += [(mark, colour, in_cli_words(str(text))) for text in texts[:_MOST_REMARKS]]
    if lines:
        page.print(listed(lines))
    hidden = sum(max(0, len(texts) - _MOST_REMARKS) for texts in remarks.values())
    if hidden:
        page.print(f"... and {hidden} more: --json lists them")


def print_json(value: Any) -> None:
    """Print strict JSON: null for numbers that are not finite, control characters escaped."""
    value = plain(value)
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)
    lines = text.split("\n")
    text = "\n".join(UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], each) for each in lines)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:  # backslashreplace would write escapes that JSON lacks
        text = json.dumps(value, allow_nan=False, indent=2)
    print(text)
