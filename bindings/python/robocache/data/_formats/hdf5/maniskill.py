"""ManiSkill's layout of HDF5: groups traj_N, and a file .json next to them.

Observations and states have one row more than the actions: the one after the last action.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..._errors import FormatError
from ..._file_access import Folder, opened, special_kind
from ..._options import Options

_TRAJECTORY = re.compile(r"traj_\d+")
_OF_STEPS = ("terminated", "truncated", "success", "fail", "rewards")  # without an observation
_PICTURES = re.compile(r"(^|/)(sensor_data|image|images)/")
_CLOUD = re.compile(r"(^|/)pointcloud/")
_POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")  # of SAPIEN
_BODY = (*_POSE, "vx", "vy", "vz", "wx", "wy", "wz")
_LARGEST = 64 << 20  # bytes of the .json file


def is_trajectory(group: str) -> bool:
    return _TRAJECTORY.fullmatch(group) is not None


def array_of_steps(arrays: Mapping[str, Any]) -> str | None:
    """Return an array with one row per action, if the actions are a group of arrays."""
    several = [name for name in arrays if name.startswith("actions/")]
    return next((name for name in (*several, *_OF_STEPS) if name in arrays), None)


def reason(name: str, shape: Sequence[int]) -> str | None:
    """Return why an array is not read; None if it may be."""
    if name == "env_init_state":
        return "the state at the beginning, not one row per step"
    if len(shape) >= 4 and _PICTURES.search(name):
        return f"pictures, {list(shape[1:])}"
    if len(shape) >= 3 and _CLOUD.search(name):
        return f"clouds, {list(shape[1:])}"
    return None


def may_be_missing(name: str, group: str, arrays: Mapping[str, Any]) -> bool:
    """Whether an episode may lack an array: each can have objects of its own."""
    return is_trajectory(group) and name.startswith("env_states/") and name not in arrays


def names_of(name: str, row: Sequence[int]) -> tuple[str, ...] | None:
    """Return the channels of an array whose parts the layout defines.

    Poses are a position and a quaternion with w first. The state of a body is its pose and its
    velocities; that of an articulation has the positions and velocities of its joints behind them.
    """
    if len(row) != 1:
        return None
    width, parts = row[0], name.split("/")
    if parts[0] == "env_states" and parts[1:2] == ["actors"] and width == len(_BODY):
        return _BODY
    if parts[0] == "env_states" and parts[1:2] == ["articulations"] and width >= len(_BODY):
        joints, odd = divmod(width - len(_BODY), 2)
        if odd:
            return None
        positions = tuple(f"qpos[{i}]" for i in range(joints))
        return (*_BODY, *positions, *(f"qvel[{i}]" for i in range(joints)))
    if parts[0] == "obs" and parts[-1].endswith("pose") and width == len(_POSE):
        return _POSE
    return None


# ---- the file next to it ------------------------------------------------------------------------


def described(
    episodes: Sequence[tuple[str, str, int]], options: Options, left_out: dict[str, str]
) -> tuple[dict[str, Any], list[Any] | None, float | None]:
    """Return facts, the task of each episode, and the rate, from the .json files if they exist.

    ``episodes`` are files, groups and numbers of actions.
    """
    info: dict[str, Any] = {}
    tasks: list[Any] = []
    rates: set[float | None] = set()
    read: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for file, group, length in episodes:
        if file not in read:
            whole = _read(file, options, left_out)
            read[file] = whole, _by_group(whole)
        whole, by_group = read[file]
        for key in ("env_info", "commit_info", "source_type", "source_desc"):
            if key in whole:
                info.setdefault(key, whole[key])
        own = by_group.get(group, {})
        steps = own.get("elapsed_steps")
        if isinstance(steps, int) and steps != length:
            text = f"elapsed_steps is {steps}, but {group} has {length} actions"
            options.damage.note(place_of(file), f"episode {own.get('episode_id')}", text)
        environment = whole.get("env_info")
        task = environment.get("env_id") if isinstance(environment, dict) else None
        tasks.append(task if isinstance(task, str) else None)
        rates.add(_rate(environment))
    rate = next(iter(rates)) if len(rates) == 1 else None
    return info, tasks if any(tasks) else None, rate


def place_of(file: str) -> str:
    return os.path.splitext(file)[0] + ".json"


def _read(file: str, options: Options, left_out: dict[str, str]) -> dict[str, Any]:
    path = place_of(file)
    name = os.path.basename(path)
    if not os.path.lexists(path):
        return {}
    try:
        Folder(os.path.dirname(path) or ".", options.follow_links).file(name)
        with opened(path) as stream:
            content = stream.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise FormatError(path, "", f"has more than {_LARGEST:,} bytes")
        found = json.loads(content)
    except FormatError as error:
        if os.path.exists(path) and special_kind(path) is not None:
            options.damage.found(path, "", error.reason)
        else:
            left_out[name] = error.reason
        return {}
    except (ValueError, RecursionError) as error:
        options.damage.found(path, "", f"is not JSON, or is truncated: {error}")
        return {}
    if not isinstance(found, dict) or not isinstance(found.get("episodes"), list):
        left_out[name] = "has no list of episodes, so it does not describe this file"
        return {}
    return found


def _by_group(whole: dict[str, Any]) -> dict[str, Any]:
    """Return the description of each episode by the name of its group."""
    episodes = [each for each in whole.get("episodes", ()) if isinstance(each, dict)]
    return {f"traj_{each.get('episode_id')}": each for each in episodes}


def _rate(environment: Any) -> float | None:
    """Return the steps per second, if the description of the environment states them."""
    for key in ("env_kwargs", "sim_config"):
        environment = environment.get(key) if isinstance(environment, dict) else None
    rate = environment.get("control_freq") if isinstance(environment, dict) else None
    return float(rate) if isinstance(rate, (int, float)) and 0 < rate < 1e6 else None
