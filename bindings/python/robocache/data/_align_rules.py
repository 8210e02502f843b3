"""How each stream is resampled in a fusion, and its result in the stream's own dtype."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import Stream, fuse
from .._episodes.channels import Group, chosen_groups
from .._printable import printable
from .._suggestions import did_you_mean
from ._align_arrivals import Seen, ticks
from ._errors import LeftOut, some
from ._kinds.kinds import Kinds, kind_option
from ._kinds.methods import Plan, picks, plan_of
from ._kinds.selectors import columns_of

_MOST = 64  # streams per call of fuse


@dataclass(frozen=True)
class Rules:
    """Options of ``align``."""

    methods: Mapping[str, Any]
    max_gap: float | None
    span: Any  # "intersection" or "union"
    backend: Any
    accept_guesses: bool = False
    as_numbers: bool = False
    seen: Seen = field(default_factory=Seen)

    @property
    def may_miss(self) -> bool:
        """Whether there may be rows without a value."""
        looks_back = self.seen.arrival or self.seen.causal
        return self.max_gap is not None or self.span == "union" or looks_back

    def methods_of(self, streams: Collection[str]) -> dict[str, list[tuple[str, Any]]]:
        """Return methods for channels by stream, in their order."""
        by_stream: dict[str, list[tuple[str, Any]]] = {}
        for key, method in self.methods.items():
            if key in streams:
                by_stream.setdefault(key, []).append(("*", method))
                continue
            fits = [name for name in streams if key.startswith(f"{name}:")]
            if not fits:
                raise KeyError(
                    f"--method {printable(key)}={method}: no such stream, expected one of "
                    f"{some(tuple(streams))} (methods= in Python)"
                    f"{did_you_mean(key.partition(':')[0], streams)}"
                )
            name = max(fits, key=len)
            by_stream.setdefault(name, []).append((key[len(name) + 1 :], method))
        return by_stream

    def planned(
        self,
        name: str,
        kinds: Kinds,
        names: Sequence[str] | None,
        width: int,
        methods: Sequence[tuple[str, Any]],
    ) -> Planned:
        """Plan how one stream is aligned. Possible quaternions are refused later."""
        groups, candidates = kinds.groups, kinds.candidates
        asked: list[tuple[Sequence[int], str, str]] = []
        where = f"--method {printable(name)}"
        for channels, method in methods:
            if not isinstance(method, str):  # groups, as for robocache.resample
                if channels != "*" or len(methods) > 1:
                    raise ValueError(f"{where}:{channels}: is {method!r}, expected one method")
                return Planned(groups, None, method)
            option = f"{where}{'' if channels == '*' else ':' + channels}={method}"
            columns = columns_of(channels, names, width, option, name)
            asked.append((columns, method, option))
            taken = set(columns)
            candidates = tuple(g for g in candidates if taken.isdisjoint(g.columns))
        if self.accept_guesses:
            groups = tuple(chosen_over(groups, candidates))
        elif not self.as_numbers and candidates:
            return Planned(groups, None, None, candidates)
        plan = plan_of(groups, width, asked)
        return Planned(groups, plan, plan.method if plan.parts else "linear")

    def stream(
        self,
        name: str,
        values: Any,
        times: Any,
        planned: Planned,
        offsets: Any = None,
        arrivals: Any = None,
    ) -> Stream[Any]:
        """Return the columns of a stream that are aligned, with their methods."""
        import numpy as np

        if planned.plan is not None:
            values = planned.plan.gathered(values)
        if values.dtype.kind in "iub" and not picks(planned.method):
            values = values.astype(np.float64)
        options: Any = {"method": planned.method, "fill_value": float("nan")}
        looks_back = self.seen.looks_back(name)
        fills = self.span == "union" or looks_back or arrivals is not None
        options["outside"] = "fill" if fills else "hold"
        if offsets is not None:
            options["batch_offsets"] = offsets
        if self.max_gap is not None:
            options["max_gap"] = ticks(self.max_gap, times.dtype)
        if looks_back:
            options.update(causal=True, max_age=ticks(self.seen.age(name), times.dtype))
        if arrivals is not None:
            options["arrivals"] = arrivals
        if self.seen.offset(name):
            options["clock_offset"] = ticks(self.seen.offset(name), times.dtype)
        try:
            made: Stream[Any] = Stream(values, times, **options)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{name}: {error}") from None
        return made


@dataclass(frozen=True)
class Planned:
    """How a stream is aligned."""

    groups: tuple[Group, ...]
    plan: Plan | None  # None: all columns by the given method
    method: Any
    refused: tuple[Group, ...] = ()  # possible quaternions without a decision

    @property
    def kept(self) -> tuple[int, ...] | None:
        """The columns of the result; None: all."""
        return None if self.plan is None else self.plan.kept

    def names(self, names: Sequence[str] | None) -> list[str] | None:
        if names is None or self.kept is None:
            return None if names is None else list(names)
        return [names[column] for column in self.kept]

    def result(self, aligned: Any, dtype: Any) -> Any:
        """Return the stream's columns from aligned ones; ``dtype`` is that of its values."""
        if self.plan is None or self.plan.is_plain:
            return aligned
        own = dtype if dtype.kind == "f" or picks(self.method) else aligned.dtype
        return self.plan.scattered(aligned, own)

    def kinds(self) -> Kinds:
        """Return the kinds of the channels of the result."""
        kept = self.kept
        return Kinds(self.groups if kept is None else chosen_groups(self.groups, kept))

    def left_out(self, name: str, labels: Sequence[str]) -> list[LeftOut]:
        """Return the channels that are aligned only on request."""
        found = []
        for group in self.groups if self.kept is not None else ():
            missing = [c for c in group.columns if c not in set(self.kept or ())]
            if missing:
                shown = _run(labels, missing)
                reason = f"{group.kind} ({len(missing)} channels) is not interpolated; "
                reason += f"--kind '{name}:{shown}=number' keeps it (kinds= in Python)"
                found.append(LeftOut(f"{name}: {shown}", reason))
        return found


def _run(labels: Sequence[str], columns: Sequence[int]) -> str:
    if len(columns) == 1:
        return labels[columns[0]]
    begin = os.path.commonprefix([labels[column] for column in columns]).rstrip("[._(")
    return begin or f"{labels[columns[0]]}-{labels[columns[-1]]}"


def chosen_over(groups: Sequence[Group], chosen: Sequence[Group]) -> list[Group]:
    """Return the groups without the columns of ``chosen``, and ``chosen``."""
    taken = {column for group in chosen for column in group.columns}
    left = []
    for group in groups:
        columns = tuple(column for column in group.columns if column not in taken)
        if columns:
            left.append(dataclasses.replace(group, columns=columns))
    return sorted([*left, *chosen], key=lambda group: min(group.columns))


def require_sure(refused: Mapping[str, Sequence[Group]], names: Mapping[str, Any]) -> None:
    """Raise an error that lists all possible quaternions, as options to paste."""
    options = [
        kind_option(stream, names[stream], group)
        for stream, groups in refused.items()
        for group in groups
    ]
    if options:
        first = next(name for name, groups in refused.items() if groups)
        group = refused[first][0]
        many = "these channels" if len(options) == 1 else f"{len(options)} groups of 4 channels"
        raise ValueError(
            f"{printable(first)}: {many} may be a quaternion ({group.evidence}), which must not be "
            f"interpolated channel by channel. Say what they are: "
            f"{' '.join(options)} (or =number); --accept-guesses treats all of them as "
            "quaternions, --as-numbers as numbers (kinds=, accept_guesses=True, as_numbers=True in "
            "Python)"
        )


def fuse_all(
    streams: Mapping[str, Stream[Any]], queries: Any, dtype: str, options: Any
) -> tuple[Any, Any]:
    pair: tuple[Any, Any] = fuse(
        list(streams.values()), queries, dtype=dtype, return_valid=True, **options
    )
    return pair


def fused(
    streams: Mapping[str, Stream[Any]],
    queries: Any,
    backend: Any,
    options: Any,
) -> tuple[dict[str, Any], Any]:
    """Return the values of each stream in a float dtype, and all masks."""
    import numpy as np

    originals = streams
    # Integers are picked by row number, which is exact in float64 for any values.
    streams = {name: _by_row(stream) for name, stream in streams.items()}
    by_dtype: dict[str, list[str]] = {}
    for name, stream in streams.items():
        by_dtype.setdefault(_float_for(stream.values.dtype), []).append(name)
    values, masks = {}, {}
    for dtype, names in by_dtype.items():
        for begin in range(0, len(names), _MOST):
            some = names[begin : begin + _MOST]
            chosen = {name: streams[name] for name in some}
            fused, mask = fuse_all(chosen, queries, dtype, {**options, "backend": backend})
            ends = np.cumsum([streams[name].values.shape[-1] for name in some])
            for i, (name, end) in enumerate(zip(some, ends.tolist())):
                width = streams[name].values.shape[-1]
                own = np.ascontiguousarray(fused[..., end - width : end])
                values[name] = own
                if streams[name] is not originals[name]:
                    values[name] = _picked(originals[name], own[..., 0], options)
                masks[name] = mask[..., i]
    return {name: values[name] for name in streams}, np.stack(
        [masks[name] for name in streams], axis=-1
    )


def _by_row(stream: Stream[Any]) -> Stream[Any]:
    """Return integers and bool as the numbers of their rows; other streams unchanged."""
    import numpy as np

    if stream.values.dtype.kind not in "iub":
        return stream
    rows = np.arange(len(stream.values), dtype=np.float64)[:, None]
    return dataclasses.replace(stream, values=rows)


def _picked(stream: Stream[Any], rows: Any, options: Any) -> Any:
    """Return values by row; 0 for a missing row, or past the end of a shorter clock."""
    import numpy as np

    lengths = options.get("query_lengths")
    there = np.isfinite(rows)
    if lengths is not None:
        there &= np.arange(rows.shape[-1]) < lengths[:, None]
    taken = (
        stream.values[np.where(there, rows, 0).astype(np.int64)]
        if len(stream.values)
        else (np.zeros((*rows.shape, stream.values.shape[-1]), stream.values.dtype))
    )
    taken[~there] = 0
    return taken


def _float_for(dtype: Any) -> str:
    return str(dtype) if dtype.kind == "f" else "float64"
