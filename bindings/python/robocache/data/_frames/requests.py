"""Checks of the arguments of ``read`` that all sources of frames have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .source import FrameSource


def require_episode(source: FrameSource, episode: int) -> int:
    """Return the number of frames of an episode.

    Raises
    ------
    IndexError
        The data set has no such episode.
    """
    count = len(source.lengths)
    if not 0 <= episode < count:
        raise IndexError(f"episode: is {episode}, expected 0 to {count - 1} ({source.name})")
    return int(source.lengths[episode])


def require_request(source: FrameSource, episode: int, rows: Any, out: Any) -> Any:
    """Return rows as int64 [n], after a check of the arguments of :meth:`FrameSource.read`.

    Raises
    ------
    IndexError
        The data set has no such episode, or the episode no such row.
    ValueError
        The rows do not ascend strictly, or ``out`` does not fit them.
    """
    import numpy as np

    length = require_episode(source, episode)
    rows = np.asarray(rows, np.int64)
    if rows.ndim != 1 or (rows[1:] <= rows[:-1]).any():
        raise ValueError("rows: expected strictly ascending rows, int64 [n]")
    if len(rows) and (rows[0] < 0 or rows[-1] >= length):
        wrong = int(rows[0] if rows[0] < 0 else rows[-1])
        raise IndexError(
            f"rows: has {wrong}, but episode {episode} of {source.name} has {length} frames"
        )
    expected = (len(rows), *source.shape)
    if out.dtype != np.uint8 or out.shape != expected or not out.flags.c_contiguous:
        raise ValueError(
            f"out: has dtype {out.dtype} and shape {list(out.shape)}, expected contiguous uint8 "
            f"{list(expected)}"
        )
    return rows
