"""Conversion of arrays to NumPy."""

from __future__ import annotations

from typing import Any

from .._library.errors import REFUSALS, blamed


def on_host(array: Any, name: str = "array") -> Any:
    """Return a NumPy array with the same elements; wait for an array on a GPU and copy it."""
    import numpy as np

    if array is None or type(array) is np.ndarray:
        return array
    try:
        if hasattr(array, "detach"):  # torch
            return array.detach().cpu().numpy()
        if hasattr(array, "get") and hasattr(array, "device"):  # CuPy
            return array.get()
        return np.asarray(array) if hasattr(array, "__array__") else np.from_dlpack(array)
    except REFUSALS as error:
        raise blamed(error, name) from None
