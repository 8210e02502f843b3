"""Inspection of array arguments: their library, dtype and shape, and whether it permits access."""

from __future__ import annotations

import weakref
from typing import Any

from .._library.context import Context
from .._library.dtypes import NAME_OF_PAIR, dtype_name, refuse_dtype
from .._library.errors import REFUSALS
from .._printable import kind_name
from .frameworks import Framework, facts_of
from .known_frameworks import NAMED
from .tables import refusal_of_type

SEQUENCES = frozenset([list, tuple, range])  # accepted instead of a short array

_UNKNOWN = Framework("")
_by_module: dict[str, Framework] = {}
LIBRARY_TYPES: dict[type, Framework] = {}  # classes of the libraries in NAMED
_by_other_type: weakref.WeakKeyDictionary[type, Framework] = weakref.WeakKeyDictionary()


def framework_of(array: Any, name: str) -> Framework:
    """Return the library that an argument comes from."""
    kind = type(array)
    framework = LIBRARY_TYPES.get(kind)
    return _remembered(kind, name) if framework is None else framework


def examine(array: Any, name: str) -> Framework:
    """Return the library of an argument.

    Refuse an array whose memory does not hold its numbers, or that would lose a gradient. An
    argument that is not an array is left to the extension, which knows the argument's name.
    """
    framework = LIBRARY_TYPES.get(type(array))
    if framework is None:
        if not hasattr(type(array), "__dlpack__"):
            return _UNKNOWN
        framework = framework_of(array, name)
    framework.examine(array, name)
    return framework


def examine_output(array: Any, name: str) -> Framework:
    """Do as ``examine``, for an argument that will be written to."""
    if not hasattr(type(array), "__dlpack__"):
        return _UNKNOWN
    framework = framework_of(array, name)
    framework.examine_output(array, name)
    return framework


def _remembered(kind: type, name: str) -> Framework:
    framework = _by_other_type.get(kind)
    if framework is None:
        framework = _find(kind, name)
        if _root(kind) in NAMED:
            LIBRARY_TYPES[kind] = framework
        else:
            _by_other_type[kind] = framework  # weak: the class may be made for a single call
    return framework


def _root(kind: type) -> str:
    root = kind.__module__.partition(".")[0]
    return "jax" if root == "jaxlib" else root


def _find(kind: type, name: str) -> Framework:
    if not hasattr(kind, "__dlpack__"):
        raise refusal_of_type(kind, name) or TypeError(
            f"{name}: is {kind_name(kind)}, "
            "expected an array (NumPy, torch, or any with __dlpack__)"
        )
    if any(base.__module__.startswith("numpy.ma") for base in kind.__mro__):
        raise TypeError(
            f"{name}: is a masked array, and its mask would be lost; pass {name}.filled(...) with "
            "a value for missing numbers, such as NaN, or remove those rows"
        )
    roots = [_root(base) for base in kind.__mro__]
    root = next((root for root in roots if root in NAMED), roots[0])
    if root not in _by_module:
        _by_module[root] = NAMED[root]() if root in NAMED else Framework(root)
    return _by_module[root]


def dtype_of(array: Any, name: str) -> str:
    """Return the name of an array's dtype."""
    if type(array) in LIBRARY_TYPES:
        try:
            return dtype_name(array.dtype)
        except TypeError:
            refuse_dtype(array, name)
    return NAME_OF_PAIR.get(facts_of(array, name)[2:4], "float64")  # refused later


def shape_of(array: Any, name: str, context: Context | None = None) -> Any:
    """Return the shape of an array. Only classes of known libraries are trusted to report it."""
    if type(array) in LIBRARY_TYPES:
        try:
            return array.shape
        except REFUSALS:  # for example a nested tensor of torch
            pass
    return facts_of(array, name, context)[4]
