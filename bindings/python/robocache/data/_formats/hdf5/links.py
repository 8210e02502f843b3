"""Resolution of names in an HDF5 file, without leaving the file. It runs in the worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Callable

import h5py

from ..._errors import raise_shortage

_HOPS = 16  # soft links that a name may go through, as in HDF5 itself
_MOST = 10_000  # names below a group
_LETTERS = 16 << 20  # in all paths below a group
_DEEPEST = 64  # levels of nested groups
_OUTSIDE = "a link to another file, which is not followed"
_ELSEWHERE = "may be stored in another file, which is not followed"


class LeadsNowhere(Exception):
    """A name leads to nothing in this file. ``damaged``: due to damage, not to a link."""

    def __init__(self, reason: str, damaged: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.damaged = reason, damaged


@dataclass
class Below:
    """Everything below a group, by paths relative to it."""

    #: Data sets of this file, with their creation properties.
    arrays: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)  #: with the reasons
    damaged: dict[str, str] = field(default_factory=dict)
    names: int = 0  #: number of names that were examined
    refusal: str = ""  #: set if there are too many

    def leave_out(self, name: str, error: LeadsNowhere) -> None:
        if error.damaged:
            raise_shortage("")  # a shortage is not damage
            self.damaged[name] = error.reason
        self.left_out.setdefault(name, error.reason)


def item_of(group: Any, name: str) -> Any:
    """Return the group or data set of a name, as h5py's low-level object.

    Soft links are resolved here, name by name: HDF5 itself opens another file if a soft link
    goes through a link to that file.
    """
    item, left, hops = group, _bytes(name).split(b"/")[::-1], 0
    while left:
        part = left.pop()
        if part in (b"", b"."):
            continue
        kind = _kind_of_link(item, part)
        if kind == h5py.h5l.TYPE_HARD:
            item = _opened(item, part)
        elif kind == h5py.h5l.TYPE_SOFT:
            hops += 1
            if hops > _HOPS:
                raise LeadsNowhere(f"a link through more than {_HOPS} links")
            target = item.links.get_val(part)
            if target.startswith(b"/"):
                item = h5py.h5g.open(h5py.h5i.get_file_id(item), b"/")
            left += target.split(b"/")[::-1]
        elif kind is None:
            raise LeadsNowhere("a link to nothing")
        else:  # a link to another file, or of a user-defined kind
            raise LeadsNowhere(_OUTSIDE)
    return item


def _kind_of_link(item: Any, name: bytes) -> Any:
    if not isinstance(item, h5py.h5g.GroupID):
        return None
    try:
        return item.links.get_info(name).type
    except (KeyError, RuntimeError):
        if item.links.exists(name):
            raise  # damage
        return None


def _opened(group: Any, name: bytes) -> Any:
    try:
        return h5py.h5o.open(group, name)
    except (KeyError, OSError, RuntimeError, ValueError) as error:
        raise LeadsNowhere(f"cannot be opened: {error}", damaged=True) from error


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def names_in(group: Any) -> Iterator[str]:
    """Yield the names in a group, including names that are not UTF-8."""
    for name in group:
        yield name.decode("utf-8", "surrogateescape")


def require_inside(plist: Any) -> None:
    """Refuse a data set that may store values in another file: a virtual or an external one."""
    if plist.get_external_count() or plist.get_layout() == h5py.h5d.VIRTUAL:
        raise LeadsNowhere(_ELSEWHERE)


def below(group: Any, progressed: Callable[[], None]) -> Below:
    """Return everything below a group. ``progressed`` is called for each name."""
    found = Below()
    letters = 0
    waiting: list[Iterator[tuple[str, str, Any]]] = [_names_in(group, "")]
    above = [group]  # the groups on the path to the current one, including itself
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
            above.pop()
            continue
        own, name, parent = entry
        progressed()
        found.names += 1
        letters += len(name)
        if found.names > _MOST or letters > _LETTERS:
            many = f"{_MOST} names" if found.names > _MOST else f"{_LETTERS >> 20} MB of names"
            found.refusal = (
                f"has more than {many} below it, as when groups link to each other; write it "
                "without such links"
            )
            break
        try:
            item = item_of(parent, own)
            if isinstance(item, h5py.h5d.DatasetID):
                plist = item.get_create_plist()
                require_inside(plist)
                found.arrays[name] = (item, plist)
        except LeadsNowhere as error:
            found.leave_out(name, error)
            continue
        if isinstance(item, h5py.h5g.GroupID):
            if item in above:
                found.left_out.setdefault(name, "a link to a group that contains it")
            elif len(above) >= _DEEPEST:
                found.left_out.setdefault(name, f"is nested in more than {_DEEPEST} groups")
            else:
                waiting.append(_names_in(item, name + "/"))
                above.append(item)
    return found


def _names_in(group: Any, prefix: str) -> Iterator[tuple[str, str, Any]]:
    """Yield each name in a group, its path, and the group."""
    for own in names_in(group):
        yield own, prefix + own, group
