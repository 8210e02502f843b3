"""The sections of docstrings."""

import inspect
import re


def parameters_of(value):
    """Return the names that the section "Parameters" of its docstring describes."""
    documented = inspect.getdoc(value)
    section = re.search(r"^Parameters\n-+\n(.*?)\n\n\w+\n-+\n", documented, re.DOTALL | re.M)
    heads = re.findall(r"^(?=\w)([^:\n]+)", section[1], re.M)
    return [name for head in heads for name in head.strip().split(", ")]
