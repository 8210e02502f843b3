#!/usr/bin/env python3
"""Write the golden vectors next to this file: see README.md for the format.

The results come from the references in tests/python/support, in double precision; inexact results
are rounded to a narrower output. Each `x_cases.py` has the cases of the operation x; its arguments
are those of the C header.
"""

import dataclasses
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python" / "support"), str(ROOT / "bindings")]

import declarations  # noqa: E402
from vectors import Case  # noqa: E402

HEADERS = declarations.Headers(ROOT / "include" / "robocache")


@dataclasses.dataclass(frozen=True)
class Operation:
    cases: Callable[[], Iterator[Case]]
    signature: str  # see README.md
    flags: dict[str, int]  # the bits of the params' flags, by their Python names
    # The Python names of the values of enumerated fields.
    choices: dict[str, list[str] | dict[int, str]]


def signature(name):
    """Return the arguments of the C function after the context, by name and kind: see README.md."""
    arguments = HEADERS.functions["rbc" + name.title().replace("_", "")].split(", ")[1:]
    words = []
    for kind, argument in (each.rsplit(" ", 1) for each in arguments):
        if kind in ("const rbcTensor*", "const rbcOutput*"):
            words.append(f"{argument}:{'in' if kind == 'const rbcTensor*' else 'out'}")
        elif argument.startswith("num_"):
            words[-1] = f"{argument.removeprefix('num_')}:structs"
        elif kind.endswith("Outputs*") and any(word.endswith(":structs") for word in words):
            words.append(f"{argument}:each")
        else:
            words.append(f"{argument}:{'struct' if kind.endswith('*') else 'int'}")
    return " ".join(words)


def _operation(name, module):
    return Operation(
        module.cases,
        signature(name),
        getattr(module, "FLAGS", {}),
        getattr(module, "CHOICES", {}),
    )


OPERATIONS = {
    name: _operation(name, importlib.import_module(f"{name}_cases"))
    for name in sorted(path.stem.removesuffix("_cases") for path in HERE.glob("*_cases.py"))
}


def files():
    """Return {name: text} of all files."""
    return {
        f"{name}.txt": "# Written by generate.py.\n\n"
        f"signature {name} {operation.signature}\n\n"
        + "\n".join(case.text() for case in operation.cases())
        for name, operation in OPERATIONS.items()
    }


if __name__ == "__main__":
    for name, text in files().items():
        (HERE / name).write_text(text)
