"""``Cache``: results that are expensive to make again, on disk, shared by processes."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .._library.errors import RoboCacheError, Status, shown
from .._printable import printable
from . import memo
from .explain import folder_of, why_missing
from .key import canonical, digest
from .sizes import bytes_of, seconds_of, text_of_bytes
from .store import ACCESS, MOST_TRUSTED, VERIFY, Entry, Item, Pruned, Store, Verified, Writer

VARIABLE = "ROBOCACHE_CACHE"
MIN_FREE_VARIABLE = "ROBOCACHE_MIN_FREE_BYTES"
SLICE_MS = 200  # of a wait for another process: signals are handled between two of them
_PATIENCE_S = 30  # after which a wait is reported
_GUARD = 999_999  # the number of a segment that is only locked, while the size of others is unknown
SHORTAGES = (OSError, RoboCacheError)


class Cache:
    """A folder on disk that keeps results which are expensive to make again.

    :func:`robocache.data.open` and :meth:`Episodes.align` take it as ``cache=``. The first call
    with some data and options computes and stores the result; later calls, also of other processes,
    map the files and compute nothing. A change of a file, an option or the arithmetic makes another
    entry. See :doc:`/concepts/cache`.

    If the folder cannot be written, or an entry cannot be read, there is one warning, and results
    are computed without the cache. Caches can be pickled and used after a fork.

    Parameters
    ----------
    path
        The folder. None: the environment variable ROBOCACHE_CACHE, else
        $XDG_CACHE_HOME/robocache, else ~/.cache/robocache. A list: layers, which are searched in
        order; only the last one is written. ROBOCACHE_CACHE=off switches every cache off.
    max_bytes
        Size at which the least recently used entries are removed after each build, such as
        "500GB". None: nothing is removed; see :meth:`prune`.
    max_age
        Time since the last use after which entries are removed after each build, such as "30d".
    verify
        Which parts are compared with their sums: "open": the index and the headers; "first": also
        each array when it is first used, which reads it; "none".
    access
        "map", "read", or "auto": read() on network file systems, else map.
    trust
        Numbers of other users whose files count, besides the caller's and root's.
    require
        Whether to raise an error instead of a warning if the cache cannot be used.
    min_free_bytes
        Space, such as "2GB", that stays free on the file system: an entry that would leave less is
        not written. None: the environment variable ROBOCACHE_MIN_FREE_BYTES, else the smaller of
        5 % of the file system and 10 GiB.

    Raises
    ------
    ValueError
        An argument is not valid.
    TypeError
        An argument has a wrong type.

    Examples
    --------
    >>> import tempfile
    >>> import robocache as rbc
    >>> cache = rbc.Cache(tempfile.mkdtemp(), max_bytes="500GB")
    >>> cache.items()
    []
    """

    def __init__(
        self,
        path: Any = None,
        *,
        max_bytes: int | str | None = None,
        max_age: Any = None,
        verify: str = "open",
        access: str = "auto",
        trust: Sequence[int] = (),
        require: bool = False,
        min_free_bytes: int | str | None = None,
    ) -> None:
        for name, value, known in (("verify", verify, VERIFY), ("access", access, ACCESS)):
            if value not in known:
                raise ValueError(
                    f"{name}: is {shown(value)}, expected one of {', '.join(map(repr, known))}"
                )
        self._trust = tuple(_user(each) for each in trust)
        if len(self._trust) > MOST_TRUSTED:
            count = len(self._trust)
            raise ValueError(f"trust: has {count} users, expected at most {MOST_TRUSTED}")
        self._max_bytes = None if max_bytes is None else bytes_of(max_bytes, "max_bytes")
        self._max_age = None if max_age is None else seconds_of(max_age, "max_age")
        self._verify, self._access, self._require = verify, access, bool(require)
        variable = os.environ.get(VARIABLE, "")
        self._off = variable.lower() == "off"
        self._paths = _paths(path, variable)
        self._min_free = _min_free(min_free_bytes)
        self._stores: dict[int, Store | None] = {}
        self._writes = True  # until writing fails
        self._warned = False
        self._last_miss: str | None = None

    @property
    def path(self) -> str:
        """The folder that is written: the last layer."""
        return self._paths[-1]

    @property
    def paths(self) -> tuple[str, ...]:
        """The folders of all layers."""
        return self._paths

    @property
    def enabled(self) -> bool:
        """False if ROBOCACHE_CACHE=off has switched the cache off."""
        return not self._off

    @property
    def requires(self) -> bool:
        """Whether an error is raised if the cache cannot be used."""
        return self._require

    @property
    def last_miss(self) -> str | None:
        """Why the last search found no entry: how its sources and options differ from the most
        similar entry. None if the last search found one.
        """
        return self._last_miss

    # ---- maintenance ----------------------------------------------------------------------------

    def items(self) -> list[Item]:
        """Return the entries of the folder that is written, the least recently used first.

        Each has ``key``, ``complete``, ``locked``, ``num_segments``, ``num_bytes`` and
        ``last_use_ns``.

        Raises
        ------
        RoboCacheError
            The folder cannot be read.
        """
        store = self._opened(len(self._paths) - 1, strict=True)
        return [] if store is None else store.items()

    def prune(
        self,
        max_bytes: int | str | None = None,
        max_age: Any = None,
        *,
        dry_run: bool = False,
        incomplete: bool = False,
    ) -> Pruned:
        """Remove the least recently used entries until the limits hold, and leftovers of builds.

        Entries that are being built or were used in the last two hours stay. Processes that have
        an entry open keep it.

        Parameters
        ----------
        max_bytes, max_age
            As for :class:`Cache`; None: the limits of the cache.
        dry_run
            Remove nothing, only report.
        incomplete
            Also remove incomplete entries of any age, except those that are being built.

        Returns
        -------
        Pruned
            What was removed: ``num_removed``, ``num_incomplete``, ``num_leftovers``,
            ``num_removed_bytes``, ``num_kept``, ``num_kept_bytes``.

        Raises
        ------
        RoboCacheError
            The folder cannot be read or written.
        """
        size = self._max_bytes if max_bytes is None else bytes_of(max_bytes, "max_bytes")
        age = self._max_age if max_age is None else seconds_of(max_age, "max_age")
        store = self._opened(len(self._paths) - 1, strict=True)
        if store is None:
            return Pruned(0, 0, 0, 0, 0, 0)
        if not dry_run:
            memo.prune(self.path)
        return store.prune(size, age, dry_run, incomplete)

    def verify(self, key: bytes) -> Verified | None:
        """Compare the sums of all blocks of an entry; None if there is no such entry.

        Returns
        -------
        Verified
            ``num_blocks`` of 64 KiB, ``num_damaged_blocks``, and the ``first_segment`` and
            ``first_block`` that is damaged, or -1.

        Raises
        ------
        RoboCacheError
            The entry cannot be opened, as when the sum of its index differs.
        """
        if self._off:
            return None
        entry = Store(self.path, read_only=True, trust=self._trust).find(key)
        return None if entry is None else entry.verify()

    # ---- entries --------------------------------------------------------------------------------

    def _check_space(self, size: int, what: str) -> None:
        """Raise an error if ``size`` more bytes would leave less than ``min_free_bytes``.

        The library checks each segment by the same rule; this is before the first of many.
        """
        usage = shutil.disk_usage(self.path)
        least = min(usage.total // 20, 10 << 30) if self._min_free is None else self._min_free
        if usage.total and usage.free - size < least:
            raise OSError(
                f"{what}: {text_of_bytes(size)} are needed, {text_of_bytes(usage.free)} are free, "
                f"and {text_of_bytes(least)} must stay free; free some space, prune the "
                "cache, or lower min_free_bytes"
            )

    def _find(self, key: bytes, document: dict[str, Any] | None = None) -> Entry | None:
        """Return an entry of the first layer that has it. A document explains a miss."""
        if self._off:
            return None
        for i in range(len(self._paths)):
            try:
                store = self._opened(i)
                entry = None if store is None else store.find(key)
            except SHORTAGES as error:
                if isinstance(error, RoboCacheError) and error.status == Status.DAMAGED:
                    text = f"cache: {printable(error)}. It is made again"
                    warnings.warn(text, RuntimeWarning, stacklevel=_level())
                else:
                    self._trouble(error, f"cannot read {self._paths[i]}")
                continue
            if entry is not None:
                self._last_miss = None
                return entry
        if document is not None:
            self._explain(document)
        return None

    def _explain(self, document: dict[str, Any]) -> None:
        self._last_miss = why_missing(document, list(self._paths))

    @contextmanager
    def _building(self, key: bytes) -> Iterator[Building | None]:
        """Take the lock of an entry before it is made, and wait for other builders of it.

        Yields None if the entry cannot be written: it is then computed without the cache. The entry
        may be there when the lock is taken: look again.
        """
        store, guard = None, None
        if not self._off and self._writes:
            try:
                store = self._opened(len(self._paths) - 1)
                if store is not None:
                    guard = self._locked(store, key)
            except SHORTAGES as error:
                self._writes = False
                self._trouble(error, f"cannot write {self.path}")
                store = None
        try:
            yield None if store is None else Building(self, store, key)
        finally:
            if guard is not None:
                guard.discard()

    def _locked(self, store: Store, key: bytes) -> Writer | None:
        """Take the lock of an entry in slices, so that Ctrl-C ends a wait."""
        began, reported = time.monotonic(), False
        while True:
            try:
                return store.lock(key, _GUARD, wait_ms=SLICE_MS)
            except RoboCacheError as error:
                if error.status != Status.BUSY:
                    raise
                if not reported and time.monotonic() - began > _PATIENCE_S:
                    reported = True
                    text = f"cache: another process makes the same entry; waiting for it: {error}"
                    warnings.warn(printable(text), RuntimeWarning, stacklevel=_level())

    def _opened(self, layer: int, strict: bool = False) -> Store | None:
        """Return the store of a layer; None if it is off or cannot be used.

        ``strict``: raise an error instead of a warning.
        """
        if self._off:
            return None
        if self._stores.get(layer) is None and (strict or layer not in self._stores):
            self._stores[layer] = None
            path, is_last = self._paths[layer], layer == len(self._paths) - 1
            options: Any = {"verify": self._verify, "access": self._access, "trust": self._trust}
            read_only = not is_last or _is_read_only(path)
            options.update(read_only=read_only, min_free_bytes=self._min_free)
            try:
                self._stores[layer] = Store(path, **options)
            except (*SHORTAGES, ValueError) as error:
                if strict:
                    raise
                self._trouble(error, f"cannot use {path}")
                return None
            if is_last and read_only:
                self._writes = False
        return self._stores[layer]

    def _trouble(self, error: Exception, what: str) -> None:
        """Warn once that the cache cannot be used, or raise."""
        if self._require:
            raise error
        if not self._warned:
            self._warned = True
            text = f"cache: {what}: {error}. The run goes on without it"
            warnings.warn(printable(text), RuntimeWarning, stacklevel=_level())

    def __reduce__(self) -> tuple[Any, ...]:
        options = {
            "max_bytes": self._max_bytes,
            "max_age": self._max_age,
            "verify": self._verify,
            "access": self._access,
            "trust": self._trust,
            "require": self._require,
            "min_free_bytes": self._min_free,
        }
        return _restored, (list(self._paths), options)

    def __repr__(self) -> str:
        paths = ", ".join(map(repr, self._paths))
        return f"Cache({paths})" if self.enabled else f"Cache({paths}), off"


class Building:
    """An entry that this process makes, while it holds the lock."""

    def __init__(self, cache: Cache, store: Store, key: bytes) -> None:
        self.cache, self._store, self._key = cache, store, key

    def store(self, arrays: dict[str, Any], offsets: Any, about: str) -> Entry | None:
        """Write arrays as one segment, publish the entry, and open it; None if that failed.

        Raises
        ------
        ValueError
            The entry is larger than ``max_bytes`` of the cache.
        """
        cache = self.cache
        size = sum(array.nbytes for array in arrays.values())
        limit = cache._max_bytes
        if limit is not None and size > limit:
            raise ValueError(
                f"max_bytes: is {text_of_bytes(limit)}, but one entry has {text_of_bytes(size)}"
            )
        try:
            self._write(arrays, offsets)
            self._store.publish(self._key, 1, offsets, about)
            if limit is not None or cache._max_age is not None:
                self._store.prune(limit, cache._max_age)
            entry = self._store.find(self._key)
            if entry is None:  # a damaged version number, which counts as another version
                folder = folder_of(cache.path, self._key)
                text = f"{folder}: was written by another version, or is damaged; remove it"
                raise RoboCacheError(text, Status.DAMAGED)
            return entry
        except SHORTAGES as error:
            cache._writes = False
            cache._trouble(error, f"cannot write {cache.path}")
            return None

    def _write(self, arrays: dict[str, Any], offsets: Any) -> None:
        episodes, rows = len(offsets) - 1, int(offsets[-1])
        writer = self._store.lock(self._key, 0, episodes=episodes, rows=rows, wait_ms=-1)
        if writer is None:
            return  # a builder that was killed before it wrote the index, or a damaged index
        with writer:
            for name, array in arrays.items():
                writer.add(name, array.dtype, array.shape)
            for name, array in arrays.items():
                writer.write_array(name, array)
            writer.publish()


def document_key(document: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return the key of a document, and the document as canonical JSON."""
    text = canonical(document)
    return digest(text), text


def default_path(variable: str | None = None) -> str:
    """Return the folder of a cache without a path."""
    variable = os.environ.get(VARIABLE, "") if variable is None else variable
    if variable and variable.lower() != "off":
        return os.path.abspath(variable)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # as the specification of XDG wants
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "robocache")


def _restored(paths: list[str], options: dict[str, Any]) -> Cache:
    return Cache(paths, **options)


def _paths(path: Any, variable: str) -> tuple[str, ...]:
    if path is None:
        return (default_path(variable),)
    if isinstance(path, Cache):
        return path.paths
    if isinstance(path, (str, bytes, os.PathLike)):
        name = os.fsdecode(path)
        if not name or "\0" in name:
            raise ValueError(f"path: is {shown(path)}, expected a folder")
        return (os.path.abspath(os.path.expanduser(name)),)
    if not isinstance(path, (list, tuple)) or not path:
        raise TypeError(f"path: is {shown(path)}, expected a folder, or a list of folders")
    return tuple(each for part in path for each in _paths(part, variable))


def _min_free(size: int | str | None) -> int | None:
    """Return the space that stays free; None: what the library chooses."""
    name = "min_free_bytes"
    if size is None:
        name, size = MIN_FREE_VARIABLE, os.environ.get(MIN_FREE_VARIABLE) or None
    return None if size is None else min(bytes_of(size, name), 2**63 - 1)


def _user(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"trust: has {shown(number)}, expected numbers of users")
    if not 0 <= number < 2**32:
        raise ValueError(f"trust: has {number}, expected numbers of users")
    return number


def _is_read_only(path: str) -> bool:
    """Whether a folder exists on a file system, or with a mode, that refuses writes."""
    try:
        if not stat.S_ISDIR(os.stat(path).st_mode):
            return False
    except OSError:
        return False
    return not os.access(path, os.W_OK | os.X_OK)


def _level() -> int:
    """Return the level of the first frame outside of this package, for warnings."""
    level, frame = 1, sys._getframe(1)
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    while frame is not None and (
        frame.f_code.co_filename.startswith(package) or "contextlib" in frame.f_code.co_filename
    ):
        level += 1
        frame = frame.f_back  # type: ignore[assignment]
    return level
