"""Windows of the newest rows, cut by the same call as those of training.

The arrays and the descriptions of the windows are made once; each call writes the rows into them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._episodes.episodes import Episodes
from .._episodes.track import Track
from .._windows.spec import WindowSpec
from .._windows.windows import windows as cut
from .sources import StreamPlan


class Cutter:
    """Cut the windows whose anchor is the last of ``count`` rows."""

    def __init__(
        self, spec: WindowSpec, streams: Mapping[str, StreamPlan], count: int, dtype: str
    ) -> None:
        import numpy as np

        self._rows = {
            name: np.zeros((count, stream.width), dtype) for name, stream in streams.items()
        }
        self._valid = {name: np.zeros(count, bool) for name in streams}
        offsets = np.array([0, count], np.int64)
        episodes = Episodes({name: Track(rows, offsets) for name, rows in self._rows.items()})
        changed: dict[str, Any] = {
            name: {"missing": None, "sample_mask": self._valid[spec.track(name)]}
            for name in spec.windows
        }
        self._streams = spec._streams(episodes, changed)
        self._names, self._dtype, self._anchor = list(spec.windows), dtype, spec.anchor_stream
        self._episode, self._last = np.zeros(1, np.int64), np.array([count - 1], np.int64)

    def cut(self, rows: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """Return the windows: values [1,T,D] and valid [1,T]. A row with NaN is not valid."""
        import numpy as np

        for name, own in rows.items():
            self._rows[name][:] = own
            self._valid[name][:] = ~np.isnan(own).any(axis=1)
        pairs = cut(
            self._streams,
            self._episode,
            self._last,
            anchor_stream=self._anchor,
            dtype=self._dtype,
        )
        return dict(zip(self._names, pairs))
