"""What a check found: data, not text on a screen."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from .._printable import printable

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Meaning:
    """What findings of one identifier mean, and what to do about them."""

    severities: tuple[str, ...]  # that it may have
    text: str
    remedy: str


# Every identifier, with its meaning: docs/concepts/findings.md lists the same.
MEANINGS = {
    "clock": Meaning(
        ("note", "warning"),
        "The header stamps of a stream cannot be used, or differ from its log times.",
        "Pass `--clock log`, or repair the clock of the sensor.",
    ),
    "constant": Meaning(
        ("warning", "note"),
        "A channel, or all channels of a stream, have the same value in every sample.",
        "Look whether the sensor was connected; leave the channel out.",
    ),
    "damage": Meaning(
        ("error",),
        "A part of a file could not be read.",
        "Copy the file again, or repair it. `--damaged keep` goes on without that part.",
    ),
    "drift": Meaning(
        ("warning",),
        "Header stamps and log times move apart: one of the clocks is fast.",
        "Synchronize the clocks (`robocache sync` estimates an offset).",
    ),
    "empty": Meaning(
        ("note", "error"),
        "A stream has no samples, or an episode no rows.",
        "Leave it out.",
    ),
    "gaps": Meaning(
        ("warning",),
        "Some times between samples are much longer than the period.",
        "Pass `--max-gap`, so that nothing is made up within gaps.",
    ),
    "jitter": Meaning(
        ("warning",),
        "The times between samples vary much.",
        "Prefer header stamps to log times; raise `--jitter` if it is expected.",
    ),
    "latency": Meaning(
        ("note", "warning"),
        "Log times follow header stamps by a varying time.",
        "Prefer header stamps.",
    ),
    "nan": Meaning(
        ("error", "warning", "note"),
        "A channel has values that are NaN or infinite.",
        "Leave the channel out, or treat the values as missing.",
    ),
    "order": Meaning(
        ("error",),
        "Times go back.",
        "Sort the rows, or choose another clock.",
    ),
    "quaternion": Meaning(
        ("warning",),
        "Values that should be quaternions are 0 or not of unit length.",
        "Normalize them, or say what they are with `--kind`.",
    ),
    "rate": Meaning(
        ("error", "warning"),
        "Times of rows differ from the rate that the data set states.",
        "Correct the rate, or the times.",
    ),
    "repeats": Meaning(
        ("warning",),
        "Some times are equal to the one before.",
        "Look whether the clock has too few digits.",
    ),
    "span": Meaning(
        ("warning", "note"),
        "Streams have few or no times in common.",
        "Leave the short stream out, or pass `--span union`.",
    ),
    "statistics": Meaning(
        ("error", "warning"),
        "Stored statistics differ from those of the data.",
        "Compute them again: `robocache stats`.",
    ),
    "unread": Meaning(
        ("error", "warning", "note"),
        "Messages or rows were not read.",
        "The text says why. `--ignore-topic` leaves a topic out.",
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
    stream: str  #: the stream or the track; "" of the whole
    place: str  #: where: a channel, an episode, a time; "" of all of the stream
    text: str  #: what was found, with numbers
    remedy: str = ""  #: what to do about it; by default, that of its identifier

    def __post_init__(self) -> None:
        if not self.remedy:
            object.__setattr__(self, "remedy", MEANINGS[self.kind].remedy)

    def to_dict(self) -> dict[str, Any]:
        """Plain strings, as JSON takes them."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        where = " ".join(part for part in (self.stream, self.place) if part)
        return printable(f"{self.severity}: {where + ': ' if where else ''}{self.text}")


def sorted_findings(findings: list[Finding]) -> list[Finding]:
    """Errors first; else in the order in which they were found."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
