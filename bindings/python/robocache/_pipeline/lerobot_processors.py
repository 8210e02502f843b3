"""LeRobot's processors: policy_preprocessor.json, policy_postprocessor.json, and their tensors."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from .._statistics.result import UNKNOWN
from . import safetensors_file
from .peers import (
    by_feature,
    entry_of,
    feature_of,
    fitted,
    is_action,
    require_width,
    width_of,
)
from .strict_json import parsed, shown, step, written

PREPROCESSOR, POSTPROCESSOR = "policy_preprocessor", "policy_postprocessor"
_NORMALIZER, _UNNORMALIZER = "normalizer_processor", "unnormalizer_processor"
_MODES = {
    "MEAN_STD": "mean_std",
    "MIN_MAX": "min_max",
    "QUANTILES": "quantiles",
    "QUANTILE10": "quantile10",
}
_IDENTITY = "IDENTITY"
_EPSILON = 1e-8  # LeRobot's own
_LEVEL = re.compile(r"q(\d\d)")
_PARTS = ("mean", "std", "min", "max")
# Steps that carry no numbers; a pipeline file does not need them.
_PLAIN = (
    *("rename_observations_processor", "to_batch_processor", "device_processor"),
    *("tokenizer_processor",),
)


def imported_lerobot(document: dict[str, Any], path: str) -> list[str]:
    """Take the modes and the statistics of both files; return notes on the rest."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    notes: list[str] = []
    before = _processor(folder, PREPROCESSOR, _NORMALIZER, notes)
    after = _processor(folder, POSTPROCESSOR, _UNNORMALIZER, notes)
    windows = by_feature(document, feature_of)
    for window_name, window in windows.items():
        source = after if window_name == "action" and after is not None else before
        if source is None or window_name not in source["features"]:
            source = before
        place = f"/normalization{step(window)}"
        if source is None or window_name not in source["features"]:
            known = ", ".join(map(repr, source["features"])) if source else "none"
            raise ValueError(
                f"{place}: {window_name!r} is not among the features of the processors, which have "
                f"{known}; LeRobot would not normalize it, without an error"
            )
        document["normalization"][window] = _entry(document, source, window_name, window)
    if before is not None and after is not None:
        _require_one_action(before, after)
    features = {**(before or after or {"features": {}})["features"]}
    for name in features:
        if name not in windows:
            notes.append(f"{name}: no window has this name")
    return notes


def _processor(folder: str, name: str, wanted: str, notes: list[str]) -> dict[str, Any] | None:
    """Return the configuration of the step that normalizes, with its tensors."""
    path = os.path.join(folder, f"{name}.json")
    if name == POSTPROCESSOR and not os.path.exists(path):
        notes.append(f"{name}.json: is missing; actions are taken from {PREPROCESSOR}.json")
        return None
    with open(path, encoding="utf-8") as file:
        content = parsed(file.read(), f"{name}.json")
    steps = content.get("steps") if isinstance(content, dict) else None
    if not isinstance(steps, list) or not all(isinstance(each, dict) for each in steps):
        raise ValueError(f"{name}.json: /steps: expected a list of steps")
    found = None
    for number, each in enumerate(steps):
        kind = each.get("registry_name") or each.get("class")
        if kind != wanted:
            if kind not in _PLAIN:
                notes.append(f"{name}.json: /steps/{number}: {kind} is not in the pipeline")
            elif kind == "rename_observations_processor":
                _require_no_renames(name, number, each)
            continue
        config = each.get("config")
        needed = ("features", "norm_map")
        if not isinstance(config, dict) or not all(isinstance(config.get(n), dict) for n in needed):
            raise ValueError(f"{name}.json: /steps/{number}/config: expected {', '.join(needed)}")
        state = each.get("state_file")
        tensors = {}
        if state is not None:
            if os.path.basename(str(state)) != state:
                raise ValueError(f"{name}.json: /steps/{number}/state_file: is {state!r}")
            tensors = safetensors_file.read(os.path.join(folder, state))
        found = {**config, "tensors": tensors, "file": f"{name}.json"}
    if found is None:
        raise ValueError(f"{name}.json: /steps: has no step {wanted!r}")
    return found


def _require_no_renames(name: str, number: int, entry: Mapping[str, Any]) -> None:
    renames = (entry.get("config") or {}).get("rename_map")
    if renames:
        raise ValueError(
            f"{name}.json: /steps/{number}/config/rename_map: {shown(renames)}; name the windows "
            "of the pipeline as the policy does, and remove the renaming"
        )


def _entry(
    document: Mapping[str, Any], source: Mapping[str, Any], feature: str, window: str
) -> Any:
    described = source["features"][feature]
    kind = described.get("type") if isinstance(described, dict) else None
    mode = source["norm_map"].get(kind, _IDENTITY)
    keys = source.get("normalize_observation_keys")
    if keys is not None and feature != "action" and feature not in keys:
        mode = _IDENTITY
    if mode == _IDENTITY:
        return "none"
    place = f"/normalization{step(window)}"
    if mode not in _MODES:
        raise ValueError(f"{place}/mode: {shown(mode)}; expected one of {', '.join(_MODES)}")
    tensors = {
        name[len(feature) + 1 :]: tensor
        for name, tensor in source["tensors"].items()
        if name.rpartition(".")[0] == feature
    }
    if not tensors:
        raise ValueError(
            f"{place}/statistics: {source['file']} has none for {feature!r}; LeRobot would not "
            "normalize the values, without an error"
        )
    width = width_of(document, window)
    statistics = _statistics(tensors, width, place)
    require_width(document, window, len(statistics["count"]), f"{feature!r} of LeRobot")
    epsilon = float(source.get("eps", _EPSILON))
    return entry_of(
        "lerobot", _MODES[mode], statistics, epsilon=None if epsilon == _EPSILON else epsilon
    )


def _statistics(tensors: Mapping[str, Any], width: int, place: str) -> dict[str, Any]:
    lists = {}
    for name, tensor in tensors.items():
        flat = tensor.reshape(-1)
        if name == "count":
            continue
        if len(flat) != width or tensor.ndim != 1:
            raise ValueError(
                f"{place}/statistics/{name}: has the shape {list(tensor.shape)}; expected "
                f"[{width}], as the window"
            )
        lists[name] = flat.astype("f8").tolist()
    counts = tensors.get("count")
    count = UNKNOWN if counts is None else int(counts.reshape(-1)[0])
    made: dict[str, Any] = {"count": [count] * width}
    made.update({key: lists.pop(key, None) for key in _PARTS})
    quantiles = {}
    for name in sorted(lists):
        level = _LEVEL.fullmatch(name)
        if level is not None:
            quantiles[repr(int(level[1]) / 100)] = lists[name]
    made["quantiles"] = quantiles
    return made


def _require_one_action(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Refuse files that normalize actions in training by other numbers than on the robot."""
    theirs = after["tensors"]
    for name, tensor in before["tensors"].items():
        same = name not in theirs or tensor.tobytes() == theirs[name].tobytes()
        if name.startswith("action.") and not same:
            raise ValueError(
                f"{after['file']}: {name} differs from {before['file']}: the robot would not "
                "undo what training did"
            )
    modes = [each["norm_map"].get("ACTION", _IDENTITY) for each in (before, after)]
    if "action" in before["features"] and modes[0] != modes[1]:
        raise ValueError(
            f"{after['file']}: actions are {modes[1]}, but {modes[0]} in {before['file']}"
        )


# ---- writing ------------------------------------------------------------------------------------


def exported_lerobot(document: Mapping[str, Any], folder: str) -> list[str]:
    """Write both files with their tensors; return what they cannot hold."""
    from .._statistics.json_files import replace

    entries = fitted(document)
    lost = []
    names = {window: name for name, window in by_feature(document, feature_of).items()}
    features: dict[str, Any] = {}
    tensors: dict[str, Any] = {}
    norm_map: dict[str, str] = {}
    epsilons = set()
    for window in document["windows"]:
        kind = "ACTION" if is_action(document, window) else "STATE"
        entry = entries.get(window)
        mode = _IDENTITY if entry is None else _mode(window, entry)
        if norm_map.setdefault(kind, mode) != mode:
            kind = "ENV"  # LeRobot has one mode for each type of features
            if norm_map.setdefault(kind, mode) != mode:
                raise ValueError(
                    f"/normalization{step(window)}/mode: {mode}; LeRobot's files have at most two "
                    "modes for observations"
                )
        features[names[window]] = {"type": kind, "shape": [width_of(document, window)]}
        if entry is None:
            continue
        epsilons.add(_EPSILON if entry["epsilon"] is None else float(entry["epsilon"]))
        tensors.update(_tensors(names[window], entry["statistics"]))
        lost += _lost_by_lerobot(window, entry)
    if len(epsilons) > 1:
        raise ValueError(
            f"/normalization: has the epsilons {sorted(epsilons)}; LeRobot's files have one"
        )
    config = {
        "eps": min(epsilons, default=_EPSILON),
        "features": features,
        "norm_map": norm_map,
    }
    steps = [
        {"registry_name": "rename_observations_processor", "config": {"rename_map": {}}},
        {"registry_name": "to_batch_processor", "config": {}},
        _step(PREPROCESSOR, 2, _NORMALIZER, config, tensors, folder),
    ]
    before = {"name": PREPROCESSOR, "steps": steps}
    own = {name: each for name, each in features.items() if name == "action"}
    acted = {name: each for name, each in tensors.items() if name.startswith("action.")}
    inverse = {**config, "features": own}
    after = {
        "name": POSTPROCESSOR,
        "steps": [_step(POSTPROCESSOR, 0, _UNNORMALIZER, inverse, acted, folder)],
    }
    for content in (before, after):
        replace(os.path.join(folder, f"{content['name']}.json"), written(content))
    return lost


def _step(
    file: str,
    number: int,
    kind: str,
    config: Mapping[str, Any],
    tensors: Mapping[str, Any],
    folder: str,
) -> dict[str, Any]:
    made: dict[str, Any] = {"registry_name": kind, "config": dict(config)}
    if tensors:
        state = f"{file}_step_{number}_{kind}.safetensors"
        safetensors_file.write(os.path.join(folder, state), tensors)
        made["state_file"] = state
    return made


def _mode(window: str, entry: Mapping[str, Any]) -> str:
    modes = {own: theirs for theirs, own in _MODES.items()}
    if entry["style"] != "lerobot":
        raise ValueError(
            f"/normalization{step(window)}/style: {shown(entry['style'])}; LeRobot's files compute "
            "the style lerobot only"
        )
    return modes[entry["mode"]]


def _tensors(feature: str, statistics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tensors of a feature: float32 if that keeps every number, else float64."""
    import numpy as np

    numbers: dict[str, Any] = {
        f"{feature}.{key}": statistics[key] for key in _PARTS if statistics[key] is not None
    }
    for level, quantiles in statistics["quantiles"].items():
        percent = round(float(level) * 100)
        if repr(percent / 100) == level and percent < 100:
            numbers[f"{feature}.q{percent:02d}"] = quantiles
    made: dict[str, Any] = {}
    for name, each in numbers.items():
        array = np.array(each, np.float64)
        with np.errstate(over="ignore"):
            short = array.astype(np.float32)
        made[name] = short if (short == array).all() else array
    if len(set(statistics["count"])) == 1 and statistics["count"][0] >= 0:
        made[f"{feature}.count"] = np.array(statistics["count"][:1], np.int64)
    return made


def _lost_by_lerobot(window: str, entry: Mapping[str, Any]) -> list[str]:
    place = f"/normalization{step(window)}"
    statistics = entry["statistics"]
    lost = [f"{place}/rows: {shown(entry['rows'])}"]
    if entry["clip"]:
        lost.append(f"{place}/clip: true; LeRobot does not clip")
    if len(set(statistics["count"])) > 1:
        lost.append(f"{place}/statistics/count: differs between channels; LeRobot has one")
    for level in statistics["quantiles"]:
        percent = round(float(level) * 100)
        if repr(percent / 100) != level or percent == 100:
            lost.append(f"{place}/statistics/quantiles/{level}: no whole percent")
    return lost
