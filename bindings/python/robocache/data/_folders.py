"""Files of a data set, which are in its folder: neither ``..`` nor a link leads out of it."""

from __future__ import annotations

import os

from ._errors import FormatError


class Folder:
    """A data set's folder."""

    def __init__(self, path: str, follow_links: bool = False) -> None:
        self.path = path
        self.follow_links = follow_links
        self.real = os.path.realpath(path)

    def file(self, name: str) -> str:
        """The path of a file in it, by its name from there.

        Raises
        ------
        FormatError
            It is not there, or elsewhere.
        """
        joined = os.path.join(self.path, name)
        parts = name.replace("\\", "/").split("/")
        if os.path.isabs(name) or ".." in parts:
            raise FormatError(self.path, name, "leads out of the data set, and is not followed")
        if not self.follow_links and not self.holds(joined):
            raise FormatError(
                self.path, name, "is a link out of the data set; follow_links=True follows it"
            )
        if not os.path.exists(joined):
            raise FormatError(self.path, name, "is missing")
        return joined

    def holds(self, path: str) -> bool:
        """Whether a path, all links followed, is in the folder."""
        real = os.path.realpath(path)
        return real == self.real or real.startswith(self.real.rstrip(os.sep) + os.sep)

    def has(self, name: str) -> bool:
        return os.path.exists(os.path.join(self.path, name))
