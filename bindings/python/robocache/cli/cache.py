"""``robocache cache``: fill, list, verify and clear the cache."""

import functools
import multiprocessing
import os
import time as clock
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from .. import Cache
from .._cache.explain import about_of, folder_of
from .._cache.sizes import bytes_of, seconds_of, text_of_age, text_of_bytes
from .._cache.store import Item
from .._library.errors import RoboCacheError, Status
from .._printable import plural
from ..data import Recording
from . import _display as show
from . import _stored_frames as frames
from ._common import (
    AcceptGuesses,
    AsJson,
    AsNumbers,
    Damaged,
    Definitions,
    Failure,
    FollowLinks,
    Fps,
    Kind,
    MaxUnpacked,
    Time,
    Unit,
    guesses,
    open_data,
    with_kinds,
)
from ._images import Filter, Fit, Rule, how
from ._stored_frames import ImagesOption

_SHOWN = 12  # digits of a key

Folder = Annotated[
    Optional[Path],
    typer.Option(
        "--cache",
        help="The folder of the cache; default: $ROBOCACHE_CACHE, else the cache folder of the "
        "user.",
        show_default=False,
    ),
]


def build(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Recordings or data sets: files or folders.", show_default=False),
    ],
    rate: Annotated[
        Optional[float],
        typer.Option(
            help="Also store the alignment at this rate, in rows per second. Recordings need it.",
            metavar="HZ",
        ),
    ] = None,
    images: ImagesOption = None,
    rule: Rule = None,
    filter: Filter = None,  # noqa: A002
    fit: Fit = None,
    cache: Folder = None,
    processes: Annotated[
        int,
        typer.Option(
            help="Data sets that are read at the same time; of one data set, processes that store "
            "its frames.",
            metavar="N",
            min=1,
        ),
    ] = 1,
    min_free: Annotated[
        Optional[str],
        typer.Option(
            help="Space that stays free on the disk, such as 2GB; default: "
            "$ROBOCACHE_MIN_FREE_BYTES, else 5 % of the disk and at most 10 GiB.",
            metavar="SIZE",
            show_default=False,
        ),
    ] = None,
    identity: Annotated[
        str,
        typer.Option(
            help="How files are recognized: stat, content, or revision:TEXT.", metavar="METHOD"
        ),
    ] = "stat",
    damaged: Damaged = "refuse",
    unit: Unit = None,
    fps: Fps = None,
    time: Time = None,
    definition: Definitions = None,
    kind: Kind = None,
    accept_guesses: AcceptGuesses = False,
    as_numbers: AsNumbers = False,
    follow_links: FollowLinks = False,
    max_unpacked: MaxUnpacked = None,
    as_json: AsJson = False,
) -> None:
    """Read data sets and store them in the cache, so that training opens them at once.

    Data that are in the cache already are not read again. Later calls of open and align find the
    entry if they have the same options.
    """
    least = None if min_free is None else bytes_of(min_free, "--min-free")
    store = _opened(cache, require=True, min_free_bytes=least)
    opening: dict[str, Any] = {
        "damaged": damaged,
        "unit": unit,
        "fps": fps,
        "definitions": definition,
        "follow_links": follow_links,
        "max_unpacked": max_unpacked,
        "time": time,
        "cache": store,
        "identity": identity,
    }
    cameras = frames.images_of(images, how(rule, filter, fit))
    options = guesses(accept_guesses, as_numbers)
    alone = processes if len(paths) == 1 else 1
    work = functools.partial(_stored, opening, kind, rate, options, cameras, alone, not as_json)
    if processes == 1 or len(paths) == 1:
        found = [row for path in paths for row in work(path)]
    else:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(processes, len(paths)), context) as pool:
            found = [row for rows in pool.map(work, paths) for row in rows]
    if as_json:
        show.print_json({"cache": store.path, "built": found})
        return
    out = show.Page()
    for each in found:
        if each["stored"] and each["reason"] is None:
            text = "is in the cache"
        else:
            text = f"made: {each['reason']}" if each["stored"] else each["reason"]
        episodes = plural(each["episodes"], "episode")
        out.print(f"{each['path']}: {each['what']}, {episodes}: {text}", wrap=False)


def _stored(
    opening: dict[str, Any],
    kind: Optional[list[str]],
    rate: Optional[float],
    options: dict[str, bool],
    cameras: dict[str, dict[str, Any]],
    processes: int,
    says_sizes: bool,
    path: Path,
) -> list[dict[str, Any]]:
    """Open and align a data set with the cache; return what is in the cache then."""
    store = opening["cache"]
    source: Any = with_kinds(open_data(path, **opening), kind)
    found = []
    if not isinstance(source, Recording):
        found.append(_built(path, "episodes", store, source))
    elif rate is None:
        text = "is a recording; only its alignments are stored: add --rate"
        raise Failure(f"{path}: {text}")
    if rate is not None:
        source = source.align(rate, cache=store, **options)
        found.append(_built(path, f"aligned at {rate:g} Hz", store, source))
    if cameras:
        parts = processes if rate is None else 1  # others cannot open the alignment
        say = functools.partial(_say, says_sizes)
        found += frames.store(path, source, cameras, opening, parts, say)
    return found


def _say(shown: bool, line: str) -> None:
    if shown:
        show.Page().print(line, wrap=False)


def _built(path: Path, what: str, store: Cache, source: Any) -> dict[str, Any]:
    return {
        "path": str(path),
        "what": what,
        "episodes": len(source),
        "stored": type(source._tracks).__name__ == "StoredTracks",
        "reason": store.last_miss,
    }


def info(cache: Folder = None, as_json: AsJson = False) -> None:
    """List the entries of the cache: what they were made of, their sizes and their last uses."""
    store = _opened(cache)
    items = [_facts(store, item) for item in reversed(_items(store))]
    total = sum(item["bytes"] for item in items)
    if as_json:
        show.print_json({"cache": store.path, "bytes": total, "entries": items})
        return
    out = show.Page()
    out.print(f"{store.path}: {_entries(len(items))}, {text_of_bytes(total)}", wrap=False)
    if items:
        head = ["key", "made of", "steps", "last use", "size"]
        rows = [
            (
                item["key"][:_SHOWN],
                item["made_of"] or "not known",
                ", ".join(item["steps"]) or "-",
                "being built" if item["locked"] else _last_use(item),
                text_of_bytes(item["bytes"]),
            )
            for item in items
        ]
        out.print(show.table(head, rows, 4))


def verify(cache: Folder = None, as_json: AsJson = False) -> None:
    """Compare every block of the cache with its sum; the exit code is 1 if one differs.

    Nothing is changed. Remove the folder of a damaged entry, and the next use makes it again.
    """
    store = _opened(cache)
    items = [item for item in _items(store) if item.complete]
    damaged = []
    blocks = 0
    for item in items:
        name, folder = item.key.hex(), folder_of(store.path, item.key)
        fault: dict[str, Any] = {"key": name, "folder": folder, "segment": None, "block": None}
        try:
            report = store.verify(item.key)
        except RoboCacheError as error:
            if error.status != Status.DAMAGED:
                raise
            damaged.append({**fault, "reason": str(error)})
            continue
        if report is None:
            if os.path.exists(os.path.join(folder, "entry.rbi")):  # else it was removed meanwhile
                damaged.append({**fault, "reason": "was written by another version, or is damaged"})
            continue
        blocks += report.num_blocks
        if report.num_damaged_blocks:
            at = {"segment": report.first_segment, "block": report.first_block}
            reason = f"{report.num_damaged_blocks} of {report.num_blocks} blocks differ"
            damaged.append({**fault, **at, "reason": reason})
    if as_json:
        show.print_json({"cache": store.path, "blocks": blocks, "damaged": damaged})
    else:
        out = show.Page()
        for each in damaged:
            place = "" if each["segment"] is None else f" (first: segment {each['segment']}, "
            place += "" if each["segment"] is None else f"block {each['block']})"
            out.print(f"{each['folder']}: {each['reason']}{place}", wrap=False)
        found = f"{_entries(len(items))}, {plural(blocks, 'block')}, {len(damaged)} damaged"
        out.print(f"{store.path}: {found}")
    if damaged:
        raise typer.Exit(1)


def prune(
    cache: Folder = None,
    max_size: Annotated[
        Optional[str],
        typer.Option(
            help="Remove the least recently used entries until the rest has this size, such as "
            "200GB.",
            metavar="SIZE",
        ),
    ] = None,
    older: Annotated[
        Optional[str],
        typer.Option(
            help="Remove entries that were not used for this time, such as 30d or 12h.",
            metavar="AGE",
        ),
    ] = None,
    incomplete: Annotated[
        bool,
        typer.Option("--incomplete", help="Also remove incomplete entries of any age."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Remove nothing, only report.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remove entries that were not used for long, and what killed processes have left.

    Entries that are being built or were used in the last two hours stay. Processes that have an
    entry open keep it.
    """
    store = _opened(cache)
    if not os.path.isdir(store.path):
        raise Failure(f"{store.path}: there is no cache here")
    size = None if max_size is None else bytes_of(max_size, "--max-size")
    age = None if older is None else seconds_of(older, "--older")
    done = store.prune(size, age, dry_run=dry_run, incomplete=incomplete)
    if as_json:
        show.print_json({"cache": store.path, "dry_run": dry_run, **done._asdict()})
        return
    verb = "would remove" if dry_run else "removed"
    show.Page().print(
        f"{verb} {_entries(done.num_removed)}, {done.num_incomplete} incomplete and "
        f"{done.num_leftovers} leftovers ({text_of_bytes(done.num_removed_bytes)}); "
        f"{_entries(done.num_kept)} "
        f"({text_of_bytes(done.num_kept_bytes)}) stay"
    )


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _opened(folder: Optional[Path], **options: Any) -> Cache:
    store = Cache(folder, **options)
    if not store.enabled:
        raise Failure("ROBOCACHE_CACHE is off: unset it, or set it to the folder of the cache")
    return store


def _items(store: Cache) -> list[Item]:
    """Return the entries; none if the folder does not exist, which listing would create."""
    return store.items() if os.path.isdir(store.path) else []


def _facts(store: Cache, item: Item) -> dict[str, Any]:
    about = about_of(store.path, item.key)
    document = {} if about is None else about[0]
    sources = document.get("sources", [])
    reader = document.get("camera") or document.get("reader", [""])[0]
    made_of = ""
    if sources:
        more = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
        made_of = f"{sources[0][0]}{more} ({reader})"
    return {
        "key": item.key.hex(),
        "complete": item.complete,
        "locked": item.locked,
        "segments": item.num_segments,
        "bytes": item.num_bytes,
        "last_use_ns": item.last_use_ns,
        "made_of": made_of,
        "steps": [step[0] for step in document.get("steps", [])],
        "about": document,
    }


def _last_use(item: dict[str, Any]) -> str:
    used = text_of_age(clock.time() - item["last_use_ns"] / 1e9)
    return used if item["complete"] else f"incomplete, {used}"
