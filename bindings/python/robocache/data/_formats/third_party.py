"""Readers that other packages install, in the entry points of the group ``robocache.formats``.

They are loaded only if no reader of this package recognizes a path, and for ``robocache formats``.
An error in one of them names its package, and never ends the search for a reader.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from .._errors import FormatError, Unread, raise_shortage
from .._findings import Finding
from .._options import Options
from .._point_clouds import PointCloud, PointClouds
from .._recording import RecordedStream, Recording
from .._source import Piece, StreamInfo
from .description import Format
from .strangers import placeholder

GROUP = "robocache.formats"
_PARTS = ("sniff", "open")


class Reader:
    """A reader of another package, with the functions of a reader of this one."""

    def __init__(self, name: str, package: str) -> None:
        self.name = name
        self.package = package  #: name and version
        self.FORMATS: tuple[Format, ...] = ()  # as a module has
        self.fault = ""  #: why it cannot be used; "" if it can
        self._module: Any = None

    def __str__(self) -> str:
        return f"reader {self.name} of {self.package}"

    def load(self, entry: importlib.metadata.EntryPoint) -> None:
        """Import the module, and check that it is a reader."""
        try:
            module = entry.load()
            formats: Any = getattr(module, "FORMAT", None) or getattr(module, "FORMATS", ())
            formats = (formats,) if isinstance(formats, Format) else tuple(formats)
        except (Exception, SystemExit) as error:
            raise_shortage(entry.value)
            self.fault = f"cannot be loaded: {_said(error)}"
            return
        missing = [name for name in _PARTS if not callable(getattr(module, name, None))]
        if missing:
            self.fault = f"has no function {missing[0]}"
        elif not formats or not all(isinstance(each, Format) for each in formats):
            self.fault = "has no FORMAT, a robocache.data.Format"
        else:
            self.FORMATS, self._module = formats, module

    def sniff(self, path: str) -> bool:
        """Whether the reader recognizes a path; an error means no, and becomes its fault."""
        if self._module is None:
            return False
        try:
            return bool(self._module.sniff(path))
        except (Exception, SystemExit) as error:
            raise_shortage(path)
            self.fault = f"failed in sniff: {_said(error)}"
            return False

    def open(self, path: str, options: Options) -> Any:
        try:
            return self._described(self._module.open(path, options), path, options)
        except FormatError as error:
            raise FormatError(error.path, error.place, f"{error.reason} ({self})") from error
        except ImportError as error:
            text = f"{path}: {self}: {_said(error)}"
            raise ModuleNotFoundError(text, name=error.name) from error
        except Exception as error:
            raise_shortage(path)
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise FormatError(path, "", f"cannot be read by the {self}: {_said(error)}") from error

    def _described(self, opened: Any, path: str, options: Options) -> Any:
        """Return what the reader returned, with the path, the format and the noted damage."""
        from ... import Episodes
        from ..._episodes.episodes import make_episodes

        kind = self.FORMATS[0].title if len(self.FORMATS) == 1 else self.name
        if isinstance(opened, Recording) and opened.format == "streams in memory":
            return Recording(_Streams(opened, path, kind, options), opened.streams)
        if isinstance(opened, Episodes) and opened.format == "episodes in memory":
            problems = options.damage.problems
            about = dataclasses.replace(opened._about, format=kind, problems=problems)
            source = opened.source or path
            return make_episodes(opened.tracks, tasks=opened.tasks, source=source, about=about)
        if not isinstance(opened, (Recording, Episodes, PointCloud, PointClouds)):
            text = f"open returned {type(opened).__name__}, expected a Recording, Episodes, a "
            raise TypeError(f"{text}PointCloud or PointClouds")
        return opened


class _Streams:
    """The source of a recording whose streams are all in memory."""

    def __init__(self, opened: Recording, path: str, kind: str, options: Options) -> None:
        self.path, self.kind, self.unit = opened.path or path, kind, opened.unit
        self.damage = options.damage
        self.left_out = list(opened.left_out)
        self.unread: Sequence[Unread] = opened.unread
        self.findings: Sequence[Finding] = opened.findings
        self._streams: dict[str, RecordedStream] = dict(opened.streams)
        self.streams: dict[str, StreamInfo] = {name: opened.info(name) for name in opened}

    def look(self) -> None:
        """Do nothing: all is known."""

    def pieces(self, names: Collection[str], shown: bool | None = None) -> Iterator[Piece]:
        for name in names:
            each = self._streams[name]
            yield Piece(name, each.names, each.values, each.clocks, each.dtypes, each.said)


def readers() -> list[Reader]:
    """Return the readers of all installed packages, loaded, with their faults."""
    found: list[Reader] = []
    packages = set()
    for distribution in importlib.metadata.distributions():
        try:
            entries = [entry for entry in distribution.entry_points if entry.group == GROUP]
            if not entries:
                continue
            name, version = distribution.metadata["Name"], distribution.version
        except Exception:  # metadata of a package that is only half installed
            continue
        key = re.sub(r"[-_.]+", "-", str(name)).lower()
        if key in packages:  # another one of the same name comes earlier on the path
            continue
        packages.add(key)
        for entry in entries:
            reader = Reader(entry.name, f"{name} {version}")
            reader.load(entry)
            found.append(reader)
    return found


def reader_of(path: str, among: Sequence[Reader]) -> Reader | None:
    """Return the first reader that recognizes a path; None for a placeholder of a file."""
    if not among or placeholder(path) is not None:
        return None
    return next((reader for reader in among if reader.sniff(path)), None)


def faults(among: Sequence[Reader]) -> str:
    """Return sentences about the readers that failed, to follow a message."""
    return "".join(f". The {reader} {reader.fault}" for reader in among if reader.fault)


def _said(error: BaseException) -> str:
    line = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {line}" if line else type(error).__name__
