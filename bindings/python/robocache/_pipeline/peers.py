"""Files of other projects: their statistics and modes into a pipeline, and back."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from typing import Any

from .. import statistics_files
from .place import UNKNOWN
from .statistics import document_of, result_of
from .strict_json import shown, step

PEERS = ("lerobot", "openpi", "gr00t")
_Document = dict[str, Any]
# The parts that no file of a peer can hold.
_NEVER = (
    ("/clock", "the rate, the lag and the availability of samples"),
    ("/streams", "topics, units, kinds, latency, gaps and ages of the channels"),
    ("/windows", "offsets and transforms, which are in the configuration of the policy"),
)


def imported(kind: str, document: _Document, path: str) -> tuple[_Document, list[str]]:
    """Return a document with the numbers of a peer's files, and what they do not say."""
    from .lerobot_processors import imported_lerobot

    readers: dict[str, Callable[[_Document, str], list[str]]] = {
        "lerobot": imported_lerobot,
        "openpi": _imported_openpi,
        "gr00t": _imported_gr00t,
    }
    made = copy.deepcopy(document)
    notes = readers[_checked(kind)](made, path)
    return made, [*(f"{pointer}: from the data: {what}" for pointer, what in _NEVER), *notes]


def exported(kind: str, document: Mapping[str, Any], folder: str) -> list[str]:
    """Write a peer's files, and return what they cannot hold, each with its JSON pointer."""
    from .lerobot_processors import exported_lerobot

    writers: dict[str, Callable[[Mapping[str, Any], str], list[str]]] = {
        "lerobot": exported_lerobot,
        "openpi": _exported_openpi,
        "gr00t": _exported_gr00t,
    }
    writer = writers[_checked(kind)]
    os.makedirs(folder, exist_ok=True)
    lost = [f"{pointer}: {what}" for pointer, what in _NEVER]
    if document["images"]:
        lost.append("/images: operations on images")
    if document["actions"] is not None:
        lost.append("/actions: the robot's names, limits and latency")
    return [*lost, *writer(document, folder)]


def _checked(kind: str) -> str:
    if kind not in PEERS:
        raise ValueError(f"kind: is {kind!r}, expected one of {', '.join(map(repr, PEERS))}")
    return kind


def is_action(document: Mapping[str, Any], window: str) -> bool:
    """Whether a window holds the actions."""
    actions = document["actions"]
    return window in ("action", "actions") or (actions is not None and actions["window"] == window)


def feature_of(document: Mapping[str, Any], window: str) -> str:
    """Return LeRobot's name of a window: "action", or one that begins with "observation."."""
    if is_action(document, window):
        return "action"
    return window if window.startswith("observation.") else f"observation.{window}"


def by_feature(
    document: Mapping[str, Any], named: Callable[[Mapping[str, Any], str], str]
) -> dict[str, str]:
    """Return the windows by the names that a peer has for them, which must differ."""
    found: dict[str, str] = {}
    for window in document["windows"]:
        name = named(document, window)
        if name in found:
            raise ValueError(
                f"/windows{step(window)}: would be {name!r}, as {found[name]!r}; rename one"
            )
        found[name] = window
    return found


def width_of(document: Mapping[str, Any], window: str) -> int:
    from .plan import transform_of

    entry = document["windows"][window]
    width = len(document["streams"][entry["stream"]]["channels"])
    made = [transform_of(each) for each in entry["transforms"]]
    return width + sum(each.out_count - each.count for each in made)


def require_width(document: Mapping[str, Any], window: str, width: int, whose: str) -> None:
    own = width_of(document, window)
    if own != width:
        raise ValueError(
            f"/normalization{step(window)}: {whose} has {width} channels; expected {own}, as the "
            "window"
        )


def entry_of(style: str, mode: str, statistics: Any, **options: Any) -> dict[str, Any]:
    """Return an entry of the section normalization."""
    return {
        "style": style,
        "mode": mode,
        "rows": options.get("rows", "all"),
        "mask": None,
        "clip": options.get("clip"),
        "epsilon": options.get("epsilon"),
        "statistics": statistics,
    }


def fitted(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of windows that are normalized; their statistics must be known."""
    found = {}
    for window, entry in document["normalization"].items():
        if entry == "none":
            continue
        if entry["statistics"] == UNKNOWN:
            raise ValueError(f"/normalization{step(window)}/statistics: is missing; use fit()")
        found[window] = entry
    return found


def lost_options(window: str, entry: Mapping[str, Any], style: str) -> list[str]:
    """Return what a file of only statistics does not hold of an entry."""
    place = f"/normalization{step(window)}"
    found = [f"{place}/mode: {shown(entry['mode'])}"]
    if entry["style"] != style:
        found.append(f"{place}/style: {shown(entry['style'])}; the peer computes it as {style}")
    for key in ("mask", "clip", "epsilon"):
        if entry[key] is not None:
            found.append(f"{place}/{key}: {shown(entry[key])}")
    return found


# ---- openpi -------------------------------------------------------------------------------------


def _key_of_openpi(document: Mapping[str, Any], window: str) -> str:
    return "actions" if is_action(document, window) else window.removeprefix("observation.")


def _imported_openpi(document: _Document, path: str) -> list[str]:
    results = statistics_files.read_openpi(path)
    windows = by_feature(document, _key_of_openpi)
    notes = [f"{name}: no window has this name" for name in results if name not in windows]
    for name, window in windows.items():
        place = f"/normalization{step(window)}"
        if name not in results:
            known = ", ".join(map(repr, results))
            raise ValueError(f"{place}: {name!r} is not in norm_stats; it has {known}")
        require_width(document, window, results[name].mean.shape[-1], f"{name!r} of openpi")
        before = document["normalization"][window]
        mode = "mean_std"
        if before != "none" and before["style"] == "openpi":
            mode = before["mode"]
        document["normalization"][window] = entry_of("openpi", mode, document_of(results[name]))
        notes.append(f"{place}/mode: {shown(mode)}; the file does not say it (use_quantile_norm)")
    return notes


def _exported_openpi(document: Mapping[str, Any], folder: str) -> list[str]:
    windows = by_feature(document, _key_of_openpi)
    entries = fitted(document)
    names = {window: name for name, window in windows.items()}
    results = {names[window]: result_of(entry["statistics"]) for window, entry in entries.items()}
    statistics_files.write_openpi(folder, results)
    lost = []
    for window in document["windows"]:
        if window not in entries:
            lost.append(f'/normalization{step(window)}: "none"; the file has no such window')
            continue
        lost += lost_options(window, entries[window], "openpi")
        lost += _lost_statistics(window, entries[window], ("mean", "std"), ("0.01", "0.99"))
    return lost


def _lost_statistics(
    window: str, entry: Mapping[str, Any], keys: tuple[str, ...], levels: tuple[str, ...]
) -> list[str]:
    place = f"/normalization{step(window)}/statistics"
    statistics = entry["statistics"]
    found = []
    for key in ("count", "mean", "std", "min", "max"):
        known = statistics[key] is not None and (key != "count" or max(statistics[key]) >= 0)
        if known and key not in keys:
            found.append(f"{place}/{key}")
    return found + [
        f"{place}/quantiles/{level}" for level in statistics["quantiles"] if level not in levels
    ]


# ---- GR00T --------------------------------------------------------------------------------------

_MODALITY = "x-modality"  # the parts of a window, kept for the way back
_REST = "x-gr00t"  # videos and annotations


def _column_of(kind: str, entry: Mapping[str, Any]) -> str:
    default = "observation.state" if kind == "state" else "action"
    column = entry.get("original_key")
    return default if column is None else str(column)


def _imported_gr00t(document: _Document, path: str) -> list[str]:
    modality = _modality(path)
    results = statistics_files.read_gr00t(path)
    windows = by_feature(document, feature_of)
    notes = []
    parts: dict[str, dict[str, Any]] = {}
    for kind in ("state", "action"):
        for name, entry in modality.get(kind, {}).items():
            column = _column_of(kind, entry)
            if column not in windows:
                raise ValueError(
                    f"/windows: has no window for {column!r}, which {kind}.{name} of modality.json "
                    f"uses; expected one of {', '.join(map(repr, windows))}"
                )
            width = width_of(document, windows[column])
            begin, end = entry.get("start"), entry.get("end")
            if not (isinstance(begin, int) and isinstance(end, int) and 0 <= begin < end <= width):
                raise ValueError(
                    f"modality.json: {kind}.{name}: is channels {begin} to {end}, expected "
                    f"0 to {width} of {column!r}"
                )
            parts.setdefault(windows[column], {}).setdefault(kind, {})[name] = entry
    for column, window in windows.items():
        place = f"/normalization{step(window)}"
        if column not in results:
            known = ", ".join(map(repr, results))
            raise ValueError(f"{place}: {column!r} is not in stats.json; it has {known}")
        require_width(document, window, results[column].mean.shape[-1], f"{column!r} of GR00T")
        clip = True if is_action(document, window) else False
        before = document["normalization"][window]
        mode = "min_max"
        if before != "none" and before["style"] == "gr00t":
            mode = before["mode"]
        document["normalization"][window] = entry_of(
            "gr00t",
            mode,
            document_of(results[column]),
            clip=clip if mode == "mean_std" else None,
        )
        document["windows"][window].pop(_MODALITY, None)
        if window in parts:
            document["windows"][window][_MODALITY] = parts[window]
        notes.append(f"{place}/mode: {shown(mode)}; the files do not say it")
    rest = {key: each for key, each in modality.items() if key not in ("state", "action")}
    document.pop(_REST, None)
    if rest:
        document[_REST] = rest
        notes.append(f"/images: {', '.join(rest)} of modality.json, kept in {_REST}")
    return notes


def _modality(path: str) -> dict[str, Any]:
    from .strict_json import parsed

    folder = path if os.path.isdir(path) else os.path.dirname(path)
    inside = os.path.join(folder, "meta", "modality.json")
    name = inside if os.path.exists(inside) else os.path.join(folder, "modality.json")
    with open(name, encoding="utf-8") as file:
        content = parsed(file.read(), "modality.json")
    for kind in ("state", "action"):
        entries = content.get(kind, {}) if isinstance(content, dict) else None
        if not isinstance(entries, dict) or not all(
            isinstance(each, dict) for each in entries.values()
        ):
            raise ValueError(f"modality.json: {kind}: expected an object of parts by name")
    return dict(content)


def _exported_gr00t(document: Mapping[str, Any], folder: str) -> list[str]:
    from .._statistics.json_files import replace
    from .strict_json import written

    entries = fitted(document)
    names = {window: name for name, window in by_feature(document, feature_of).items()}
    results = {names[window]: result_of(entry["statistics"]) for window, entry in entries.items()}
    modality: dict[str, Any] = {"state": {}, "action": {}}
    lost = []
    for window in document["windows"]:
        kind = "action" if is_action(document, window) else "state"
        kept = document["windows"][window].get(_MODALITY)
        if kept is None:
            part: dict[str, Any] = {"start": 0, "end": width_of(document, window)}
            if names[window] != _column_of(kind, {}):
                part["original_key"] = names[window]
            name = names[window].removeprefix("observation.")
            kept = {kind: {name: part}}
        for each, own in kept.items():
            modality[each].update(own)
        if window not in entries:
            lost.append(f'/normalization{step(window)}: "none"; the file has no such window')
            continue
        lost += lost_options(window, entries[window], "gr00t")
        every = ("mean", "std", "min", "max")
        lost += _lost_statistics(window, entries[window], every, ("0.01", "0.99"))
    modality.update(document.get(_REST, {}))
    meta = os.path.join(folder, "meta")
    os.makedirs(meta, exist_ok=True)
    statistics_files.write_gr00t(folder, results)
    replace(os.path.join(meta, "modality.json"), written(modality))
    return lost
