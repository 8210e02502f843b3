"""Expansion of per-stream masks to channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._arguments.arrays import framework_of
from .._library.errors import REFUSALS, blamed
from .._printable import kind_of
from .._typing import Array
from .stream import Stream


def channel_mask(valid: Array, streams: Sequence[Stream[Any]]) -> Array:
    """Repeat the ``valid`` mask of :func:`fuse` for each channel of its result.

    Parameters
    ----------
    valid : array [B,T,N] or [T,N] of NumPy, torch, CuPy or JAX
        The mask that :func:`fuse` returned with its result.
    streams
        The N streams of that call.

    Returns
    -------
    array [B,T,D_0 + ... + D_N-1] or [T,...]
        ``valid`` of each stream, repeated for each of its channels.

    Raises
    ------
    ValueError
        ``valid`` has a different number of streams.
    TypeError
        ``valid`` is not an array, or an element of ``streams`` is not a :class:`Stream`.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> streams = [rbc.Stream(np.ones((2, d)), np.arange(2.0)) for d in (1, 2)]
    >>> _, valid = rbc.fuse(streams, [0.5, 3.0], return_valid=True)
    >>> rbc.channel_mask(valid, streams)
    array([[ True,  True,  True],
           [False, False, False]])
    """
    framework_of(valid, "valid")
    mask: Any = valid
    index: list[int] = []
    for n, stream in enumerate(streams):
        if not isinstance(stream, Stream):
            raise TypeError(f"streams[{n}]: is {kind_of(stream)}, expected a Stream")
        native: Any = stream
        index += [n] * native._native[-1]
    if not hasattr(mask, "shape"):
        raise TypeError(f"valid: is {kind_of(valid)}, expected an array")
    if mask.shape[-1] != len(streams):
        raise ValueError(
            f"valid: its last dimension is {mask.shape[-1]}, expected {len(streams)} "
            "(one per stream)"
        )
    try:
        spread: Array = mask[..., index]
    except REFUSALS as error:  # for example a sparse tensor of torch
        raise blamed(error, "valid") from None
    return spread
