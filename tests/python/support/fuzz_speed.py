"""Work that need not be repeated for each damaged file, for fuzz_readers.py."""

from __future__ import annotations

import functools
import gc
import pickle
import sys
from typing import Any

# Folders of independent files: mostly, only the damaged file is opened.
SEPARATE = ("tables", "csv-texts", "other-texts", "parquet-times")
_ALL = 4  # each fourth mutation opens all files of such a folder


def only_damaged(name: str, seed: int) -> bool:
    """Whether a mutation opens only the damaged file of a folder."""
    return name in SEPARATE and seed % _ALL != 0


def quicken() -> None:
    """Make this process, which only plays mutations, repeat less for each file.

    Texts that are parsed again, such as the definitions of messages and metadata.yaml, give what
    they gave before. It does not search for readers of other packages, nor test whether a thread
    can start.
    """
    from robocache.data._formats import third_party

    third_party.readers = list
    for name, module in list(sys.modules.items()):
        if name.startswith("robocache.data") and hasattr(module, "require_thread"):
            module.require_thread = lambda path: None
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].set_cpu_count(1)
    _keep("rosbags.typesys", "get_types_from_msg")
    _keep("rosbags.typesys", "get_types_from_idl")
    _keep("rosbags.typesys", "get_typestore", copied=False)
    _keep("ruamel.yaml", "YAML.load", method=True)
    gc.set_threshold(20_000, 50, 50)


def _keep(module: str, name: str, method: bool = False, copied: bool = True) -> None:
    """Keep the results of a function of a loaded module, by its arguments."""
    owner: Any = sys.modules.get(module)
    *outer, last = name.split(".")
    for part in outer:
        owner = getattr(owner, part, None)
    own = getattr(owner, last, None)
    if own is None:
        return

    if not copied:
        setattr(owner, last, functools.lru_cache(maxsize=64)(own))
        return
    known: dict[Any, bytes] = {}

    @functools.wraps(own)
    def call(*given: Any) -> Any:
        key = given[1:] if method else given
        if not all(isinstance(each, str) for each in key):
            return own(*given)
        if key not in known:
            made = own(*given)
            if len(known) < 512:
                known[key] = pickle.dumps(made)
            return made
        return pickle.loads(known[key])

    setattr(owner, last, call)
