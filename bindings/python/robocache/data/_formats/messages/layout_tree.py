"""Messages sorted by their layouts, without comparing each message with each layout.

The layout of a message depends on its size and on the lengths of its strings and arrays. These are
the branches of a tree: messages of one size have their first length at one place, messages that
agree in the first length have the second one at one place, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable, Generic, Literal, Protocol, TypeVar, Union

from .layouts import Layout
from .pieces import Rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_LENGTHS = 1 << 12  # of a layout that is remembered
_MOST_REMEMBERED = 1 << 18  # lengths, runs and strings of all layouts
_ORDERS: dict[str, Literal["little", "big"]] = {"<u4": "little", ">u4": "big"}


class _HasLayout(Protocol):
    @property
    def layout(self) -> Layout: ...


Kind = TypeVar("Kind", bound=Union[Layout, _HasLayout])


class _Branch(Generic[Kind]):
    """Messages that agree in all lengths so far, and the place of the next length."""

    def __init__(self, at: int, dtype: str) -> None:
        self.at, self.dtype = at, dtype
        self.next: dict[int, _Branch[Kind] | Kind] = {}


class LayoutTree(Generic[Kind]):
    """Layouts, or values built from them, by the lengths that lead to them."""

    def __init__(self) -> None:
        self.root: dict[int, _Branch[Kind] | Kind] = {}  # by the size of a message
        self.remembered = 0

    def sorted(
        self, rows: Rows, find: Callable[[bytes], Kind]
    ) -> Iterator[tuple[Kind, NDArray[np.int64]]]:
        """Layouts, each with the indices of the messages that have it, ascending.

        ``find`` returns the layout of a message whose layout is not known yet.
        """
        import numpy as np

        if self.remembered > _MOST_REMEMBERED:
            self.root, self.remembered = {}, 0
        left = [
            (self.root, size, chosen) for size, chosen in _groups(rows.sizes, np.arange(len(rows)))
        ]
        while left:
            branches, value, chosen = left.pop()
            branch = branches.get(value)
            if branch is None:
                found = find(rows.message(int(chosen[0])))
                self._remember(found)
                branch = branches.get(value)
                if branch is None or len(chosen) == 1:
                    yield found, chosen[:1]
                    if len(chosen) > 1:
                        left.append((branches, value, chosen[1:]))
                    continue
            if not isinstance(branch, _Branch):
                yield branch, chosen
            elif len(chosen) == 1:
                at = int(rows.starts[chosen[0]]) + branch.at
                value = int.from_bytes(rows.data[at : at + 4].tobytes(), _ORDERS[branch.dtype])
                left.append((branch.next, value, chosen))
            else:
                values = rows.of(chosen).field(branch.at, branch.dtype)
                left += [(branch.next, *group) for group in _groups(values, chosen)]

    def _remember(self, found: Kind) -> None:
        layout = found if isinstance(found, Layout) else found.layout
        weight = len(layout.lengths) + len(layout.runs) + len(layout.strings) + 1
        if len(layout.lengths) > _MOST_LENGTHS or self.remembered > 2 * _MOST_REMEMBERED:
            return
        self.remembered += weight
        branches, value = self.root, layout.size
        for at, dtype, length in layout.lengths:
            branch = branches.get(value)
            if not isinstance(branch, _Branch):
                branch = branches[value] = _Branch(at, dtype)
            branches, value = branch.next, length
        branches[value] = found


def _groups(values: Any, chosen: Any) -> list[tuple[int, Any]]:
    """The distinct values, each with the chosen indices that have it."""
    import numpy as np

    if not len(values):
        return []
    first = values[0]
    if len(values) == 1 or (values == first).all():
        return [(int(first), chosen)]
    order = np.argsort(values, kind="stable")
    in_order = values[order]
    begins = np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]]))
    groups = np.split(chosen[order], begins[1:])
    return list(zip(in_order[begins].tolist(), groups))
