"""Saving: what was written appears whole, or not at all."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, Union

from .._writing import written_beside
from ._errors import LeftOut

if TYPE_CHECKING:
    from ._episodes import Episodes
    from ._recording import Recording

    Data = Union[Recording, Episodes]

_WRITERS = {"npz": "_npz", "zarr": "_zarr_files", "lerobot": "_lerobot_save"}


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
        A :class:`Recording` or :class:`Episodes`.
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
        What the format cannot hold.

    Raises
    ------
    FileExistsError
        There is something, and ``overwrite`` is not set.
    OSError
        It cannot be written; what was there is still there.
    ValueError
        The format cannot hold it.
    """
    if format not in _WRITERS:
        names = ", ".join(map(repr, _WRITERS))
        raise ValueError(f"format: is {format!r}, expected one of {names}")
    writer: Any = importlib.import_module(f".{_WRITERS[format]}", __package__)
    given.load()
    with written_beside(os.fsdecode(path), overwrite) as part:
        left_out = writer.write(given, part)
    return tuple(left_out or ())
