"""Good calls of the public functions and methods, for fuzz_calls.py: a module per subject.

Each module has calls(): a function for each call that creates its arguments, so that calls share
none, by the name of the call.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

Call = tuple[Callable[..., Any], list[Any], dict[str, Any]]


def all_calls() -> dict[str, Callable[[], Call]]:
    """Return the calls of all modules of this folder."""
    found: dict[str, Callable[[], Call]] = {}
    for module in pkgutil.iter_modules(__path__):
        calls = importlib.import_module(f"{__name__}.{module.name}").calls()
        twice = found.keys() & calls.keys()
        if twice:
            raise ValueError(f"good_calls.{module.name}: {sorted(twice)} are in two modules")
        found.update(calls)
    return found
