"""Joining of episodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from .. import Track
from .._arguments.to_numpy import on_host
from .._episodes.episodes import Episodes, make_episodes
from .._episodes.lazy_tracks import About, LazyTracks
from .._printable import kind_of, printable
from ._errors import some
from ._kinds.tracks import known_kinds, with_kinds

if TYPE_CHECKING:
    from .._episodes.lazy_tracks import TrackInfo
    from ._frames.source import FrameSource


def concat(parts: Iterable[Episodes]) -> Episodes:
    """Join episodes, one data set after the other. ``a + b`` is ``concat([a, b])``.

    Data sets that are not read yet are read when the result is first used.

    Parameters
    ----------
    parts
        One or more :class:`robocache.Episodes` with the same tracks and channels.

    Raises
    ------
    ValueError
        They differ in their tracks, channels, dtypes, rates or units of times.
    TypeError
        An item is not :class:`robocache.Episodes`.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> one = rbc.Episodes({"arm": rbc.Track(np.zeros((5, 2)), [0, 5])}, tasks=["open"])
    >>> two = rbc.Episodes({"arm": rbc.Track(np.ones((7, 2)), [0, 3, 7])})
    >>> both = rbc.data.concat([one, two])
    >>> len(both), both["arm"].lengths.tolist(), both.tasks
    (3, [5, 3, 4], ('open', None, None))
    """
    import numpy as np

    sets = list(parts)
    for number, part in enumerate(sets):
        if not isinstance(part, Episodes):
            raise TypeError(f"parts[{number}]: is {kind_of(part)}, expected robocache.Episodes")
    if not sets:
        raise ValueError("parts: got 0, expected 1 or more")
    if len(sets) == 1:
        return sets[0]
    infos = _same_infos(sets)
    tasks = None
    if any(part.tasks is not None for part in sets):
        tasks = [task for part in sets for task in part.tasks or [None] * len(part)]
    notes = tuple(note for part in sets for note in part.notes)
    left_out = tuple(dict.fromkeys(each for part in sets for each in part.left_out))
    first = sets[0]
    about = About(
        first.format,
        first.unit,
        first.rate,
        left_out=left_out,
        notes=notes,
        cameras=_cameras(sets),
        cache=next((s._about.cache for s in sets if s._about.cache is not None), None),
        identity=_identity(sets),
    )
    source = ", ".join(part.source for part in sets if part.source is not None) or None
    if all(part.is_loaded for part in sets):
        made: Any = {name: _joined(name, [part[name] for part in sets]) for name in infos}
        return make_episodes(made, tasks=tasks, source=source, about=about)
    counts = np.cumsum([0, *map(len, sets)])
    some_name = next(iter(infos))
    lengths = np.concatenate([part.lengths(some_name) for part in sets])

    def read(names: Collection[str], chosen: Any) -> dict[str, Track]:
        pieces: dict[str, list[Track]] = {name: [] for name in names}
        begin = 0
        while begin < len(chosen):
            number = int(np.searchsorted(counts, chosen[begin], "right")) - 1
            inside = (chosen >= counts[number]) & (chosen < counts[number + 1])
            end = begin + int(np.argmin(np.append(inside[begin:], False)))
            part = sets[number].select(chosen[begin:end] - counts[number], tracks=names)
            for name in names:
                pieces[name].append(part[name])
            begin = end
        if not len(chosen):
            return {name: sets[0].select([], tracks=[name])[name] for name in names}
        return {name: _joined(name, own) for name, own in pieces.items()}

    return make_episodes(LazyTracks(infos, lengths, read), tasks=tasks, source=source, about=about)


def _identity(sets: list[Episodes]) -> str:
    """Return how the files of all data sets are recognized; a revision is that of one set."""
    methods = {part._about.identity for part in sets if part._about.cameras}
    return methods.pop() if len(methods) == 1 else "stat"


def _cameras(sets: list[Episodes]) -> dict[str, FrameSource]:
    """Return the cameras that all data sets have."""
    import numpy as np

    from ._frames.joined import JoinedFrames

    chosen = [np.arange(len(s)) if s._about.chosen is None else s._about.chosen for s in sets]
    names = [name for name in sets[0]._about.cameras if all(name in s._about.cameras for s in sets)]
    return {name: JoinedFrames([s._about.cameras[name] for s in sets], chosen) for name in names}


def _same_infos(sets: list[Episodes]) -> dict[str, TrackInfo]:
    """Return the channels of all tracks, which must be the same in all data sets."""
    first = sets[0]
    infos = {name: first.track_info(name) for name in first.tracks}
    for number, part in enumerate(sets[1:], 1):
        where = f"parts[{number}]{f' ({printable(part.source)})' if part.source else ''}"
        if set(part.tracks) != set(infos):
            odd = sorted(set(part.tracks) ^ set(infos))
            raise ValueError(
                f"{where}: has other tracks than the first one: {some(odd)}. Keep common tracks "
                "with select(tracks=...)"
            )
        for name, info in infos.items():
            own = part.track_info(name)
            for what in ("channels", "names", "dtype"):
                if getattr(own, what) != getattr(info, what):
                    raise ValueError(
                        f"{where}: {printable(name)} has the {what} {getattr(own, what)}, in the "
                        f"first one {getattr(info, what)}"
                    )
        if (part.rate is None) != (first.rate is None) or part.rate != first.rate:
            raise ValueError(
                f"{where}: has the rate {part.rate}, the first one {first.rate}; align them"
            )
        if part.unit != first.unit:
            raise ValueError(f"{where}: has times in {part.unit}, the first one in {first.unit}")
    return infos


def _joined(name: str, tracks: list[Track]) -> Track:
    """Join the rows of one track."""
    import numpy as np

    first = tracks[0]
    if len(tracks) == 1:
        return first
    for track in tracks:
        if track.time_unit != first.time_unit or (track.times is None) != (first.times is None):
            raise ValueError(
                f"{printable(name)}: some of its times have the unit {first.time_unit}, others "
                f"{track.time_unit}"
            )
    lengths = np.concatenate([track.lengths for track in tracks])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    values = None
    if first.values is not None:
        values = np.concatenate([on_host(track.values) for track in tracks])
    times = None
    if first.times is not None:
        times = np.concatenate([on_host(track.times) for track in tracks])
        if first.time_unit is not None:
            times = times.view(first.time_unit.partition(",")[0].rstrip("]") + "]")
    files = None
    if any(track.files is not None for track in tracks):
        files = [
            file
            for track in tracks
            for file in (track.files if track.files is not None else [None] * track.num_episodes)
        ]
    made = Track(values, offsets, times=times, names=first.names, files=files)
    kinds = known_kinds(first, name)
    same = kinds is not None and all(known_kinds(track, name) == kinds for track in tracks)
    return with_kinds(made, name, kinds) if same and kinds is not None else made
