"""Why an entry is missing: what differs from the entry that is most like it."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterator
from typing import Any

from .key import canonical
from .sizes import text_of_age

ABOUT = "about.json"
_MOST_BYTES = 1 << 30
_PARTS = {  # of the identities of files, by kind and place in the list
    "stat": ("size", "mtime", "content"),
    "content": ("size", "content"),
    "blob": ("blob", "size"),
    "revision": ("revision", "size"),
}


def folder_of(store: str, key: bytes) -> str:
    """Return the folder of an entry."""
    name = key.hex()
    return os.path.join(store, "v1", "e", name[:2], name)


def about_of(store: str, key: bytes) -> tuple[dict[str, Any], float] | None:
    """Return what the key of an entry was made of, and when, if the entry says so."""
    path = os.path.join(folder_of(store, key), ABOUT)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            of = os.fstat(descriptor)
            if not stat.S_ISREG(of.st_mode) or of.st_size > _MOST_BYTES:
                return None
            found = json.loads(file.read())
    except (OSError, ValueError, RecursionError):
        return None
    return (found, of.st_mtime) if isinstance(found, dict) else None


def why_missing(
    document: dict[str, Any], stores: list[str], keys: Iterator[tuple[str, bytes]] | None = None
) -> str:
    """Return a sentence that says how the sources and options differ from other entries.

    The entries that are considered have the same kind and the same relative names of sources.
    """
    wanted = json.loads(canonical(document))
    names = _names(wanted)
    best: tuple[tuple[int, float], dict[str, Any], float] | None = None
    for store, key in _all_keys(stores) if keys is None else keys:
        found = about_of(store, key)
        if found is None or found[0].get("kind") != wanted.get("kind"):
            continue
        other, made = found
        if not names & _names(other) or _steps(other) != _steps(wanted):
            continue
        score = -len(differences(wanted, other)), made
        if best is None or score > best[0]:
            best = score, other, made
    if best is None:
        steps = ", ".join(_steps(wanted))
        of_steps = f" in these steps ({steps})" if steps else ""
        return f"no entry was made of files of these names{of_steps}"
    entry = f"the entry of {text_of_age(time.time() - best[2])}"
    changes = differences(wanted, best[1])
    if not changes:
        return f"{entry} with these sources and options is incomplete or damaged"
    more = len(changes) - 1
    rest = "" if more == 0 else f", and {more} more {'difference' if more == 1 else 'differences'}"
    return f"{changes[0]} {entry}{rest}"


def differences(wanted: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return what differs between the documents of two keys: options first, then files.

    Each is the begin of a sentence that "the entry of 3 days ago" ends.
    """
    found: list[str] = []
    for part in sorted({*wanted, *other} - {"sources"}):
        _compare(part, wanted.get(part), other.get(part), found)
    mine, theirs = _by_name(wanted), _by_name(other)
    for name in sorted({*mine, *theirs}):
        if name not in theirs:
            found.append(f"{name} is not in")
        elif name not in mine:
            found.append(f"{name} is only in")
        elif mine[name] != theirs[name]:
            found.append(f"{name} has {_difference(mine[name], theirs[name])} than in")
    return found


def _difference(mine: list[Any], theirs: list[Any]) -> str:
    if mine[:1] != theirs[:1]:
        return f"an identity of another kind ({mine[0]}, not {theirs[0]})"
    parts = _PARTS.get(mine[0], ())
    for name, own, other in zip(parts, mine[1:], theirs[1:]):
        if own != other:
            return f"different {name}" if name == "content" else f"a different {name}"
    return "a different identity"


def _compare(place: str, mine: Any, theirs: Any, found: list[str]) -> None:
    if mine == theirs:
        return
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for name in sorted({*mine, *theirs}):
            _compare(f"{place}.{name}", mine.get(name), theirs.get(name), found)
    elif _is_step(mine) and _is_step(theirs) and mine[0] == theirs[0]:
        _compare(mine[0], mine[1], theirs[1], found)
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        for i, (own, other) in enumerate(zip(mine, theirs)):
            _compare(f"{place}[{i}]", own, other, found)
    else:
        found.append(f"{place} is {_short(mine)}, but {_short(theirs)} in")


def _is_step(value: Any) -> bool:
    is_pair = isinstance(value, list) and len(value) == 2
    return is_pair and isinstance(value[0], str) and isinstance(value[1], dict)


def _short(value: Any) -> str:
    text = canonical(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _steps(document: dict[str, Any]) -> list[str]:
    steps = document.get("steps")
    return [str(step[0]) for step in steps if _is_step(step)] if isinstance(steps, list) else []


def _names(document: dict[str, Any]) -> set[str]:
    return set(_by_name(document))


def _by_name(document: dict[str, Any]) -> dict[str, list[Any]]:
    sources = document.get("sources")
    if not isinstance(sources, list):
        return {}
    return {
        str(each[0]): each[1]
        for each in sources
        if isinstance(each, list) and len(each) == 2 and isinstance(each[1], list)
    }


def _all_keys(stores: list[str]) -> Iterator[tuple[str, bytes]]:
    for store in stores:
        top = os.path.join(store, "v1", "e")
        for short in _listed(top):
            for name in _listed(os.path.join(top, short)):
                try:
                    yield store, bytes.fromhex(name)
                except ValueError:
                    continue


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
