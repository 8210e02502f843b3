"""Memory of large results on the CPU, which later results take over: fresh pages would be cold.

An array owns its memory until it is gone, as any new one does; only then the next may have it.
"""

from __future__ import annotations

import atexit
import operator
from math import prod
from typing import Any

from .. import _core
from .errors import REFUSALS, shown

LEAST_ELEMENTS = 1 << 17  # what has fewer is allocated as ever; the extension goes by bytes
LEAST_TENSOR = 32 << 20  # bytes from which on glibc has fresh pages for each allocation

_MOST_BYTES = 2**63 - 1  # more than there are

atexit.register(_core.limit_memory, 0)  # what goes later is not waited for


def limit_idle_memory(num_bytes: int) -> int:
    """Choose how much memory of results that are gone is kept for later ones, in this process.

    Until then it is 256 MiB. With 0 none is kept. What is above the limit is given back at once.

    Parameters
    ----------
    num_bytes
        The most that may be idle. Memory of arrays that are in use does not count.

    Returns
    -------
    int
        The number of bytes that were given back.

    Raises
    ------
    ValueError
        ``num_bytes`` is negative.
    TypeError
        ``num_bytes`` is no int.

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
    """Give memory that is kept for later results back to the system.

    Returns
    -------
    int
        The number of bytes that were given back.

    Examples
    --------
    >>> import robocache as rbc
    >>> freed = rbc.release_idle_memory()
    >>> rbc.release_idle_memory()
    0
    """
    return int(_core.release_memory(0))


def takes_warm(numpy: Any) -> bool:
    """Whether this NumPy can make arrays in memory that is kept here."""
    internal = numpy._core if hasattr(numpy, "_core") else numpy.core
    try:
        return bool(_core.use_numpy(internal._multiarray_umath._ARRAY_API))
    except (AttributeError, ValueError):  # another NumPy than those that there are
        return False


class WarmTensors:
    """Makes large tensors of torch in NumPy's arrays, whose memory is kept here."""

    def __init__(self, torch: Any, numpy: Any) -> None:
        self._torch = torch
        self._numpy = numpy

    @classmethod
    def of(cls, torch: Any) -> WarmTensors | None:
        """None where there is no NumPy that suits, or a torch before 2.0."""
        try:
            import numpy
        except ImportError:
            return None
        usable = takes_warm(numpy) and hasattr(torch.Tensor, "untyped_storage")
        return cls(torch, numpy) if usable else None

    def empty(self, shape: tuple[int, ...], kind: Any) -> Any:
        """A tensor of this dtype; None if it is so small that torch's own memory stays warm."""
        tensor = self._torch.empty(0, dtype=kind)
        size = prod(shape) * tensor.element_size()
        if size < LEAST_TENSOR:
            return None
        data = _core.warm_array(self._numpy.empty, (size,), self._numpy.dtype("uint8"))
        return tensor.set_(self._torch.from_numpy(data).untyped_storage(), 0, shape)
