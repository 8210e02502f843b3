"""The result of a conversion: its episodes, what was cut, and what is not in the output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._printable import plural, printable
from ..._text_table import text_table
from .._errors import LeftOut
from .staging import StagedDataSet

_ROUNDING = 1e-9  # s that times may differ only since they are rounded
_MOST = 12  # lines of a list in the text


@dataclass
class Conversion:
    """The result of :func:`convert`. ``print`` shows it."""

    output: str
    format: str
    features: dict[str, tuple[str, ...] | None]  #: names of the channels by feature
    cameras: dict[str, tuple[int, ...]]  #: height, width and 3 by feature
    shapes: dict[str, tuple[int, ...]]  #: of a row, by feature without a camera
    rate: float
    episodes: tuple[dict[str, Any], ...]  #: source, rows, cuts, gaps and tasks of each
    notes: tuple[str, ...] = ()  #: what was cut, filled or rounded
    left_out: tuple[LeftOut, ...] = ()  #: what is not in the output
    skipped: tuple[tuple[str, str], ...] = ()  #: sources that became no episode, and why
    data: Any = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.episodes)

    @property
    def rows(self) -> int:
        """The number of rows of all episodes."""
        return sum(episode["rows"] for episode in self.episodes)

    def add(self, left_out: Iterable[LeftOut] | None) -> None:
        """Add what the writer could not store."""
        self.left_out = tuple(dict.fromkeys([*self.left_out, *(left_out or ())]))
        self.data = None

    def to_dict(self) -> dict[str, Any]:
        """Return the result as dicts, lists and numbers."""
        return {
            "output": self.output,
            "format": self.format,
            "rate": self.rate,
            "features": {n: None if c is None else list(c) for n, c in self.features.items()},
            "cameras": {name: list(shape) for name, shape in self.cameras.items()},
            "shapes": {name: list(shape) for name, shape in self.shapes.items()},
            "episodes": [dict(episode) for episode in self.episodes],
            "notes": list(self.notes),
            "left_out": [{"place": o.place, "reason": o.reason} for o in self.left_out],
            "skipped": [{"source": name, "reason": reason} for name, reason in self.skipped],
        }

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Conversion:
        """Return the result that :meth:`to_dict` describes."""
        names = facts["features"].items()
        return cls(
            facts["output"],
            facts["format"],
            {name: None if own is None else tuple(own) for name, own in names},
            {name: tuple(shape) for name, shape in facts["cameras"].items()},
            {name: tuple(shape) for name, shape in facts["shapes"].items()},
            facts["rate"],
            tuple(facts["episodes"]),
            tuple(facts["notes"]),
            tuple(LeftOut(each["place"], each["reason"]) for each in facts["left_out"]),
            tuple((each["source"], each["reason"]) for each in facts["skipped"]),
        )

    def table_rows(self, longest: int) -> list[list[str]]:
        """Return the name of each track, its number of channels, and their names."""
        rows = []
        for name, channels in self.features.items():
            listed = ", ".join(channels or ()) or "-"
            rows.append([name, _size(self.shapes[name]), _short(listed, longest)])
        for name, shape in self.cameras.items():
            rows.append([name, "-", f"{shape[1]} x {shape[0]} pixels"])
        return rows

    def __repr__(self) -> str:
        rows = [["track", "channels", "names"], *self.table_rows(60)]
        seconds = self.rows / self.rate
        head = f"{printable(self.output)}: {self.format}, {plural(len(self), 'episode')}, "
        lines = [
            f"{head}{plural(self.rows, 'row')}, {seconds:.4g} s at {self.rate:g} Hz",
            text_table(rows),
        ]
        lines += listed_lines("skipped", [f"{n}: {r}" for n, r in self.skipped])
        lines += listed_lines("note", self.notes)
        lines += listed_lines("omitted", [str(each) for each in self.left_out])
        return "\n".join(lines)


def listed_lines(word: str, texts: Sequence[str]) -> list[str]:
    """Return the first texts, and the number of the others."""
    lines = [f"{word}: {printable(text)}" for text in texts[:_MOST]]
    more = len(texts) - _MOST
    return [*lines, *([f"{word}: and {more} more"] if more > 0 else [])]


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _size(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) if shape else "1"


def summary_of(
    data: StagedDataSet,
    out: str,
    format: str,
    skipped: Sequence[tuple[str, str]],
    left_out: Sequence[Sequence[str]],
    max_gap: float | None = None,
) -> Conversion:
    episodes = tuple(
        {**facts["about"], "rows": facts["rows"], "tasks": facts["task"]} for facts in data.facts
    )
    numbers = {n: f.channels for n, f in data.features.items() if not f.is_camera}
    shapes = {n: f.shape for n, f in data.features.items() if not f.is_camera}
    cameras = {n: f.shape for n, f in data.features.items() if f.is_camera}
    notes = _notes(data, episodes, max_gap)
    if format.startswith("lerobot"):
        for name in ("observation.state", "action"):
            if name not in numbers:
                notes.append(
                    f"the output has no track {name}, which policies read; name it with tracks="
                )
    lost = [LeftOut(*each) for each in left_out] + data.left_out()
    return Conversion(
        out,
        format,
        numbers,
        cameras,
        shapes,
        float(data.rate or 0),
        episodes,
        tuple(notes),
        tuple(dict.fromkeys(lost)),
        tuple(skipped),
        data,
    )


def _notes(
    data: StagedDataSet, episodes: Sequence[dict[str, Any]], max_gap: float | None
) -> list[str]:
    """Return sentences about cuts, gaps, distances of frames, and conversions of dtypes."""
    notes = []
    for end, words in (("begin", "before"), ("end", "after")):
        by_stream: dict[str, list[float]] = {}
        for episode in episodes:
            cut = (episode.get("cut") or {}).get(end)
            if cut is not None:
                by_stream.setdefault(cut["stream"], []).append(cut["seconds"])
        for stream, seconds in by_stream.items():
            verb = "begins" if end == "begin" else "ends"
            notes.append(
                f"{_episodes(len(seconds))} cut at the {end}, up to {max(seconds):.3g} s {words} "
                f"{stream} {verb}"
            )
    gaps: dict[str, float] = {}
    farthest: dict[str, float] = {}
    for episode in episodes:
        for name, length in (episode.get("gaps") or {}).items():
            gaps[name] = max(length, gaps.get(name, 0.0))
        for name, length in (episode.get("farthest") or {}).items():
            if name not in data.features:
                continue  # a camera that the format cannot store
            length = length if length > _ROUNDING else 0.0
            farthest[name] = max(length, farthest.get(name, 0.0))
    for name, length in gaps.items():
        if max_gap is not None and length > max_gap:
            outcome = "which the track valid marks; split_gap= splits there"
        else:
            outcome = "which is filled; split_gap= splits there, max_gap= marks it"
        notes.append(f"{name} has no sample for up to {length:.3g} s, {outcome}")
    for name, length in farthest.items():
        notes.append(f"{name}: frames are at most {1000 * length:.3g} ms from their rows")
    own: dict[str, int] = {}
    for facts in data.facts:
        for note in facts["notes"]:
            own[note] = own.get(note, 0) + 1
    return notes + [note if n == 1 else f"{note} (in {n} episodes)" for note, n in own.items()]


def _episodes(count: int) -> str:
    return f"{plural(count, 'episode')} {'is' if count == 1 else 'are'}"
