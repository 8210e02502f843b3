"""The options of ``open``, as passed to the readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ._errors import Damage
from ._file_access import Limit

if TYPE_CHECKING:
    from .. import Cache

    class OpenOptions(TypedDict, total=False):
        """Keyword arguments of :func:`robocache.data.open`."""

        damaged: Literal["refuse", "keep"]
        unit: str | None
        rate: float | None
        definitions: Mapping[str, str] | None
        follow_links: bool
        max_unpacked: int | None
        progress: bool | None
        kinds: Mapping[str, Any] | None
        time: str | None
        cache: Cache | None
        identity: str


@dataclass(frozen=True)
class Options:
    """The options of :func:`robocache.data.open`."""

    damage: Damage
    progress: bool | None = None
    unit: str | None = None
    rate: float | None = None
    definitions: Mapping[str, str] = field(default_factory=dict)
    follow_links: bool = False
    limit: Limit = field(default_factory=Limit)
    time: str | None = None  # COLUMN[:UNIT], for tables
    kinds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by stream and channels
