"""Tables as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ._printable import printable


def text_table(rows: Iterable[Sequence[str]], right: bool = True) -> str:
    """Return rows as aligned columns: the first to the left, the others to the right or left."""
    cells = [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = []
    for first, *others in cells:
        pairs = zip(others, widths[1:])
        others = [cell.rjust(width) if right else cell.ljust(width) for cell, width in pairs]
        lines.append("  ".join([first.ljust(widths[0]), *others]).rstrip())
    return "\n".join(lines)


def html_table(rows: Iterable[Sequence[str]], note: str = "") -> str:
    """Return rows as an HTML table, the first as its head, for notebooks."""
    cells = [[escape(printable(cell)) for cell in row] for row in rows]
    head = "".join(f"<th>{cell}</th>" for cell in cells[0])
    body = "".join(
        f"<tr><th>{first}</th>{''.join(f'<td>{cell}</td>' for cell in others)}</tr>"
        for first, *others in cells[1:]
    )
    below = f"<p>{escape(printable(note))}</p>" if note else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"
