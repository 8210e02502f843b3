"""What a check found: data, not text on a screen."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from .._printable import printable

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """Something in a recording or a data set that its user should know."""

    severity: str  #: "error", "warning" or "note"
    kind: str  #: "gaps", "jitter", "repeats", "order", "drift", "constant", "nan", ...
    stream: str  #: the stream or the track; "" of the whole
    place: str  #: where: a channel, an episode, a time; "" of all of the stream
    text: str  #: what, with numbers

    def to_dict(self) -> dict[str, Any]:
        """Plain strings, as JSON takes them."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        where = " ".join(part for part in (self.stream, self.place) if part)
        return printable(f"{self.severity}: {where + ': ' if where else ''}{self.text}")


def sorted_findings(findings: list[Finding]) -> list[Finding]:
    """Errors first; else in the order in which they were found."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
