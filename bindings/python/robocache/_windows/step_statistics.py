"""Statistics of windows one step at a time: of all samples at a single offset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._arguments.arrays import dtype_of
from .._arguments.to_numpy import on_host
from .._statistics.accumulator import statistics as statistics_of
from .._statistics.result import StatisticsResult
from .window_stream import WindowStream, stream_of
from .windows import windows

if TYPE_CHECKING:
    from .._episodes.episodes import Episodes
    from .spec import WindowSpec

_AT_ONCE = 1 << 26  # bytes of windows that are examined together
_NARROW = ("float16", "bfloat16", "float32")  # computed in float32
_HIDDEN: dict[str, Any] = {"output": False, "transforms": (), "normalization": None}
_ARRAYS = ("count", "nonfinite", "min", "max", "mean", "std", "quantiles")


def can_be_stepwise(spec: WindowSpec, episodes: Episodes, name: str) -> bool:
    """Whether the steps of a window are independent, and every row has a value, perhaps held."""
    window = spec.windows[name]
    involved = [name, *[_referred(spec, each) for each in window.transforms]]
    kinds = {each.kind for each in window.transforms}
    if not window.offsets or window.outside == "fill" or not kinds <= {"subtract"}:
        return False
    for each in involved:
        if spec.windows[each].method is not None or spec.windows[each].missing is not None:
            return False
        arrives = episodes[spec.track(each)].arrivals is not None and not spec.windows[each].label
        if arrives:  # rows that had not arrived have no value
            return False
        lengths = episodes.lengths(spec.track(each))
        if ((lengths == 0) & (spec.counts(episodes) > 0)).any():
            return False
    return True


def statistics(
    spec: WindowSpec, episodes: Episodes, name: str, rows: Any, quantiles: Any, ddof: int
) -> StatisticsResult:
    """Return statistics [O,D'] of one window of a spec, for "all", "valid" or "whole" rows."""
    import numpy as np

    indices, anchors = spec.samples(episodes)
    cut = _Cut(spec, episodes, name)
    offsets = spec.windows[name].offsets
    if rows == "whole":
        whole = cut.whole(indices, anchors)
        indices, anchors = indices[whole], anchors[whole]
    samples = cut.moved(indices, anchors)
    found = []
    for offset in offsets:
        values, valid = cut.rows([offset], samples)
        mask = valid[:, 0] if rows == "valid" else None
        found.append(statistics_of(values[:, 0], sample_mask=mask, quantiles=quantiles, ddof=ddof))
    arrays: dict[str, Any] = {
        name: np.stack([on_host(getattr(each, name), name) for each in found]) for name in _ARRAYS
    }
    return StatisticsResult(**arrays, levels=quantiles, ddof=ddof)


class _Cut:
    """One window of a spec at any offsets, with the streams that it needs."""

    def __init__(self, spec: WindowSpec, episodes: Episodes, name: str) -> None:
        window = spec.windows[name]
        needed = dict.fromkeys(
            [spec.anchor, *[_referred(spec, each) for each in window.transforms]]
        )
        names = list(needed)
        hidden = spec._streams(episodes, dict.fromkeys(names, _HIDDEN), names)
        self._streams: list[WindowStream[Any]] = hidden
        self._track = episodes[spec.track(name)]
        self._transforms = [
            each._with_reference(names.index(_referred(spec, each)), each.reference[1])
            for each in window.transforms
        ]
        involved = [self._track, *[episodes[spec.track(each)] for each in names]]
        dtypes = {dtype_of(each.values, "values") for each in involved if each.values is not None}
        self._options = {  # outside is "hold": neutral numbers do not count
            "arrivals": None,
            "clock_offset": window.clock_offset,
            "dtype": "float32" if dtypes <= set(_NARROW) else "float64",
        }
        self._offsets = window.offsets
        self._row_bytes = 8 * max(1, self._track.num_channels * len(window.offsets))

    def moved(self, indices: Any, anchors: Any) -> tuple[Any, Any]:
        """Return samples as arrays on the device of the episodes."""
        stream = self._streams[0]._opened
        return stream.sequence(indices, "episodes"), stream.sequence(anchors, "anchors")

    def rows(self, offsets: Any, samples: tuple[Any, Any]) -> tuple[Any, Any]:
        """Return values [B,O,D'] and valid [B,O]."""
        options = {**self._options, "transforms": self._transforms}
        stream = stream_of(self._track, offsets, options)
        pair: tuple[Any, Any] = windows([*self._streams, stream], *samples)[-1]
        return pair

    def whole(self, indices: Any, anchors: Any) -> Any:
        """Return a mask of the samples whose rows are all valid, bool [N] in NumPy."""
        import numpy as np

        whole = np.zeros(len(indices), bool)
        count = max(1, _AT_ONCE // self._row_bytes)
        for begin in range(0, len(indices), count):
            part = slice(begin, begin + count)
            _, valid = self.rows(self._offsets, self.moved(indices[part], anchors[part]))
            whole[part] = on_host(valid, "valid").all(axis=1)
        return whole


def _referred(spec: WindowSpec, transform: Any) -> str:
    stream = transform.reference[0]
    return stream if isinstance(stream, str) else list(spec.windows)[stream]
