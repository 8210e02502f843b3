"""Writers of a file and of a folder, whole or not at all, and what they wrote."""

from __future__ import annotations

import os

from robocache._files.atomic_write import written_beside


def put(path, text, overwrite=True):
    with written_beside(str(path), overwrite) as part, open(part, "w") as file:
        file.write(text)


def put_folder(path, text, overwrite=True):
    """Write a folder that looks like a data set."""
    with written_beside(str(path), overwrite) as part:
        os.makedirs(os.path.join(part, "meta"))
        for name in ("meta/info.json", "meta/stats.json"):
            with open(os.path.join(part, name), "w") as file:
                file.write(text)


def texts(path):
    if path.is_file():
        return [path.read_text()]
    return [(path / name).read_text() for name in ("meta/info.json", "meta/stats.json")]


WRITERS = {"file": put, "folder": put_folder}
