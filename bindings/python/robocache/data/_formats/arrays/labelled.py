"""Arrays with named dimensions, as in NetCDF files and xarray: streams with their clocks.

A dimension with a coordinate of times is a clock. Variables along it become streams: variables
without another dimension are the channels of one stream, and each other variable is a separate
stream, whose channels have the labels of its other dimensions.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Callable

from ..._errors import FormatError, LeftOut, Unread, rows_without_time
from ..._kinds.names import UNIT_WORDS
from ..._options import Options
from ..._progress import progress
from ..._source import Piece, StreamInfo
from ..tables.clock import Clock, guessed, split_unit
from ..tables.time_columns import FROM_ZERO, PATTERNS, UNIT_OF, row_of
from ..tables.units import scales_of
from .rows import clock_rows, is_number, is_picture

_SINCE = re.compile(r"(\w+)\s+since\s+(.+)", re.IGNORECASE)
_SECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_LONGER = {
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60 * 10**9),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600 * 10**9),
    **dict.fromkeys(("d", "day", "days"), 86_400 * 10**9),
}
_CALENDARS = ("standard", "gregorian", "proleptic_gregorian")
_DATE = re.compile(
    r"(\d{1,4})-(\d{1,2})-(\d{1,2})(?:[T ]+(\d{1,2}):(\d{1,2})(?::(\d{1,2})(\.\d{1,9})?0*)?)?\s*"
    r"(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?"
)
_ANGLES = {"degrees_north": "deg", "degrees_east": "deg", "degree_north": "deg",
           "degree_east": "deg"}  # fmt: skip
_EXACT = 2**53  # larger integers are not always exact in float64
_LARGE = 1 << 63
_NO_TIMES = (
    "no coordinate along its dimensions holds times. Name one with --time VARIABLE, or set the "
    "rows per second with --fps HZ"
)


@dataclass(frozen=True)
class Variable:
    """An array with named dimensions, which is read when it is used."""

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: Any
    read: Callable[[], Any] = field(repr=False)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] | None = None  # the values of an array of texts


@dataclass(frozen=True)
class _Stream:
    """The variables of a stream, and where its times come from."""

    variables: tuple[Variable, ...]
    dim: str  # with the times
    names: tuple[str, ...]


class Labelled:
    """A source of streams (``_source.Source``)."""

    def __init__(
        self,
        path: str,
        kind: str,
        stream_kind: str,
        variables: Collection[Variable],
        options: Options,
        left_out: list[LeftOut],
    ) -> None:
        self.path, self.kind, self.stream_kind = path, kind, stream_kind
        self.damage, self.rate = options.damage, options.rate
        self._left_out = left_out
        self.times: dict[str, Any] = {}  # by dimension
        self.masks: dict[str, Any] = {}
        self.clocks: dict[str, Clock] = {}
        self._choose_clocks(variables, options)
        if self.clocks:
            self.rate = None
        self.labels = _labels_in(variables)
        self.parts: dict[str, _Stream] = {}
        self.unread: list[Unread] = []
        chosen = self._with_times(variables, {clock.columns[0] for clock in self.clocks.values()})
        self._name_streams(chosen)
        self.unit, self.scales = scales_of(path, self.clocks, options.unit)
        if self.rate is not None and not self.clocks:
            self.unit = "s"

    # ---- which clocks ---------------------------------------------------------------------------

    def _choose_clocks(self, variables: Collection[Variable], options: Options) -> None:
        clock_rows(_no_rows(), self.rate)  # refuses an invalid rate
        lines = [each for each in variables if len(each.dims) == 1 and each.labels is None]
        asked: Variable | None = None
        unit: str | None = None
        if options.time is not None:
            for text, own_unit in split_unit(options.time):
                if asked is None:
                    asked = next((each for each in lines if each.name == text), None)
                    unit = own_unit
            if asked is None:
                known = ", ".join(each.name for each in lines[:12])
                text = f"--time {options.time}: no such variable with one dimension. There are: "
                raise FormatError(self.path, "", text + (known or "none"))
        for dim in dict.fromkeys(each.dims[0] for each in lines):
            own = [each for each in lines if each.dims[0] == dim]
            own.sort(key=lambda each: each.name != dim)  # its coordinate first
            chosen = next((each for each in own if _is_clock(each)), None)
            if asked is not None and asked.dims[0] == dim:
                chosen = asked
            if chosen is not None:
                self._add_clock(dim, chosen, chosen is asked, unit if chosen is asked else None)

    def _add_clock(self, dim: str, chosen: Variable, is_asked: bool, unit: str | None) -> None:
        import numpy as np

        times, mask, stated = _times_of(self.path, chosen)
        fits = row_of(chosen.name.rpartition("/")[2])
        kind = "f" if times.dtype.kind == "f" else "i"
        if stated is None and fits is not None:
            pattern = PATTERNS[fits[0]]
            stated = fits[1] or (pattern.floats if kind == "f" else pattern.integers)
        if unit is not None and _has_unit(chosen):
            text = f"--time {chosen.name}:{unit}: the variable states its unit: remove :{unit}"
            raise FormatError(self.path, chosen.name, text)
        row = None if fits is None else fits[0]
        clock = Clock(chosen.name, kind, unit or stated, (chosen.name,), row=row, asked=unit)
        clock.is_asked = is_asked
        if not mask.all():
            first = int(np.argmin(mask))
            text = rows_without_time(int((~mask).sum()), len(mask), "", self.damage)
            self.damage.found(self.path, f"{chosen.name}, row {first}", text)
        clock.sample = times[mask]
        self.times[dim], self.masks[dim], self.clocks[dim] = times[mask], mask, guessed(clock)

    def _with_times(self, variables: Collection[Variable], used: set[str]) -> list[Variable]:
        """Return the variables that become streams; note the others."""
        chosen = []
        for each in variables:
            if each.name in used or (each.labels is not None and each.name in each.dims):
                continue
            picture = is_number(each.dtype) and is_picture(self._rows_first(each), each.dtype)
            if each.labels is not None or not is_number(each.dtype):
                text = "texts" if each.labels is not None else f"dtype {each.dtype}"
                self._left_out.append(LeftOut(each.name, f"has {text}, which are not read"))
            elif not each.dims:
                self._left_out.append(LeftOut(each.name, "a single number"))
            elif picture:
                shape = list(each.shape)
                self._left_out.append(
                    LeftOut(each.name, f"pictures or clouds, {each.dtype} {shape}")
                )
            elif not set(each.dims) & set(self.clocks) and self.rate is None:
                if each.name in each.dims or self.clocks:
                    text = "is constant: none of its dimensions has times"
                    self._left_out.append(LeftOut(each.name, text))
                    continue
                self.unread.append(Unread(each.name, "", each.shape[0], None, _NO_TIMES))
            else:
                chosen.append(each)
        return chosen

    def _dim_of(self, variable: Variable) -> str:
        """Return the dimension with times; with a rate, the first is one."""
        return next((dim for dim in variable.dims if dim in self.clocks), variable.dims[0])

    def _rows_first(self, variable: Variable) -> tuple[int, ...]:
        if not variable.dims:
            return (1,)
        at = variable.dims.index(self._dim_of(variable))
        return (variable.shape[at], *variable.shape[:at], *variable.shape[at + 1 :])

    # ---- streams --------------------------------------------------------------------------------

    def _name_streams(self, chosen: Collection[Variable]) -> None:
        import numpy as np

        together: dict[str, list[Variable]] = {}
        for each in chosen:
            if len(each.dims) == 1:
                together.setdefault(each.dims[0], []).append(each)
        for dim, own in together.items():
            whole = np.result_type(*(_dtype_of(each) for each in own))
            apart = [e for e in own if e.dtype.kind in "iu" and e.dtype.itemsize == 8]
            apart = apart if whole.kind == "f" else []  # float64 would round some of them
            rest = [each for each in own if each not in apart]
            if rest:
                label = dim if len(rest) > 1 else rest[0].name
                self._add_stream(label, _Stream(tuple(rest), dim, tuple(map(_channel, rest))))
            for each in apart:
                self._add_stream(each.name, _Stream((each,), dim, (_channel(each),)))
        for each in chosen:
            if len(each.dims) > 1:
                dim = self._dim_of(each)
                self._add_stream(each.name, _Stream((each,), dim, self._channels(each, dim)))

    def _add_stream(self, name: str, stream: _Stream) -> None:
        while name in self.parts:
            name += "'"
        self.parts[name] = stream

    def _channels(self, variable: Variable, dim: str) -> tuple[str, ...]:
        """Return a name for each place along the other dimensions."""
        at = variable.dims.index(dim)
        parts = []
        for i, (own, extent) in enumerate(zip(variable.dims, variable.shape)):
            if i != at:
                numbered = tuple(f"[{k}]" for k in range(extent))
                labels = self.labels.get(own)
                parts.append(numbered if labels is None or len(labels) != extent else labels)
        made = []
        for place in itertools.product(*parts):
            text = place[0]
            for part in place[1:]:
                text += part if part.startswith("[") else f".{part}"
            made.append(text)
        if max(Counter(made).values(), default=0) > 1:
            return tuple(f"[{i}]" for i in range(len(made)))
        return tuple(made)

    @property
    def left_out(self) -> list[LeftOut]:
        return self._left_out

    @functools.cached_property
    def streams(self) -> dict[str, StreamInfo]:
        return {
            name: StreamInfo(
                name,
                self.stream_kind,
                self._rows_first(stream.variables[0])[0]
                if stream.dim not in self.clocks
                else len(self.times[stream.dim]),
                stream.names,
                self.scales[stream.dim].unit if stream.dim in self.scales else self._row_unit(),
                times=self._times_from(stream.dim),
            )
            for name, stream in self.parts.items()
        }

    def _row_unit(self) -> str | None:
        return "s" if not self.clocks and self.rate is not None else None

    def _times_from(self, dim: str) -> str | None:
        clock = self.clocks.get(dim)
        if clock is None:
            return f"row / {self.rate:g} (--fps)"
        return clock.why.replace("column ", "variable ", 1)

    def look(self) -> None:
        pass

    def pieces(self, names: Collection[str], shown: bool | None = None) -> Iterator[Piece]:
        import numpy as np

        chosen = [name for name in self.parts if name in names]
        with progress(f"Reading {self.kind}", len(chosen), shown) as done:
            for name in chosen:
                stream = self.parts[name]
                columns = [self._read(each, stream.dim) for each in stream.variables]
                dtypes = [str(part.dtype) for part in columns for _ in range(part.shape[1])]
                dtype = np.result_type(*{part.dtype for part in columns})
                values = columns[0]
                if len(columns) > 1:
                    values = np.concatenate([part.astype(dtype) for part in columns], axis=1)
                if stream.dim in self.clocks:
                    values = values[self.masks[stream.dim]]
                    times = self.times[stream.dim]
                    if stream.dim in self.scales:
                        place = self.clocks[stream.dim].name
                        times = self.scales[stream.dim].times(times, self.path, place)
                else:
                    times = clock_rows(np.array([len(values)]), self.rate)
                yield Piece(name, stream.names, values, {"time": times}, tuple(dtypes))
                done(1)

    def _read(self, variable: Variable, dim: str) -> Any:
        """Return a variable as [n,D]."""
        import numpy as np

        values = np.asarray(variable.read())
        if values.shape != variable.shape:
            text = f"has shape {list(values.shape)}, but had {list(variable.shape)} when opened"
            raise FormatError(self.path, variable.name, text)
        values = decoded_values(self.path, variable, values)
        values = np.moveaxis(values, variable.dims.index(dim), 0)
        rows = values.shape[0]
        return np.ascontiguousarray(values).reshape(rows, math.prod(values.shape[1:]))


def _no_rows() -> Any:
    import numpy as np

    return np.array([0])


def _channel(variable: Variable) -> str:
    """Return the name of a variable, with its unit if it is one of angles."""
    unit = str(variable.attributes.get("units", "")).strip().lower()
    unit = _ANGLES.get(unit) or UNIT_WORDS.get(unit, "")
    return f"{variable.name} [{unit}]" if unit else variable.name


def _labels_in(variables: Collection[Variable]) -> dict[str, tuple[str, ...]]:
    """Return the texts that label the places along a dimension."""
    found: dict[str, tuple[str, ...]] = {}
    for each in variables:
        if each.labels is not None and len(each.dims) == 1 and len(set(each.labels)) > 0:
            if each.name == each.dims[0] or each.dims[0] not in found:
                found[each.dims[0]] = each.labels
    return found


def _dtype_of(variable: Variable) -> Any:
    """Return the dtype of the values after decoding."""
    import numpy as np

    packed = {"scale_factor", "add_offset"} & set(variable.attributes)
    return np.dtype(np.float64) if packed else variable.dtype


def decoded_values(path: str, variable: Variable, values: Any) -> Any:
    """Apply the attributes of NetCDF: missing values become NaN, packed ones are scaled."""
    import numpy as np

    attributes = variable.attributes
    if str(attributes.get("_Unsigned", "")).lower() == "true" and values.dtype.kind == "i":
        values = values.view(values.dtype.str.replace("i", "u"))
    missing = np.zeros(values.shape, bool)
    for key in ("_FillValue", "missing_value"):
        fill = attributes.get(key)
        if isinstance(fill, (int, float)) and values.dtype.kind in "iuf" and fill == fill:
            with np.errstate(all="ignore"):
                own = np.array(fill).astype(values.dtype)
            missing |= values == own
    scale, offset = (attributes.get(key) for key in ("scale_factor", "add_offset"))
    if scale is not None or offset is not None:
        numbers = [1.0 if scale is None else scale, 0.0 if offset is None else offset]
        if not all(isinstance(each, (int, float)) for each in numbers):
            raise FormatError(path, variable.name, "has a scale_factor or add_offset of texts")
        values = values.astype(np.float64) * numbers[0] + numbers[1]
    if not missing.any():
        return values
    if values.dtype.kind != "f":
        values = as_floats(path, variable.name, values, ~missing)
    return np.where(missing, values.dtype.type(np.nan), values)


def as_floats(path: str, name: str, values: Any, chosen: Any = slice(None)) -> Any:
    """Return integers as float64, for missing values; refuse integers that it rounds."""
    import numpy as np

    own = values[chosen]
    if values.dtype.itemsize == 8 and ((own > _EXACT) | (own < -_EXACT)).any():
        text = "has missing values and integers above 2**53, which float64 rounds"
        raise FormatError(path, name, text)
    return values.astype(np.float64)


# ---- times --------------------------------------------------------------------------------------


def _is_clock(variable: Variable) -> bool:
    if variable.dtype.kind in "mM" or _SINCE.fullmatch(_unit_text(variable)):
        return variable.dtype.kind in "mMiuf"
    if variable.dtype.kind not in "iuf":
        return False
    own = variable.name.rpartition("/")[2]
    fits = row_of(own)
    if str(variable.attributes.get("standard_name", "")) == "time":
        return True
    return fits is not None and PATTERNS[fits[0]].needs != FROM_ZERO


def _unit_text(variable: Variable) -> str:
    return str(variable.attributes.get("units", "")).strip()


def _has_unit(variable: Variable) -> bool:
    text = _unit_text(variable)
    return variable.dtype.kind in "mM" or bool(_SINCE.fullmatch(text)) or text.lower() in UNIT_OF


def _times_of(path: str, variable: Variable) -> tuple[Any, Any, str | None]:
    """Return times as int64 or float64, a mask of those that are not missing, and the unit."""
    import numpy as np

    values = np.asarray(variable.read())
    if values.dtype.kind in "mM":
        return (*_ticks(path, variable.name, values), "ns")
    values = decoded_values(path, variable, values)
    mask = np.isfinite(values) if values.dtype.kind == "f" else np.ones(len(values), bool)
    if values.dtype.kind == "u" and len(values) and values.max() >= _LARGE:
        raise FormatError(path, variable.name, "has times of 2**63 or more, out of range for int64")
    values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    text = _unit_text(variable)
    since = _SINCE.fullmatch(text)
    if since is None:
        return values, mask, UNIT_OF.get(text.lower())
    calendar = str(variable.attributes.get("calendar", "standard")).lower()
    if calendar not in _CALENDARS:
        raise FormatError(path, variable.name, f"has the calendar {calendar}, which is not read")
    per_tick, begin = _per_tick(since[1]), _begin(since[2])
    if per_tick is None or begin is None:
        text = f"has the unit {text[:60]!r}, expected one like 'seconds since 2000-01-01 00:00:00'"
        raise FormatError(path, variable.name, text)
    if values.dtype.kind == "f":
        whole = np.where(mask, np.floor(values), 0)
        parts = np.rint(np.where(mask, values - whole, 0) * per_tick)
        most = float(np.abs(whole).max(initial=0)) * per_tick + abs(begin) + per_tick
    else:
        whole, parts = values, np.zeros(len(values))
        most = max(int(values.max(initial=0)), -int(values.min(initial=0))) * per_tick + abs(begin)
    if most >= _LARGE:
        raise FormatError(
            path, variable.name, f"has times that do not fit in 64 bits as ns: {text}"
        )
    return whole.astype(np.int64) * per_tick + parts.astype(np.int64) + begin, mask, "ns"


def _ticks(path: str, name: str, values: Any) -> tuple[Any, Any]:
    """Return dates or durations as int64 in ns, and a mask of those that are not missing."""
    import numpy as np

    mask = ~np.isnat(values)
    try:
        nanoseconds = values.astype(f"{values.dtype.kind}8[ns]")
    except OverflowError:  # NumPy 2.5 and later; earlier versions wrap
        raise FormatError(path, name, "has times that do not fit in 64 bits as ns") from None
    if (nanoseconds.astype(values.dtype) != values)[mask].any():
        raise FormatError(path, name, "has times that do not fit in 64 bits as ns")
    return np.where(mask, nanoseconds.view(np.int64), 0), mask


def _per_tick(word: str) -> int | None:
    unit = UNIT_OF.get(word.lower())
    return _LONGER.get(word.lower()) if unit is None else _SECONDS[unit]


def _begin(text: str) -> int | None:
    """Return a date in ns since 1970; None if it is not one."""
    found = _DATE.fullmatch(text.strip())
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(each or 0) for each in found.groups()[:6])
    zone = found[8] or ""
    try:
        date = datetime.datetime(
            year, month, day, hour, minute, second, tzinfo=datetime.timezone.utc
        )
    except ValueError:
        return None
    lasted = date - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    made = (lasted.days * 86_400 + lasted.seconds) * 10**9
    made += int((found[7] or ".0")[1:].ljust(9, "0"))
    if zone[:1] in ("+", "-"):
        digits = zone[1:].replace(":", "")
        hours, minutes = (digits[:-2], digits[-2:]) if len(digits) > 2 else (digits, "0")
        apart = (int(hours) * 3600 + int(minutes) * 60) * 10**9
        made -= apart if zone[0] == "+" else -apart
    return made
