"""Zarr: replay buffers of diffusion_policy, UMI and DP3, and what ``save`` wrote."""

from __future__ import annotations

import functools
import json
import math
import os
import zipfile
from collections.abc import Collection
from typing import Any

from .. import Track
from ._episodes import About, Episodes, OnDisk, TrackInfo
from ._errors import FormatError, LeftOut, needed
from ._flat import Data, distinct, flattened, restored
from ._open import Options
from ._recording import Recording
from ._rows import channel_names, clock_rows, is_picture
from ._zarr_metadata import require_harmless

KIND = "Zarr"
_HEADS = (".zgroup", "zarr.json")
_ENDS = "episode_ends"
_TIMES = "timestamp"
_DESCRIPTION = "robocache"
_NUMBERS = "fiubmM"  # kinds of dtypes
_MOST_ROWS = 1 << 62  # which int64 holds, and no array has


def sniff(path: str) -> bool:
    if os.path.isdir(path):
        return any(os.path.isfile(os.path.join(path, name)) for name in _HEADS)
    if not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name in archive.namelist() for name in _HEADS)
    except zipfile.BadZipFile:
        return False


def open(path: str, options: Options) -> Recording | Episodes:
    zarr = needed("zarr", "zarr", "a Zarr store")
    require_harmless(path, options.follow_links)
    store: Any = path
    if not os.path.isdir(path):
        store = zarr.storage.ZipStore(path, mode="r")  # read by key: nothing is unpacked
    try:
        group = zarr.open_group(store, mode="r")
        told = dict(group.attrs).get(_DESCRIPTION)
    except Exception as error:  # zarr's errors have no common class
        raise FormatError(path, "", f"is no Zarr group, or damaged: {_line(error)}") from None
    if isinstance(told, dict) and "robocache" in told:
        try:
            return restored(told, _reader(path, group, options, told), path, "robocache Zarr")
        except (KeyError, TypeError, IndexError) as error:
            raise FormatError(path, _DESCRIPTION, f"is not whole: {error!r}") from None
    return _replay_buffer(path, group, options)


def _replay_buffer(path: str, group: Any, options: Options) -> Episodes:
    """``data`` of rows, ``meta/episode_ends`` of where episodes end."""
    import numpy as np

    if "data" not in group or "meta" not in group or _ENDS not in group["meta"]:
        raise FormatError(path, f"meta/{_ENDS}", "is missing: it is no replay buffer")
    ends = _array(path, group, options, f"meta/{_ENDS}")
    if ends.dtype.kind not in "iu":
        raise FormatError(path, f"meta/{_ENDS}", f"is of {ends.dtype}, expected integers")
    if ends.ndim != 1 or (ends[:1] < 0).any() or (ends[1:] < ends[:-1]).any():
        raise FormatError(path, f"meta/{_ENDS}", "is no list of rows that ascend")
    ends = ends.clip(max=_MOST_ROWS).astype(np.int64)
    for e in np.flatnonzero(np.diff(ends, prepend=0) == 0).tolist():
        options.damage.found(path, f"episode {e}", "has length 0")
    total = int(ends[-1]) if len(ends) else 0
    infos, left_out = {}, []
    for name, array in sorted(group["data"].arrays()):
        shape = tuple(array.shape)
        if is_picture(shape, array.dtype):
            left_out.append(LeftOut(name, f"pictures or clouds, {array.dtype} {list(shape)}"))
        elif array.dtype.kind not in "fiub":
            left_out.append(LeftOut(name, f"is of {array.dtype}"))
        elif not shape or shape[0] < total:
            rows = shape[0] if shape else 0
            options.damage.found(path, f"data/{name}", f"has {rows} rows, but episodes {total}")
            left_out.append(LeftOut(name, f"has {rows} rows, but the episodes {total}"))
        else:
            if shape[0] > total:
                text = f"has {shape[0]} rows, but the episodes end at {total}: the rest is of none"
                options.damage.note(path, f"data/{name}", text)
            names = channel_names(shape[1:])
            width = int(np.prod(shape[1:], dtype=np.int64))
            infos[name] = TrackInfo(names, array.dtype.name, width)
    if not infos:
        raise FormatError(path, "data", "has no array of numbers with a row a step")
    lengths = np.diff(ends, prepend=0).clip(min=0)
    read = functools.partial(_read, path, group, options, infos, lengths)
    about = About(
        KIND,
        rate=options.rate,
        unit=options.unit or "s",
        info=dict(group.attrs),
        left_out=tuple(left_out),
        problems=options.damage.problems,
    )
    if _TIMES in infos and infos[_TIMES].channels == 1:
        del infos[_TIMES]  # of all tracks, which _read takes
    return Episodes.made(OnDisk(infos, lengths, read, one_by_one=True), source=path, about=about)


def _read(
    path: str, group: Any, options: Options, infos: Any, lengths: Any, names: Any, chosen: Any
) -> dict[str, Track]:
    import numpy as np

    own = lengths[chosen]
    begins = (np.cumsum(lengths) - lengths)[chosen]
    offsets = np.concatenate([[0], np.cumsum(own)]).astype(np.int64)
    rows = np.repeat(begins - offsets[:-1], own) + np.arange(offsets[-1])
    whole = len(rows) == int(lengths.sum()) and bool((np.diff(rows) == 1).all())

    def taken(name: str) -> Any:
        values = _array(path, group, options, f"data/{name}")
        values = values[: len(rows)] if whole else values[rows]
        return values.reshape(len(rows), math.prod(values.shape[1:]))

    times = clock_rows(own, options.rate)
    if _TIMES in group["data"] and _TIMES not in infos:
        times = taken(_TIMES)[:, 0]
    return {
        name: Track(taken(name), offsets, times=times, names=infos[name].names) for name in names
    }


def _array(path: str, group: Any, options: Options, name: str) -> Any:
    """All of an array; of a damaged one, what can be read, where damage is kept."""
    import numpy as np

    try:
        array = group[name]
    except KeyError:
        raise FormatError(path, name, "is missing") from None
    if not hasattr(array, "dtype"):
        raise FormatError(path, name, "is a group, expected an array")
    if array.dtype.kind not in _NUMBERS:
        raise FormatError(path, name, f"is of {array.dtype}, expected numbers")
    try:
        if array.size == 0:
            return np.zeros(array.shape, array.dtype.newbyteorder("="))
        missing = array.nchunks - array.nchunks_initialized
        values = None if missing else np.asarray(array[...])
    except Exception as error:
        options.damage.found(path, name, f"a chunk cannot be read: {_line(error)}")
        return _around(array)
    if values is None:
        # zarr itself leaves out chunks that hold nothing else.
        text = f"{missing} of {array.nchunks} chunks are not there, and read as {array.fill_value}"
        options.damage.note(path, name, text)
        values = np.asarray(array[...])
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _reader(path: str, group: Any, options: Options, told: dict[str, Any]) -> Any:
    """The way to the arrays of a description."""
    import numpy as np

    places = _places(told)

    def read(name: str) -> Any:
        if places[name]:
            return _array(path, group, options, places[name])
        ends = _array(path, group, options, f"meta/{_ENDS}")
        return np.concatenate([[0], ends]).astype(np.int64)

    return read


def _around(array: Any) -> Any:
    """Rows whose chunks can be read; NaN, or 0 of integers, in the others."""
    import numpy as np

    fill = np.nan if array.dtype.kind == "f" else 0
    values = np.full(array.shape, fill, array.dtype.newbyteorder("="))
    step = array.chunks[0]
    for begin in range(0, array.shape[0], step):
        try:
            values[begin : begin + step] = array[begin : begin + step]
        except Exception:
            continue
    return values


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


# ---- writing ------------------------------------------------------------------------------------


def write(given: Data, part: str) -> Collection[LeftOut]:
    """Episodes whose tracks have the same rows as a replay buffer, all else as named arrays."""
    import numpy as np

    zarr = needed("zarr", "zarr", "a Zarr store")
    os.mkdir(part)  # so that an error of it is the system's
    try:
        group = zarr.open_group(part, mode="w", zarr_format=2)
    except TypeError:  # zarr 2 has no other
        group = zarr.open_group(part, mode="w")
    told, arrays = flattened(given)
    places = _places(told)
    if isinstance(given, Episodes):
        ends = _ends_of(given)
        _put(group, f"meta/{_ENDS}", ends)
    for name, array in arrays:
        if places[name]:
            _put(group, places[name], np.ascontiguousarray(array))
    group.attrs[_DESCRIPTION] = json.loads(json.dumps(told))
    return ()


def _ends_of(given: Episodes) -> Any:
    """Where episodes end: in the same rows of all tracks."""
    tracks = list(given.tracks.items())
    first_name, first = tracks[0]
    for name, track in tracks:
        if (track.lengths != first.lengths).any():
            raise ValueError(
                f"format: 'zarr' has the same rows in all tracks, but {name} has other ones than "
                f"{first_name}; align them, or take 'npz'"
            )
    return first.lengths.cumsum()


def _places(told: dict[str, Any]) -> dict[str, str]:
    """Where each array of a description is in the group; "" of what others tell."""
    places = {}
    if told["robocache"] == "recording":
        names = distinct([of["name"] for of in told["streams"]])
        for i, (of, name) in enumerate(zip(told["streams"], names)):
            places[f"s{i}_values"] = f"streams/{name}/values"
            for clock in of["clocks"]:
                places[f"s{i}_{clock}"] = f"streams/{name}/{clock}"
        return places
    names = distinct([of["name"] for of in told["tracks"]])
    for i, name in enumerate(names):
        places[f"t{i}_offsets"] = ""
        places[f"t{i}_values"] = f"data/{name}"
        places[f"t{i}_times"] = f"times/{name}"
    return places


def _put(group: Any, place: str, array: Any) -> None:
    rows = max(1, min(len(array), (1 << 20) // max(1, array[:1].nbytes)))
    chunks = (rows, *array.shape[1:]) if array.ndim else None
    try:
        made = group.create_array(
            place,
            shape=array.shape,
            dtype=array.dtype,
            chunks=chunks or "auto",
            config={"write_empty_chunks": True},  # so that one that is not there was lost
        )
    except AttributeError:  # zarr 2, which writes them
        made = group.create_dataset(place, shape=array.shape, dtype=array.dtype, chunks=chunks)
    # Chunk by chunk: of several at once zarr goes on writing some after one has failed.
    for begin in range(0, len(array) if array.size else 0, rows):
        made[begin : begin + rows] = array[begin : begin + rows]
