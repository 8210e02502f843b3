"""Checks of channels: NaN, constants, quaternions; over pieces of a stream of any length."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ._findings import Finding

_OFF_UNIT = 1e-3
_ORDERS = (("x", "y", "z", "w"), ("w", "x", "y", "z"))
_QUATERNION = re.compile(r"(^|[._/])(\w*quat\w*|orientation|rotation)$", re.IGNORECASE)
_UNUSED = re.compile(r"covariance")  # constant in nearly every recording


def quaternions_of(names: Sequence[str] | None, channels: int, track: str = "") -> list[int]:
    """Where quaternions begin: four channels x y z w or w x y z of a path, or a name that tells."""
    found = []
    if names is not None:
        for i in range(len(names) - 3):
            parts = [re.match(r"(.*?q?)([xyzw])$", name) for name in names[i : i + 4]]
            if all(parts):
                heads = {part[1] for part in parts if part}
                order = tuple(part[2] for part in parts if part)
                if len(heads) == 1 and order in _ORDERS:
                    found.append(i)
    if not found and channels == 4 and _QUATERNION.search(track):
        found.append(0)
    return found


class Channels:
    """What is known of the channels of a stream after some of its pieces."""

    def __init__(self, name: str, names: Sequence[str] | None, channels: int) -> None:
        self.name, self.names, self.width = name, names, channels
        self.rows = 0
        self.count: Any = None  # [D], as those that follow, of all samples so far
        self.nonfinite: Any = None
        self.low: Any = None
        self.high: Any = None
        self.first: Any = None  # [D], of 64-bit integers: ranges in floats do not tell these apart
        self.varies: Any = False  # [D], from the first
        self.quaternions = quaternions_of(names, channels, name)
        self.worst = dict.fromkeys(self.quaternions, (0.0, 0))
        self.off = dict.fromkeys(self.quaternions, 0)
        self.zero = dict.fromkeys(self.quaternions, 0)

    def add(self, values: Any) -> None:
        """Samples [n,D] that come next."""
        import numpy as np

        from .. import statistics

        if len(values) == 0 or self.width == 0:
            return
        told = statistics(values, quantiles=())
        if self.count is None:
            self.count, self.nonfinite = told.count.copy(), told.nonfinite.copy()
            self.low, self.high = told.min.copy(), told.max.copy()
        else:
            self.count += told.count
            self.nonfinite += told.nonfinite
            self.low, self.high = np.fmin(self.low, told.min), np.fmax(self.high, told.max)
        if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
            self.first = values[0].copy() if self.first is None else self.first
            self.varies |= (values != self.first).any(axis=0)
        for begin in self.quaternions:
            self._lengths(begin, values[:, begin : begin + 4])
        self.rows += len(values)

    def _lengths(self, begin: int, values: Any) -> None:
        import numpy as np

        length = np.sqrt(np.square(values.astype(np.float64)).sum(axis=1))
        apart = np.abs(length - 1)
        apart[~np.isfinite(apart)] = 0  # told of as NaN
        self.zero[begin] += int((length == 0).sum())
        self.off[begin] += int((apart > _OFF_UNIT).sum())
        at = int(np.argmax(apart))
        if apart[at] > self.worst[begin][0]:
            self.worst[begin] = (float(apart[at]), self.rows + at)

    def findings(self) -> list[Finding]:
        if self.count is None:
            return []
        return self._nonfinite() + self._constant() + self._off_unit()

    def label(self, channel: int) -> str:
        return self.names[channel] if self.names is not None else f"channel {channel}"

    def _nonfinite(self) -> list[Finding]:
        found = []
        bad = self.nonfinite.nonzero()[0].tolist()
        whole = [c for c in bad if self.count[c] == 0]
        if whole:
            text = f"{self._some(whole)}: no finite value at all"
            found.append(Finding("error", "nan", self.name, self.label(whole[0]), text))
        partly = [c for c in bad if self.count[c]]
        if partly:
            most = max(partly, key=lambda c: int(self.nonfinite[c]))
            text = f"{self._some(partly)}: NaN or infinite, up to {self.nonfinite[most]} of "
            text += f"{self.rows} values"
            found.append(Finding("warning", "nan", self.name, self.label(most), text))
        return found

    def _constant(self) -> list[Finding]:
        import numpy as np

        if self.rows < 2:
            return []
        same = (self.low == self.high) & (self.count > 1) & np.logical_not(self.varies)
        same = same.nonzero()[0].tolist()
        if len(same) == self.width:
            text = f"dead: none of its {self.width} channels ever changes"
            return [Finding("warning", "constant", self.name, "", text)]
        found = []
        used = [c for c in same if not _UNUSED.search(self.label(c))]
        for severity, chosen in (
            ("warning", used),
            ("note", [c for c in same if c not in set(used)]),
        ):
            if chosen:
                first = f", at {self.low[chosen[0]]:g}" if len(chosen) == 1 else ""
                text = f"{self._some(chosen)}: never changes{first}"
                place = self.label(chosen[0])
                found.append(Finding(severity, "constant", self.name, place, text))
        return found

    def _off_unit(self) -> list[Finding]:
        found = []
        for begin in self.quaternions:
            place = self.label(begin).rstrip("xyzw").rstrip("._")
            if self.zero[begin]:
                text = f"{self.zero[begin]} of {self.rows} quaternions are 0"
                found.append(Finding("warning", "quaternion", self.name, place, text))
            apart, at = self.worst[begin]
            if self.off[begin] > self.zero[begin]:
                text = (
                    f"{self.off[begin] - self.zero[begin]} of {self.rows} quaternions are off "
                    f"unit length, by up to {apart:.3g} at sample {at}"
                )
                found.append(Finding("warning", "quaternion", self.name, place, text))
        return found

    def _some(self, channels: list[int]) -> str:
        shown = ", ".join(self.label(c) for c in channels[:4])
        more = f" and {len(channels) - 4} more" if len(channels) > 4 else ""
        return f"{len(channels)} of {self.width} channels ({shown}{more})"
