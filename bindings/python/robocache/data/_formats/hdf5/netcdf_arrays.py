"""Dimensions, labels and attributes of the arrays of a NetCDF-4 file. It runs in the worker."""

from __future__ import annotations

import math
from typing import Any

import h5py
import numpy as np

from .links import require_inside
from .messages import encoded

_ATTRIBUTES = ("units", "calendar", "standard_name", "_FillValue", "missing_value", "scale_factor",
               "add_offset", "_Unsigned")  # fmt: skip
_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable"
_MOST_LABELS = 2048
_LONGEST = 1 << 16  # bytes of an attribute
_MOST_DIMS = 32


def facts_of(name: str, dataset: Any) -> dict[str, Any]:
    """Return facts about an array; an error of HDF5 is one of them."""
    try:
        attributes = _attributes_of(dataset)
        is_scale = h5py.h5ds.is_scale(dataset)
        return {
            "dims": _dims_of(name, dataset, is_scale),
            "labels": _labels_of(dataset),
            "attributes": attributes,
            "only a dimension": is_scale and str(_text(dataset, "NAME")).startswith(_NO_VARIABLE),
        }
    except (KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
        return {"failed": str(error).partition("\n")[0]}


def _attributes_of(dataset: Any) -> dict[str, Any]:
    made = {}
    for name in _ATTRIBUTES:
        value = _text(dataset, name)
        if isinstance(value, (int, float, str)):
            made[name] = value
    return made


def _text(dataset: Any, name: str) -> Any:
    """Return an attribute that is a text or a single number, else None."""
    if not h5py.h5a.exists(dataset, name.encode()):
        return None
    opened = h5py.h5a.open(dataset, name.encode())
    if opened.dtype.itemsize * math.prod(opened.shape or ()) > _LONGEST:
        return None
    value, _ = encoded(h5py.Dataset(dataset).attrs[name])
    return None if value is None else value.get("value")


def _dims_of(name: str, dataset: Any, is_scale: bool) -> list[str]:
    """Return the path of the coordinate of each axis, or a name for an axis without one."""
    extents = dataset.shape
    if len(extents) > _MOST_DIMS:
        raise ValueError(f"has {len(extents)} dimensions")
    dims = []
    for axis in range(len(extents)):
        found: list[str] = [name] if is_scale and axis == 0 else []  # it is named as its dimension
        if not is_scale and h5py.h5ds.get_num_scales(dataset, axis) > 0:
            h5py.h5ds.iterate(dataset, axis, lambda scale: found.append(_path(scale)), 0)  # noqa: B023
        dims.append(found[0] if found else f"{name}, axis {axis}")
    return dims


def _path(scale: Any) -> str:
    name: bytes = h5py.h5i.get_name(scale)
    return name.decode("utf-8", "surrogateescape").lstrip("/")


def _labels_of(dataset: Any) -> list[str] | None:
    """Return the texts of an array of texts, or of characters; None for other arrays."""
    dtype, shape = dataset.dtype, dataset.shape
    is_text = h5py.check_string_dtype(dtype) is not None
    if not is_text or len(shape) not in (1, 2) or shape[0] > _MOST_LABELS:
        return [] if is_text else None
    if math.prod(shape) * max(1, dtype.itemsize) > _LONGEST * 16:
        return []
    require_inside(dataset.get_create_plist())
    values = h5py.Dataset(dataset)[()]
    if len(shape) == 2:  # characters
        if dtype.kind != "S" or dtype.itemsize != 1:
            return []
        values = np.ascontiguousarray(values).view(f"S{shape[1]}")[:, 0] if shape[1] else values
    return [
        each.decode("utf-8", "replace").rstrip() if isinstance(each, bytes) else str(each)
        for each in values.tolist()
    ]
