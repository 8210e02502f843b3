"""Reuse of the memory of large results on the CPU: new pages from the system would be slow.

An array owns its memory until it is deleted, like any new array; a later result may then reuse it.
"""

from __future__ import annotations

import atexit
import operator
from math import prod
from typing import Any

from .. import _core
from .errors import REFUSALS, shown

LEAST_ELEMENTS = 1 << 17  # smaller arrays are allocated as usual; the extension checks the bytes
LEAST_TENSOR = 32 << 20  # from this number of bytes on, glibc uses new pages for each allocation

_MOST_BYTES = 2**63 - 1  # the largest int64

atexit.register(_core.limit_memory, 0)  # arrays that are deleted later keep no memory


def limit_idle_memory(num_bytes: int) -> int:
    """Limit how much memory of deleted results this process keeps for reuse.

    The default is 256 MiB; 0 keeps none. Memory above the new limit is freed at once.

    Parameters
    ----------
    num_bytes
        Maximum number of idle bytes. Memory of arrays in use does not count.

    Returns
    -------
    int
        The number of bytes that were freed.

    Raises
    ------
    ValueError
        ``num_bytes`` is negative.
    TypeError
        ``num_bytes`` is not an int.

    Examples
    --------
    >>> import robocache as rbc
    >>> rbc.limit_idle_memory(1 << 30)
    0
    """
    try:
        count = operator.index(num_bytes)
    except REFUSALS:
        raise TypeError(f"num_bytes: is {shown(num_bytes)}, expected an int") from None
    if count < 0:
        raise ValueError(f"num_bytes: is {count}, expected 0 or more")
    return int(_core.limit_memory(min(count, _MOST_BYTES)))


def release_idle_memory() -> int:
    """Free the memory that is kept for later results.

    Returns
    -------
    int
        The number of bytes that were freed.

    Examples
    --------
    >>> import robocache as rbc
    >>> freed = rbc.release_idle_memory()
    >>> rbc.release_idle_memory()
    0
    """
    return int(_core.release_memory(0))


def takes_warm(numpy: Any) -> bool:
    """Whether this NumPy can create arrays in the memory that is kept here."""
    internal = numpy._core if hasattr(numpy, "_core") else numpy.core
    try:
        return bool(_core.use_numpy(internal._multiarray_umath._ARRAY_API))
    except (AttributeError, ValueError):  # an unknown version of NumPy
        return False


class WarmTensors:
    """Creator of large torch tensors in NumPy arrays, whose memory is kept here."""

    def __init__(self, torch: Any, numpy: Any) -> None:
        self._torch = torch
        self._numpy = numpy

    @classmethod
    def create(cls, torch: Any) -> WarmTensors | None:
        """Return a creator; None without a suitable NumPy, or before torch 2.0."""
        try:
            import numpy
        except ImportError:
            return None
        usable = takes_warm(numpy) and hasattr(torch.Tensor, "untyped_storage")
        return cls(torch, numpy) if usable else None

    def empty(self, shape: tuple[int, ...], kind: Any) -> Any:
        """Return a tensor of this dtype; None if it is too small to gain from this memory."""
        tensor = self._torch.empty(0, dtype=kind)
        size = prod(shape) * tensor.element_size()
        if size < LEAST_TENSOR:
            return None
        data = _core.warm_array(self._numpy.empty, (size,), self._numpy.dtype("uint8"))
        return tensor.set_(self._torch.from_numpy(data).untyped_storage(), 0, shape)
