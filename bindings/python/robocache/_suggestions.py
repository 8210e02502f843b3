"""Suggestions for names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable

_LONGEST = 200  # characters of a name that is compared; longer ones take seconds
_MOST = 2000  # names


def nearest(name: object, known: Iterable[object]) -> str:
    """Return the known name that is most like a name; "" if none is."""
    import difflib

    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST:
        return ""
    names = [each for each in known if isinstance(each, str) and len(each) <= _LONGEST][:_MOST]
    near = difflib.get_close_matches(name, names, 1)
    near = near or [each for each in names if name.lower() in each.lower()][:1]
    return near[0] if near else ""


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return a sentence for the end of a message; "" if no name is similar."""
    from ._printable import printable

    near = nearest(name, known)
    return f". Did you mean {printable(near)}?" if near else ""
