"""``open`` and ``align`` with a cache: find an entry, or compute the result and store it."""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable

from ..._cache import arithmetic
from ..._cache.cache import Building, Cache, document_key
from ..._cache.identities import Sources
from ..._cache.memo import Memo
from ..._cache.provenance import Provenance, in_key
from ..._cache.store import Entry
from ..._cache.values import NotStorable
from ..._episodes.episodes import Episodes, make_episodes
from ..._episodes.lazy_tracks import About
from ..._library.errors import shown
from ..._printable import printable
from .._errors import Problem, reading
from .._frames.source import FrameSource
from .._recording import Recording
from .packing import Packed, left_out_from, path_from, problems_from
from .tracks import Stored, StoredInfo, StoredTracks

if TYPE_CHECKING:
    from .._options import Options

_log = logging.getLogger("robocache.cache")


def cache_of(cache: Any) -> Cache | None:
    """Return the cache of an argument; None without one, or if it is off."""
    if cache is None:
        return None
    if not isinstance(cache, Cache):
        raise TypeError(f"cache: is {shown(cache)}, expected a robocache.Cache")
    return cache if cache.enabled else None


# ---- open ---------------------------------------------------------------------------------------


def opened(path: str, reader: Any, options: Options, cache: Cache, identity: str) -> Any:
    """Open a data set: its episodes come from the cache, or are read and stored.

    A recording only has its index read; :func:`aligned` stores what is computed from it.
    """
    companions = getattr(reader, "companions", None)
    sources = Sources(
        path,
        identity,
        options.follow_links,
        listed=getattr(reader, "LISTED", ()),
        companions=() if companions is None else companions(path),
        memo=Memo(cache.path, path),
    )
    known = len(options.damage.problems)  # found around the data set, not in it
    provenance = Provenance(_document(sources, reader, options), sources, identity=identity)
    key, about = document_key(provenance.document)
    entry = cache._find(key)
    if entry is not None:
        return _from_entry(cache, key, entry, path, options, provenance)
    with reading(path):
        data = reader.open(path, options)
    if isinstance(data, Recording):
        data._provenance = provenance
        return data
    if isinstance(data, Episodes):
        data._about = replace(data._about, cache=cache, identity=identity)
    else:
        raise ValueError("cache: is only for recordings and episodes; this is a point cloud")
    reason = provenance.why_not_stored()
    if reason is not None:  # known before anything is read
        data._provenance = replace(provenance, sources=None, unstored=reason)
        _not_stored(cache, path, reason)
        return data
    cache._explain(dict(provenance.document))
    _log.info("%s: not in the cache: %s", printable(path), cache.last_miss)
    with cache._building(key) as building:
        entry = None if building is None else cache._find(key)  # made while this process waited
        if entry is None and building is not None:
            entry = _stored(building, data, path, about, provenance, known)
        if entry is not None:
            del data
            return _from_entry(cache, key, entry, path, options, provenance, known)
    unstored = provenance.why_not_stored() or ""
    data._provenance = replace(provenance, sources=None, unstored=unstored)
    return data


def _document(sources: Sources, reader: Any, options: Options) -> dict[str, Any]:
    module = getattr(reader, "__name__", "").rpartition("._formats.")[2]
    if module in arithmetic.READERS:
        name, versions = arithmetic.of_reader(module)
    else:  # of another package
        name, versions = [str(reader), reader.package], {}
    return {
        "store": 1,
        "kind": "numbers",
        "layout": arithmetic.LAYOUT,
        "sources": sources.document(),
        "reader": name,
        "open": {
            "damaged": "keep" if options.damage.keep else "refuse",
            "unit": options.unit,
            "rate": options.rate,
            "definitions": dict(options.definitions),
            "follow_links": options.follow_links,
            "max_unpacked": options.limit.explicit,
            "time": options.time,
        },
        "steps": [],
        "arithmetic": versions,
    }


def _stored(
    building: Building,
    data: Episodes,
    path: str,
    about: str,
    provenance: Provenance,
    known_problems: int = 0,
) -> Entry | None:
    """Store episodes; return the entry, or None if that is not possible."""
    cache = building.cache
    try:
        packed = Packed(data, path, known_problems)
    except NotStorable as error:
        if cache.requires:
            raise
        warnings.warn(f"cache: {printable(error)}; it is not stored", RuntimeWarning, stacklevel=2)
        return None
    reason = provenance.why_not_stored()
    if reason is not None:
        _not_stored(cache, path, reason)
        return None
    return building.store(packed.arrays, packed.offsets, about)


def _not_stored(cache: Cache, path: str, reason: str) -> None:
    _log.info("%s: is not stored: %s", printable(path), reason)
    cache._last_miss = f"it was not stored: {reason}"


def _from_entry(
    cache: Cache,
    key: bytes,
    entry: Entry,
    path: str,
    options: Options | None,
    provenance: Provenance,
    known_problems: int | None = None,
) -> Episodes:
    """Return the episodes of an entry."""
    stored = Stored(cache, key, entry, path)
    about = stored.about
    problems: Sequence[Problem] = problems_from(path, about["problems"])
    reads: dict[str, Any] = {}
    if options is not None:
        problems = [*options.damage.problems[:known_problems], *problems]
        again = Reopened(path, options)
        reads = {name: functools.partial(again.call, name) for name in about["callables"]}
        problems = _Problems(problems, again)
        reads["pictures"] = {
            name: functools.partial(again.picture, name) for name in about["pictures"]
        }
        reads["cameras"] = _Cameras(about["cameras"], again)
    made = make_episodes(
        StoredTracks(stored),
        tasks=stored.tasks(),
        source=None if about["source"] is None else path_from(path, *about["source"]),
        about=About(
            about["format"],
            about["unit"],
            about["rate"],
            StoredInfo(stored),
            left_out_from(about["left_out"]),
            tuple(about["notes"]),
            problems,
            cache=cache,
            identity=provenance.identity,
            **reads,
        ),
    )
    made._provenance = replace(provenance, sources=None, unstored="")
    return made


class Reopened:
    """The data set of an entry, opened without the cache for what the entry does not hold."""

    def __init__(self, path: str, options: Options) -> None:
        self._path = path
        self._options: dict[str, Any] = {
            "damaged": "keep" if options.damage.keep else "refuse",
            "progress": options.progress,
            "unit": options.unit,
            "rate": options.rate,
            "definitions": dict(options.definitions),
            "follow_links": options.follow_links,
            "max_unpacked": options.limit.explicit,
            "time": options.time,
        }
        self._about: About | None = None

    @property
    def about(self) -> About:
        if self._about is None:
            from .._formats.registry import open as open_data

            self._about = open_data(self._path, **self._options)._about
        return self._about

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the reader's metadata."""
        return getattr(self.about, name)(*arguments)

    def picture(self, name: str, episode: int) -> Iterator[bytes]:
        """Return the pictures of a camera in an episode."""
        return self.about.pictures[name](episode)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_about": None}


class _Cameras(Mapping[str, FrameSource]):
    """The cameras of the data set of an entry, which is opened again when they are used."""

    def __init__(self, names: Sequence[str], again: Reopened) -> None:
        self._names, self._again = tuple(names), again

    def __getitem__(self, name: str) -> FrameSource:
        if name not in self._names:
            raise KeyError(name)
        return self._again.about.cameras[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _Problems(Sequence[Problem]):
    """The problems of an entry, and those that are found by what reads the data set again."""

    def __init__(self, stored: Sequence[Problem], again: Reopened) -> None:
        self._stored, self._again = list(stored), again

    def _all(self) -> list[Problem]:
        found = () if self._again._about is None else self._again._about.problems
        return [*self._stored, *(each for each in found if each not in self._stored)]

    def __getitem__(self, index: Any) -> Any:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())


# ---- align --------------------------------------------------------------------------------------


def aligned(
    cache: Cache,
    data: Recording | Episodes,
    rate: Any,
    options: Mapping[str, Any],
    compute: Callable[[], Episodes],
) -> Episodes:
    """Return an alignment from the cache, or compute and store it.

    ``options`` are those that change the result.
    """
    before = data._provenance
    if before is None:
        what = "recording" if isinstance(data, Recording) else "episodes"
        raise ValueError(
            f"cache: it is not known what this {what} was made of. Open it with "
            "robocache.data.open(path, cache=cache), and only select and declare kinds before "
            "align; or align without cache="
        )
    import numpy as np

    rate_of = float(rate) if np.ndim(rate) == 0 else in_key(np.asarray(rate))
    provenance = before.then("align", {"rate": rate_of, **options})
    key, about = document_key(provenance.document)
    path = (data.path if isinstance(data, Recording) else data.source) or ""
    entry = cache._find(key, dict(provenance.document))
    if entry is None and before.unstored:
        made = compute()
        made._provenance = provenance
        _not_stored(cache, path, before.unstored)
        return made
    if entry is None:
        _log.info("%s: alignment not in the cache: %s", printable(path), cache.last_miss)
        with cache._building(key) as building:
            entry = None if building is None else cache._find(key)
            if entry is None:
                made = compute()
                if building is not None:
                    entry = _stored(building, made, path, about, provenance)
                if entry is None:
                    unstored = provenance.why_not_stored() or ""
                    made._provenance = replace(provenance, sources=None, unstored=unstored)
                    return made
    return _from_entry(cache, key, entry, path, None, provenance)
