"""Statistics of windows, accumulated while windows are cut, without storing them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._library.context import default_context
from .._statistics.accumulator import StatisticsAccumulator
from .._statistics.result import StatisticsResult
from . import step_statistics as steps
from .windows import windows

if TYPE_CHECKING:
    from .._episodes.episodes import Episodes
    from .spec import WindowSpec
    from .stream_arguments import Opened

_AT_ONCE = 1 << 16  # samples per call


def statistics(
    spec: WindowSpec,
    episodes: Episodes,
    rows: Any,
    per_step: bool,
    quantiles: Sequence[float],
    ddof: int,
) -> dict[str, StatisticsResult]:
    """See :meth:`robocache.WindowSpec.statistics`."""
    rows_by_name = _by_name(rows, [name for name in spec.numbers if spec.windows[name].output])
    if not rows_by_name:
        return {}
    opened = {name: stream._opened for name, stream in zip(spec.numbers, spec.streams(episodes))}
    rows_by_name = {
        name: each for name, each in rows_by_name.items() if opened[name].out_channels is not None
    }
    quantiles = tuple(quantiles)
    stepwise = []
    if per_step and quantiles:  # the quantile tables of all steps together would be large
        stepwise = [name for name in rows_by_name if steps.can_be_stepwise(spec, episodes, name)]
    together = {name: each for name, each in rows_by_name.items() if name not in stepwise}
    results = _together(spec, episodes, opened, together, per_step, quantiles, ddof)
    for name in stepwise:
        results[name] = steps.statistics(spec, episodes, name, rows_by_name[name], quantiles, ddof)
    return {name: results[name] for name in rows_by_name}


def _together(
    spec: WindowSpec,
    episodes: Episodes,
    opened: dict[str, Opened],
    rows: dict[str, Any],
    per_step: bool,
    quantiles: Sequence[float],
    ddof: int,
) -> dict[str, StatisticsResult]:
    """Accumulate all windows together, in as many passes as their quantiles need."""
    context = default_context(opened[spec.anchor].device)
    accumulators = {
        name: StatisticsAccumulator(
            (opened[name].out_channels or 0) * (opened[name].num_offsets if per_step else 1),
            quantiles,
            ddof,
            context,
        )
        for name in rows
    }
    indices, anchors = spec.samples(episodes)
    unfinished = dict(accumulators)
    while unfinished:
        changed: dict[str, dict[str, Any]] = {name: {"output": False} for name in opened}
        for name, accumulator in unfinished.items():
            changed[name].update(accumulator=accumulator, accumulate=rows[name])
        counting = spec._streams(episodes, changed)
        anchor_stream = opened[spec.anchor]
        for begin in range(0, len(anchors), _AT_ONCE):
            part = slice(begin, begin + _AT_ONCE)
            windows(
                counting,
                anchor_stream.sequence(indices[part], "episodes"),
                anchor_stream.sequence(anchors[part], "anchors"),
                anchor_stream=spec.anchor_stream,
                lag=spec.lag,
                backend=context,
            )
        unfinished = {
            name: each for name, each in unfinished.items() if len(anchors) and each.next_pass()
        }
    results = {}
    for name, accumulator in accumulators.items():
        result = accumulator.result()
        results[name] = _in_steps(result, opened[name].num_offsets) if per_step else result
    return results


def _by_name(rows: Any, names: list[str]) -> dict[str, str]:
    if not isinstance(rows, Mapping):
        return dict.fromkeys(names, rows)
    for name in rows:
        if name not in names:
            known = ", ".join(map(repr, names)) or "none"
            raise ValueError(
                f"rows: no window with output is named {name!r}, expected one of {known}"
            )
    return {name: rows.get(name, "all") for name in names}


def _in_steps(result: StatisticsResult, steps: int) -> StatisticsResult:
    """Return the statistics of O D' channels as [O,D'], with quantiles [O,Q,D']."""
    channels = len(result.mean) // max(1, steps)
    arrays = {
        field.name: getattr(result, field.name).reshape(steps, channels)
        for field in dataclasses.fields(result)
        if field.name not in ("quantiles", "levels", "ddof")
    }
    quantiles = result.quantiles.reshape(len(result.levels), steps, channels).swapaxes(0, 1)
    return dataclasses.replace(result, **arrays, quantiles=quantiles)
