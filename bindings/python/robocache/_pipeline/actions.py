"""The policy's results on their way to the robot: absolute numbers, names, limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._windows.window_stream import WindowStream
from .._windows.windows import windows as cut
from .plan import Plan, transform_of
from .statistics import normalization_of
from .strict_json import step

if TYPE_CHECKING:
    from .session import Observation


def denormalized(plan: Plan, name: str, values: Any, observation: Observation | None) -> Any:
    """Return values of a window in the pipeline's units."""
    windows = plan.document["windows"]
    if name not in windows:
        known = ", ".join(map(repr, windows))
        raise ValueError(f"window: is {name!r}, expected one of {known}")
    own = normalization_of(plan.document["normalization"][name], plan.dtype)
    result = values if own is None else own.invert(values)
    if not windows[name]["transforms"]:
        return result
    if observation is None:
        raise ValueError(
            f"observation: is None, but /windows{step(name)} is relative to "
            f"{windows[name]['transforms'][0]['reference']['window']!r}; pass the observation that "
            "the policy had"
        )
    return _absolute(plan, name, result, observation)


def _absolute(plan: Plan, name: str, relative: Any, observation: Observation) -> Any:
    """Apply the inverse of the transforms, with the rows of the observation as reference."""
    import numpy as np

    entry = plan.document["windows"][name]
    host = np.asarray(relative.detach().cpu() if hasattr(relative, "detach") else relative)
    shape = host.shape
    rows = host.reshape(-1, len(entry["offsets"]), shape[-1])
    if len(rows) != 1:
        raise ValueError(
            f"values: shape is {list(shape)}, expected [1, {len(entry['offsets'])}, {shape[-1]}]: "
            "one sample, with the rows of the window"
        )
    referred = dict.fromkeys(each["reference"]["window"] for each in entry["transforms"])
    missing = next((each for each in referred if each not in observation.raw), None)
    if missing is not None:
        raise ValueError(f"observation: has no window {missing!r}")
    transforms = []
    shift = 0
    for each in sorted(entry["transforms"], key=lambda each: each["begin"]):
        forward = transform_of(each)
        number = list(referred).index(each["reference"]["window"])
        index = each["reference"]["index"]
        transforms.append(_inverse(forward, number, index, shift))
        shift += forward.out_count - forward.count
    streams: list[Any] = []
    for window in referred:
        raw = observation.raw[window][0]
        offsets = [0, len(raw)]
        streams.append(
            WindowStream(np.ascontiguousarray(raw), range(len(raw)), episode_offsets=offsets)
        )
    values = np.ascontiguousarray(rows[0], raw.dtype)
    streams.append(
        WindowStream(
            values, range(len(values)), episode_offsets=[0, len(values)], transforms=transforms
        )
    )
    made, _ = cut(streams, [0], [0], anchor_stream=len(streams) - 1)[-1]
    return made.reshape(*shape[:-1], made.shape[-1])


def _inverse(forward: Any, number: int, index: int, shift: int) -> Any:
    from .._windows.transform import Transform

    return Transform(
        forward.kind,
        forward.begin + shift,
        forward.out_count,
        reference=(number, index),
        reference_begin=forward.reference_begin,
        rotation=forward.out_rotation,
        reference_rotation=forward.reference_rotation,
        out_rotation=forward.rotation,
        inverse=True,
    )


def commanded(plan: Plan, values: Any) -> Any:
    """Return commands by the robot's names, within the limits, in the units of the source."""
    import numpy as np

    actions = plan.document["actions"]
    if actions is None:
        raise ValueError("/actions: is null; the pipeline has no commands")
    entry = plan.document["streams"][plan.document["windows"][actions["window"]]["stream"]]
    host = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values, np.float64)
    width = len(entry["channels"])
    if host.ndim == 0 or host.shape[-1] != width:
        raise ValueError(
            f"values: shape is {list(host.shape)}, expected {width} channels at the end: "
            f"{', '.join(actions['channels'])}"
        )
    if host.ndim > 1 and host.size != host.shape[-2] * width:
        raise ValueError(f"values: shape is {list(host.shape)}, expected one sample: [1, T, D]")
    rows = host.reshape(-1, width)
    if not np.isfinite(rows).all():
        row, channel = (int(i) for i in np.argwhere(~np.isfinite(rows))[0])
        raise ValueError(
            f"values: step {row} has {rows[row, channel]} for "
            f"{entry['channels'][channel]['name']!r}; such a command must not reach a robot"
        )
    commands = [_command(entry, actions, row) for row in rows]
    return commands[0] if host.ndim == 1 else commands


def _command(entry: Any, actions: Mapping[str, Any], row: Any) -> dict[str, float]:
    """Return one command. The limits are in the channel's unit, the result in the source's."""
    by_name = {each["name"]: (each, float(row[i])) for i, each in enumerate(entry["channels"])}
    command = {}
    for name, limits in zip(actions["channels"], actions["limits"]):
        channel, value = by_name[name]
        low, high = (None, None) if limits is None else limits
        value = value if low is None else max(value, float(low))
        value = value if high is None else min(value, float(high))
        command[name] = (value - channel["offset"]) / channel["scale"]
    return command
