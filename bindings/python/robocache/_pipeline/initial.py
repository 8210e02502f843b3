"""A first pipeline file of data: what the data say, and "?" for what they do not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._printable import kind_of
from . import units
from .place import UNKNOWN
from .schema import KEY, VERSION
from .sources import LONGEST_DELAY, TICKS, ticks_of

if TYPE_CHECKING:
    from .._episodes.channels import Channel, Group

_LEAST_CAPACITY = 64
_MOST_LATE = 16
_HISTORY = 2.0  # s that a ring holds, in addition to the longest delay
_MOST_WINDOWS = 16
_COARSE = 1e-3  # of a channel's range
_COUNTERS = (
    *("timestamp", "frame_index", "episode_index", "index", "task_index", "valid"),
    *("next.done", "next.reward", "next.success"),
)
_WHOLE = ("int", "uint", "bool")  # begins of dtypes
_ANGLE_UNITS = ("rad", "deg", "turn")


@dataclass
class _Found:
    """A stream of the data, with what its entry needs."""

    name: str
    source: dict[str, Any]
    labels: Sequence[str]
    channels: Sequence[Channel]
    groups: Sequence[Group]
    type: str
    by_name: bool
    times: list[Any]  # of each episode, ns
    log: Any = None  # ns
    header: Any = None  # ns, if it is usable
    whole: set[int] = field(default_factory=set)  # columns of integers and bool
    is_fine: bool = False  # whether float32 loses digits that matter


def described(data: Any, rate: float) -> dict[str, Any]:
    """Return the document of a draft."""
    from .._episodes.episodes import Episodes
    from ..data import Recording

    if not isinstance(rate, (int, float)) or isinstance(rate, bool) or not 0 < rate < math.inf:
        raise ValueError(f"rate: is {rate!r}, expected a number of rows per second above 0")
    left_out: list[str] = []
    if isinstance(data, Recording):
        found = list(_of_recording(data, left_out))
    elif isinstance(data, Episodes):
        found = list(_of_episodes(data, left_out))
    else:
        raise TypeError(
            f"data: is {kind_of(data)}, expected a path, a robocache.data.Recording or "
            "robocache.Episodes"
        )
    if not found:
        raise ValueError("data: has no stream with times and two samples or more")
    arrivals = all(each.log is not None for each in found)
    streams: dict[str, Any] = {}
    for each in found:
        for name, columns, method in _parts(each):
            streams[_unique(name, streams)] = _entry(each, columns, method, rate, arrivals)
    windows = list(streams)[:_MOST_WINDOWS]
    left_out += [
        f"{name}: has no window, since there are at most {_MOST_WINDOWS}"
        for name in list(streams)[_MOST_WINDOWS:]
    ]
    acted = next((name for name in windows if name in ("action", "actions")), None)
    return {
        KEY: VERSION,
        "clock": {
            "rate": rate,
            "unit": "ns" if arrivals else "s",
            "lag": 0,
            "availability": "arrival" if arrivals else "stamp",
            "dtype": "float64" if any(each.is_fine for each in found) else "float32",
        },
        "streams": streams,
        "images": {},
        "windows": {
            name: {"stream": name, "offsets": [0], "outside": "hold", "transforms": []}
            for name in windows
        },
        "normalization": {name: _unfitted() for name in windows},
        "actions": None if acted is None else _actions(acted, streams[acted]),
        "provenance": {"format": data.format, "left_out": left_out},
    }


def _unfitted() -> dict[str, Any]:
    return {
        "style": "lerobot",
        "mode": "mean_std",
        "rows": "valid",
        "mask": None,
        "clip": None,
        "epsilon": None,
        "statistics": UNKNOWN,
    }


def _actions(name: str, entry: dict[str, Any]) -> dict[str, Any]:
    names = [channel["name"] for channel in entry["channels"]]
    return {
        "window": name,
        "channels": names,
        "limits": [None] * len(names),
        "smooth": None,
        "latency": 0,
    }


def _unique(name: str, taken: dict[str, Any]) -> str:
    made, number = name, 1
    while made in taken:
        number += 1
        made = f"{name}_{number}"
    return made


# ---- streams of the data ------------------------------------------------------------------------


def _of_recording(recording: Any, left_out: list[str]) -> Iterator[_Found]:
    import numpy as np

    from ..data._align_rules import require_sure
    from ..data._source import header_is_good

    read = recording.streams
    usable = {}
    for name, stream in read.items():
        reason = None
        if len(stream) < 2 or not stream.names:
            reason = "has fewer than two samples" if stream.names else "has no channels"
        elif stream.static:
            reason = "is a static transform"
        elif not stream.clocks:
            reason = "has no times"
        if reason is None:
            usable[name] = stream
        else:
            left_out.append(f"{name}: {reason}")
    left_out += [f"{each.place}: {each.reason}" for each in recording.left_out]
    doubtful = {name: stream.kinds.candidates for name, stream in usable.items()}
    require_sure(doubtful, {name: stream.names for name, stream in usable.items()})
    for name, stream in usable.items():
        unit = stream.unit or recording.unit
        log, header = stream.clocks.get("log"), stream.clocks.get("header")
        is_topic = log is not None and "/" in stream.kind
        good = header_is_good(header, log) and float(np.median(log - header)) >= 0
        dtypes = stream.dtypes or (stream.values.dtype.name,) * len(stream.names)
        source = {"column": name}
        if is_topic:
            topic = recording._topic(name)
            source = {"topic": topic, "type": stream.kind, "field": "", "select": "name"}
            if topic != name:
                source["key"] = name[len(topic) + 1 :]
        yield _Found(
            name=name.strip("/").replace("/", ".") or name,
            source=source,
            labels=stream.names,
            channels=stream.channels,
            groups=stream.kinds.groups,
            type=stream.kind if is_topic else "",
            by_name=True,
            times=[ticks_of(header if good else stream.times(), unit, name)],
            log=None if log is None else ticks_of(log, unit, name),
            header=ticks_of(header, unit, name) if good else None,
            whole={i for i, dtype in enumerate(dtypes) if dtype.startswith(_WHOLE)},
            is_fine=_is_fine(stream.values),
        )


def _of_episodes(episodes: Any, left_out: list[str]) -> Iterator[_Found]:
    import numpy as np

    from .._arguments.to_numpy import on_host
    from ..data._kinds.tracks import kinds_of_track
    from ..data._time_units import unit_of

    for name, track in episodes.tracks.items():
        if track.values is None:
            left_out.append(f"{name}: has frames of a video; describe it in images")
            continue
        if name in _COUNTERS or track.times is None or track.num_rows < 2:
            reason = "counts rows" if name in _COUNTERS else "has no times"
            left_out.append(f"{name}: {reason}")
            continue
        times = ticks_of(on_host(track.times), unit_of(track) or episodes.unit or "s", name)
        offsets = on_host(track.episode_offsets).tolist()
        labels = track.names or tuple(f"{name}[{i}]" for i in range(track.num_channels))
        whole = np.dtype(str(track.values.dtype).rpartition(".")[2]).kind in "iub"
        yield _Found(
            name=name,
            source={"column": name},
            labels=labels,
            channels=track.channels,
            groups=kinds_of_track(track, name).groups,
            type="",
            by_name=track.names is not None,
            times=[times[a:b] for a, b in zip(offsets, offsets[1:])],
            whole=set(range(track.num_channels)) if whole else set(),
            is_fine=_is_fine(on_host(track.values)),
        )


# ---- entries of the file ------------------------------------------------------------------------


def _parts(found: _Found) -> Iterator[tuple[str, list[int], str]]:
    """Return the streams of the file for one of the data.

    Rotations that are not interpolated become a separate stream.
    """
    smooth: list[int] = []
    picked: list[int] = []
    for group in sorted(found.groups, key=lambda group: min(group.columns)):
        if group.kind == "covariance":
            continue
        (picked if group.kind in units.PICKED else smooth).extend(group.columns)
    if smooth:
        yield found.name, smooth, "linear"
    if picked:
        yield (f"{found.name}.rotation" if smooth else found.name), picked, "previous"


def _entry(
    found: _Found, columns: list[int], method: str, rate: float, arrivals: bool
) -> dict[str, Any]:
    import numpy as np

    by_column = {column: group for group in found.groups for column in group.columns}
    steps = np.concatenate([np.diff(times) for times in found.times])
    steps = steps[steps > 0]
    step = float(np.quantile(steps, 0.99)) / TICKS if len(steps) else 1 / rate
    age = _rounded_up(max(3 * step, 2 / rate))
    delays = np.zeros(1)
    late = 0
    if found.log is not None and found.header is not None:
        delays = found.log - found.header
        late = _late_bound(found.header, found.log)
    longest = min(max(float(delays.max()) / TICKS, 0.0), LONGEST_DELAY)
    needed = max(_most_within(times, age + longest + _HISTORY) for times in found.times)
    capacity = max(_LEAST_CAPACITY, 1 << math.ceil(math.log2(needed + 1)))
    return {
        "source": found.source,
        "channels": [_channel(found, by_column[column], column) for column in columns],
        "stamp": "header" if found.header is not None else "log",
        "latency": 0,
        "method": method,
        "max_gap": age,
        "max_age": age,
        "fill": 0,
        "filter": None,
        "capacity": min(capacity, 2**20),
        "late_bound": late if arrivals else 0,
    }


def _channel(found: _Found, group: Group, column: int) -> dict[str, Any]:
    label, channel = found.labels[column], found.channels[column]
    kind = group.kind if group.kind in units.KINDS else units.NUMBER
    unit = channel.unit or units.unit_of_field(found.type, label)
    if kind == units.ANGLE:
        place = group.columns.index(column)
        kind = units.ANGLE_POSITIVE if group.positive and group.positive[place] else units.ANGLE
        unit = unit if unit in _ANGLE_UNITS else UNKNOWN
    elif kind == units.QUATERNION:
        unit = "1"
    elif column in found.whole and unit is None and group.unit is None and kind == units.STEP:
        unit = UNKNOWN
    return {
        "name": label,
        "unit": unit if unit in units.UNITS else UNKNOWN,
        "kind": kind,
        "from": label if found.by_name else column,
        "scale": 1,
        "offset": 0,
    }


def _most_within(times: Any, seconds: float) -> int:
    """Return the largest number of samples in any duration; samples may come in bursts."""
    import numpy as np

    ordered = np.sort(times)
    ends = np.searchsorted(ordered, ordered + round(seconds * TICKS), "right")
    return int((ends - np.arange(len(ordered))).max(initial=0))


def _is_fine(values: Any) -> bool:
    """Whether float32 has fewer than about a thousand steps in the range of a channel.

    An example is a latitude, whose digits are in the last metres.
    """
    import numpy as np

    if values.dtype.kind != "f" or values.dtype.itemsize < 8:
        return False
    with np.errstate(invalid="ignore"):
        finite = np.where(np.isfinite(values), values, 0.0)
        span = finite.max(axis=0) - finite.min(axis=0)
        step = np.abs(finite).max(axis=0) * 2.0**-24
    return bool(((span > 0) & (step > _COARSE * span)).any())


def _late_bound(stamps: Any, arrivals: Any) -> int:
    """Return the smallest bound that keeps all samples; at most 16."""
    from .._operations.live_kept import live_kept

    for bound in range(_MOST_LATE):
        if live_kept(stamps, arrivals, bound).all():
            return bound
    return _MOST_LATE


def _rounded_up(seconds: float) -> float:
    """Return a duration with two digits, not smaller.

    >>> _rounded_up(0.0312)
    0.032
    """
    digits = 1 - math.floor(math.log10(seconds))
    return float(round(math.ceil(seconds * 10**digits - 1e-9) / 10**digits, max(digits, 0)))
