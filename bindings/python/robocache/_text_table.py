"""Tables as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
