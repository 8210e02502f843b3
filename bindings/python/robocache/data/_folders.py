"""Files of a data set, which are in its folder: neither ``..`` nor a link leads out of it."""

from __future__ import annotations

import os
import stat

from ._errors import FormatError


def special_kind(path: str) -> str | None:
    """What a path is that is neither a file nor a folder, reading which may never end."""
    mode = os.stat(path).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"


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
            It is not there, or elsewhere, or a device, a pipe or a socket.
        """
        joined = self.place(name)
        self.require_inside(name)
        if not os.path.exists(joined):
            raise FormatError(self.path, name, "is missing")
        special = special_kind(joined)
        if special is not None:
            raise FormatError(self.path, name, f"is {special}, expected a file or a folder")
        return joined

    def place(self, name: str) -> str:
        """The path that a name has in it, whether there is a file or not. Links are not looked at.

        Raises
        ------
        FormatError
            The name alone leads elsewhere.
        """
        parts = name.replace("\\", "/").split("/")
        if os.path.isabs(name) or ".." in parts:
            raise FormatError(self.path, name, "leads out of the data set, and is not followed")
        return os.path.join(self.path, name)

    def require_inside(self, name: str) -> None:
        """No link leads out of it on the way to a file.

        Raises
        ------
        FormatError
            One does.
        """
        if not self.follow_links and not self.holds(os.path.join(self.path, name)):
            raise FormatError(
                self.path, name, "is a link out of the data set; follow_links=True follows it"
            )

    def holds(self, path: str) -> bool:
        """Whether a path, all links followed, is in the folder."""
        real = os.path.realpath(path)
        return real == self.real or real.startswith(self.real.rstrip(os.sep) + os.sep)

    def has(self, name: str) -> bool:
        return os.path.exists(os.path.join(self.path, name))
