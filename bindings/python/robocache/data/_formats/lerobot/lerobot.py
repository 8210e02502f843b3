"""LeRobot data sets, v2.0 to v3.0: their tracks, and their stored statistics."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .... import Track, statistics_files
from ...._episodes.episodes import Episodes, make_episodes
from ...._episodes.lazy_tracks import About, LazyTracks, TrackInfo
from ..._errors import Damage, FormatError, LeftOut, needed
from ..._file_access import Folder
from ..._findings import Finding
from ..._options import Options
from ..description import Format
from .cameras import Meta, cameras_of
from .checks import check_counters, check_rows
from .episode_statistics import StatisticsOfEpisodes
from .frames import files_of_pictures
from .image_statistics import check_cameras
from .meta import Feature, Info, episodes_of, info_of, listed_in
from .rows import require_room

if TYPE_CHECKING:
    from .meta import Info, Plan

# Numbers of rows and episodes, which data.checks compares with the episodes; they are not tracks.
_BOOKKEEPING = ("frame_index", "episode_index", "index")
_TIME = "timestamp"
_TASK = "task_index"
_STAMPS = "robocache.stamps"  # times of episodes that float32 cannot hold, written by save


FORMAT = Format(
    name="lerobot",
    title="LeRobot v2.0, v2.1, v3.0",
    files="a folder with meta/info.json",
    reads="Episodes with one track per numeric feature, and the times and the rate of the data "
    "set. Names of channels, tasks and stored statistics come from meta. A track of a video names "
    "its files and the times of its frames.",
    refuses="Pictures in Parquet files, texts, and videos that are missing are listed in left_out. "
    "Frames of videos stay on disk; convert reads these and the pictures.",
    package="pyarrow",
    extra="lerobot",
    example='episodes = rbc.data.open("pusht")',
)


LISTED = ("videos",)  # the numbers depend on which videos there are, not on their content


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
        raise FormatError(info.path, "features", "has no numeric feature, and no video")
    read = functools.partial(_read, info, plan, options, infos)
    tasks = plan.tasks if info.own.tasks else None
    by_episode = StatisticsOfEpisodes(info, plan, options.limit)
    meta = Meta(path, options, info, plan)
    about = About(
        format=f"LeRobot {info.version}",
        unit="s",
        rate=info.fps,
        info=info.entries,
        left_out=tuple(left_out),
        problems=options.damage.problems,
        stored=functools.partial(stored_statistics, folder, options.damage),
        by_episode=by_episode,
        checks=functools.partial(_checked, info, plan, options, by_episode),
        pictures={
            name: files_of_pictures(meta, feature)
            for name, feature in info.features.items()
            if feature.dtype == "image" and 3 in feature.shape
        },
        cameras=cameras_of(meta),
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
            track_info = TrackInfo(feature.names, feature.dtype, feature.channels)
            infos[own.names.get(name, name)] = track_info
        else:
            left_out.append(LeftOut(name, _why_not(feature)))
    return infos, left_out


def _why_not(feature: Feature) -> str:
    """Return why a feature without numbers is not a track."""
    if feature.dtype == "image":
        return "pictures stay in the Parquet files; only convert reads them"
    if feature.dtype in ("string", "language"):
        return f"texts ({feature.dtype}) are not read"
    return f"has dtype {feature.dtype}, expected numbers or a video"


def _missing_videos(info: Info, plan: Plan) -> list[LeftOut]:
    """Note video files that are missing; tracks refer to frames either way."""
    found = []
    listed: dict[str, dict[str, str]] = {}
    for name, feature in info.features.items():
        if not feature.is_video:
            continue
        files = {plan.video_name(name, e) for e in range(len(plan.lengths))}
        missing = [file for file in files if not file or not _is_there(info.folder, file, listed)]
        if missing:
            verb = "is" if len(missing) == 1 else "are"
            text = f"{len(missing)} of {len(files)} video files {verb} missing"
            found.append(LeftOut(name, text))
    return found


def _is_there(folder: Folder, name: str, listed: dict[str, dict[str, str]]) -> bool:
    """Whether a file of the folder exists, with one listing per directory."""
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
    """Read tracks of the chosen episodes."""
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
    """Return float64 seconds, or times in the unit in which they were saved."""
    import numpy as np

    if unit:
        return values.view(unit.partition(",")[0].rstrip("]") + "]")
    return values.astype(np.float64) if values.dtype == np.float32 else values


def _checked(
    info: Info,
    plan: Plan,
    options: Options,
    by_episode: StatisticsOfEpisodes,
    chosen: Any,
    stored: Mapping[str, Any],
) -> list[Finding]:
    """Check what LeRobot relies on but no track holds."""
    found = check_rows(info, plan, options, chosen)
    if chosen is not None:
        return found
    return found + check_counters(plan, stored) + check_cameras(info, plan, stored, by_episode)


def stored_statistics(folder: Folder, damage: Damage) -> dict[str, Any]:
    """Return stored statistics of all rows, by feature; empty if there is no file."""
    name = "meta/stats.json"
    if not folder.has(name):
        return {}
    folder.require_inside(name)
    file = folder.place(name)
    try:
        return statistics_files.read_lerobot(file)
    except (ValueError, TypeError) as error:
        text = error.reason if isinstance(error, FormatError) else str(error)
        damage.found(file, "", text)
        return {}
