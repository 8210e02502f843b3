"""One episode on its clock: the values of its features, and the frame of each row."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._arguments.to_numpy import on_host
from ..._episodes.episodes import Episodes
from ..._printable import printable
from .._align import NO_TIMES, VALID, align
from .._errors import LeftOut
from .._kinds.names import labels_of
from .._recording import RecordedStream, Recording, clock_of
from .._write.dataset import require_even
from .._write.memory import in_seconds_of, rate_of
from .cameras import as_numbers, require_camera
from .messages import is_known
from .sources import Unsuitable
from .split import Span, Split, spans_of, ticks_of
from .tracks import Part, Wanted, columns_in, excluded, joined_names, parts_of

_GRAY = "frames that are not RGB pictures of the data set: only windows read them"
_NOTED = 0.5  # s: a longer interval that interpolation fills is worth a note
_EXACT = {"float32": 2**24, "float16": 2**11}  # integers up to these do not change
_TASK = "task_index"  # LeRobot's column of the task of each row
IGNORED = ("/rosout", "/parameter_events", "/events/write_split")  # not part of a robot's state


@dataclass(frozen=True)
class Rules:
    """Options that decide on the values of episodes."""

    wanted: Wanted
    rate: float | None
    split: Split = field(default_factory=Split)
    action_shift: int = 0
    dtype: str | None = "float32"
    task: str | None = None
    align: Mapping[str, Any] = field(default_factory=dict)  # options of align
    unit: str | None = None


@dataclass
class Prepared:
    """An episode that is in memory, except for its frames."""

    values: dict[str, Any]  # [n,D] by feature
    names: dict[str, tuple[str, ...] | None]
    rows: int
    rate: float
    task: tuple[str, ...]
    frames: dict[str, Any] = field(default_factory=dict)  # by camera, the frame of each row
    about: dict[str, Any] = field(default_factory=dict)  # where it comes from, as JSON
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Look:
    """A recording, and what is taken from it."""

    recording: Recording
    features: dict[str, tuple[Part, ...]]
    cameras: dict[str, str]
    clock: str
    left_out: list[LeftOut]
    spans: list[Span]

    @property
    def streams(self) -> list[str]:
        own = [part.stream for parts in self.features.values() for part in parts]
        return list(dict.fromkeys([*own, *self.cameras.values()]))


def look_at(recording: Recording, rules: Rules, source: str) -> Look:
    """Read the streams that are needed, and find the spans that become episodes."""
    kinds = {name: recording.info(name).kind for name in recording}
    wanted = rules.wanted
    if wanted.all_tracks:
        wanted = dataclasses.replace(wanted, exclude=(*wanted.exclude, *IGNORED))
    features, cameras = parts_of(wanted, kinds, printable(source))
    for feature, name in cameras.items():
        require_camera(recording, name, feature)
    look = Look(recording, features, cameras, "", [], [])
    names = look.streams
    topic = rules.split.topic
    recording.load([*names, *([topic] if topic is not None and topic in recording else [])])
    for name in names:
        stream = recording[name]
        reason = None
        if len(stream) == 0:
            reason = "no samples"
        elif not stream.clocks:
            reason = NO_TIMES
        elif not stream.names and name not in cameras.values():
            reason = "no channels"
        if reason is None:
            continue
        if not rules.wanted.all_tracks or name in cameras.values():
            raise Unsuitable(f"{printable(name)} has {reason}")
        look.left_out.append(LeftOut(name, reason))
        look.features = {f: p for f, p in look.features.items() if p[0].stream != name}
    if not look.streams:
        raise Unsuitable("no stream has samples")
    look.clock = rules.align.get("clock") or recording.clock(look.streams)
    timed = [n for n in look.streams if not recording[n].static] or look.streams
    look.spans = spans_of(rules.split, recording, timed, look.clock, source)
    if not look.spans:
        raise Unsuitable("no span of it becomes an episode")
    used = set(look.streams)
    look.left_out += _unused(kinds, used, rules)
    look.left_out += [each for each in recording.left_out if _matters(each, used, cameras.values())]
    return look


def _matters(left_out: LeftOut, used: Collection[str], cameras: Collection[str]) -> bool:
    """Whether something that was not read may be missed in the output.

    Texts, such as frame_id, are not numbers of a stream; the fields of an image are its picture.
    """
    stream, _, field = left_out.place.partition(": ")
    if stream in cameras:
        return not field
    return stream in used and "string" not in left_out.reason


def _unused(kinds: Mapping[str, str], used: Collection[str], rules: Rules) -> list[LeftOut]:
    """Return the streams that no track has, unless they were excluded."""
    found = []
    for name, kind in kinds.items():
        if name in used or name == rules.split.topic:
            continue
        if excluded(name, (*rules.wanted.exclude, *IGNORED)):
            continue
        if is_known(kind):
            found.append(LeftOut(name, "images of a camera; name it with images= to keep them"))
        elif not rules.wanted.all_tracks:
            found.append(LeftOut(name, "no track has it"))
    return found


def prepared(look: Look, span: Span, rules: Rules, source: str) -> Prepared:
    """Align the streams of one span, and put their channels into the features."""
    recording = look.recording
    if rules.rate is None:
        raise ValueError("rate: is needed for recordings: rows a second")
    streams = [_chosen(look, name, source) for name in _numeric(look)]
    cameras = {name: as_numbers(recording[name]) for name in look.cameras.values()}
    marked = {name: f"{name} (frames)" if name in _numeric(look) else name for name in cameras}
    streams += [dataclasses.replace(s, name=marked[n]) for n, s in cameras.items()]
    part = Recording.from_streams(streams, path=recording.path)
    if span.begin is not None or span.end is not None:
        part = part.select(begin=span.begin, end=span.end, clock=look.clock)
    _require_samples(part, span)
    methods = {**rules.align.get("methods", {}), **{marked[n]: "nearest" for n in cameras}}
    options = {k: v for k, v in rules.align.items() if k not in ("methods", "clock")}
    try:
        aligned = align(
            part, rules.rate, methods=methods, clock=look.clock, unit=rules.unit, **options
        )
    except (ValueError, KeyError) as error:
        raise Unsuitable(str(error.args[0]) if error.args else str(error)) from error
    track = next(iter(aligned.tracks.values()))
    times = on_host(track.times)
    ticks = ticks_of_track(track, recording, times)
    frames = {}
    facts: dict[str, Any] = {}
    for feature, name in look.cameras.items():
        camera = part[marked[name]]
        own = camera.times(clock_of(camera, look.clock))
        near = nearest(own, times)
        frames[feature] = camera.values[near, 0]
        facts.setdefault("farthest", {})[feature] = _most(own[near], times, ticks)
    values, names = _features(look, aligned, source)
    if VALID in aligned:
        valid = aligned[VALID]
        values[VALID], names[VALID] = on_host(valid.values), valid.names
    cut = _cut(part, look.clock, times, ticks)
    gaps = _gaps(part, look.clock, ticks, times)
    made = Prepared(values, names, len(times), float(rules.rate), _task(span, rules), frames)
    made.left_out = [each for each in aligned.left_out if each.place not in marked.values()]
    made.about = {
        "source": source,
        "begin": _plain(times[0]) if len(times) else None,
        "unit": recording.unit,
        "clock": look.clock,
        "cut": cut,
        "gaps": gaps,
        **facts,
    }
    return finished(made, rules)


def finished(made: Prepared, rules: Rules) -> Prepared:
    """Shift the actions, convert the dtypes, and check the values of an episode."""
    import numpy as np

    shift = rules.action_shift
    if shift:
        if "action" not in made.values and "observation.state" in made.values:
            made.values["action"] = made.values["observation.state"]
            made.names["action"] = made.names["observation.state"]
        if "action" not in made.values:
            raise ValueError("action_shift: needs a track 'action' or 'observation.state'")
        rows = max(0, made.rows - shift)
        made.values = {
            name: values[shift:] if name == "action" else values[:rows]
            for name, values in made.values.items()
        }
        made.frames = {name: numbers[:rows] for name, numbers in made.frames.items()}
        made.rows = rows
    if made.rows == 0:
        raise Unsuitable("no row is left")
    for name, values in made.values.items():
        if rules.dtype is not None and name != VALID and values.dtype.name != rules.dtype:
            made.notes += _changes(name, values, rules.dtype)
            with np.errstate(over="ignore"):
                values = values.astype(rules.dtype)
        if values.dtype.kind == "f":
            bad = int((~np.isfinite(values)).any(axis=1).sum())
            if bad:
                made.notes.append(f"{name}: {bad} rows have NaN or infinite values")
        made.values[name] = np.ascontiguousarray(values)
    return made


def _changes(name: str, values: Any, dtype: str) -> list[str]:
    """Return what a conversion of the dtype changes beyond rounding of fractions."""
    import numpy as np

    if values.dtype.kind == "f":
        most = float(np.finfo(dtype).max) if np.dtype(dtype).kind == "f" else np.inf
        over = np.isfinite(values) & (np.abs(values) > most)
        if over.any():
            raise Unsuitable(f"{name}: {values[over][0]:g} is too large for {dtype}; pass dtype=")
    if values.dtype.kind in "iu" and dtype in _EXACT and values.size:
        kept = values.astype(dtype).astype(np.float64) == values.astype(np.float64)
        if not kept.all():
            return [f"{name}: {int((~kept).sum())} integers are rounded to {dtype}"]
    return []


def _numeric(look: Look) -> list[str]:
    return list(dict.fromkeys(part.stream for parts in look.features.values() for part in parts))


def _chosen(look: Look, name: str, source: str) -> RecordedStream:
    """Return a stream with the channels that some feature has."""
    stream = look.recording[name]
    taken: set[int] = set()
    for parts in look.features.values():
        for part in parts:
            if part.stream == name:
                taken.update(columns_in(part, stream.names, len(stream.names), source))
    if len(taken) == len(stream.names) or len(set(stream.names)) < len(stream.names):
        return stream
    return stream.select(names=[stream.names[column] for column in sorted(taken)])


def _features(look: Look, aligned: Episodes, source: str) -> tuple[dict[str, Any], dict[str, Any]]:
    import numpy as np

    values: dict[str, Any] = {}
    names: dict[str, tuple[str, ...] | None] = {}
    for feature, parts in look.features.items():
        columns, own = [], []
        for part in parts:
            full = look.recording[part.stream].names
            wanted = [full[c] for c in columns_in(part, full, len(full), source)]
            if part.stream not in aligned:
                continue
            track = aligned[part.stream]
            there = list(track.names or ())
            kept = [name for name in wanted if name in there]
            if kept:
                columns.append(on_host(track.values)[:, [there.index(name) for name in kept]])
                own.append((part, kept))
        if not columns:
            if look.features and len(parts) == 1 and parts[0].channels == "*":
                continue  # left_out lists its channels
            raise Unsuitable(f"{feature}: none of its channels can be interpolated")
        values[feature] = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
        names[feature] = tuple(joined_names(own))
    return values, names


def _require_samples(part: Recording, span: Span) -> None:
    for name in part:
        if len(part[name]) == 0:
            where = "" if span.begin is None and span.end is None else " in this span"
            raise Unsuitable(f"{printable(name)} has no samples{where}")


def ticks_of_track(track: Any, recording: Recording, times: Any) -> float:
    return 1.0 if times.dtype.kind == "f" else ticks_of(recording, times)


def nearest(own: Any, times: Any) -> Any:
    """Return the number of the nearest of ascending times for each time; the earlier of two."""
    import numpy as np

    right = np.minimum(np.searchsorted(own, times), len(own) - 1)
    left = np.maximum(right - 1, 0)
    return np.where(np.abs(times - own[left]) <= np.abs(own[right] - times), left, right)


def _most(own: Any, times: Any, ticks: float) -> float:
    """Return the largest distance of frames to their rows, in seconds."""
    import numpy as np

    if not len(times):
        return 0.0
    if own.dtype.kind == "i" and times.dtype.kind == "i":
        return float(np.abs(own - times).max()) / ticks
    return float(np.abs(own.astype(np.float64) - times.astype(np.float64)).max())


def _cut(part: Recording, clock: str, times: Any, ticks: float) -> dict[str, Any]:
    """Return the seconds that are cut at the begin and the end, and the streams that cause it."""
    ends = {}
    for name in part:
        stream = part[name]
        if stream.static or len(stream) < 2:
            continue
        own = stream.times(clock_of(stream, clock))
        ends[name] = (own[0], own[-1])
    if not ends or not len(times):
        return {}
    begins = max(ends, key=lambda name: ends[name][0])
    last = min(ends, key=lambda name: ends[name][1])
    before = float(ends[begins][0] - min(first for first, _ in ends.values())) / ticks
    after = float(max(end for _, end in ends.values()) - ends[last][1]) / ticks
    found: dict[str, Any] = {}
    if before > 0:
        found["begin"] = {"seconds": before, "stream": begins}
    if after > 0:
        found["end"] = {"seconds": after, "stream": last}
    return found


def _gaps(part: Recording, clock: str, ticks: float, times: Any) -> dict[str, float]:
    """Return the longest interval between samples of each stream, if it is worth a note."""
    import numpy as np

    found = {}
    for name in part:
        stream = part[name]
        if stream.static or len(stream) < 2:
            continue
        own = stream.times(clock_of(stream, clock))
        steps = np.diff(own)
        inside = (own[1:] > times[0]) & (own[:-1] < times[-1]) if len(times) else steps > 0
        longest = float(steps[inside].max(initial=0)) / ticks
        if longest > max(_NOTED, 5 * float(np.median(steps)) / ticks):
            found[name] = longest
    return found


def _task(span: Span, rules: Rules) -> tuple[str, ...]:
    task = span.task or rules.task
    return () if task is None else (task,)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


# ---- data sets ----------------------------------------------------------------------------------


def tracks_of(
    episodes: Episodes, rules: Rules, source: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the parts of each feature, and the video or the pictures of each camera."""
    kinds = {n: "" if episodes.track_info(n).dtype else "Image" for n in episodes.tracks}
    kinds.update(dict.fromkeys(episodes._about.pictures, "Image"))
    features, cameras = parts_of(rules.wanted, kinds, printable(source))
    if rules.wanted.all_tracks and episodes.tasks is not None:
        features.pop(_TASK, None)  # the tasks say it
    if not rules.wanted.images:
        cameras = {
            name: name
            for name, kind in kinds.items()
            if kind and name not in features and name not in rules.wanted.exclude
        }
    for feature, name in cameras.items():
        if not kinds[name]:
            raise ValueError(f"images[{feature!r}]: {printable(name)} has no frames")
    return features, cameras


def prepared_episode(
    episodes: Episodes, number: int, rules: Rules, source: str
) -> tuple[Prepared, dict[str, str]]:
    """Return one episode of a data set, resampled if ``rate`` is another one.

    The frames of cameras are numbers of the data set's rows.
    """
    import numpy as np

    features, cameras = tracks_of(episodes, rules, source)
    one = episodes.select([number])
    names = {part.stream for parts in features.values() for part in parts}
    one = one.select(tracks=[n for n in one.tracks if n in names or n in cameras.values()])
    own_rate = one.rate
    first = next(iter(one.tracks.values()))
    count = first.num_rows
    stamps_of = {n: one[n].times if n in one else first.times for n in cameras.values()}
    if own_rate is None:
        own_rate = rate_of(episodes, episodes[next(iter(one.tracks))])
    frames: dict[str, Any] = {}
    resampled = rules.rate is not None and (
        own_rate is None or abs(rules.rate - own_rate) > 1e-6 * own_rate
    )
    distances: dict[str, float] = {}
    if resampled:
        numeric = one.select(tracks=[n for n in one.tracks if n in names])
        options = {k: v for k, v in rules.align.items() if k != "clock"}
        aligned = align(numeric, rules.rate, unit=rules.unit, **options)
        times = on_host(next(iter(aligned.tracks.values())).times)
        for feature, name in cameras.items():
            stamps = on_host(stamps_of[name])
            frames[feature] = near = nearest(stamps, times)
            distances[feature] = float(np.abs(stamps[near] - times).max(initial=0))
        count, rate = len(times), float(rules.rate or 0)
    else:
        aligned, rate = one, float(own_rate or 0)
        if rate > 0 and first.times is not None:
            own = in_seconds_of(first, one.unit or rules.unit, 0, count)
            require_even(own, rate, f"{printable(source)}: episode {number}")
        frames = {feature: np.arange(count) for feature in cameras}
        if not rate > 0:
            raise ValueError("rate: is needed, since the data set does not state its rate")
    values: dict[str, Any] = {}
    labels: dict[str, Any] = {}
    for feature, parts in features.items():
        columns, own = [], []
        for part in parts:
            track = aligned[part.stream]
            if track.num_rows != count:
                raise Unsuitable(f"{printable(part.stream)} has other rows; pass rate=")
            full = labels_of(part.stream, track.names, track.num_channels)
            chosen = columns_in(part, track.names, track.num_channels, source)
            columns.append(on_host(track.values)[:, chosen])
            own.append((part, [full[c] for c in chosen]))
        values[feature] = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
        plain = len(parts) == 1 and aligned[parts[0].stream].names is None
        labels[feature] = None if plain else tuple(joined_names(own))
    if VALID in aligned and VALID not in values and VALID not in one.tracks:
        values[VALID], labels[VALID] = on_host(aligned[VALID].values), aligned[VALID].names
    made = Prepared(values, labels, count, float(rate), _tasks_of(one, rules), frames)
    made.about = {"source": source, "episode": number, "farthest": distances}
    made.about["copied"] = not resampled
    used = set(cameras.values())
    made.left_out = [each for each in aligned.left_out if each.place not in used]
    made.left_out += [LeftOut(name, _GRAY) for name in _gray(episodes)]
    if len(made.task) > 1:
        text = f"rows of episode {number} have several tasks; all rows get the first one"
        made.left_out.append(LeftOut(_TASK, text))
    kept = rules if rules.wanted.tracks else dataclasses.replace(rules, dtype=None)
    return finished(made, kept), cameras


def _gray(episodes: Episodes) -> list[str]:
    """Return the cameras of one channel, which are not written as pictures."""
    about = episodes._about
    known = {*about.pictures, *episodes.tracks, *(each.place for each in about.left_out)}
    return [name for name in about.cameras if name not in known]


def _tasks_of(one: Episodes, rules: Rules) -> tuple[str, ...]:
    if rules.task is not None:
        return (rules.task,)
    task = None if one.tasks is None else one.tasks[0]
    return task if isinstance(task, tuple) else () if task is None else (task,)
