"""The arguments of ``edit``, checked against the data sets: episodes, rows, features, tasks."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._suggestions import did_you_mean
from .._errors import some
from .._formats.lerobot.stored_statistics import DataSet
from .._write.resize import Resize

# Columns of each LeRobot data set, which edit writes itself.
COUNTERS = ("timestamp", "frame_index", "episode_index", "index", "task_index")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True)
class Cut:
    """Rows of an episode of a source, which become an episode of the output."""

    number: int  # of the episode, counted over all sources
    source: int
    episode: int  # its index in the plan of the source
    begin: int
    end: int
    length: int  # rows of the whole episode
    task: str | None = None  # a new task; None: as recorded

    @property
    def is_whole(self) -> bool:
        return self.begin == 0 and self.end == self.length

    @property
    def rows(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True)
class Changes:
    """The features of the output, and how their frames are changed."""

    features: Mapping[str, str]  # names in the sources, by new name
    resizes: Mapping[str, Resize]  # by name in the sources
    lossless: bool = False


def numbers_in(value: Any, count: int, where: str) -> list[int]:
    """Return the episodes that an argument names: numbers, or a text such as "0,2,5-7" or "all"."""
    found: list[int] = []
    parts = value.split(",") if isinstance(value, str) else value
    if isinstance(parts, int):
        parts = [parts]
    for part in parts:
        text = str(part).strip()
        if text == "all":
            found += range(count)
            continue
        match = _RANGE.fullmatch(text)
        if match is None:
            raise ValueError(f"{where}: is {part!r}, expected episodes, such as 0,2,5-7 or all")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"{where}: {part!r} has no episode, since {last} is below {first}")
        if last >= count:
            raise ValueError(f"{where}: no episode {last}, expected 0 to {count - 1}")
        found += range(first, last + 1)
    return found


def cuts_of(
    sets: Sequence[DataSet],
    drop: Any,
    keep: Any,
    trim: Mapping[Any, Any] | None,
    tasks: str | Mapping[Any, str] | None,
) -> list[Cut]:
    """Return the episodes of the output. All numbers count the episodes of all sources."""
    whole: list[Cut] = []
    for s, each in enumerate(sets):
        for e, length in enumerate(each.plan.lengths.tolist()):
            whole.append(Cut(len(whole), s, e, 0, length, length))
    count = len(whole)
    spans = [(cut.begin, cut.end) for cut in whole]
    for key, span in (trim or {}).items():
        for number in numbers_in(key, count, "trim"):
            spans[number] = _span(span, whole[number].length, number)
    words: list[str | None] = [None] * count
    for key, text in ({"all": tasks} if isinstance(tasks, str) else tasks or {}).items():
        if not isinstance(text, str):
            raise TypeError(f"tasks[{key!r}]: is {text!r}, expected a text")
        for number in numbers_in(key, count, "tasks"):
            words[number] = text
    order = list(range(count)) if keep is None else numbers_in(keep, count, "keep")
    dropped = set() if drop is None else set(numbers_in(drop, count, "drop"))
    left = [number for number in order if number not in dropped]
    if not left:
        raise ValueError("drop: no episode is left; a LeRobot data set has at least one")
    return [
        dataclasses.replace(whole[n], begin=spans[n][0], end=spans[n][1], task=words[n])
        for n in left
    ]


def _span(span: Any, length: int, number: int) -> tuple[int, int]:
    """Return the first row and the end of a span such as "10:-5" or (10, None)."""
    text = span
    if isinstance(span, str):
        match = re.fullmatch(r"\s*(-?\d+)?\s*:\s*(-?\d+)?\s*", span)
        if match is None:
            raise ValueError(f"trim: is {text!r}, expected rows, such as 10:200 or :-5")
        span = tuple(None if each is None else int(each) for each in match.groups())
    begin, end, _ = slice(*span).indices(length)
    if begin >= end:
        raise ValueError(f"trim: {text!r} leaves no row of episode {number}, which has {length}")
    return begin, end


def splits_of(splits: Mapping[str, Any], cuts: Sequence[Cut], count: int) -> dict[str, list[Cut]]:
    """Return the episodes of each part; fractions take the episodes in their order.

    ``count``: the number of episodes in all sources.

    Raises
    ------
    ValueError
        An episode is in two parts, or a part is empty.
    """
    shares = {name: value for name, value in splits.items() if isinstance(value, float)}
    if shares and len(shares) != len(splits):
        raise ValueError("split: has fractions and episodes, expected one of the two")
    if shares:
        total = sum(shares.values())
        if min(shares.values()) <= 0 or total > 1 + 1e-9:
            text = f"split: the fractions are {list(shares.values())}, expected more than 0, and "
            raise ValueError(f"{text}at most 1 together")
        made: dict[str, list[Cut]] = {}
        begin = 0
        for i, (name, share) in enumerate(shares.items()):
            last = i + 1 == len(shares) and abs(total - 1) < 1e-9
            end = len(cuts) if last else begin + int(len(cuts) * share)
            made[name] = list(cuts[begin:end])
            begin = end
    else:
        asked = {name: numbers_in(v, count, f"split {name}") for name, v in splits.items()}
        made = {n: [c for k in own for c in cuts if c.number == k] for n, own in asked.items()}
    seen: dict[int, str] = {}
    for name, own in made.items():
        if not own:
            raise ValueError(f"split: {name} has no episode of the {len(cuts)}")
        if not re.fullmatch(r"[\w][\w.-]*", name):
            raise ValueError(f"split: {name!r} is not a name for a folder")
        for number in {cut.number for cut in own}:
            if number in seen:
                raise ValueError(f"split: episode {number} is in {seen[number]} and in {name}")
            seen[number] = name
    return made


def features_of(first: DataSet, remove: Sequence[str], rename: Mapping[str, str]) -> dict[str, str]:
    """Return the name of each feature in the source, by its name in the output."""
    known = list(first.info.features)
    for name, what in [*((n, "remove") for n in remove), *((n, "rename") for n in rename)]:
        if name in COUNTERS:
            raise ValueError(f"{what}: {name} is needed in each LeRobot data set")
        if name not in known:
            near = did_you_mean(name, known)
            raise KeyError(f"{what}: no such feature {name!r}, expected one of {some(known)}{near}")
        if what == "rename" and name in remove:
            raise ValueError(f"rename: {name} is removed too")
    made: dict[str, str] = {}
    for name in known:
        if name in remove:
            continue
        new = rename.get(name, name)
        if new in made:
            raise ValueError(f"rename: {made[new]} and {name} would both be {new}")
        if not new or "/" in new or (new != name and new in COUNTERS):
            raise ValueError(f"rename: {new!r} is not a name for a feature")
        made[new] = name
    if all(name in COUNTERS or name.startswith("robocache.") for name in made):
        raise ValueError("remove: no feature is left")
    return made
