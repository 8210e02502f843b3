"""What the names in an HDF5 file lead to, without ever leaving the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._errors import Damage, FormatError, needed

_HOPS = 16  # soft links that a name may lead through, as in HDF5 itself
_MOST = 10_000  # names below a group
_OUTSIDE = "a link to another file, which is not followed"


class LeadsNowhere(Exception):
    """A name leads to nothing in this file. ``damaged``: the file is to blame, not a link."""

    def __init__(self, reason: str, damaged: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.damaged = reason, damaged


def item_of(group: Any, name: str) -> Any:
    """The group or data set of a name.

    Soft links are followed here, name by name: HDF5 itself would go on into another file, and open
    it, where one leads through a link to that.
    """
    h5py = needed("h5py", "hdf5", "an HDF5 file")
    item, left, hops = group, name.split("/")[::-1], 0
    while left:
        part = left.pop()
        if part in ("", "."):
            continue
        link = _link(item, part)
        if isinstance(link, h5py.ExternalLink):
            raise LeadsNowhere(_OUTSIDE)
        if isinstance(link, h5py.SoftLink):
            hops += 1
            if hops > _HOPS:
                raise LeadsNowhere(f"a link through more than {_HOPS} links")
            if link.path.startswith("/"):
                item = item.file["/"]
            left += link.path.split("/")[::-1]
        elif link is None:
            raise LeadsNowhere("a link to nothing")
        else:
            item = _opened(item, part)
    return item


def _link(item: Any, name: str) -> Any:
    h5py = needed("h5py", "hdf5", "an HDF5 file")
    if not isinstance(item, h5py.Group):
        return None
    try:
        return item.get(name, getlink=True)
    except TypeError:  # a kind that programs define
        raise LeadsNowhere(_OUTSIDE) from None


def _opened(group: Any, name: str) -> Any:
    try:
        return group[name]
    except (KeyError, OSError, RuntimeError) as error:
        raise LeadsNowhere(f"cannot be opened: {error}", damaged=True) from None


def arrays_below(
    group: Any, path: str, place: str, damage: Damage, left_out: dict[str, str]
) -> dict[str, Any]:
    """Data sets below a group by their names from there; what is in other files is left out."""
    found: dict[str, Any] = {}
    for count, (name, item) in enumerate(_below(group, "", (), path, place, damage, left_out)):
        if count >= _MOST:
            text = f"has more than {_MOST} names below it, as links of groups to each other make"
            raise FormatError(path, place, f"{text}; write it without such links")
        if item is not None:
            found[name] = item
    return found


def _below(
    group: Any,
    inside: str,
    above: tuple[Any, ...],
    path: str,
    place: str,
    damage: Damage,
    left_out: dict[str, str],
) -> Iterator[tuple[str, Any]]:
    """All names below a group, with the data set, or None of what is none."""
    h5py = needed("h5py", "hdf5", "an HDF5 file")
    above = (*above, group.id)
    for own in group:
        name = f"{inside}/{own}" if inside else own
        item = None
        try:
            item = item_of(group, own)
        except LeadsNowhere as error:
            if error.damaged:
                damage.found(path, f"{place}/{name}", error.reason)
            left_out.setdefault(name, error.reason)
        if isinstance(item, h5py.Group):
            yield name, None
            if item.id in above:
                left_out.setdefault(name, "a link to a group that it is in")
            else:
                yield from _below(item, name, above, path, place, damage, left_out)
        elif isinstance(item, h5py.Dataset) and (item.external or item.is_virtual):
            left_out.setdefault(name, "may be kept in another file, which is not followed")
            yield name, None
        else:
            yield name, item if isinstance(item, h5py.Dataset) else None
