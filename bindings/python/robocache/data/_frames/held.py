"""Frames on the clock of an alignment: each row holds the newest frame that existed at its time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Union

from .._errors import FormatError
from .source import FrameSource, require_episode, require_request

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = Union[Sequence[NDArray[np.int64]], Callable[[int], NDArray[np.int64]]]

_VERSION = 1
_AT_ONCE = 16 << 20  # bytes of frames that are read before they are repeated


class HeldFrames(FrameSource):
    """The frames of another source at the rows of other episodes; frames are repeated.

    Parameters
    ----------
    source
        The camera.
    rows
        By episode, the frame of each row, int64 [n]; -1: the row has none. Or a function that
        finds it for an episode when it is needed.
    lengths : int64 [E]
        The number of rows of each episode.
    episodes : int64 [E]
        The source's episode of each. None: that of the same number.
    """

    def __init__(self, source: FrameSource, rows: Rows, lengths: Any, episodes: Any = None) -> None:
        import numpy as np

        self.name, self.path = source.name, source.path
        self.source = source
        self._lengths = np.asarray(lengths, np.int64)
        count = len(self._lengths)
        self._episodes = np.arange(count) if episodes is None else np.asarray(episodes, np.int64)
        self._find = rows if callable(rows) else rows.__getitem__
        self._rows: dict[int, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        for episode in range(len(self._lengths)):
            self.rows(episode)
        known = getattr(self._find, "known", None)  # of an alignment: another max_age is possible
        return {**self.__dict__, "_find": known and known(len(self._lengths))}

    def rows(self, episode: int) -> NDArray[np.int64]:
        """Return the frame of each row of an episode, int64 [n]; -1: it has none."""
        import numpy as np

        length = require_episode(self, episode)
        found: NDArray[np.int64] | None = self._rows.get(episode)
        if found is None:
            found = np.asarray(self._find(episode), np.int64)
            if found.shape != (length,):
                raise ValueError(f"rows: has {len(found)} rows in episode {episode}, not {length}")
            self._rows[episode] = found
        return found

    def missing(self, episode: int) -> NDArray[np.bool_]:
        """Return which rows have no frame that existed, or only too old ones, bool [n]."""
        missing: NDArray[np.bool_] = self.rows(episode) < 0
        return missing

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.source.shape

    @property
    def lengths(self) -> NDArray[np.int64]:
        return self._lengths

    def files(self, episode: int) -> tuple[str, ...]:
        require_episode(self, episode)
        return self.source.files(int(self._episodes[episode]))

    def place(self, episode: int) -> Any:
        rows = self.rows(episode).astype("<i8").tobytes()
        place = self.source.place(int(self._episodes[episode]))
        return [place, len(rows) // 8, hashlib.sha256(rows).hexdigest()]

    def arithmetic(self) -> Mapping[str, Any]:
        return {**self.source.arithmetic(), "held": _VERSION}

    def read(self, episode: int, rows: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
        import numpy as np

        rows = require_request(self, episode, rows, out)
        chosen = self.rows(episode)[rows]
        if (chosen < 0).any():
            row = int(rows[int(np.argmax(chosen < 0))])
            raise FormatError(
                self.path,
                f"{self.name}, episode {episode}, row {row}",
                "has no frame: none existed at its time, or only ones older than max_age; leave "
                "these rows out (missing() of the camera says which)",
            )
        own = int(self._episodes[episode])
        if (chosen[1:] > chosen[:-1]).all():
            self.source.read(own, chosen, out)
            return
        frames, places = np.unique(chosen, return_inverse=True)
        step = max(1, _AT_ONCE // max(1, int(np.prod(self.shape))))
        for begin in range(0, len(frames), step):
            part = frames[begin : begin + step]
            content = np.empty((len(part), *self.shape), np.uint8)
            self.source.read(own, part, content)
            here = (places >= begin) & (places < begin + len(part))
            out[here] = content[places[here] - begin]

    def with_options(
        self, *, convert: str | None = None, rotate: bool = False, max_age: float | None = None
    ) -> FrameSource:
        """Return the source with options; ``max_age`` only of cameras on the clock of an align."""
        source = self.source.with_options(convert=convert, rotate=rotate)
        if source is self.source and max_age is None:
            return self
        own: Any = self._find
        has_ages = hasattr(own, "with_max_age")
        find = own if has_ages else self.rows
        if max_age is not None:
            if not has_ages:
                raise ValueError(
                    f"max_age: is {max_age}, but the frames of {self.name!r} are chosen already; "
                    "pass max_age to align"
                )
            find = own.with_max_age(max_age)
        made = HeldFrames(source, find, self._lengths, self._episodes)
        if max_age is None:
            made._rows = self._rows
        return made

    def copy(self) -> HeldFrames:
        made = HeldFrames(self.source.copy(), self.rows, self._lengths, self._episodes)
        made._rows = self._rows
        return made

    def use_cache(self, folders: Sequence[str]) -> None:
        self.source.use_cache(folders)

    def close(self) -> None:
        self.source.close()

    def __repr__(self) -> str:
        return f"HeldFrames({self.source!r}, {int(self._lengths.sum())} rows)"
