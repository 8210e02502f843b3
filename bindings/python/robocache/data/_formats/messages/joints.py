"""Messages that name their joints: channels are matched by these names, in any order."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..._kinds.kinds import Said
from .columns import Columns, Decoder
from .keys import Finder
from .pieces import Rows, present

_PLACE = re.compile(r"\[(\d+)\]")
_SHOWN = 3  # names of joints in the name of a stream
NO_NAMES = "(no names)"


class JointDecoder:
    """Decode the messages of one set of joints."""

    def __init__(self, decoder: Decoder, finder: Finder) -> None:
        self.decoder, self.finder = decoder, finder
        self.order: int | None = None  # order of the channels: that of the first message
        self._channels: dict[int, tuple[str, ...]] = {}  # by order

    @property
    def names(self) -> tuple[str, ...] | None:
        if self.decoder.names is None or self.order is None:
            return None
        return self._named(self.order)

    @property
    def said(self) -> tuple[Said, ...]:
        own = dict(zip(self.decoder.names or (), self.names or ()))
        return tuple(
            dataclasses.replace(each, names=tuple(own[name] for name in each.names))
            for each in self.decoder.said
            if all(name in own for name in each.names)
        )

    def begin(self) -> None:
        self.decoder.begin()

    def feed(self, rows: Any) -> list[Columns]:
        self._take(rows)
        return [self._sorted(columns) for columns in self.decoder.feed(rows)]

    def flush(self) -> list[Columns]:
        return [self._sorted(columns) for columns in self.decoder.flush()]

    def left_out(self) -> list[tuple[str, str]]:
        return self.decoder.left_out()

    def _take(self, rows: Rows) -> None:
        if self.order is None and rows.marks is not None and len(rows):
            self.order = int(rows.marks[0])

    def _sorted(self, columns: Columns) -> Columns:
        """Return the columns with the channels in one order."""
        import numpy as np

        names = self.names or columns.names
        values = columns.values
        orders = present(columns.marks) if columns.marks is not None else []
        for order in orders:
            own = self._named(order)
            if own == names:
                continue
            places = {name: i for i, name in enumerate(own)}
            chosen = np.flatnonzero(columns.marks == order)
            values[chosen] = values[chosen][:, [places[name] for name in names]]
        return dataclasses.replace(columns, names=names, values=values)

    def _named(self, order: int) -> tuple[str, ...]:
        """Return the names of the channels of messages with an order of joints."""
        known = self._channels.get(order)
        if known is None:
            if len(self._channels) > 4096:
                self._channels.clear()
            known = renamed(
                self.decoder.names or (), self.decoder.kept, labels(self.finder.joints[order])
            )
            self._channels[order] = known
        return known


def renamed(
    channels: Sequence[str], kept: dict[str, int], joints: Sequence[str]
) -> tuple[str, ...]:
    """Return channel names with joint names in arrays that have one element per joint.

    ``kept`` has the number of elements of arrays without a fixed length, by array name.

    >>> renamed(["position[0]", "position[1]", "limits[0]"], {"position": 2, "limits": 1}, "ab")
    ('position[a]', 'position[b]', 'limits[0]')
    """
    arrays = {path for path, count in kept.items() if count == len(joints)}
    found = []
    for channel in channels:
        for place in _PLACE.finditer(channel):
            if channel[: place.start()] in arrays:
                joint = joints[int(place[1])]
                channel = f"{channel[: place.start()]}[{joint}]{channel[place.end() :]}"
                break
        found.append(channel)
    return tuple(found)


def labels(names: Sequence[str]) -> list[str]:
    """Return distinct names of joints; an empty name becomes the joint's index.

    >>> labels(["a", "", "a"])
    ['a', '1', 'a #2']
    """
    shown = [printed(name) or str(i) for i, name in enumerate(names)]
    counts: Counter[str] = Counter()
    taken = set(shown)
    found = []
    for name in shown:
        counts[name] += 1
        label = name
        while counts[name] > 1 and label in taken:
            label = f"{name} #{counts[name]}"
            counts[name] += label in taken
        taken.add(label)
        found.append(label)
    return found


def label(names: Sequence[str]) -> str:
    """Name a set of joints in a stream name: a few names, or the first and how many more."""
    if not names:
        return NO_NAMES
    shown = sorted(labels(names))
    if len(shown) <= _SHOWN:
        return "+".join(shown)
    return f"{shown[0]}+{len(shown) - 1} more"


def printed(name: str) -> str:
    """Return a name for display: bytes that are not text are replaced."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
