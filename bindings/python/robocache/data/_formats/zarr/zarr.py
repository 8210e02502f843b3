"""Zarr: replay buffers of diffusion_policy, UMI and DP3, and the output of ``save``."""

from __future__ import annotations

import functools
import json
import math
import os
import zipfile
from collections.abc import Collection
from typing import Any

from .... import Track
from ...._episodes.episodes import Episodes, make_episodes
from ...._episodes.lazy_tracks import About, LazyTracks, TrackInfo
from ..._errors import FormatError, LeftOut, needed, raise_shortage
from ..._file_access import opened
from ..._frames.arrays import ArrayFrames, may_be_camera
from ..._options import Options
from ..._recording import Recording
from ..arrays.named_arrays import Data, distinct, flattened, restored
from ..arrays.rows import channel_names, clock_rows, is_picture
from ..description import Format
from .arrays import Store, first_line
from .calls import in_one_thread, open_group
from .frames import ZarrRows
from .metadata import require_harmless
from .store import files_of, group_of, is_old

KIND = "Zarr"
_HEADS = (".zgroup", "zarr.json")
_ENDS = "episode_ends"
_TIMES = "timestamp"
_DESCRIPTION = "robocache"
_MOST_ROWS = 1 << 62  # fits int64, and is more than any array has


FORMAT = Format(
    name="zarr",
    title="Zarr replay buffer (diffusion_policy, UMI, DP3)",
    files="*.zarr, *.zarr.zip",
    reads="Episodes with one track per numeric array of data; meta/episode_ends cuts the rows "
    "into episodes. Arrays of pictures are cameras: uint8 [n,h,w,3], or floats that are whole "
    "numbers from 0 to 255, named img, image, rgb or cam. Times are data/timestamp in seconds, or "
    "come from rate=. What save wrote has every value and stamp.",
    refuses="Point clouds and pictures of other dtypes are listed in left_out. Codecs that are not "
    "known to be harmless are refused: pickle, for one, runs any code.",
    package="zarr",
    extra="zarr",
    example='episodes = rbc.data.open("pusht.zarr", rate=10)',
)


def sniff(path: str) -> bool:
    if os.path.isdir(path):
        heads = [os.path.join(path, name) for name in _HEADS]
        return any(os.path.exists(head) and not os.path.isdir(head) for head in heads)
    try:
        with opened(path) as file, zipfile.ZipFile(file) as archive:
            return any(name in archive.NameToInfo for name in _HEADS)
    except Exception:  # errors of zipfile, struct and text decoding
        raise_shortage(path)
        return False


def open(path: str, options: Options) -> Recording | Episodes:
    needed("zarr", "zarr", "a Zarr store")
    files = files_of(path, options.follow_links, options.limit)
    require_harmless(files, options.follow_links)
    try:
        group = group_of(files)
        description = dict(group.attrs).get(_DESCRIPTION)
    except Exception as error:  # errors of zarr have no common class
        raise_shortage(path)
        text = f"is not a Zarr group, or is damaged: {first_line(error)}"
        raise FormatError(path, "", text) from None
    store = Store(path, group, files, options)
    if isinstance(description, dict) and "robocache" in description:
        try:
            problems = options.damage.problems
            return restored(
                description, _reader(store, description), path, "robocache Zarr", problems
            )
        except FormatError:
            raise
        except Exception as error:  # the description does not fit its arrays
            raise_shortage(path)
            if isinstance(error, OSError):
                raise
            raise FormatError(path, _DESCRIPTION, f"is incomplete: {error!r}") from None
    return _replay_buffer(store, options)


def _replay_buffer(store: Store, options: Options) -> Episodes:
    """Open a replay buffer: ``data`` has the rows, ``meta/episode_ends`` the ends of episodes."""
    import numpy as np

    path, group = store.path, store.group
    if "data" not in group or "meta" not in group or _ENDS not in group["meta"]:
        raise FormatError(
            path, f"meta/{_ENDS}", "no such array: this Zarr store is not a replay buffer"
        )
    ends = store.read(f"meta/{_ENDS}", complete=True)
    if ends.dtype.kind not in "iu":
        raise FormatError(path, f"meta/{_ENDS}", f"has dtype {ends.dtype}, expected integers")
    if ends.ndim != 1 or (ends[:1] < 0).any() or (ends[1:] < ends[:-1]).any():
        raise FormatError(
            path,
            f"meta/{_ENDS}",
            "expected a one-dimensional list of row numbers, 0 or more, in ascending order",
        )
    ends = ends.clip(max=_MOST_ROWS).astype(np.int64)
    empty = np.flatnonzero(np.diff(ends, prepend=0) == 0)
    if len(empty):
        text = "has length 0" + (f", and so have {len(empty) - 1} others" if len(empty) > 1 else "")
        options.damage.found(path, f"episode {empty[0]}", text)
    total = int(ends[-1]) if len(ends) else 0
    lengths = np.diff(ends, prepend=0).clip(min=0)
    infos, left_out = {}, []
    cameras: dict[str, ArrayFrames] = {}
    for name, array in sorted(group["data"].arrays()):
        shape = tuple(array.shape)
        if may_be_camera(shape, array.dtype, name):
            fault = None
            if shape[0] < total:
                fault = f"has {shape[0]} frames, but the episodes have {total} rows"
            own_rows = ZarrRows(store, f"data/{name}", array, lengths, fault)
            cameras[name] = ArrayFrames.made(name, own_rows)
            if fault is not None:
                left_out.append(LeftOut(name, f"pictures: {fault}"))
            if len(shape) == 4 or fault is not None or is_picture(shape, array.dtype):
                continue
        if is_picture(shape, array.dtype):
            left_out.append(LeftOut(name, f"pictures or clouds, {array.dtype} {list(shape)}"))
        elif array.dtype.kind not in "fiub":
            left_out.append(LeftOut(name, f"has dtype {array.dtype}, which is not read"))
        elif not shape or shape[0] < total:
            rows = shape[0] if shape else 0
            reason = f"has {rows} rows, but the episodes have {total}"
            options.damage.found(path, f"data/{name}", reason)
            left_out.append(LeftOut(name, reason))
        else:
            store.require_limit(f"data/{name}", array)
            if shape[0] > total:
                rest = shape[0] - total
                text = f"{shape[0]} rows, but the last episode ends at row {total}: {rest} rows "
                text += "belong to no episode"
                options.damage.note(path, f"data/{name}", text)
            names = channel_names(shape[1:])
            width = int(np.prod(shape[1:], dtype=np.int64))
            infos[name] = TrackInfo(names, array.dtype.name, width)
    for name in sorted(group["data"].group_keys()):
        left_out.append(LeftOut(name, "a group, expected an array with one row per step"))
    known = {*infos, *cameras, *(each.place for each in left_out)}
    for name in store.without_metadata("data", known):
        options.damage.found(path, f"data/{name}", "holds chunks, but no metadata of an array")
    if not infos:
        raise FormatError(path, "data", "has no array of numbers with one row per step")
    read = functools.partial(_read, store, options, infos, lengths)
    about = About(
        KIND,
        rate=options.rate,
        unit=options.unit or "s",
        info=dict(group.attrs),
        left_out=tuple(left_out),
        problems=options.damage.problems,
        cameras=cameras,
        pictures={
            name: own.encoded
            for name, own in cameras.items()
            if own.fault is None and own.shape[2] == 3
        },
    )
    if _TIMES in infos and infos[_TIMES].channels == 1:
        del infos[_TIMES]  # the times of all tracks, which _read adds
    return make_episodes(
        LazyTracks(infos, lengths, read, one_by_one=True), source=path, about=about
    )


def _read(
    store: Store, options: Options, infos: Any, lengths: Any, names: Any, chosen: Any
) -> dict[str, Track]:
    import numpy as np

    own = lengths[chosen]
    offsets = np.concatenate([[0], np.cumsum(own)]).astype(np.int64)
    count = int(offsets[-1])
    rows: Any = slice(0, count)
    if not np.array_equal(chosen, np.arange(len(lengths))):
        begins = (np.cumsum(lengths) - lengths)[chosen]
        rows = np.repeat(begins - offsets[:-1], own) + np.arange(count)

    def taken(name: str) -> Any:
        values = store.read(f"data/{name}")[rows]
        return values.reshape(count, math.prod(values.shape[1:]))

    times = clock_rows(own, options.rate)
    if _TIMES in store.group["data"] and _TIMES not in infos:
        times = taken(_TIMES)[:, 0]
    return {
        name: Track(taken(name), offsets, times=times, names=infos[name].names) for name in names
    }


def _reader(store: Store, description: dict[str, Any]) -> Any:
    """Return a function that reads the arrays of a description by name."""
    import numpy as np

    places = _places(description)

    def read(name: str) -> Any:
        if places[name]:
            return store.read(places[name])
        ends = store.read(f"meta/{_ENDS}", complete=True)
        return np.concatenate([[0], ends]).astype(np.int64)

    return read


# ---- writing ------------------------------------------------------------------------------------


@in_one_thread()
def write(source: Data, part: str) -> Collection[LeftOut]:
    """Write episodes with equal rows in all tracks as a replay buffer, else named arrays."""
    import numpy as np

    zarr = needed("zarr", "zarr", "a Zarr store")
    os.mkdir(part)  # so that an error has the system's message
    group = (
        zarr.open_group(part, mode="w") if is_old(zarr) else open_group(part, "w", zarr_format=2)
    )
    description, arrays = flattened(source)
    places = _places(description)
    if isinstance(source, Episodes):
        ends = _ends_of(source)
        _put(group, f"meta/{_ENDS}", ends)
    for name, array in arrays:
        if places[name]:
            _put(group, places[name], np.ascontiguousarray(array))
    described = {_DESCRIPTION: json.loads(json.dumps(description))}
    group.attrs.update(described) if is_old(zarr) else group.update_attributes(described)
    return ()


def _ends_of(source: Episodes) -> Any:
    """Return the ends of episodes, which must be the same in all tracks."""
    tracks = list(source.tracks.items())
    first_name, first = tracks[0]
    for name, track in tracks:
        if (track.lengths != first.lengths).any():
            raise ValueError(
                f"format: 'zarr' needs the same rows in all tracks, but {name} has other rows than "
                f"{first_name}; align them, or use 'npz'"
            )
    return first.lengths.cumsum()


def _places(description: dict[str, Any]) -> dict[str, str]:
    """Return the place of each array of a description in the group; "" if it is redundant."""
    places = {}
    if description["robocache"] == "recording":
        names = distinct([entry["name"] for entry in description["streams"]])
        for i, (entry, name) in enumerate(zip(description["streams"], names)):
            places[f"s{i}_values"] = f"streams/{name}/values"
            for clock in entry["clocks"]:
                places[f"s{i}_{clock}"] = f"streams/{name}/{clock}"
        return places
    names = distinct([entry["name"] for entry in description["tracks"]])
    for i, name in enumerate(names):
        places[f"t{i}_offsets"] = ""
        places[f"t{i}_values"] = f"data/{name}"
        places[f"t{i}_times"] = f"times/{name}"
        places[f"t{i}_arrivals"] = f"arrivals/{name}"
    return places


def _put(group: Any, place: str, array: Any) -> None:
    rows = max(1, min(len(array), (1 << 20) // max(1, array[:1].nbytes)))
    # Zarr 3.2 and later refuse chunks with an extent of 0.
    chunks = (rows, *(max(1, extent) for extent in array.shape[1:])) if array.ndim else None
    try:
        made = group.create_array(
            place,
            shape=array.shape,
            dtype=array.dtype,
            chunks=chunks or "auto",
            config={"write_empty_chunks": True},  # so that a missing chunk means a loss
        )
    except AttributeError:  # zarr 2, which writes empty chunks
        made = group.create_dataset(place, shape=array.shape, dtype=array.dtype, chunks=chunks)
    # Chunk by chunk: otherwise zarr continues with other chunks after one has failed.
    for begin in range(0, len(array) if array.size else 0, rows):
        made[begin : begin + rows] = array[begin : begin + rows]
