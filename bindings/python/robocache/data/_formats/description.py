"""The description of a format, for ``robocache formats`` and the documentation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Format:
    """One format that :func:`robocache.data.open` reads.

    Each reader is a module with ``FORMAT``, a description, or ``FORMATS``, a tuple of several;
    ``sniff(path) -> bool``, which detects the format by its content; and ``open(path, options)``,
    which returns a recording, episodes or a point cloud. See :doc:`/formats`.
    """

    name: str  #: short name, such as "ulog", for ``robocache formats``
    title: str  #: name for people, such as "PX4 ULog"
    files: str  #: usual names of the files, such as "*.ulg"
    reads: str  #: what becomes streams and channels, with kinds, units and the clock
    refuses: str = ""  #: what is not read, and why
    package: str = ""  #: packages that read it, separated by commas; empty: only NumPy
    extra: str = ""  #: extra of robocache that installs the package
    example: str = ""  #: one line of code, beginning with ``recording =`` or similar
    named_times: bool = False  #: whether ``time=`` can name the column or the array of times
