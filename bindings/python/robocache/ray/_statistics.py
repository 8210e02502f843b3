"""Exact statistics of Ray data sets: workers count, and their counts are merged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import data
from .._statistics.accumulator import QUANTILES, StatisticsAccumulator
from ..data._errors import needed
from ._rows import PATH, Worker, columns_of_numbers, is_reference, samples_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from .._statistics.result import StatisticsResult
    from ._rows import Batch

    Key = tuple[Any, str]  # group (None without groups), column


_RETRIES = 10  # for a batch whose worker dies


class Statistics:
    """A stage for ``map_batches`` that counts values exactly and returns a state per column.

    A state is the bytes of :meth:`robocache.StatisticsAccumulator.to_bytes`. The states of all
    batches, merged in any order, give the same bits as one process. :func:`statistics` does both.

    Parameters
    ----------
    columns
        Columns of numbers, of samples [D], or of arrays of samples [...,D]; None: all numeric
        columns. For rows that refer to episodes: the tracks.
    by
        A column that groups the rows, such as "robot" or "path".
    quantiles, ddof
        As for :class:`robocache.StatisticsAccumulator`.
    start
        The states to continue from in a pass after the first, by (group, column), or an ObjectRef
        to them. A state of None means that the column is complete.
    options
        Options of :func:`robocache.data.open`, for rows that refer to episodes.
    device
        None: "cuda" if Ray assigned a GPU to the actor, else "cpu".

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> count = rbc.ray.Statistics(["state"])
    >>> batch = next(count({"state": np.zeros((100, 2), np.float32)}))
    >>> batch["column"], rbc.StatisticsAccumulator.from_bytes(batch["state"][0]).result().count
    (['state'], array([100, 100]))
    """

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        *,
        by: str | None = None,
        quantiles: Sequence[float] = QUANTILES,
        ddof: int = 0,
        start: Any = None,
        options: Mapping[str, Any] | None = None,
        device: str | None = None,
    ) -> None:
        if isinstance(columns, str):
            raise TypeError(f"columns: is {columns!r}, expected a list of names")
        self._columns = None if columns is None else list(columns)
        self._by, self._quantiles, self._ddof = by, tuple(quantiles), ddof
        if start is not None and not isinstance(start, Mapping):
            start = needed("ray", "ray", "robocache.ray.Statistics").get(start)
        self._start: Mapping[Key, bytes | None] | None = start
        self._worker = Worker(device, options)

    def __call__(self, batch: Batch) -> Iterator[dict[str, list[Any]]]:
        """Yield one batch of states, by column and, if ``by`` is set, by group."""
        counted: dict[Key, StatisticsAccumulator | None] = {}
        for key, values in self._pieces(batch):
            if key not in counted:
                counted[key] = self._begun(key, values.shape[-1])
            accumulator = counted[key]
            if accumulator is not None:
                accumulator.update(self._worker.on_device(values))
        states = [(key, each) for key, each in counted.items() if each is not None]
        result: dict[str, list[Any]] = {
            "column": [name for (_, name), _ in states],
            "state": [each.to_bytes() for _, each in states],
        }
        if self._by is not None:
            result["group"] = [group for (group, _), _ in states]
        if states:
            yield result

    def _begun(self, key: Key, channels: int) -> StatisticsAccumulator | None:
        """Return the accumulator for a column of a batch; None if the column is complete."""
        context = self._worker.context
        if self._start is None:
            return StatisticsAccumulator(channels, self._quantiles, self._ddof, context)
        if key not in self._start:
            raise ValueError(f"{key[1]}: is new in this pass; the first pass had no such column")
        state = self._start[key]
        return None if state is None else StatisticsAccumulator.from_bytes(state, backend=context)

    def _pieces(self, batch: Batch) -> Iterator[tuple[Key, Any]]:
        if is_reference(batch):
            yield from self._of_references(batch)
            return
        names = columns_of_numbers(batch) if self._columns is None else self._columns
        for name in (*names, *([] if self._by is None else [self._by])):
            if name not in batch:
                raise KeyError(
                    f"columns: no column {name!r}; the batch has {', '.join(map(repr, batch))}"
                )
        for name in names:
            if name == self._by:
                continue
            for rows, values in samples_of(batch[name], name):
                for group, part in self._groups(batch, rows, values):
                    if part.size:
                        yield (group, name), part

    def _groups(self, batch: Batch, rows: slice, values: Any) -> Iterator[tuple[Any, Any]]:
        import numpy as np

        if self._by is None:
            yield None, values
            return
        groups, indices = np.unique(np.asarray(batch[self._by])[rows], return_inverse=True)
        for number, group in enumerate(groups.tolist()):
            whole = len(groups) == 1
            yield group, values if whole else values[indices == number]

    def _of_references(self, batch: Batch) -> Iterator[tuple[Key, Any]]:
        if self._by not in (None, PATH):
            raise ValueError(f"by: is {self._by!r}, expected {PATH!r} for rows without values")
        for path, _, found in self._worker.opened(batch):
            group = None if self._by is None else path
            if isinstance(found, data.Recording):
                for piece in found.pieces(self._columns):
                    if piece.values.size:
                        yield (group, piece.stream), piece.values
                continue
            chosen = found.select(tracks=found.tracks if self._columns is None else self._columns)
            for name, track in chosen.tracks.items():
                if track.values is not None and track.num_rows and track.num_channels:
                    yield (group, name), track.values


def statistics(
    dataset: Any,
    columns: Sequence[str] | None = None,
    *,
    by: str | None = None,
    quantiles: Sequence[float] = QUANTILES,
    ddof: int = 0,
    options: Mapping[str, Any] | None = None,
    device: str | None = None,
    batch_size: int | None = None,
    compute: Any = None,
    **resources: Any,
) -> dict[Any, Any]:
    """Compute exact statistics of a Ray data set, with the same bits as one process.

    Workers count, and their counts are merged here. If a machine is lost, Ray counts its part
    again. Quantiles need several passes over the data, as for
    :class:`robocache.StatisticsAccumulator`; use ``dataset.materialize()`` if the data set is slow
    to compute. It is an error if a later pass has other samples than the first.

    Parameters
    ----------
    dataset
        ``ray.data.Dataset``: frames with columns of numbers, rows that hold episodes, or the
        result of :func:`episodes`.
    columns, by, quantiles, ddof, options, device
        As for :class:`Statistics`.
    batch_size
        Number of rows for one state; None: one block.
    compute
        Passed to ``map_batches``; None: ``ray.data.ActorPoolStrategy(min_size=1)``.
    resources
        Passed to ``map_batches``, for each actor: ``num_cpus``, ``num_gpus``, ``memory``, ... A
        batch whose worker dies is retried 10 times unless ``max_task_retries`` is set; Ray's own
        default is to retry forever.

    Returns
    -------
    dict
        :class:`robocache.StatisticsResult` by column; with ``by``, a dict of them for each group.

    Raises
    ------
    ModuleNotFoundError
        Ray is not installed.
    """
    ray = needed("ray", "ray", "robocache.ray.statistics")
    ray_data = needed("ray.data", "ray", "robocache.ray.statistics")
    settings = {"by": by, "quantiles": tuple(quantiles), "ddof": ddof, "options": options}
    merged: dict[Key, StatisticsAccumulator] = {}
    unfinished: Collection[Key] | None = None
    start = None
    while True:
        states = dataset.map_batches(
            Statistics,
            fn_constructor_args=[columns],
            fn_constructor_kwargs={**settings, "device": device, "start": start},
            batch_size=batch_size,
            batch_format="numpy",
            compute=compute or ray_data.ActorPoolStrategy(min_size=1),
            **{"max_task_retries": _RETRIES, **resources},
        )
        for row in states.iter_rows():
            key = (row.get("group"), row["column"])
            part = StatisticsAccumulator.from_bytes(row["state"])
            if key in merged:
                merged[key].merge(part)
            else:
                merged[key] = part
        going = merged if unfinished is None else unfinished
        unfinished = [key for key in going if merged[key].next_pass()]
        if not unfinished:
            return _results(merged, by is not None)
        start = ray.put(
            {key: each.to_bytes() if key in unfinished else None for key, each in merged.items()}
        )


def _results(merged: Mapping[Key, StatisticsAccumulator], in_groups: bool) -> dict[Any, Any]:
    if not in_groups:
        return {column: each.result() for (_, column), each in merged.items()}
    by_group: dict[Any, dict[str, StatisticsResult]] = {}
    for (group, column), each in merged.items():
        by_group.setdefault(group, {})[column] = each.result()
    return by_group
