"""The table of steps that .ci/steps.sh prints."""

from __future__ import annotations

import re


def table_of(output):
    """The rows of the table as name: (seconds, remark)."""
    lines = output.split("\n")
    rows = lines[lines.index("  seconds  step") + 1 :]
    found = [re.fullmatch(r" *([0-9.]+|-)  (\S+)(?:  (.*))?", row) for row in rows if row]
    assert all(found), rows
    return {row[2]: (row[1], row[3]) for row in found}
