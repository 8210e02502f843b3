"""Parts of a stream: STREAM:CHANNELS, as every option and argument writes them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from ..._suggestions import did_you_mean
from .._errors import some
from .names import labels_of

ALL = "*"  # all channels
_ROLE = re.compile(
    r"[_ ]?(?:[xyzwijkrs]|\d+|real|scalar)[\])]?\s*(?:[\[(].*[\])])?$", re.IGNORECASE
)

_SEPARATOR = re.compile(r"[.\[/(:]")  # what may follow the common beginning of some channels


def split(text: str, known: Iterable[str]) -> tuple[str, str] | None:
    """Split STREAM[:CHANNELS] into the stream and the channels ("*" if missing).

    Names of streams may contain colons: the longest existing name is used. None: no name fits.
    """
    fits = [name for name in known if text == name or text.startswith(f"{name}:")]
    if not fits:
        return None
    name = max(fits, key=len)
    return name, text[len(name) + 1 :] or ALL


def of_topic(name: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the names that belong to a topic: its own, and one for each of its keys."""
    return tuple(own for own in names if own == name or own.startswith(f"{name}/"))


def chosen_in(text: str, known: Collection[str]) -> tuple[tuple[str, ...], str] | None:
    """Return the streams and the channels of STREAM[:CHANNELS]; None if no stream fits.

    A topic that is split by its keys gives the streams of all keys.
    """
    found = split(text, known)
    if found is not None:
        return (found[0],), found[1]
    for end in (len(text), *(at for at, sign in enumerate(text) if sign == ":")):
        own = of_topic(text[:end], known)
        if own:
            return own, text[end + 1 :] or ALL
    return None


def columns_of_all(
    selectors: Iterable[str], names: Sequence[str] | None, width: int, where: str, stream: str
) -> list[int]:
    """Return the columns that several selectors name, each once."""
    columns: dict[int, None] = {}
    for selector in selectors:
        columns.update(dict.fromkeys(columns_of(selector, names, width, where, stream)))
    return list(columns)


def parsed(
    text: str, known: Iterable[str], option: str, form: str = "STREAM:CHANNELS=VALUE"
) -> tuple[str, str, str]:
    """Split STREAM[:CHANNELS]=VALUE into the stream, the channels ("*" if missing), the value."""
    known = tuple(known)
    left, equals, value = text.rpartition("=")
    if not equals or not left or not value:
        raise ValueError(f"{option} {text}: expected {form}")
    found = split(left, known)
    if found is None:
        near = did_you_mean(left.partition(":")[0], known)
        raise ValueError(f"{option} {text}: no such stream, expected one of {some(known)}{near}")
    return *found, value


def columns_of(
    selector: str, names: Sequence[str] | None, width: int, where: str, stream: str = ""
) -> list[int]:
    """Return the columns that a selector names.

    A selector is a name, "first-last", several of these with commas, a prefix that names share,
    or "*". Channels without names are selected by number.
    """
    labels = labels_of(stream, names, width)
    found = _selected(selector, names, labels, width)
    if found is None:
        known = some(tuple(names or labels))
        near = _near(selector, names, labels, width)
        raise ValueError(f"{where}: no such channel {selector!r}, expected one of {known}{near}")
    return found


def _selected(
    selector: str, names: Sequence[str] | None, labels: Sequence[str], width: int
) -> list[int] | None:
    own = list(names) if names is not None else []
    if selector == "*":
        return list(range(width))
    one = _one(selector, own, labels, width)
    if one is not None:
        return [one]
    for at, sign in enumerate(selector):
        if sign == "-" and 0 < at < len(selector) - 1:
            first = _one(selector[:at], own, labels, width)
            last = _one(selector[at + 1 :], own, labels, width)
            if first is not None and last is not None and first <= last:
                return list(range(first, last + 1))
    found = _beginning(selector, labels)
    if found:
        return found
    if "," in selector:
        parts = [_selected(part.strip(), names, labels, width) for part in selector.split(",")]
        if all(part is not None for part in parts):
            return [column for part in parts for column in part or ()]
    return None


def _near(selector: str, names: Sequence[str] | None, labels: Sequence[str], width: int) -> str:
    """Return a suggestion for a selector that selects nothing: a channel, or what some share."""
    parts = [part.strip() for part in selector.split(",")]
    unknown = next((p for p in parts if _selected(p, names, labels, width) is None), selector)
    shared = [label[: found.start()] for label in labels if (found := _SEPARATOR.search(label))]
    return did_you_mean(unknown, [*dict.fromkeys(shared), *(names or labels)])


def _one(name: str, own: Sequence[str], labels: Sequence[str], width: int) -> int | None:
    for names in (own, labels):
        if name in names:
            return names.index(name)
    number = re.fullmatch(r"(\d+)|\[(\d+)\]", name)
    column = int(number[1] or number[2]) if number else width
    if column < width:
        return column
    return None


def _beginning(selector: str, labels: Sequence[str]) -> list[int]:
    rest = {
        i: label[len(selector) :] for i, label in enumerate(labels) if label.startswith(selector)
    }
    inside = [i for i, end in rest.items() if end[:1] in (".", "[", "/", "(", ":") and end]
    return inside or [i for i, end in rest.items() if _ROLE.fullmatch(end)]
