"""Check of what may be replaced: files, and folders with only files that RoboCache writes."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator

from .._printable import printable

_LEROBOT = re.compile(
    r"meta/(\w+_)?stats\.json|meta/info\.json|meta/tasks\.parquet"
    r"|(data|meta/episodes)/chunk-\d+/file-\d+\.parquet"
)
# Of conversions, which mark their folders: other data sets with videos are not replaced.
_MARK = "robocache.json"
_MARKED = re.compile(
    rf"(meta/)?{_MARK}|meta/(tasks|episodes|episodes_stats)\.jsonl"
    r"|data/chunk-\d+/episode_\d+\.parquet|videos/.+\.mp4"
    r"|(dataset_info|features)\.json|[^/]+\.tfrecord-\d+-of-\d+"
)
_ZARR = re.compile(r"(.+/)?(\.zgroup|\.zarray|\.zattrs|\d+(\.\d+)*)")
PICTURES = "robocache_pictures.json"  # marks a folder of resized pictures
_PICTURE = re.compile(rf"{PICTURES}|.+\.(png|jpg)")
_CLOUD = {"points.npy", "count.npy"}
_TRIES = 100


def check_replaceable(path: str, part: str | None = None) -> None:
    """Check that replacing a path deletes only files that RoboCache writes.

    ``part`` is the file or folder that will replace it, if that exists already.

    Raises
    ------
    FileExistsError
        The path is a device, a pipe or a socket, a folder with other files, or the current folder.
    """
    for tries_left in reversed(range(_TRIES)):
        before = _identity(path)
        try:
            return _check(path, part)
        except OSError as error:
            # Another writer may replace the folder in the middle of the check.
            moved = isinstance(error, FileNotFoundError) or _identity(path) != before
            if not moved or tries_left == 0:
                raise


def _identity(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns


def _check(path: str, part: str | None) -> None:
    if not os.path.isdir(path):
        if os.path.exists(path) and not os.path.isfile(path):
            text = "is a device, a pipe or a socket, expected a path for a file"
            raise FileExistsError(f"{printable(path)}: {text}")
        return
    if os.path.islink(path):
        raise FileExistsError(f"{printable(path)}: is a link to a folder; name the folder itself")
    if _holds_current(path):
        raise FileExistsError(
            f"{printable(path)}: is or contains the current folder; choose another path"
        )
    other = _of_others(path)
    if other is not None:
        raise FileExistsError(
            f"{printable(path)}: contains {printable(other)}, which RoboCache "
            "does not write there, and overwrite=True "
            "would delete it; choose another path, or delete the folder yourself"
        )
    if part is not None and os.path.isdir(part) and os.listdir(path):
        if _kind(path) != _kind(part):
            raise FileExistsError(
                f"{printable(path)}: contains {_kind(path)}, and overwrite=True "
                "replaces only the same type of data; choose another path"
            )


def lies_in(path: str, folder: str) -> bool:
    """Whether a path is ``folder`` or inside of it, with all links followed."""
    path, folder = os.path.realpath(path), os.path.realpath(folder)
    while not _same(path, folder):
        above = os.path.dirname(path)
        if above == path:
            return False
        path = above
    return True


def _same(path: str, other: str) -> bool:
    try:
        return path == other or os.path.samefile(path, other)
    except OSError:  # one of them does not exist
        return False


def _holds_current(path: str) -> bool:
    try:
        return lies_in(os.getcwd(), path)
    except FileNotFoundError:  # it was deleted
        return False


def _of_others(folder: str) -> str | None:
    """Return a file in a folder that saving does not write, or None."""
    names = sorted(_files(folder))
    if PICTURES in names:
        return next((n for n in names if not _fits(n, [_PICTURE]) or _odd(folder, n)), None)
    if _is_data_set(folder):
        patterns = [_LEROBOT if "meta/info.json" in names else _ZARR]
        patterns += [_MARKED] if {_MARK, f"meta/{_MARK}"} & set(names) else []
        return next((n for n in names if not _fits(n, patterns) or _odd(folder, n)), None)
    return next((n for n in names if not _is_cloud(os.path.join(folder, n), n)), None)


def _fits(name: str, patterns: list[re.Pattern[str]]) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)


def _kind(folder: str) -> str:
    if os.path.isfile(os.path.join(folder, PICTURES)):
        return "pictures"
    return "a data set" if _is_data_set(folder) else "point clouds"


def _is_data_set(folder: str) -> bool:
    marks = ("meta/info.json", ".zgroup", _MARK)
    return any(os.path.isfile(os.path.join(folder, name)) for name in marks)


def _files(folder: str) -> Iterator[str]:
    """Yield the relative paths of all files in a folder, and of links to folders."""

    def fail(error: OSError) -> None:
        raise error

    for base, folders, files in os.walk(folder, onerror=fail):
        links = [name for name in folders if os.path.islink(os.path.join(base, name))]
        for name in files + links:
            yield os.path.relpath(os.path.join(base, name), folder).replace(os.sep, "/")


def _odd(folder: str, name: str) -> bool:
    path = os.path.join(folder, name)
    return os.path.islink(path) or not os.path.isfile(path)


def _is_cloud(path: str, name: str) -> bool:
    if "/" in name or not name.endswith(".npz") or os.path.islink(path):
        return False
    try:
        with zipfile.ZipFile(path) as file:
            return set(file.namelist()) == _CLOUD
    except (zipfile.BadZipFile, OSError):
        return False
