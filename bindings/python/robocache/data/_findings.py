"""Findings of the checks, as data."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from .._printable import printable
from .._text_table import html_table

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Meaning:
    """The meaning of findings with one identifier, and what to do about them."""

    severities: tuple[str, ...]  # possible severities
    text: str
    remedy: str


# Every identifier, with its meaning: docs/concepts/findings.md lists the same.
MEANINGS = {
    "angle_range": Meaning(
        ("note",),
        "A channel is named as an angle, but its values are not within one turn.",
        "Nothing, if it counts turns. Else say what it is with `--kind`, such as `angle_deg`.",
    ),
    "clock": Meaning(
        ("warning",),
        "The header stamps of a stream cannot be used, or differ from its log times.",
        "Pass `--clock log`, or repair the clock of the sensor.",
    ),
    "constant": Meaning(
        ("warning", "note"),
        "A channel, or all channels of a stream, have the same value in every sample.",
        "Check that the sensor was connected, or exclude the channel.",
    ),
    "counts": Meaning(
        ("note",),
        "A channel has integers that count something. They keep the previous sample's value.",
        "`--kind STREAM:CHANNEL=number` interpolates them.",
    ),
    "damage": Meaning(
        ("error",),
        "A part of a file could not be read.",
        "Copy the file again, or repair it. `--damaged keep` continues without that part.",
    ),
    "drift": Meaning(
        ("warning",),
        "Header stamps and log times move apart: one of the clocks is fast.",
        "Synchronize the clocks (`robocache sync` estimates an offset).",
    ),
    "dtypes": Meaning(
        ("note",),
        "An array has several dtypes in the episodes of an HDF5 data set. It is read as a dtype "
        "that holds all values exactly.",
        "Write it with one dtype, if this was not intended.",
    ),
    "empty": Meaning(
        ("note", "error"),
        "A stream has no samples, or an episode no rows.",
        "Exclude it.",
    ),
    "frame_changed": Meaning(
        ("warning",),
        "The frame of a stream changes: its values may be in several coordinate systems.",
        "Cut the recording there (`select(begin=, end=)`), or exclude the stream.",
    ),
    "gaps": Meaning(
        ("warning",),
        "Some times between samples are much longer than the period.",
        "Pass `--max-gap`, so that gaps are not filled.",
    ),
    "image_statistics": Meaning(
        ("error", "warning"),
        "A camera of a LeRobot data set has no stored statistics, or a standard deviation that "
        "its stored quantiles exclude (LeRobot 0.4 computes these with an overflow).",
        "`robocache stats --fix DATASET --images sample` computes them from the frames.",
    ),
    "index": Meaning(
        ("error",),
        "The columns `index` and `frame_index` of a LeRobot data set, or the first and last rows "
        "of episodes in `meta/episodes`, differ from its rows.",
        "Correct the numbers: LeRobot finds rows by them. A data set without videos can be opened "
        "and saved again with `format='lerobot'`, which counts the rows again.",
    ),
    "index_statistics": Meaning(
        ("warning",),
        "The stored statistics of `index`, `frame_index` or `episode_index` differ from the rows. "
        "Merging data sets can cause this.",
        "`robocache stats --fix DATASET` computes them again. Or ignore this: no values are "
        "normalized by them.",
    ),
    "jitter": Meaning(
        ("warning",),
        "The times between samples vary a lot.",
        "Prefer header stamps to log times; raise `--jitter` if this is expected.",
    ),
    "latency": Meaning(
        ("note",),
        "Log times follow header stamps by a varying time.",
        "Prefer header stamps.",
    ),
    "lost_digits": Meaning(
        ("error",),
        "Many samples have the same time: the stamps were written with too few digits.",
        "Write the stamps as integers of ns, or pass `--fps` to compute times from row numbers.",
    ),
    "nan": Meaning(
        ("error", "warning", "note"),
        "A channel has values that are NaN or infinite.",
        "Exclude the channel, or treat the values as missing.",
    ),
    "order": Meaning(
        ("error",),
        "Times go back.",
        "Sort the rows, or choose another clock.",
    ),
    "quantiles_aggregated": Meaning(
        ("note",),
        "Stored quantiles are an aggregate of the quantiles of the episodes, as LeRobot computes "
        "it, and not quantiles of all rows.",
        "Normalization by these quantiles is what LeRobot does. `robocache stats --write lerobot` "
        "writes the quantiles of all rows.",
    ),
    "quaternion": Meaning(
        ("warning",),
        "Values that should be quaternions are 0 or not of unit length.",
        "Normalize them, or say what they are with `--kind`.",
    ),
    "quaternion_candidate": Meaning(
        ("warning",),
        "Four channels have the values of a quaternion, but nothing says that they are one.",
        "Say what they are with `--kind`, or pass `--accept-guesses` or `--as-numbers`.",
    ),
    "rate": Meaning(
        ("warning",),
        "Times of rows differ from the rate that the data set states.",
        "Correct the rate, or the times.",
    ),
    "renamed": Meaning(
        ("note",),
        "`metadata.yaml` of a bag names a file that is not there, and another one was read.",
        "Correct `relative_file_paths` in `metadata.yaml`.",
    ),
    "repeats": Meaning(
        ("warning",),
        "Some times are equal to the one before.",
        "Check whether the clock has too few digits.",
    ),
    "rotation_vector": Meaning(
        ("warning",),
        "Three channels may be a rotation vector, but are interpolated as numbers.",
        "Say what they are with `--kind`: `rotation_vector`, `euler` or `number`.",
    ),
    "rows": Meaning(
        ("note",),
        "An array of an HDF5 data set has one row more than the actions in each episode.",
        "The last row is the observation after the last action. It is not read.",
    ),
    "span": Meaning(
        ("note",),
        "A stream begins long after the first one, or ends long before the last one. An alignment "
        "keeps only the times that all streams have.",
        "Exclude the short stream, or pass `--span union`.",
    ),
    "statistics": Meaning(
        ("error",),
        "Stored statistics of the data set, or of one of its episodes, do not fit its rows.",
        "`robocache stats --fix DATASET` computes them again, and replaces the files in `meta`.",
    ),
    "tasks": Meaning(
        ("error", "warning"),
        "The `task_index` of rows is not in `meta/tasks`, or is not a task of the episode.",
        "Correct `task_index`, or the tasks in `meta`.",
    ),
    "unread": Meaning(
        ("error", "warning", "note"),
        "Messages or rows were not read, or only in part. This is an error if nothing was read, a "
        "note if no numbers are lost (as in texts), else a warning.",
        "The text says why. `--ignore-topic` skips a topic that is not needed.",
    ),
    "zero_stamps": Meaning(
        ("warning",),
        "Header stamps are 0.",
        "Pass `--clock log`.",
    ),
}


@dataclass(frozen=True)
class Finding:
    """Something in a recording or a data set that its user should know."""

    severity: str  #: "error", "warning" or "note"
    kind: str  #: its identifier, which stays the same: "gaps", "jitter", "unread", ...
    stream: str  #: the stream or the track; "" for the whole
    place: str  #: where: a channel, an episode, a time; "" for the whole stream
    text: str  #: what was found, with numbers
    remedy: str = ""  #: what to do about it; by default, the remedy of its identifier

    def __post_init__(self) -> None:
        if not self.remedy:
            object.__setattr__(self, "remedy", MEANINGS[self.kind].remedy)

    def to_dict(self) -> dict[str, Any]:
        """Return plain strings, for JSON."""
        return dataclasses.asdict(self)

    def _repr_html_(self) -> str:
        return Findings([self])._repr_html_()

    def __str__(self) -> str:
        where = " ".join(part for part in (self.stream, self.place) if part)
        return printable(f"{self.severity}: {where + ': ' if where else ''}{self.text}")


class Findings(list[Finding]):
    """A list of findings; ``print`` shows one per line, and notebooks a table."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no findings"

    def _repr_html_(self) -> str:
        rows = [
            (each.severity, " ".join(part for part in (each.stream, each.place) if part), each.text)
            for each in self
        ]
        return html_table([("severity", "where", "finding"), *rows], "" if rows else "no findings")


def sorted_findings(findings: list[Finding]) -> Findings:
    """Return findings sorted by severity, errors first, else in the order found."""
    return Findings(sorted(findings, key=lambda each: SEVERITIES.index(each.severity)))
