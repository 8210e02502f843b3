"""Comparison of data with a pipeline: rates, ranges, units, delays, aliasing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .cameras import frames_of_bag
from .place import UNKNOWN
from .rows import Samples, rows_of, samples_of_recording
from .sources import TICKS, StreamPlan
from .strict_json import shown, step
from .units import UNITS

if TYPE_CHECKING:
    from .plan import Plan

_FAR_OUT = 0.10  # share of values beyond q01..q99; 2 % are expected
_ALIASED = 0.05  # share of variance above the new Nyquist frequency
_MOST_SAMPLES = 20_000  # that the share is computed from
_MANY = 0.01  # share of rows that are not valid


@dataclass(frozen=True)
class PipelineFinding:
    """One finding about a pipeline and data."""

    severity: str  #: "error", "warning" or "note"
    kind: str  #: an identifier, such as "dead_channel"
    pointer: str  #: JSON pointer into the file
    text: str

    def to_dict(self) -> dict[str, str]:
        return {
            "severity": self.severity,
            "kind": self.kind,
            "pointer": self.pointer,
            "text": self.text,
        }


def checked_data(plan: Plan, data: Any) -> list[PipelineFinding]:
    """Compare data with a pipeline. Names, types and widths are compared by reading it.

    A stream, a channel or an image that is missing raises ValueError with its pointer, and so does
    a first frame that does not fit.
    """
    from ..data import Recording

    found: list[PipelineFinding] = []
    unused = [name for name in plan.document["streams"] if name not in plan.streams]
    for name in unused:
        text = "no window uses the stream"
        found.append(PipelineFinding("note", "unused_stream", f"/streams{step(name)}", text))
    episodes = rows_of(plan, data)
    if isinstance(data, Recording):
        for samples in samples_of_recording(plan, data).values():
            found += _of_samples(plan, samples)
            found += _order(samples.plan, data[samples.plan.track].names)
        found += _of_images(plan, data)
    for name, stream in plan.streams.items():
        values = episodes[name].values
        found += _of_channels(plan, stream, values)
        found += _of_validity(stream, values)
    found += _of_windows(plan, episodes)
    return found


def _of_images(plan: Plan, recording: Any) -> Iterator[PipelineFinding]:
    for image in plan.images.values():
        if image.topic is None:
            continue
        first = next(frames_of_bag(plan, image, recording), None)
        if first is None:
            text = "no row has a frame: all of them are later, or there are none"
            yield PipelineFinding("error", "no_frames", f"{image.place}/source/topic", text)
        elif first[0].start > 0:
            text = f"the first {first[0].start} rows have no frame"
            yield PipelineFinding("note", "late_frames", f"{image.place}/source/topic", text)


def _order(stream: StreamPlan, names: Any) -> Iterator[PipelineFinding]:
    columns = stream.columns(names, len(names))
    if columns != sorted(columns):
        yield PipelineFinding(
            "note",
            "other_order",
            f"{stream.place}/channels",
            f"the data have another order: {', '.join(str(names[c]) for c in sorted(columns)[:8])}",
        )


def _of_samples(plan: Plan, samples: Samples) -> Iterator[PipelineFinding]:
    import numpy as np

    stream = samples.plan
    steps = np.diff(np.sort(samples.times))
    steps = steps[steps > 0]
    if not len(steps):
        return
    step_size = float(np.median(steps)) / TICKS
    rate = plan.document["clock"]["rate"]
    limit = stream.rules["max_age"] / TICKS
    if step_size > limit:
        yield PipelineFinding(
            "error",
            "slow_stream",
            f"{stream.place}/max_age",
            f"{limit:g} s, but its samples are {step_size:.3g} s apart; most rows are not valid",
        )
    elif 1 / step_size < rate / 2:
        yield PipelineFinding(
            "note",
            "low_rate",
            stream.place,
            f"has {1 / step_size:.3g} Hz, but rows are made at {rate:g} Hz",
        )
    if samples.lost:
        yield PipelineFinding(
            "warning", "not_finite", stream.place, f"{samples.lost} samples have NaN or infinity"
        )
    if samples.arrivals is not None:
        delays = (samples.arrivals - samples.shifted) / TICKS
        worst = float(np.quantile(delays, 0.99))
        yield PipelineFinding(
            "warning" if worst > limit else "note",
            "latency",
            f"{stream.place}/latency",
            f"samples arrive {float(np.median(delays)):.4g} s after their time, 99 % within "
            f"{worst:.4g} s; the lag is {plan.lag / TICKS:g} s",
        )
    if 1 / step_size > 1.5 * rate:
        shares = share_above(samples.values, samples.times, rate / 2)
        for channel in np.flatnonzero(shares > _ALIASED).tolist():
            yield PipelineFinding(
                "warning",
                "aliasing",
                f"{stream.place}/channels/{channel}",
                f"{stream.names[channel]!r} has {shares[channel]:.0%} of its variance above "
                f"{rate / 2:g} Hz, which rows at {rate:g} Hz fold into lower frequencies",
            )


def _of_channels(plan: Plan, stream: StreamPlan, values: Any) -> Iterator[PipelineFinding]:
    import numpy as np

    entry = plan.document["streams"][stream.name]
    valid = values[np.isfinite(values).all(axis=1)]
    if not len(valid):
        return
    low, high = valid.min(axis=0).tolist(), valid.max(axis=0).tolist()
    for channel, described in enumerate(entry["channels"]):
        place = f"{stream.place}/channels/{channel}"
        name, unit = described["name"], described["unit"]
        if low[channel] == high[channel] and len(valid) > 1:
            constant = _is_constant(plan, stream.name, channel)
            severity = "note" if constant else "warning"
            text = f"{name!r} is {low[channel]:g} in all {len(valid)} rows"
            text += ", as in the statistics" if constant else ""
            yield PipelineFinding(severity, "dead_channel", place, text)
        limit = None if unit == UNKNOWN else UNITS[unit]
        most = max(abs(low[channel]), abs(high[channel]))
        if limit is not None and most > limit:
            yield PipelineFinding(
                "warning",
                "implausible_unit",
                f"{place}/unit",
                f"{shown(unit)}, but {name!r} reaches {most:.4g}; is it another unit?",
            )


def _is_constant(plan: Plan, stream: str, channel: int) -> bool:
    """Whether the statistics of a window of the stream say that a channel never changes."""
    for name, window in plan.document["windows"].items():
        entry = plan.document["normalization"][name]
        if window["stream"] != stream or window["transforms"] or entry == "none":
            continue
        std = None if entry["statistics"] == UNKNOWN else entry["statistics"]["std"]
        if std is not None:
            return bool(std[channel] == 0)
    return False


def _of_validity(stream: StreamPlan, values: Any) -> Iterator[PipelineFinding]:
    import numpy as np

    if not len(values):
        return
    share = float(np.isnan(values).any(axis=1).mean())
    if share > 0:
        severity = "error" if share == 1 else "warning" if share > _MANY else "note"
        text = f"{share:.2%} of {len(values)} rows are not valid"
        yield PipelineFinding(severity, "not_valid", stream.place, text)


def _of_windows(plan: Plan, episodes: Any) -> Iterator[PipelineFinding]:
    """Compare windows with the quantiles of the statistics."""
    entries: Mapping[str, Any] = plan.document["normalization"]
    fitted = {
        name: entry["statistics"]["quantiles"]
        for name, entry in entries.items()
        if entry != "none" and entry["statistics"] != UNKNOWN
    }
    wanted = [name for name, levels in fitted.items() if {"0.01", "0.99"} <= levels.keys()]
    if not wanted:
        return
    spec = plan.spec(normalized=False)
    indices, anchors = spec.samples(episodes)
    step_size = max(1, len(indices) // _MOST_SAMPLES)
    cut = spec.cut(episodes, indices[::step_size], anchors[::step_size])
    for name in wanted:
        values, valid = cut[name]
        rows = values[valid]
        if not len(rows):
            continue
        low, high = fitted[name]["0.01"], fitted[name]["0.99"]
        for channel in range(rows.shape[-1]):
            own = rows[:, channel]
            outside = float(((own < low[channel]) | (own > high[channel])).mean())
            if outside > _FAR_OUT:
                yield PipelineFinding(
                    "warning",
                    "out_of_range",
                    f"/normalization{step(name)}/statistics/quantiles",
                    f"{outside:.0%} of channel {channel} is beyond q01..q99 "
                    f"({low[channel]:.4g} to {high[channel]:.4g}); 2 % are expected",
                )


def share_above(values: Any, times: Any, frequency: float) -> Any:
    """Return the share of the variance of each channel above a frequency in Hz.

    It is the mean square of the samples minus their low-pass, over that of the samples minus their
    mean. The low-pass is a windowed sinc at the samples' own times: with u = (t - q) 2 frequency,
    sinc(0.8 u) times a Kaiser window of |u| < 4.
    """
    import numpy as np

    rows = values[:_MOST_SAMPLES].astype(np.float64)
    order = np.argsort(times[:_MOST_SAMPLES], kind="stable")
    rows, own = rows[order], times[:_MOST_SAMPLES][order]
    seconds = (own - own[0]) / TICKS
    spacing = np.empty(len(rows))
    steps = np.diff(seconds)
    spacing[0], spacing[-1] = steps[0] / 2, steps[-1] / 2
    spacing[1:-1] = (seconds[2:] - seconds[:-2]) / 2
    reach = math.ceil(4 / (2 * frequency) / max(float(np.median(steps[steps > 0])), 1e-9)) + 2
    total, weights = np.zeros_like(rows), np.zeros(len(rows))
    for shift in range(-reach, reach + 1):
        here = slice(max(0, -shift), len(rows) - max(0, shift))
        there = slice(max(0, shift), len(rows) - max(0, -shift))
        if here.stop <= here.start:
            continue
        u = (seconds[there] - seconds[here]) * 2 * frequency
        window = np.i0(8 * np.sqrt(np.clip(1 - (u / 4) ** 2, 0, None))) / np.i0(8.0)
        weight = np.where(np.abs(u) < 4, np.sinc(0.8 * u) * window, 0.0) * spacing[there]
        total[here] += weight[:, None] * rows[there]
        weights[here] += weight
    good = np.abs(weights) > 1e-12
    if not good.any():
        return np.zeros(rows.shape[1])
    smooth = total[good] / weights[good][:, None]
    power = np.square(rows[good] - rows[good].mean(axis=0)).mean(axis=0)
    rest = np.square(rows[good] - smooth).mean(axis=0)
    return np.where(power > 0, rest / np.where(power > 0, power, 1.0), 0.0)
