"""The options of ``open``, as the readers of all formats take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ._errors import Damage
from ._file_access import Limit


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
    time: str | None = None  # COLUMN[:UNIT] of the times of tables
    kinds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by stream and channels
