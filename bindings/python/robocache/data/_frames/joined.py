"""One camera of several data sets that were joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .source import FrameSource

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class JoinedFrames(FrameSource):
    """The episodes of several sources, one source after the other.

    Parameters
    ----------
    sources
        The camera in each data set.
    episodes : int64 [n] each
        The episodes of each source, in their order.
    """

    def __init__(self, sources: Sequence[FrameSource], episodes: Sequence[Any]) -> None:
        import numpy as np

        self.name, self.path = sources[0].name, sources[0].path
        self._sources = list(sources)
        counts = [len(own) for own in episodes]
        self._source_of = np.repeat(np.arange(len(sources)), counts)
        self._episodes = np.concatenate([np.asarray(own, np.int64) for own in episodes])

    def part(self, episode: int) -> tuple[FrameSource, int]:
        return self._sources[self._source_of[episode]], int(self._episodes[episode])

    @property
    def shape(self) -> tuple[int, int, int]:
        first = self._sources[0]
        for source in self._sources[1:]:
            if source.shape != first.shape:
                raise ValueError(
                    f"camera: {self.name!r} has frames of {list(first.shape)} in {first.path}, and "
                    f"of {list(source.shape)} in {source.path}; resize one with robocache images"
                )
        return first.shape

    @property
    def lengths(self) -> NDArray[np.int64]:
        import numpy as np

        own = [source.lengths for source in self._sources]
        made: NDArray[np.int64] = np.zeros(len(self._episodes), np.int64)
        for number, lengths in enumerate(own):
            here = self._source_of == number
            made[here] = lengths[self._episodes[here]]
        return made

    def files(self, episode: int) -> tuple[str, ...]:
        source, own = self.part(episode)
        return source.files(own)

    def place(self, episode: int) -> Any:
        source, own = self.part(episode)
        return source.place(own)

    def arithmetic(self) -> Mapping[str, Any]:
        return {str(number): dict(each.arithmetic()) for number, each in enumerate(self._sources)}

    def read(self, episode: int, rows: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
        source, own = self.part(episode)
        source.read(own, rows, out)

    def missing(self, episode: int) -> NDArray[np.bool_] | None:
        source, own = self.part(episode)
        return source.missing(own)

    def with_options(self, **options: Any) -> FrameSource:
        return self._with([source.with_options(**options) for source in self._sources])

    def sequential(self) -> FrameSource:
        return self._with([source.sequential() for source in self._sources])

    def copy(self) -> FrameSource:
        return self._with([source.copy() for source in self._sources])

    def use_cache(self, folders: Sequence[str]) -> None:
        for source in self._sources:
            source.use_cache(folders)

    def close(self) -> None:
        for source in self._sources:
            source.close()

    def _with(self, sources: list[FrameSource]) -> JoinedFrames:
        made = JoinedFrames.__new__(JoinedFrames)
        made.__dict__.update({**self.__dict__, "_sources": sources})
        return made
