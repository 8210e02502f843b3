"""Commands that fix, or avoid, what a finding reports."""

from __future__ import annotations

import os
import shlex
from typing import Any

_RATE = 30.0  # Hz, where no stream has a rate


def command_of(finding: dict[str, Any], overview: dict[str, Any]) -> str | None:
    """Return a command line for a finding; None if no command helps."""
    if not os.path.exists(overview["path"]):  # in memory
        return None
    path = shlex.quote(overview["path"])
    stream = shlex.quote(finding["stream"])
    kind = finding["kind"]
    if kind in ("statistics", "index_statistics"):
        return f"robocache stats --fix {path}"
    if kind == "image_statistics":
        return f"robocache stats --fix {path} --images sample"
    if finding["severity"] == "note" and kind != "span" or overview["kind"] != "recording":
        return None
    facts = overview["streams"].get(finding["stream"])
    if kind in ("unread", "empty") and finding["stream"]:
        return f"robocache report {path} --html report.html --exclude {stream}"
    made = f"robocache resample {path} --rate {_rate(overview)} -o aligned.npz"
    options = {
        "span": "--span union",
        "zero_stamps": "--clock log",
        "clock": "--clock log",
        "quaternion_candidate": "--accept-guesses",
    }
    if kind in options:
        return f"{made} {options[kind]}"
    if kind == "gaps" and facts is not None and facts["gap_limit"]:
        return f"{made} --max-gap {facts['gap_limit']:.3g}"
    if kind in ("constant", "nan", "order") and not finding["place"]:
        return f"{made} --ignore-topic {stream}"
    return None


def _rate(overview: dict[str, Any]) -> str:
    periods = [each["period"] for each in overview["streams"].values() if each["period"]]
    rates = [1 / period for period in periods if period > 0]  # gaps lower the mean rate
    return f"{min(max(rates, default=_RATE), 200.0):.4g}"
