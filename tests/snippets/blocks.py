"""The fenced blocks of the README and of the pages under docs/."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(r"^\s*(```|~~~)")
COMMENT = re.compile(r"^<!-- (needs cuda|skipped: .+) -->$")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int  # of its first line of text
    language: str  # "" without one; "{name}" of a directive
    text: str
    comment: str  # the one above it: "needs cuda", "skipped: why", or none
    output: str | None = None  # the text block right below it

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line} {self.language}"


def blocks_of(page: Path) -> list[Block]:
    """Its blocks in their order. Fences are three backticks at the margin, nothing else."""
    found = []
    lines = page.read_text().split("\n")
    at, above, right_below = 0, "", False
    while at < len(lines):
        line = lines[at]
        if not FENCE.match(line):
            if line.strip():
                above, right_below = line, False
            at += 1
            continue
        if not re.match("```[^`]*$", line) or "```" not in lines[at + 1 :]:
            raise ValueError(f"{page}:{at + 1}: expected ``` at the margin, and one that closes it")
        end = lines.index("```", at + 1)
        language = line[3:].strip()
        text = "\n".join(lines[at + 1 : end]) + "\n"
        if language == "text" and right_below:
            found[-1] = dataclasses.replace(found[-1], output=text)
        else:
            comment = COMMENT.match(above)
            found.append(Block(page, at + 2, language, text, comment[1] if comment else ""))
        at, above, right_below = end + 1, "", True
    return found
