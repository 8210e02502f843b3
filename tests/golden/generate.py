#!/usr/bin/env python3
"""Writes the golden vectors beside this file: see README.md for the format.

The answers are those of the references in tests/python/support, in double precision; what is not
exact is settled by a narrower output. Each `x_cases.py` has the cases of the operation x.
"""

import dataclasses
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python" / "support")]

from vectors import Case  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Operation:
    cases: Callable[[], Iterator[Case]]
    signature: str  # see README.md
    flags: dict[str, int]  # the bits of the params' flags, by their names in Python
    # What Python calls the values of the fields that are enumerations.
    choices: dict[str, list[str] | dict[int, str]]


def _operation(module):
    return Operation(
        module.cases,
        module.SIGNATURE,
        getattr(module, "FLAGS", {}),
        getattr(module, "CHOICES", {}),
    )


OPERATIONS = {
    path.stem.removesuffix("_cases"): _operation(importlib.import_module(path.stem))
    for path in sorted(HERE.glob("*_cases.py"))
}


def files():
    """{name: text} of all files."""
    return {
        f"{name}.txt": "# Written by generate.py.\n\n"
        f"signature {name} {operation.signature}\n\n"
        + "\n".join(case.text() for case in operation.cases())
        for name, operation in OPERATIONS.items()
    }


if __name__ == "__main__":
    for name, text in files().items():
        (HERE / name).write_text(text)
