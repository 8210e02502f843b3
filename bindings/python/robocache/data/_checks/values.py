"""Checks of channels: NaN, constants, quaternions; in one pass over a stream of any length."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._findings import Finding
from .._kinds.kinds import KindFinder, Kinds, Said, kind_option
from .._kinds.names import guesses
from .._kinds.values import Lengths

# Constant in nearly every recording: covariances, and the sizes in messages of images.
_UNUSED = re.compile(r"covariance|^(height|width|step|is_bigendian)$")


def quaternions_of(names: Sequence[str] | None, channels: int, track: str = "") -> list[int]:
    """Return the first channels of quaternions, by their names, if their channels are adjacent."""
    found = guesses(track, None if names is None else tuple(names), channels)
    runs = [sorted(guess.columns) for guess in found if guess.kind == "quaternion"]
    return sorted(run[0] for run in runs if run == list(range(run[0], run[0] + 4)))


class Channels:
    """Facts about the channels of a stream, collected from its pieces."""

    def __init__(
        self,
        name: str,
        names: Sequence[str] | None,
        channels: int,
        *,
        dtypes: Sequence[str] | None = None,
        type: str = "",
        said: Sequence[Said] = (),
        declared: Mapping[str, str] | None = None,
        rows: int | None = None,
        kinds: Kinds | None = None,
    ) -> None:
        """``dtypes``: one per channel; None: floats. Others as in :class:`RecordedStream`.

        ``rows`` is the total number of samples, if known; ``kinds`` the kinds of the channels, if
        known.
        """
        self.name, self.names, self.width = name, names, channels
        dtypes = ("float64",) * channels if dtypes is None else dtypes
        self._finder: KindFinder | None = None
        if kinds is None:
            self._finder = KindFinder(
                name, names, dtypes, type=type, said=said, declared=declared, rows=rows
            )
        self._kinds = kinds
        self.rows = 0
        self.count: Any = None  # [D], over all samples so far, as the next three
        self.nonfinite: Any = None
        self.low: Any = None
        self.high: Any = None
        self.first: Any = None  # [D], of 64-bit integers, whose ranges are rounded to floats
        self.varies: Any = False  # [D], whether a value differs from the first
        self._lengths: dict[tuple[int, ...], Lengths] = {}
        if self._finder is not None:
            self._lengths = self._finder.facts.lengths
        elif kinds is not None:
            four = [group.columns for group in kinds.groups if group.kind == "quaternion"]
            four += [group.columns for group in kinds.candidates if group.source == "names"]
            self._lengths = {columns: Lengths(columns) for columns in four}

    @property
    def kinds(self) -> Kinds:
        """The kinds of the channels, from all samples so far."""
        if self._finder is not None and self._kinds is None:
            self._kinds = self._finder.found()
        return self._kinds or Kinds(())

    def add(self, values: Any, begins: Any = None) -> None:
        """Add the next samples [n,D]; ``begins`` [n]: where an episode begins."""
        import numpy as np

        from ... import statistics

        if len(values) == 0 or self.width == 0:
            return
        counts = statistics(values, quantiles=())
        if self.count is None:
            self.count, self.nonfinite = counts.count.copy(), counts.nonfinite.copy()
            self.low, self.high = counts.min.copy(), counts.max.copy()
        else:
            self.count += counts.count
            self.nonfinite += counts.nonfinite
            self.low, self.high = np.fmin(self.low, counts.min), np.fmax(self.high, counts.max)
        if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
            self.first = values[0].copy() if self.first is None else self.first
            self.varies |= (values != self.first).any(axis=0)
        if self._finder is not None:
            self._finder.add(values, begins)
            self._kinds = None
        else:
            for lengths in self._lengths.values():
                lengths.add(values)
        self.rows += len(values)

    def findings(self) -> list[Finding]:
        if self.count is None:
            return []
        off = self._off_unit()
        return self._nonfinite() + self._constant() + off + list(self.kinds.findings)

    def label(self, channel: int) -> str:
        return self.names[channel] if self.names is not None else f"channel {channel}"

    def _nonfinite(self) -> list[Finding]:
        found = []
        bad = self.nonfinite.nonzero()[0].tolist()
        whole = [c for c in bad if self.count[c] == 0]
        if whole:
            text = f"{self._some(whole)}: no value is finite"
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
        used = [c for c in same if not _UNUSED.search(self.label(c))]
        if len(same) == self.width:
            subject = (
                "its channel never"
                if self.width == 1
                else f"none of its {self.width} channels ever"
            )
            text = f"constant: {subject} changes"
            return [Finding("warning" if used else "note", "constant", self.name, "", text)]
        found = []
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
        known = {group.columns for group in self.kinds.groups if group.kind == "quaternion"}
        # The names say a quaternion, but too few values confirm it: alignment needs a decision.
        doubtful = {g.columns: g for g in self.kinds.candidates if g.source == "names"}
        known |= set(doubtful)
        for columns, lengths in self._lengths.items():
            if columns not in known:
                continue
            labels = [self.label(column) for column in sorted(columns)]
            place = os.path.commonprefix(labels).rstrip("._[") or labels[0]
            if lengths.zero:
                verb = "is" if lengths.zero == 1 else "are"
                text = f"{lengths.zero} of {self.rows} quaternions {verb} 0"
                found.append(Finding("warning", "quaternion", self.name, place, text))
            if lengths.off_slightly:
                apart, at = lengths.worst
                verb = "differs" if lengths.off_slightly == 1 else "differ"
                text = (
                    f"{lengths.off_slightly} of {self.rows} quaternions {verb} from "
                    f"unit length, by up to {apart:.3g} at sample {at}"
                )
                if columns in doubtful:
                    text += f": {kind_option(self.name, self.names, doubtful[columns])}"
                found.append(Finding("warning", "quaternion", self.name, place, text))
        return found

    def _some(self, channels: list[int]) -> str:
        shown = ", ".join(self.label(c) for c in channels[:4])
        more = f" and {len(channels) - 4} more" if len(channels) > 4 else ""
        return f"{len(channels)} of {self.width} channels ({shown}{more})"
