"""Devices, pipes and sockets, which no file may take the place of."""

from __future__ import annotations

import os


def refuse_special(path: str) -> None:
    """Raise ``FileExistsError`` where something is that is neither a file nor a folder."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise FileExistsError(
            f"{path}: is a device, a pipe or a socket, expected a place for a file"
        )
