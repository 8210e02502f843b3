"""Statistics of channels: range, mean, standard deviation and quantiles."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._arguments.to_numpy import on_host
from .._printable import kind_of
from .._text_table import html_table, text_table

_SHOWN = 30  # channels of a table
UNKNOWN = -1  # a count that a file does not contain


@dataclass(frozen=True, eq=False, repr=False)
class StatisticsResult:
    """Statistics of D channels, as arrays of NumPy or of the values' library.

    The arrays are [D] for all rows together, or [B,D] for each of B rows. ``print`` shows them as a
    table. Numbers that a file does not contain are NaN, or -1 in ``count`` and ``nonfinite``.

    Examples
    --------
    >>> import robocache as rbc
    >>> rbc.StatisticsResult(
    ...     count=[3, 2], nonfinite=[0, 1], min=[0.0, 5.0], max=[4.0, 7.0], mean=[2.0, 6.0],
    ...     std=[1.63, 1.0], quantiles=[[2.0, 6.0]], levels=[0.5])
    channel  count  nonfinite  min  max  mean   std  q50
    0            3          0    0    4     2  1.63    2
    1            2          1    5    7     6     1    6
    """

    count: Any  #: number of finite values, int64 [D] or [B,D]
    nonfinite: Any  #: number of NaN and infinities, which the other statistics ignore
    min: Any  #: float64, like the following
    max: Any
    mean: Any
    std: Any  #: the standard deviation
    quantiles: Any  #: [Q,D] or [B,Q,D], in the order of ``levels``
    levels: Sequence[float] = ()  #: levels of the quantiles, from 0 to 1; stored as a tuple
    ddof: int = 0  #: ``std`` divides by the count minus this

    def __post_init__(self) -> None:
        import numpy as np

        for field in _arrays(self):
            value = getattr(self, field.name)
            if isinstance(value, (list, tuple)):
                kind = np.int64 if field.name in ("count", "nonfinite") else np.float64
                object.__setattr__(self, field.name, np.asarray(value, kind))
            elif not hasattr(value, "shape"):
                kind_name = kind_of(value)
                raise TypeError(f"{field.name}: is {kind_name}, expected an array or a list")
        object.__setattr__(self, "levels", tuple(map(float, self.levels)))
        shape = tuple(self.mean.shape)
        if len(shape) not in (1, 2):
            raise ValueError(f"mean: shape is {list(shape)}, expected [D] or [B,D]")
        for name in ("count", "nonfinite", "min", "max", "std"):
            self._require(name, shape)
        self._require("quantiles", (*shape[:-1], len(self.levels), shape[-1]))

    def _require(self, name: str, shape: tuple[int, ...]) -> None:
        actual = tuple(getattr(self, name).shape)
        if actual != shape:
            raise ValueError(f"{name}: shape is {list(actual)}, expected {list(shape)}")

    def quantile(self, level: float) -> Any:
        """Return the quantiles of a level, [D] or [B,D]."""
        for i, known in enumerate(self.levels):
            if abs(known - level) <= 1e-12:
                return self.quantiles[..., i, :]
        names = ", ".join(map(repr, self.levels)) or "none"
        raise ValueError(f"level: is {level!r}, expected one of {names}")

    def row(self, index: int) -> StatisticsResult:
        """Return the statistics of one of B rows, such as an episode."""
        if len(self.mean.shape) != 2:
            raise ValueError(
                "index: these statistics cover all rows together; compute them with per_row=True"
            )
        rows = {field.name: getattr(self, field.name)[index] for field in _arrays(self)}
        return dataclasses.replace(self, **rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the statistics as dicts, lists and numbers."""
        lists = {field.name: _host(self, field.name).tolist() for field in _arrays(self)}
        return {**lists, "levels": list(self.levels), "ddof": self.ddof}

    def __repr__(self) -> str:
        rows, hidden = self._rows()
        return text_table(rows) + (f"\n{hidden}" if hidden else "")

    def _repr_html_(self) -> str:
        return html_table(*self._rows())

    def _rows(self) -> tuple[list[list[str]], str]:
        """Return the rows of a table, and how many more there are."""
        import numpy as np

        shape = tuple(self.mean.shape)
        names = ["count", "nonfinite", "min", "max", "mean", "std"]
        columns = [_host(self, name) for name in names]
        quantiles = _host(self, "quantiles")
        columns += [quantiles[..., i, :] for i in range(len(self.levels))]
        rows = [["channel", *names, *(f"q{_percent(level)}" for level in self.levels)]]
        for index in itertools.islice(np.ndindex(shape), _SHOWN):
            label = ",".join(map(str, index))
            rows.append([label, *(_shown(column[index]) for column in columns)])
        hidden = int(np.prod(shape)) - _SHOWN
        return rows, f"... and {hidden} more" if hidden > 0 else ""


def _arrays(result: StatisticsResult) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(result)[:7]


def _host(result: StatisticsResult, name: str) -> Any:
    return on_host(getattr(result, name), name)


def _percent(level: float) -> str:
    """Return a level in percent: 01 for 0.01, 50 for 0.5, 99.9 for 0.999."""
    text = f"{100 * level:.10g}"
    return text.zfill(2) if text.isdigit() else text


def _shown(number: Any) -> str:
    if number.dtype.kind == "i":
        return "?" if number == UNKNOWN else str(number)
    return f"{number:.6g}"
