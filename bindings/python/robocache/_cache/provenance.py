"""Provenance: the files and steps that made episodes and recordings, so that results have a key."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, TypeVar

from . import arithmetic
from .identities import Sources


@dataclass(frozen=True)
class Provenance:
    """The document of a key: sources, reader, options, and the steps so far."""

    document: Mapping[str, Any]
    sources: Sources | None = None  # if files are read later: to see whether they change
    unstored: str = ""  # why results must not be stored; "": they may be
    identity: str = "stat"  # how files are recognized

    def then(self, step: str, options: Mapping[str, Any]) -> Provenance:
        """Return the provenance of the result of a step."""
        document = {
            **self.document,
            "steps": [*self.document["steps"], [step, {n: in_key(v) for n, v in options.items()}]],
            "arithmetic": {**self.document["arithmetic"], **arithmetic.of_steps([step])},
        }
        return Provenance(document, self.sources, self.unstored, self.identity)

    def why_not_stored(self) -> str | None:
        """Return why a result must not be stored, or None."""
        if self.unstored:
            return self.unstored
        return None if self.sources is None else self.sources.why_not_published()


Made = TypeVar("Made", bound=Any)


def following(before: Any, made: Made, step: str, **options: Any) -> Made:
    """Give the result of a step its provenance, if the data before it have one; return it."""
    provenance = before._provenance
    made._provenance = None if provenance is None else provenance.then(step, options)
    return made


def in_key(value: Any) -> Any:
    """Return an option in the form that keys use: arrays by their digest, sets as sorted lists."""
    if isinstance(value, Mapping):
        return {name: in_key(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [in_key(each) for each in value]
    if isinstance(value, Set):
        return sorted(value)
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if type(value).__module__ == "numpy" and hasattr(value, "dtype"):
        return _of_array(value)
    return value


def _of_array(value: Any) -> Any:
    import numpy as np

    if value.dtype.kind in "mM" and value.ndim == 0:
        return [value.dtype.str, int(value.astype(np.int64))]
    if value.ndim == 0 or value.dtype.hasobject:
        return value if value.ndim == 0 else in_key(value.tolist())
    content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return {"dtype": value.dtype.str, "shape": list(value.shape), "sha256": content}
