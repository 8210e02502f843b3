"""Saving of recordings and episodes; an output appears completely or not at all."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, Union

from .._files.atomic_write import written_beside
from .._printable import kind_of
from ._errors import LeftOut, omitted_by
from ._write import formats
from ._write.memory import EpisodesDataSet

if TYPE_CHECKING:
    from .._episodes.episodes import Episodes
    from ._recording import Recording

    Data = Union[Recording, Episodes]

# Writers that keep every stamp. ``_write`` has the writers of the other formats.
_WRITERS = {"npz": "arrays.npz", "zarr": "zarr.zarr", "lerobot": "lerobot.write"}


def save(
    data: Data,
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    overwrite: bool = False,
) -> tuple[LeftOut, ...]:
    """Write a recording or episodes.

    From "npz", "zarr" and "lerobot", :func:`open` returns the same values and stamps.

    The output is written under a temporary name and then renamed: after a crash, a full disk or
    Ctrl-C, a previous output is still there.

    Parameters
    ----------
    data
        A :class:`Recording` or :class:`robocache.Episodes`.
    path
        A file or a folder.
    format
        "npz": a single file. "zarr": episodes as a replay buffer, as in diffusion_policy,
        recordings as one group per stream. "lerobot": episodes as a LeRobot v3.0 data set without
        videos, with exact statistics. "lerobot-v2.1", "robomimic" (.hdf5), "rlds", "parquet" and
        "csv": episodes. All except "npz" need the same rows in all tracks, as
        :meth:`Recording.align` returns them. None: by the suffix of ``path``; "lerobot" without a
        suffix.
    overwrite
        Whether to replace an existing output.

    Returns
    -------
    tuple of LeftOut
        Data that are not in the output: what was omitted when ``data`` was read, and what the
        format cannot store.

    Raises
    ------
    FileExistsError
        The path exists, and ``overwrite`` is not set.
    OSError
        Writing failed; a previous output is still there.
    ValueError
        The format cannot store the data.
    TypeError
        ``data`` is neither a recording nor episodes.
    """
    name = os.fsdecode(path)
    format = formats.format_for(name, format)
    checked = _data_of(data)
    checked.load()
    if format in _WRITERS:
        writer: Any = importlib.import_module(f"._formats.{_WRITERS[format]}", __package__)
        with written_beside(name, overwrite) as part:
            left_out = writer.write(checked, part)
    else:
        from .._episodes.episodes import Episodes

        if not isinstance(checked, Episodes):
            raise ValueError(f"format: {format!r} needs episodes; use recording.align(rate)")
        rows = EpisodesDataSet(checked, format)
        formats.require_names(format, rows.features)
        with written_beside(name, overwrite) as part:
            lost = formats.writer_of(format).write(rows, part, formats.Options(format))
        left_out = [*rows.left_out, *(lost or ())]
    return tuple(dict.fromkeys([*omitted_by(checked), *(left_out or ())]))


def _data_of(value: Any) -> Data:
    """Return the argument if it is a recording or episodes; else raise with advice."""
    from .. import Episodes, Track
    from ._recording import Recording

    if isinstance(value, (Recording, Episodes)):
        return value
    way = ""
    if isinstance(value, Track):
        way = "; use robocache.Episodes({'name': track})"
    elif isinstance(value, dict):
        way = "; use robocache.Episodes(tracks)"
    text = f"data: is {kind_of(value)}, expected a Recording or Episodes{way}"
    raise TypeError(text)
