"""The table of steps that .ci/steps.sh prints."""

from __future__ import annotations

import re


def table_of(output):
    """The rows of the table as name: (seconds, remark)."""
    return {name: (seconds, remark) for name, (seconds, _, remark) in rows_of(output).items()}


def rows_of(output):
    """The rows of the table as name: (seconds, seconds of CPU time, remark)."""
    lines = output.split("\n")
    rows = lines[lines.index("  seconds       CPU  step") + 1 :]
    found = [
        re.fullmatch(r" *([0-9.]+|-) +([0-9.]+|-)  (\S+)(?:  (.*))?", row) for row in rows if row
    ]
    assert all(found), rows
    return {row[3]: (row[1], row[2], row[4]) for row in found}
