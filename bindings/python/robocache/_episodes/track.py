"""The rows of one sensor in the episodes of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._arguments.arrays import dtype_of, framework_of
from .._arguments.samples import Samples
from .._arguments.time_units import Unit, require_one_unit
from .._arguments.times import times_of
from .._arguments.to_device import moved
from .._arguments.to_numpy import on_host
from .._arguments.values import values_of
from .._operations.stream import array_text
from .._printable import plural
from .validation import (
    checked_files,
    checked_names,
    checked_offsets,
    chosen_episodes,
    extents_of,
    length_of,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .._typing import Indices, SupportsDLPack, Table, Times
    from .channels import Channel


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Track:
    """Rows of E episodes, one episode after the other: a sensor's values, or a camera's frames.

    A track keeps references to arrays, not copies, and is immutable.

    Parameters
    ----------
    values : array [n,D], or None
        Any dtype and library: row r was recorded at times[r]. None: the values are stored
        elsewhere, such as the frames of a video.
    episode_offsets : array or list [E+1]
        Episode e has the rows ``episode_offsets[e]`` to ``episode_offsets[e + 1] - 1``. The array
        begins with 0, does not decrease, and ends with n. It is kept as int64, in the library of
        ``values`` and on their device.
    times : array [n], or None
        float32, float64 or int64, or with a unit (datetime64, timedelta64, pandas, polars), which
        is stored as ticks and unit. Times ascend in each episode.
    arrivals : array [n], or None
        When each row had arrived, with the dtype and the unit of ``times``. Windows and
        :func:`robocache.data.align` then have the rows that a robot sees, as for
        :func:`resample`. Rows with equal times are in the order in which they arrived. None: all
        rows had arrived, such as those of actions.
    names : sequence of D strings, or None
        Names of the channels.
    files : sequence of E, or None
        Location of the rows of each episode, if not in ``values``: a path, a path with the time in
        the file at which the episode begins, or None.

    Raises
    ------
    ValueError
        The arguments do not match each other. The message begins with the name of one.
    TypeError
        An argument is not an array, or its dtype is not supported.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> track = rbc.Track(np.zeros((5, 2), np.float32), [0, 3, 5], names=["shoulder", "elbow"])
    >>> track.num_episodes, track.lengths.tolist()
    (2, [3, 2])
    """

    values: Any  #: [n,D], or None
    episode_offsets: Any  #: int64 [E+1]
    times: Any  #: [n] of float32, float64 or int64, or None
    arrivals: Any  #: [n] in the dtype of ``times``, or None
    names: tuple[str, ...] | None
    files: tuple[Any, ...] | None

    def __init__(
        self,
        values: SupportsDLPack | Table | None,
        episode_offsets: Indices,
        *,
        times: Times | None = None,
        arrivals: Times | None = None,
        names: Sequence[str] | None = None,
        files: Sequence[Any] | None = None,
    ) -> None:
        rows, channels = None, 0
        if values is not None:
            values = values_of(values, "values")
            rows, channels = extents_of(values)
        unit = None
        if times is not None:
            times, unit = times_of(times, "times")
            count = length_of(times)
            if rows is None:
                rows = count
            elif count != rows:
                raise ValueError(f"times: got {count}, expected {rows} (one per row of values)")
        if arrivals is not None:
            arrivals = _checked_arrivals(arrivals, times, unit)
        like = values if values is not None else times
        host = checked_offsets(episode_offsets, rows)
        self._adopt(
            values=values,
            episode_offsets=_offsets_like(episode_offsets, host, like),
            times=times if values is None or times is None else _times_like(times, values),
            arrivals=None if arrivals is None else _times_like(arrivals, like),
            names=None if names is None else checked_names(names, values, channels),
            files=None if files is None else checked_files(files, len(host) - 1),
            _offsets=host,
            _unit=unit,
            _channels=channels,
        )

    def _adopt(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)  # without the __setattr__ of frozen dataclasses

    def _with(self, **changed: Any) -> Track:
        """Return a copy with changed attributes, which must match each other."""
        made = object.__new__(type(self))
        made._adopt(**{**self.__dict__, **changed})
        return made

    @property
    def num_rows(self) -> int:
        """The number of rows n."""
        return int(self._offsets[-1])

    @property
    def num_channels(self) -> int:
        """The number of channels D; 0 without values."""
        channels: int = self.__dict__["_channels"]
        return channels

    @property
    def num_episodes(self) -> int:
        """The number of episodes E."""
        return len(self._offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of rows of each episode, as int64 [E] in NumPy."""
        import numpy as np

        lengths: NDArray[np.int64] = np.diff(self._offsets)
        return lengths

    @property
    def time_unit(self) -> str | None:
        """Unit of ``times``, such as "datetime64[ns]"; None if they have no unit."""
        return None if self._unit is None else str(self._unit)

    @property
    def rate(self) -> float:
        """Rows per second, or per unit of ``times`` if the unit is unknown; NaN without times.

        This is the reciprocal of the median time between rows. On a GPU it waits for the times.
        """
        import numpy as np

        if self.times is None:
            return float("nan")
        steps = np.diff(on_host(self.times, "times"))
        within = np.ones(len(steps), bool)
        cuts = self._offsets[(self._offsets > 0) & (self._offsets < self.num_rows)]
        within[cuts - 1] = False
        period = float(np.median(steps[within])) if within.any() else 0.0
        per_unit = 1.0 if self._unit is None else self._unit.per_second
        return per_unit / period if period > 0 else float("nan")

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The name, the kind and the unit of each channel; empty for the frames of a video.

        Kinds that are not declared are inferred from names and values when they are first used;
        values on a GPU are copied for that.
        """
        from ..data._kinds.tracks import channels_of_track

        return channels_of_track(self)

    @property
    def nbytes(self) -> int:
        """Number of bytes of all arrays."""
        arrays = (self.values, self.episode_offsets, self.times, self.arrivals)
        return sum(_bytes(array) for array in arrays if array is not None)

    def select(self, indices: Any) -> Track:
        """Return some of the episodes, in the given order, copied to new arrays.

        Parameters
        ----------
        indices
            Episodes to select: a list or array of indices, a slice, or a bool array [E].

        Raises
        ------
        IndexError
            An index has no episode.
        TypeError
            ``indices`` are not integers.
        """
        import numpy as np

        chosen = chosen_episodes(indices, self.num_episodes)
        lengths = self.lengths[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.repeat(self._offsets[chosen] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return self._with(
            values=_rows_of(self.values, rows),
            times=_rows_of(self.times, rows),
            arrivals=_rows_of(self.arrivals, rows),
            episode_offsets=_offsets_like(None, offsets, self.episode_offsets),
            files=None if self.files is None else tuple(self.files[e] for e in chosen.tolist()),
            _offsets=offsets,
        )

    def to(self, device: Any) -> Track:
        """Return the track on a device, with one copy of each array that is not there.

        Parameters
        ----------
        device
            "cpu", "cuda", "cuda:1" or a torch.device: NumPy arrays that leave the CPU become torch
            tensors; CuPy arrays stay CuPy arrays. A cupy.cuda.Device: arrays become CuPy arrays.

        Raises
        ------
        ValueError
            There is no such device.
        ImportError
            Neither torch nor CuPy is installed.
        """
        return self._with(
            **{
                name: None if array is None else moved(array, device, name)
                for name, array in (
                    ("values", self.values),
                    ("episode_offsets", self.episode_offsets),
                    ("times", self.times),
                    ("arrivals", self.arrivals),
                )
            }
        )

    def _samples(self) -> Samples:
        """Return what :func:`robocache.resample` and similar functions take from a track."""
        times, arrivals = self.times, self.arrivals
        if self._unit is not None and framework_of(times, "times").is_numpy:
            times = times.view(self._unit.dtype)
            arrivals = None if arrivals is None else arrivals.view(self._unit.dtype)
        return Samples("the track", self.values, times, self.episode_offsets, arrivals)

    @property
    def _offsets(self) -> Any:
        return self.__dict__["_offsets"]

    @property
    def _unit(self) -> Unit | None:
        unit: Unit | None = self.__dict__["_unit"]
        return unit

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Track):
            return NotImplemented
        plain = (self.names, self.files, self._unit)
        return plain == (other.names, other.files, other._unit) and all(
            _same(getattr(self, name), getattr(other, name))
            for name in ("values", "episode_offsets", "times", "arrivals")
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = [array_text(self.values), plural(self.num_episodes, "episode")]
        if self.times is not None:
            parts.append(f"times={array_text(self.times)}")
        if self.arrivals is not None:
            parts.append(f"arrivals={array_text(self.arrivals)}")
        if self.names is not None:
            parts.append(f"names={list(self.names)}")
        if self.files is not None:
            parts.append(f"files={len(self.files)}")
        return f"Track({', '.join(parts)})"


def _checked_arrivals(arrivals: Any, times: Any, unit: Unit | None) -> Any:
    """Return arrivals as an array that matches the times."""
    if times is None:
        raise ValueError("arrivals: only valid with times")
    arrivals, own = times_of(arrivals, "arrivals")
    require_one_unit(own, "arrivals", unit, "times")
    count, expected = length_of(arrivals, "arrivals"), length_of(times)
    if count != expected:
        raise ValueError(f"arrivals: got {count}, expected {expected} (one per row)")
    kind, needed = dtype_of(arrivals, "arrivals"), dtype_of(times, "times")
    if kind != needed:
        raise TypeError(f"arrivals: dtype is {kind}, expected {needed} as times")
    return arrivals


def _offsets_like(offsets: Any, host: Any, like: Any) -> Any:
    """Return offsets in the library of ``like``, on its device; if it is None, ``host``."""
    if like is None:
        return host
    framework = framework_of(like, "values")
    if offsets is not None and type(offsets) is type(like) and dtype_of(offsets, "") == "int64":
        device = framework.device(offsets, "episode_offsets")
        if device == framework.device(like, "values"):
            return offsets
    return framework.sequence(host.copy(), "episode_offsets", "int64", like)


def _times_like(times: Any, values: Any) -> Any:
    """Return NumPy times in the library of the values, on their device."""
    framework = framework_of(values, "values")
    if framework.is_numpy or not framework_of(times, "times").is_numpy:
        return times
    host = times if times.flags.writeable else times.copy()  # torch warns of read-only arrays
    return framework.sequence(host, "times", dtype_of(times, "times"), values)


def _rows_of(array: Any, rows: Any) -> Any:
    if array is None:
        return None
    root = type(array).__module__.partition(".")[0]
    if root == "torch":
        import torch

        return array[torch.from_numpy(rows).to(array.device)]
    return array[rows]


def _bytes(array: Any) -> int:
    nbytes = getattr(array, "nbytes", None)
    return int(nbytes) if nbytes is not None else int(array.numel() * array.element_size())


def _same(a: Any, b: Any) -> bool:
    """Whether dtypes, shapes and elements are equal, where NaN equals NaN."""
    import numpy as np

    if a is None or b is None:
        return a is b
    if str(a.dtype).rpartition(".")[2] != str(b.dtype).rpartition(".")[2]:
        return False
    ours, theirs = _comparable(a), _comparable(b)
    return ours.shape == theirs.shape and bool(
        np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f")
    )


def _comparable(array: Any) -> Any:
    if str(array.dtype) == "torch.bfloat16":
        array = array.float()
    return on_host(array, "values")
