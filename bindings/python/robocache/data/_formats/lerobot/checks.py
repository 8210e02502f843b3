"""Checks of what LeRobot relies on: numbers of rows and tasks, and statistics of these numbers.

LeRobot cuts episodes by ``dataset_from_index`` and ``dataset_to_index`` of meta/episodes, and finds
the text of a task by the ``task_index`` of the row. If they are wrong, it trains on rows of other
episodes, or with other texts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..._errors import FormatError, raise_shortage, reading
from ..._findings import Finding
from ..tables.parquet import read_table, texts, whole_numbers
from .meta import cut, files_of_episodes, lines_of
from .rows import tables_of

if TYPE_CHECKING:
    from ..._options import Options
    from .meta import Info, Plan

_EPISODE, _INDEX, _FRAME, _TASK = "episode_index", "index", "frame_index", "task_index"
_SPAN = ("dataset_from_index", "dataset_to_index")
_WORDS = ("__index_level_0__", "task")  # columns of texts in meta/tasks.parquet


def check_rows(info: Info, plan: Plan, options: Options, chosen: Any = None) -> list[Finding]:
    """Return findings with the identifiers ``index`` and ``tasks``.

    ``chosen`` are the numbers of the episodes to check; None: all.
    """
    import numpy as np

    chosen = np.arange(len(plan.numbers)) if chosen is None else np.unique(chosen)
    begins = _begins(plan)
    tasks = _Tasks(info, plan, options)
    seen = {name: _Column(name) for name in (_INDEX, _FRAME)}
    names = [name for name in (_INDEX, _FRAME, _TASK) if name in info.features]
    files = sorted(set(plan.file_of[chosen].tolist()))
    for file, path, table in tables_of(info, plan, files, (), (_EPISODE, *names), options):
        if table is None or isinstance(table, FormatError):
            continue  # reading the tracks reports that
        rows = _Rows.build(path, table, plan, file, chosen)
        if rows is None:
            continue
        for name in names:
            column = tasks if name == _TASK else seen[name]
            if name not in table.column_names:
                text = "the column is missing, but info.json lists it"
                column.findings.append(_finding(name, _base(info, path), text))
                continue
            try:
                values = whole_numbers(path, table, name)[rows.at]
            except FormatError as error:
                place = f"{_base(info, path)} {error.place}"
                column.findings.append(_finding(name, place, error.reason))
                continue
            if isinstance(column, _Tasks):
                column.take(rows, values)
            else:
                right = rows.frame if name == _FRAME else begins[rows.episode] + rows.frame
                column.take(info, plan, rows, values, right)
    found = _check_spans(info, plan, begins, options) if info.is_v3 else []
    return found + [each for column in seen.values() for each in column.report()] + tasks.report()


def _finding(column: str, place: str, text: str) -> Finding:
    """Return an error about a column with numbers of rows or tasks."""
    return Finding("error", "tasks" if column == _TASK else "index", column, place, text)


def _begins(plan: Plan) -> Any:
    """Return the row of the data set at which each episode begins, int64 [E]."""
    import numpy as np

    order = np.lexsort((plan.numbers, plan.file_of))
    lengths = plan.lengths[order]
    begins = np.empty_like(lengths)
    begins[order] = np.cumsum(lengths) - lengths
    return begins


def _base(info: Info, path: str) -> str:
    return os.path.relpath(path, info.folder.path)


@dataclass(frozen=True)
class _Rows:
    """The rows of chosen episodes in one file, sorted by episode."""

    path: str
    at: Any  # their indices in the file, int64 [n]
    episode: Any  # the index of their episode in the plan, int64 [n]
    frame: Any  # their indices in the episode, int64 [n]

    @classmethod
    def build(cls, path: str, table: Any, plan: Plan, file: int, chosen: Any) -> _Rows | None:
        """Return the rows; None if the numbers of episodes cannot be read."""
        import numpy as np

        own = np.flatnonzero(plan.file_of == file)
        if _EPISODE in table.column_names:
            try:
                numbers = whole_numbers(path, table, _EPISODE)
            except FormatError:
                return None
        else:
            numbers = np.repeat(plan.numbers[own], plan.lengths[own])[: table.num_rows]
        at = np.argsort(numbers, kind="stable")
        numbers = numbers[at]
        place = np.searchsorted(plan.numbers, numbers).clip(max=len(plan.numbers) - 1)
        begins = np.searchsorted(numbers, numbers, "left")
        frame = np.arange(len(numbers)) - begins
        known = (plan.numbers[place] == numbers) & np.isin(place, own) & np.isin(place, chosen)
        return cls(path, at[known], place[known], frame[known])


@dataclass
class _Column:
    """A column that should count rows, and where it does not."""

    name: str
    wrong: int = 0
    rows: int = 0
    first: Finding | None = None
    findings: list[Finding] = field(default_factory=list)

    def take(self, info: Info, plan: Plan, rows: _Rows, values: Any, right: Any) -> None:
        import numpy as np

        odd = values != right
        self.rows += len(values)
        count = int(np.count_nonzero(odd))
        if count and self.first is None:
            i = int(np.argmax(odd))
            place = f"episode {plan.numbers[rows.episode[i]]}, row {rows.frame[i]}"
            text = f"is {values[i]}, expected {right[i]}"
            text += f" (row {rows.at[i]} of {_base(info, rows.path)})"
            self.first = _finding(self.name, place, text)
        self.wrong += count

    def report(self) -> list[Finding]:
        if self.first is None:
            return self.findings
        what = "over the data set" if self.name == _INDEX else "from 0 in each episode"
        text = f"{self.first.text}; {self.wrong:,} of {self.rows:,} rows do not count up {what}"
        return [*self.findings, _finding(self.name, self.first.place, text)]


# ---- meta/episodes ------------------------------------------------------------------------------


def _check_spans(info: Info, plan: Plan, begins: Any, options: Options) -> list[Finding]:
    """Check the first and last rows of episodes in meta/episodes."""
    import numpy as np

    spans = {name: begins if name == _SPAN[0] else begins + plan.lengths for name in _SPAN}
    if not len(plan.numbers):
        return []
    seen = np.zeros(len(plan.numbers), bool)  # a repeated episode counts once
    wrong = np.zeros(len(plan.numbers), bool)
    first: tuple[int, str, int, int] | None = None
    for name in files_of_episodes(info.folder):
        try:
            path = info.folder.file(name)
            with reading(path):
                table = read_table(path, [_EPISODE], _SPAN, options.limit)
                numbers = whole_numbers(path, table, _EPISODE)
                there = [key for key in _SPAN if key in table.column_names]
                stated = {key: whole_numbers(path, table, key) for key in there}
        except FormatError as error:
            return [Finding("error", "index", "", f"{name} {error.place}".strip(), error.reason)]
        place = np.searchsorted(plan.numbers, numbers).clip(max=len(plan.numbers) - 1)
        known = np.flatnonzero((plan.numbers[place] == numbers) & ~seen[place])
        for key, values in stated.items():
            odd = np.flatnonzero(values[known] != spans[key][place[known]])
            wrong[place[known][odd]] = True
            if len(odd) and first is None:
                row = known[odd[0]]
                e = int(place[row])
                first = (e, key, int(values[row]), int(spans[key][e]))
        seen[place[known]] = True
    if first is None:
        return []
    e, key, stored, right = first
    text = f"{key} is {stored}, expected {right} (wrong for {int(wrong.sum()):,} of "
    text += f"{len(wrong):,} episodes). LeRobot cuts episodes by these rows"
    return [Finding("error", "index", "", f"meta/episodes, episode {plan.numbers[e]}", text)]


# ---- tasks --------------------------------------------------------------------------------------


def words_of_tasks(info: Info, options: Options) -> dict[int, str]:
    """Return the texts of tasks by number."""
    path = info.folder.file("meta/tasks.parquet" if info.is_v3 else "meta/tasks.jsonl")
    read = _words_of_table if info.is_v3 else _words_of_lines
    with reading(path):
        return read(path, options)


class _Tasks:
    """The texts of tasks by number, and rows that disagree with the tasks of their episode."""

    def __init__(self, info: Info, plan: Plan, options: Options) -> None:
        self.info, self.plan = info, plan
        self.findings: list[Finding] = []
        self.file = "meta/tasks.parquet" if info.is_v3 else "meta/tasks.jsonl"
        self.words: dict[int, str] | None = None
        self.unknown: Finding | None = None
        self.rows_unknown = self.rows_other = 0
        self.other: Finding | None = None
        if _TASK not in info.features:
            return
        if not info.folder.has(self.file):
            text = f"{self.file} is missing, so task_index has no texts"
            self.findings.append(Finding("warning", "tasks", "", "", text))
            return
        try:
            self.words = words_of_tasks(info, options)
        except FormatError as error:
            place = f"{self.file} {error.place}".strip()
            self.findings.append(Finding("error", "tasks", "", place, error.reason))

    def take(self, rows: _Rows, values: Any) -> None:
        import numpy as np

        if self.words is None or not len(values):
            return
        known = np.isin(values, np.fromiter(self.words, np.int64, len(self.words)))
        if not known.all():
            self.rows_unknown += int(np.count_nonzero(~known))
            if self.unknown is None:
                i = int(np.argmin(known))
                numbers = sorted(self.words)
                there = f"{numbers[0]} to {numbers[-1]}" if numbers else "no tasks"
                text = f"is {values[i]}, but {self.file} has {there}"
                self.unknown = _finding(_TASK, self._place(rows, i), text)
        # Compare each pair of an episode and a task once: thousands of rows share one.
        begins = np.flatnonzero(np.diff(rows.episode, prepend=-1) | np.diff(values, prepend=-1))
        counts = np.diff(begins, append=len(values))
        for i, count in zip(begins.tolist(), counts.tolist()):
            if known[i]:
                self._compare(rows, i, int(values[i]), count)

    def _compare(self, rows: _Rows, i: int, number: int, count: int) -> None:
        tasks = self.plan.tasks[int(rows.episode[i])] if self.plan.tasks is not None else None
        if tasks is None:
            return
        words = tasks if isinstance(tasks, tuple) else (tasks,)
        assert self.words is not None
        if self.words[number] in words:
            return
        self.rows_other += count
        if self.other is None:
            own = ", ".join(cut(word) for word in words[:3])
            text = (
                f"is {number} ({cut(self.words[number])}), but the tasks of the episode are {own}"
            )
            self.other = _finding(_TASK, self._place(rows, i), text)

    def _place(self, rows: _Rows, i: int) -> str:
        return f"episode {self.plan.numbers[rows.episode[i]]}, row {rows.frame[i]}"

    def report(self) -> list[Finding]:
        found = list(self.findings)
        for first, count in ((self.unknown, self.rows_unknown), (self.other, self.rows_other)):
            if first is not None:
                found.append(_finding(_TASK, first.place, f"{first.text} ({count:,} rows)"))
        return found


def _words_of_table(path: str, options: Options) -> dict[int, str]:
    """Read the tasks of v3: the texts are the index of a pandas table."""
    table = read_table(path, [_TASK], _WORDS, options.limit)
    numbers = whole_numbers(path, table, _TASK).tolist()
    name = next((name for name in _WORDS if name in table.schema.names), None)
    if name is None:
        raise FormatError(path, "", "has no text column, expected task")
    return dict(zip(numbers, map(str, texts(table[name]))))


def _words_of_lines(path: str, options: Options) -> dict[int, str]:
    words: dict[int, str] = {}
    for number, line in lines_of(path):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            words[int(entry[_TASK])] = str(entry["task"])
        except (ValueError, RecursionError, KeyError, TypeError, OverflowError) as error:
            raise_shortage(path)
            raise FormatError(path, f"line {number}", f"is not a task: {error!r}") from None
    return words


# ---- statistics of the counters -----------------------------------------------------------------


def check_counters(plan: Plan, stored: Mapping[str, Any]) -> list[Finding]:
    """Return findings with the identifier ``index_statistics``, typical of merged data sets."""
    import numpy as np

    order = np.lexsort((plan.numbers, plan.file_of))
    lengths = plan.lengths[order]
    rows = int(lengths.sum())
    if not rows:
        return []
    index = np.arange(rows)
    columns = {
        _INDEX: index,
        _FRAME: index - np.repeat(np.cumsum(lengths) - lengths, lengths),
        _EPISODE: np.repeat(plan.numbers[order], lengths),
    }
    found = []
    for name, values in columns.items():
        if name in stored and np.size(stored[name].mean) == 1:
            wrong = _wrong_in(stored[name], values)
            if wrong:
                key, saved, right = wrong[0]
                text = f"{key} is stored as {saved:.9g}, but the rows have {right:.9g}"
                others = ", ".join(other for other, _, _ in wrong[1:])
                text += f" (also wrong: {others})" if others else ""
                found.append(Finding("warning", "index_statistics", name, "", text))
    return found


def _wrong_in(stored: Any, values: Any) -> list[tuple[str, float, float]]:
    """Return the wrong statistics of a counter: the name, the stored value and the right one."""
    import numpy as np

    low, high = float(values.min()), float(values.max())
    near = 1e-3 * max(1.0, high - low)
    rights = (
        ("max", high, 0.5),
        ("min", low, 0.5),
        ("mean", float(values.mean()), near),
        ("std", float(values.std()), near),
    )
    wrong = []
    for key, right, limit in rights:
        saved = float(np.reshape(getattr(stored, key), -1)[0])
        if not abs(saved - right) <= limit:  # NaN is wrong
            wrong.append((key, saved, right))
    count = int(np.max(stored.count))
    if count >= 0 and count != len(values):
        wrong.append(("count", count, len(values)))
    return wrong
