"""Alignment and windows as stages of Ray Data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import data
from .._arguments.options import count
from .._arguments.to_numpy import on_host
from .._library.errors import shown
from .._printable import kind_of
from .._windows.spec import WindowSpec
from ._rows import EPISODE, PATH, Worker, episodes_of, is_reference, row_of

if TYPE_CHECKING:
    from ._rows import Batch

_ANCHOR = "anchor"


class Align:
    """A stage for ``map_batches`` that puts all streams of each recording on one clock.

    Rows refer to recordings or episodes, as the rows of :func:`episodes` do. Each gives one row
    with its ``path`` and ``episode``, the ``times`` [n], their ``time_unit`` ("" if not known),
    and the values [n,D] of each track, as :func:`robocache.data.align` returns them.

    Parameters
    ----------
    rate
        Rows per second.
    streams
        Names of streams or tracks; None: all.
    options
        Options of :func:`robocache.data.open`.
    align
        Other options of :func:`robocache.data.align`, such as ``methods`` and ``available``.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import robocache as rbc
    >>> track = rbc.Track(np.arange(4.0)[:, None], [0, 4], times=np.arange(4.0))
    >>> _ = rbc.data.Episodes({"arm": track}).save(f"{tempfile.gettempdir()}/a.npz", overwrite=True)
    >>> (row,) = rbc.ray.Align(2)({"path": [f"{tempfile.gettempdir()}/a.npz"]})
    >>> print(row["times"][0], row["arm"][0].ravel())
    [0.  0.5 1.  1.5 2.  2.5 3. ] [0.  0.5 1.  1.5 2.  2.5 3. ]
    """

    def __init__(
        self,
        rate: float,
        *,
        streams: Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
        **align: Any,
    ) -> None:
        self._rate, self._streams = rate, streams
        self._align = align
        self._worker = Worker("cpu", options)

    def __call__(self, batch: Batch) -> Iterator[dict[str, Any]]:
        """Yield one row per episode."""
        if PATH not in batch:
            raise KeyError(f"batch: has no column {PATH!r}; robocache.ray.episodes adds it")
        for path, numbers, found in self._worker.opened(batch):
            if self._streams is not None:
                chosen = list(self._streams)
                recording = isinstance(found, data.Recording)
                found = found.select(chosen) if recording else found.select(tracks=chosen)
            aligned = found.align(self._rate, backend=self._worker.context, **self._align)
            for row, number in enumerate(numbers):
                yield row_of(aligned, row, path, number)


class Windows:
    """A stage for ``map_batches`` that cuts training samples, some thousands per batch.

    Rows refer to episodes, as the rows of :func:`episodes` do, or hold one each, as
    :class:`Align` returns them. Each sample gives one row with its ``path``, ``episode`` and
    ``anchor``, and for each window the values [O,D'] and a mask of the valid ones [O], named
    for example "action.valid": the result of :meth:`robocache.WindowSpec.cut`.

    Parameters
    ----------
    spec
        :class:`robocache.WindowSpec`.
    chunk
        Samples per output batch; the last batch may have fewer.
    options
        Options of :func:`robocache.data.open`, for rows that refer to episodes.
    device
        None: "cuda" if Ray assigned a GPU to the actor, else "cpu".

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> cut = rbc.ray.Windows(rbc.WindowSpec({"state": range(-1, 1)}))
    >>> chunks = list(cut({"state": np.zeros((3, 100, 2), np.float32)}))  # three episodes
    >>> chunks[0]["state"].shape, chunks[0]["state.valid"].shape
    ((300, 2, 2), (300, 2))
    """

    def __init__(
        self,
        spec: WindowSpec,
        *,
        chunk: int = 4096,
        options: Mapping[str, Any] | None = None,
        device: str | None = None,
    ) -> None:
        if not isinstance(spec, WindowSpec):
            raise TypeError(f"spec: is {kind_of(spec)}, expected a robocache.WindowSpec")
        if str(spec.dtype).endswith("bfloat16"):
            raise TypeError("spec: has dtype bfloat16, which Arrow lacks; cast where it is used")
        if spec.cameras:
            name = next(iter(spec.cameras))
            raise ValueError(f"spec: {shown(name)} has images, which a column of Arrow cannot hold")
        taken = {PATH, EPISODE, _ANCHOR}
        for name in spec.numbers:
            if name in taken:
                raise ValueError(
                    f"spec: a window is named {shown(name)}, the name of another column; rename it"
                )
        self._spec, self._chunk = spec, count(chunk, "chunk")
        self._tracks = sorted({spec.track(name) for name in spec.numbers})
        self._worker = Worker(device, options)

    def __call__(self, batch: Batch) -> Iterator[dict[str, Any]]:
        """Yield the samples of a batch, in order, in chunks."""
        if is_reference(batch):
            for path, numbers, found in self._worker.opened(batch):
                if isinstance(found, data.Recording):
                    raise ValueError(
                        f"{path} is a recording, whose streams have different clocks; "
                        "put them on one with robocache.ray.Align"
                    )
                yield from self._cut(found.select(tracks=self._tracks), [path], numbers)
            return
        made = episodes_of(batch, self._tracks)
        paths = [str(path) for path in batch[PATH]] if PATH in batch else [""]
        episodes = batch[EPISODE] if EPISODE in batch else range(len(made))
        yield from self._cut(made, paths, [int(number) for number in episodes])

    def _cut(
        self, made: data.Episodes, paths: Sequence[str], numbers: Sequence[int]
    ) -> Iterator[dict[str, Any]]:
        import numpy as np

        indices, anchors = self._spec.samples(made)
        resident = made if self._worker.device == "cpu" else made.to(self._worker.device)
        row_paths = np.asarray(paths if len(paths) > 1 else list(paths) * len(made), object)
        for begin in range(0, len(indices), self._chunk):
            part = slice(begin, begin + self._chunk)
            cut = self._spec.cut(
                resident, indices[part], anchors[part], backend=self._worker.context
            )
            rows = {
                PATH: row_paths[indices[part]],
                EPISODE: np.asarray(numbers)[indices[part]],
                _ANCHOR: anchors[part],
            }
            for name, (values, valid) in cut.items():
                rows[name], rows[f"{name}.valid"] = on_host(values), on_host(valid)
            yield rows
