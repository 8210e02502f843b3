"""Public module names of classes, for pickles, messages and documentation."""

from __future__ import annotations

import sys


def publish(module_name: str) -> None:
    """Set ``__module__`` of the classes in ``__all__`` of a module to its name.

    A class that an earlier call has published keeps its name.
    """
    module = sys.modules[module_name]
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type) and "._" in value.__module__:
            value.__module__ = module_name
