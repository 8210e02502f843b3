"""LeRobot data sets, v2.0 to v3.0: what ``meta`` tells, and the tracks of their features."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .... import Track
from ...._episodes.episodes import Episodes, make_episodes
from ...._episodes.lazy_tracks import About, LazyTracks, TrackInfo
from ..._errors import FormatError, LeftOut, needed
from ..._file_access import Folder
from ..._findings import Finding
from ..._options import Options
from .checks import check_counters, check_rows
from .meta import Feature, Info, episodes_of, info_of, listed_in
from .rows import require_room
from .statistics import QuantilesOfEpisodes, stored_statistics

if TYPE_CHECKING:
    from .meta import Plan

# Numbers of rows and episodes, which data.checks compares with the episodes: no tracks.
_BOOKKEEPING = ("frame_index", "episode_index", "index")
_TIME = "timestamp"
_TASK = "task_index"
_STAMPS = "robocache.stamps"  # what float32 cannot hold of the times of episodes that save wrote


def sniff(path: str) -> bool:
    return os.path.lexists(os.path.join(path, "meta", "info.json"))


def open(path: str, options: Options) -> Episodes:
    needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
    folder = Folder(path, options.follow_links)
    info = info_of(folder)
    plan = episodes_of(folder, info, options.damage, options.limit)
    require_room(info, plan, options.limit)
    infos, left_out = _tracks_of(info)
    left_out += _missing_videos(info, plan)
    if not infos:
        raise FormatError(info.path, "features", "has no feature of numbers, and no video")
    read = functools.partial(_read, info, plan, options, infos)
    tasks = plan.tasks if info.own.tasks else None
    about = About(
        format=f"LeRobot {info.version}",
        unit="s",
        rate=info.fps,
        info=info.told,
        left_out=tuple(left_out),
        problems=options.damage.problems,
        stored=functools.partial(stored_statistics, folder, options.damage),
        by_episode=QuantilesOfEpisodes(info, plan, options.limit),
        checks=functools.partial(_checked, info, plan, options),
    )
    return make_episodes(
        LazyTracks(infos, plan.lengths, read), tasks=tasks, source=path, about=about
    )


def _tracks_of(info: Info) -> tuple[dict[str, TrackInfo], list[LeftOut]]:
    infos, left_out = {}, []
    own = info.own
    for name, feature in info.features.items():
        if feature.is_video:
            infos[name] = TrackInfo(None, "", 0)
        elif name in (_TIME, _STAMPS, *_BOOKKEEPING) or (name == _TASK and not own.task_index):
            continue
        elif feature.is_number:
            told = TrackInfo(feature.names, feature.dtype, feature.channels)
            infos[own.names.get(name, name)] = told
        else:
            left_out.append(LeftOut(name, _why_not(feature)))
    return infos, left_out


def _why_not(feature: Feature) -> str:
    """Why a feature without numbers becomes no track."""
    if feature.dtype == "image":
        return "pictures stay in the Parquet files; they are not read"
    if feature.dtype in ("string", "language"):
        return f"texts ({feature.dtype}) are not read"
    return f"is of {feature.dtype}, expected numbers or a video"


def _missing_videos(info: Info, plan: Plan) -> list[LeftOut]:
    """Frames are referred to whether their files are there or not; it is told if not."""
    found = []
    listed: dict[str, dict[str, str]] = {}
    for name, feature in info.features.items():
        if not feature.is_video:
            continue
        files = {plan.video_name(name, e) for e in range(len(plan.lengths))}
        missing = [file for file in files if not file or not _is_there(info.folder, file, listed)]
        if missing:
            found.append(LeftOut(name, f"{len(missing)} of {len(files)} video files are not there"))
    return found


def _is_there(folder: Folder, name: str, listed: dict[str, dict[str, str]]) -> bool:
    """Whether a file of the folder is there, by one listing of each directory."""
    directory, _, base = name.rpartition("/")
    if directory not in listed:
        listed[directory] = listed_in(folder, directory)
    kind = listed[directory].get(base)
    if kind == "link":
        folder.require_inside(name)
    return kind is not None and (kind == "file" or os.path.isfile(folder.place(name)))


def _read(
    info: Info, plan: Plan, options: Options, infos: dict[str, TrackInfo], names: Any, chosen: Any
) -> dict[str, Track]:
    """Tracks of the chosen episodes."""
    import numpy as np

    from .rows import read_columns

    own = info.own
    renamed = {value: key for key, value in own.names.items()}
    features = {name: info.features[renamed.get(name, name)] for name in names}
    clock = _STAMPS if _STAMPS in info.features else _TIME
    numbers: list[Feature] = [feature for feature in features.values() if not feature.is_video]
    if clock in info.features:
        numbers.append(info.features[clock])
    columns, lengths = read_columns(info, plan, numbers, chosen, options)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    times = columns.pop(clock, None)
    if times is not None:
        times = _times(times[:, 0], own.stamps) if own.times else None
    tracks = {}
    for name, feature in features.items():
        if feature.is_video:
            files = [plan.video(feature.name, e) for e in chosen.tolist()]
            at = np.zeros(int(offsets[-1])) if times is None else times
            tracks[name] = Track(None, offsets, times=at, files=files)
        else:
            values = columns[feature.name]
            tracks[name] = Track(values, offsets, times=times, names=infos[name].names)
    return tracks


def _times(values: Any, unit: str | None) -> Any:
    """float64 seconds, or what was saved."""
    import numpy as np

    if unit:
        return values.view(unit.partition(",")[0].rstrip("]") + "]")
    return values.astype(np.float64) if values.dtype == np.float32 else values


def _checked(
    info: Info, plan: Plan, options: Options, chosen: Any, stored: Mapping[str, Any]
) -> list[Finding]:
    """What LeRobot relies on, and no track holds."""
    found = check_rows(info, plan, options, chosen)
    return found if chosen is not None else found + check_counters(plan, stored)
