"""Stand-ins for the compiled modules of the package, so that the documentation needs no build.

Sphinx reads docstrings and signatures only. The package reads constants and the version when it is
imported: they come from the headers.
"""

import re
import sys
from pathlib import Path
from types import ModuleType

HEADERS = Path(__file__).resolve().parents[2] / "include" / "robocache"
CONSTANT = re.compile(r"\bRBC_([A-Z]\w+)\s*=?\s+\(?(-?(?:0x[0-9a-f]+|\d+))")


def constants():
    """Map each constant of the C headers to its value, without the prefix ``RBC_``."""
    text = "\n".join(path.read_text() for path in sorted(HEADERS.glob("*.h")))
    return {name: int(value, 0) for name, value in CONSTANT.findall(text)}


class StubModule(ModuleType):
    """A module that has every name: a function that does nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return do_nothing


def do_nothing(*args, **options):
    return None


def install():
    """Put the stand-ins in place, and return the version of the library as text."""
    known = constants()
    major, minor, patch = (known[f"VERSION_{part}"] for part in ("MAJOR", "MINOR", "PATCH"))
    number = major * 10000 + minor * 100 + patch
    for name in ("_core", "_abi"):
        module = StubModule(f"robocache.{name}")
        module.__dict__.update(known)
        module.rbc_get_version = lambda: (number, known.get("ABI_VERSION", 0))
        sys.modules[module.__name__] = module
    sys.path.insert(0, str(HEADERS.parents[1] / "bindings" / "python"))
    return f"{major}.{minor}.{patch}"
