"""Saving: what was written appears whole, or not at all."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, Union

from .._files.atomic_write import written_beside
from ._errors import LeftOut, omitted_by

if TYPE_CHECKING:
    from .._episodes.episodes import Episodes
    from ._recording import Recording

    Data = Union[Recording, Episodes]

_WRITERS = {"npz": "arrays.npz", "zarr": "zarr.zarr", "lerobot": "lerobot.write"}


def save(
    given: Data,
    path: str | os.PathLike[str],
    format: str = "npz",
    *,
    overwrite: bool = False,
) -> tuple[LeftOut, ...]:
    """Write a recording or episodes, so that :func:`open` gives every value and stamp back.

    It is written beside its place and then renamed: a crash, a full disk or Ctrl-C leaves what was
    there before.

    Parameters
    ----------
    given
        A :class:`Recording` or :class:`robocache.Episodes`.
    path
        A file for "npz", a folder for the others.
    format
        "npz": all in one file. "zarr": episodes as a replay buffer, as diffusion_policy has them,
        recordings as a group a stream. "lerobot": episodes as a LeRobot v3.0 data set without
        videos, with exact statistics; all tracks need the same rows, as :meth:`Recording.align`
        makes them.
    overwrite
        Whether to replace what is there.

    Returns
    -------
    tuple of LeftOut
        What is not in the file: what was left out when ``given`` was read, and what the format
        cannot hold.

    Raises
    ------
    FileExistsError
        There is something, and ``overwrite`` is not set.
    OSError
        It cannot be written; what was there is still there.
    ValueError
        The format cannot hold it.
    TypeError
        ``given`` is neither a recording nor episodes.
    """
    if format not in _WRITERS:
        names = ", ".join(map(repr, _WRITERS))
        raise ValueError(f"format: is {format!r}, expected one of {names}")
    writer: Any = importlib.import_module(f"._formats.{_WRITERS[format]}", __package__)
    data = _data_of(given)
    data.load()
    with written_beside(os.fsdecode(path), overwrite) as part:
        left_out = writer.write(data, part)
    return tuple(dict.fromkeys([*omitted_by(data), *(left_out or ())]))


def _data_of(given: Any) -> Data:
    """A recording or episodes of this package."""
    from .. import Episodes, Track
    from ._recording import Recording

    if isinstance(given, (Recording, Episodes)):
        return given
    way = ""
    if isinstance(given, Track):
        way = "; robocache.Episodes({'name': track}) makes episodes of a track"
    elif isinstance(given, dict):
        way = "; robocache.Episodes(tracks) makes episodes of a dict of tracks"
    text = f"given: is a {type(given).__name__}, expected a Recording or Episodes{way}"
    raise TypeError(text)
