"""Public module names of classes and functions, for pickles, messages and documentation."""

from __future__ import annotations

import sys
import types


def publish(module_name: str) -> None:
    """Set ``__module__`` of the classes and functions in ``__all__`` of a module to its name.

    Classes and functions that an earlier call has published keep their names.
    """
    module = sys.modules[module_name]
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, (type, types.FunctionType)) and "._" in value.__module__:
            value.__module__ = module_name
