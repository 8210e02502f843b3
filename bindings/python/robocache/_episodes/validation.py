"""Validation of the arguments of tracks, and of indices of episodes."""

from __future__ import annotations

from typing import Any

from .._arguments.arrays import dtype_of, framework_of, shape_of
from .._arguments.to_numpy import on_host
from .._library.errors import REFUSALS, blamed, shown


def extents_of(values: Any) -> tuple[int, int]:
    framework_of(values, "values").examine(values, "values")
    shape = tuple(shape_of(values, "values"))
    if len(shape) != 2:
        advice = (
            "; pass values[:, None]" if len(shape) == 1 else "; flatten the axes after the first"
        )
        raise ValueError(f"values: shape is {list(shape)}, expected [n,D]{advice}")
    return int(shape[0]), int(shape[1])


def length_of(times: Any, argument: str = "times") -> int:
    shape = tuple(shape_of(times, argument))
    if len(shape) != 1:
        raise ValueError(f"{argument}: shape is {list(shape)}, expected [n] (one per row)")
    name = dtype_of(times, argument)
    if name not in ("float32", "float64", "int64"):
        raise TypeError(f"{argument}: dtype is {name}, expected float32, float64 or int64")
    return int(shape[0])


def checked_offsets(offsets: Any, rows: int | None) -> Any:
    """Return a copy of valid offsets in NumPy."""
    import numpy as np

    try:
        host = on_host(offsets, "episode_offsets") if hasattr(offsets, "__dlpack__") else offsets
        host = np.asarray(host)
    except REFUSALS as error:
        raise blamed(error, "episode_offsets") from None
    if host.size > 0 and host.dtype.kind not in "iu":
        raise TypeError(f"episode_offsets: dtype is {host.dtype}, expected int64")
    if host.ndim != 1 or len(host) == 0:
        raise ValueError(
            f"episode_offsets: shape is {list(host.shape)}, expected [E+1]: "
            "where each of E episodes begins, and where the last ends"
        )
    host = host.astype(np.int64)
    steps = np.diff(host)
    if host[0] != 0:
        raise ValueError(f"episode_offsets: begins with {host[0]}, expected 0")
    if (steps < 0).any():
        at = int(np.argmax(steps < 0))
        raise ValueError(
            f"episode_offsets: decreases from {host[at]} to {host[at + 1]} at index {at + 1}; "
            "if these are lengths, pass np.concatenate([[0], np.cumsum(lengths)])"
        )
    if rows is not None and host[-1] != rows:
        raise ValueError(
            f"episode_offsets: ends with {host[-1]}, expected {rows}, the number of rows"
        )
    host.flags.writeable = False
    return host


def checked_names(names: Any, values: Any, channels: int) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"names: is {shown(names)}, expected a list with a string per channel")
    checked = tuple(names)
    if values is None:
        raise ValueError("names: only valid with values, whose channels they name")
    if len(checked) != channels:
        raise ValueError(
            f"names: got {len(checked)}, expected {channels} (one per channel of values)"
        )
    for i, name in enumerate(checked):
        if name in checked[:i]:
            raise ValueError(f"names: has {name!r} twice, expected different names")
    return checked


def checked_files(files: Any, episodes: int) -> tuple[Any, ...]:
    if isinstance(files, (str, bytes)):
        raise TypeError(f"files: is {shown(files)}, expected a list with one per episode")
    checked = tuple(files)
    if len(checked) != episodes:
        raise ValueError(f"files: got {len(checked)}, expected {episodes} (one per episode)")
    return checked


def chosen_episodes(indices: Any, count: int) -> Any:
    """Return indices of episodes, a slice or bools as indices from 0, int64 in NumPy."""
    import numpy as np

    if isinstance(indices, slice):
        return np.arange(count)[indices]
    try:
        requested = on_host(indices, "indices") if hasattr(indices, "__dlpack__") else indices
        requested = np.atleast_1d(np.asarray(requested))
    except REFUSALS as error:
        raise blamed(error, "indices") from None
    if requested.dtype.kind == "b":
        if requested.shape != (count,):
            raise IndexError(f"indices: got {list(requested.shape)} bools, expected [{count}]")
        return np.flatnonzero(requested)
    if requested.size == 0:
        return np.zeros(0, np.int64)
    if requested.dtype.kind not in "iu" or requested.ndim != 1:
        raise TypeError(f"indices: is {shown(indices)}, expected indices of episodes")
    wrong = (requested < -count) | (requested >= count)
    if wrong.any():
        value = requested[wrong][0]
        if count == 0:
            raise IndexError(f"indices: has {value}, but there are no episodes")
        raise IndexError(
            f"indices: has {value}, expected {-count} to {count - 1} ({count} episodes)"
        )
    return np.where(requested < 0, requested + count, requested).astype(np.int64)
