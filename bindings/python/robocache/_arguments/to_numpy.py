"""Arrays in the memory of the CPU, as NumPy has them."""

from __future__ import annotations

from typing import Any

from .._library.errors import REFUSALS, blamed


def on_host(array: Any, name: str = "array") -> Any:
    """An array of NumPy with the same elements; a copy of what is on a GPU, which is waited for."""
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
