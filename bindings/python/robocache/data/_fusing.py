"""Streams that are fused: how each is resampled, and what comes out in its own dtype."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import Stream, fuse
from ._check_values import quaternions_of
from ._units import per_second

_MOST = 64  # streams of a call of fuse


@dataclass(frozen=True)
class Rules:
    """What ``align`` was told."""

    methods: Mapping[str, Any]
    max_gap: float | None
    span: Any  # "intersection" or "union"
    backend: Any

    @property
    def may_miss(self) -> bool:
        """Whether there may be rows without a value."""
        return self.max_gap is not None or self.span == "union"

    def require_known(self, streams: Mapping[str, Any]) -> None:
        for name in self.methods:
            if name not in streams:
                raise KeyError(f"methods: has {name!r}, which is no stream to align")

    def stream(
        self,
        name: str,
        values: Any,
        times: Any,
        names: Sequence[str] | None,
        dtypes: Sequence[str] | None = None,
        offsets: Any = None,
    ) -> Stream[Any]:
        """How one is resampled: as was told, or as its channels are."""
        import numpy as np

        dtypes = dtypes or [values.dtype.name] * values.shape[1]
        method = self.methods.get(name) or _methods_of(names, dtypes, name)
        if values.dtype.kind in "iub" and not _picks(method):
            values = values.astype(np.float64)
        options: Any = {"method": method, "fill_value": float("nan")}
        options["bounds"] = "fill" if self.span == "union" else "hold"
        if offsets is not None:
            options["offsets"] = offsets
        if self.max_gap is not None:
            options["max_gap"] = _gap(self.max_gap, times.dtype)
        try:
            made: Stream[Any] = Stream(values, times, **options)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{name}: {error}") from None
        return made


def fused(
    streams: Mapping[str, Stream[Any]], queries: Any, backend: Any, options: Any
) -> tuple[dict[str, Any], Any]:
    """Each stream's values in a float of its own, and all masks."""
    import numpy as np

    given = streams
    # Integers that are picked go by their row, which a float64 holds whatever they are.
    streams = {name: _by_row(stream) for name, stream in streams.items()}
    by_dtype: dict[str, list[str]] = {}
    for name, stream in streams.items():
        by_dtype.setdefault(_float_for(stream.values.dtype), []).append(name)
    values, masks = {}, {}
    for dtype, names in by_dtype.items():
        for begin in range(0, len(names), _MOST):
            some = names[begin : begin + _MOST]
            fused, mask = fuse(
                [streams[name] for name in some],
                queries,
                dtype=dtype,
                return_mask=True,
                backend=backend,
                **options,
            )
            ends = np.cumsum([streams[name].values.shape[-1] for name in some])
            for i, (name, end) in enumerate(zip(some, ends.tolist())):
                width = streams[name].values.shape[-1]
                own = np.ascontiguousarray(fused[..., end - width : end])
                values[name] = own
                if streams[name] is not given[name]:
                    values[name] = _taken(given[name], own[..., 0], options)
                masks[name] = mask[..., i]
    return {name: values[name] for name in streams}, np.stack(
        [masks[name] for name in streams], axis=-1
    )


def _by_row(stream: Stream[Any]) -> Stream[Any]:
    """Of integers and bool the numbers of their rows; others as they are."""
    import numpy as np

    if stream.values.dtype.kind not in "iub":
        return stream
    rows = np.arange(len(stream.values), dtype=np.float64)[:, None]
    return dataclasses.replace(stream, values=rows)


def _taken(stream: Stream[Any], rows: Any, options: Any) -> Any:
    """Values by row; 0 where there is none, or past the end of a shorter clock."""
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


def _gap(seconds: float, dtype: Any) -> Any:
    """In the ticks of times with a unit, else as it is."""
    import numpy as np

    if dtype.kind not in "mM":
        return seconds
    unit, count = np.datetime_data(dtype)
    ticks: Any = round(seconds * per_second(unit) / count)
    return np.array(ticks).astype(f"timedelta64[{count}{unit}]")[()]


def _methods_of(names: Sequence[str] | None, dtypes: Sequence[str], track: str) -> Any:
    """A method for each channel, as groups; one name where all have the same."""
    methods = ["linear" if dtype.startswith("float") else "previous" for dtype in dtypes]
    for begin in quaternions_of(names, len(dtypes), track):
        if all(dtype.startswith("float") for dtype in dtypes[begin : begin + 4]):
            methods[begin : begin + 4] = [f"slerp {begin}"] * 4
    groups: list[list[Any]] = []
    for i, method in enumerate(methods):
        if groups and groups[-1][2] == method:
            groups[-1][1] += 1
        else:
            groups.append([i, 1, method])
    told = [(begin, count, method.partition(" ")[0]) for begin, count, method in groups]
    return told[0][2] if len(told) == 1 else told


def _picks(method: Any) -> bool:
    """Whether rows are taken as they are."""
    return method in ("previous", "next", "nearest")


def _float_for(dtype: Any) -> str:
    return str(dtype) if dtype.kind == "f" else "float64"
