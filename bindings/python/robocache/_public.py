"""Public names: where pickles, messages and documentation say that a class is."""

from __future__ import annotations

import sys


def publish(module_name: str) -> None:
    """Give the classes in ``__all__`` of a module its name in place of that of their own file.

    A class that an earlier call has published keeps its name.
    """
    module = sys.modules[module_name]
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type) and "._" in value.__module__:
            value.__module__ = module_name
