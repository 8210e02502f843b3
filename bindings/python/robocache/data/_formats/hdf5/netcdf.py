"""NetCDF-4 files, which are HDF5: variables along a dimension of times become streams.

``process`` reads the files in another process, as for other HDF5 files.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from ..._errors import FormatError, LeftOut
from ..._file_access import head
from ..._options import Options
from ..._recording import Recording
from ..arrays.labelled import Labelled, Variable, as_floats
from ..description import Format
from .process import Failure, File, Piece

FORMAT = Format(
    name="netcdf",
    title="NetCDF-4",
    files="*.nc",
    reads="Variables along a dimension of times: those with only this dimension are one stream, "
    "each other variable is one, with the labels of its other dimensions as names. Units of times, "
    "missing values and packed values follow the attributes.",
    refuses="Variables without times, and texts, are listed. Convert NetCDF-3 with nccopy.",
    package="h5py",
    extra="hdf5",
    example='recording = rbc.data.open("run.nc")',
    named_times=True,
)

_MAGIC = b"\x89HDF\r\n\x1a\n"
_MARKS = (b"_Netcdf4Dimid", b"_Netcdf4Coordinates", b"_NCProperties")
_LOOK = 16 << 10  # bytes in which a mark is found
_FILL = 9.969209968386869e36  # of floats that were not written, by default
_PIECE = 4 << 20  # bytes of rows per step


def sniff(path: str) -> bool:
    if os.path.isdir(path):
        return False
    start = head(path, _LOOK)
    return start.startswith(_MAGIC) and any(mark in start for mark in _MARKS)


def open(path: str, options: Options) -> Recording:
    left_out: list[LeftOut] = []
    with File(path, options.limit) as file:
        found = _answer(file, "look")
        arrays = _answer(file, "dimensions")["arrays"]
    if found["refusal"]:
        raise FormatError(path, "", found["refusal"])
    for name, reason in found["damaged"].items():
        options.damage.found(path, name, reason)
    left_out += [LeftOut(name, reason) for name, reason in found["omitted"].items()]
    variables = []
    total = 0
    extents: dict[str, int] = {}  # of dimensions, as rows may be missing in some variables
    for name, array in found["arrays"].items():
        for dim, extent in zip(arrays.get(name, {}).get("dims", ()), array["shape"] or ()):
            extents[dim] = max(extent, extents.get(dim, 0))
    for name, array in found["arrays"].items():
        own = arrays.get(name, {"failed": "its dimensions cannot be read"})
        if "failed" in own:
            options.damage.found(path, name, own["failed"])
            continue
        if own["only a dimension"]:
            continue
        variable = _variable(path, name, array, own, extents, options, left_out)
        if variable is not None:
            variables.append(variable)
            total += _size(variable)
            options.limit.require(path, name, total, file.size)
    if not variables:
        raise FormatError(path, "", "has no variable that is an array of numbers")
    source = Labelled(path, "NetCDF-4", "netcdf", variables, options, left_out)
    return Recording(source, progress=options.progress)


def _answer(file: File, step: str) -> dict[str, Any]:
    answer = file.step(step, group="")
    if isinstance(answer, Failure):
        raise FormatError(file.path, "", answer.reason)
    return answer[0]


def _size(variable: Variable) -> int:
    size = int(variable.dtype.itemsize)
    for extent in variable.shape:
        size *= extent
    return 0 if variable.labels is not None else size


def _variable(
    path: str,
    name: str,
    array: dict[str, Any],
    facts: dict[str, Any],
    extents: dict[str, int],
    options: Options,
    left_out: list[LeftOut],
) -> Variable | None:
    import numpy as np

    dims = tuple(facts["dims"])
    labels = facts["labels"]
    if array["shape"] is None:
        left_out.append(LeftOut(name, "is empty"))
        return None
    shape = tuple(array["shape"])
    if labels is not None:
        if len(labels) == 0 or len(labels) != (shape or (0,))[0]:
            left_out.append(LeftOut(name, "has texts, which are not read"))
            return None
        return Variable(name, dims[:1], shape[:1], np.dtype("O"), lambda: labels, {}, tuple(labels))
    if not array["dtype"]:
        left_out.append(LeftOut(name, f"has type {array['type']}, which is not read"))
        return None
    if array["lacking"]:
        text = f"is packed with the filter {', '.join(array['lacking'])}, which is not installed"
        left_out.append(LeftOut(name, f"{text}: pip install hdf5plugin"))
        return None
    if "unpacked" in array:
        options.limit.require(path, f"{name}, a chunk", array["unpacked"], os.path.getsize(path))
    dtype = np.dtype(array["dtype"]).newbyteorder("=")
    chunk = array["chunk"][0] if array["chunk"] else 1
    whole = tuple(extents[dim] for dim in dims)
    read = functools.partial(_read, path, name, shape, whole, dtype, chunk, options)
    if whole != shape and dtype.kind != "f":  # what is missing becomes NaN
        dtype = np.dtype(np.float64)
    attributes = facts["attributes"]
    if dtype.kind == "f" and "_FillValue" not in attributes:
        attributes = {**attributes, "_FillValue": _FILL}
    return Variable(name, dims, whole, dtype, read, attributes)


def _read(
    path: str,
    name: str,
    stored: tuple[int, ...],
    shape: tuple[int, ...],
    dtype: Any,
    chunk: int,
    options: Options,
) -> Any:
    """Read a variable; what was not written along unlimited dimensions is NaN."""
    import numpy as np

    values = _read_stored(path, name, stored, dtype, chunk, options)
    if stored == shape:
        return values
    if dtype.kind != "f":
        values = as_floats(path, name, values)
    whole = np.full(shape, np.nan, values.dtype)
    whole[tuple(map(slice, stored))] = values
    first = next(have for have, extent in zip(stored, shape) if have != extent)
    last = next(extent for have, extent in zip(stored, shape) if have != extent) - 1
    text = f"rows {first} to {last} were never written, and read as NaN"
    options.damage.note(path, name, text)
    return whole


def _read_stored(
    path: str, name: str, shape: tuple[int, ...], dtype: Any, chunk: int, options: Options
) -> Any:
    """Read a variable in steps of whole chunks."""
    import numpy as np

    whole = np.empty(shape, dtype)
    rows = shape[0] if shape else 1
    size = max(1, whole.nbytes // max(1, rows))
    step = max(chunk, _PIECE // size // max(1, chunk) * chunk, 1)
    pieces = [
        Piece("", name, begin, min(begin + step, rows), shape[1:], dtype)
        for begin in range(0, rows, step)
    ]

    def take(piece: Piece, values: Any, facts: dict[str, Any]) -> None:
        into = whole[piece.begin : piece.end]
        if isinstance(values, Failure):
            stands = "NaN" if dtype.kind == "f" else "0"
            text = f"rows {piece.begin} to {piece.end - 1} cannot be read: {values.reason}"
            if options.damage.keep:
                text += f"; they are set to {stands}"
            options.damage.found(path, name, text)
            into[...] = np.nan if dtype.kind == "f" else 0
            return
        if piece.begin == 0 and facts["repeated"]:
            text = f"the index lists {facts['repeated']} chunks more than once"
            options.damage.found(path, name, text)
        if piece.begin == 0 and facts["unwritten"]:
            options.damage.note(path, name, facts["unwritten"])
        into[...] = values.view(np.uint8) != 0 if dtype.kind == "b" else values

    if whole.size and shape:
        with File(path, options.limit) as file:
            file.read(pieces, take)
            file.require_unchanged()
    return whole
