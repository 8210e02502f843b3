"""Chosen frames of the cameras of a LeRobot data set, in sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..._errors import FormatError
from ..._frames.picture_decoder import PictureDecoder
from .cameras import LeRobotVideo, Meta, Pictures, content_of, is_camera
from .rows import tables_of

if TYPE_CHECKING:
    from ..._options import Options
    from .meta import Feature, Info, Plan

__all__ = ["content_of", "files_of_pictures", "frames_of", "is_camera"]


def frames_of(
    info: Info, plan: Plan, feature: Feature, wanted: dict[int, Sequence[int]], options: Options
) -> Iterator[tuple[int, int, Any]]:
    """Yield the episode, the index in it and the frame, uint8 [H,W,3], of each wanted frame.

    ``wanted`` has by episode of the plan the indices of its frames, ascending. A frame that is
    missing or cannot be decoded is a FormatError.
    """
    if feature.is_video:
        yield from _of_videos(info, plan, feature, wanted, options)
    else:
        yield from _of_pictures(info, plan, feature, wanted, options)


def _of_videos(
    info: Info, plan: Plan, feature: Feature, wanted: dict[int, Sequence[int]], options: Options
) -> Iterator[tuple[int, int, Any]]:
    import numpy as np

    meta = Meta(info.folder.path, options, info, plan)
    source = LeRobotVideo(meta, feature.name, rotate=True, threads="auto")
    try:
        for episode, rows in wanted.items():
            for row in rows:
                frame = np.empty((1, *source.shape), np.uint8)
                source.read(episode, np.array([row]), frame)
                yield episode, row, frame[0]
    finally:
        source.close()


def _of_pictures(
    info: Info, plan: Plan, feature: Feature, wanted: dict[int, Sequence[int]], options: Options
) -> Iterator[tuple[int, int, Any]]:
    """Decode PNG or JPEG bytes in the rows, or files that the rows name."""
    import numpy as np

    decoder = PictureDecoder("RGB")
    files = sorted({int(plan.file_of[episode]) for episode in wanted})
    for file, path, table in tables_of(
        info, plan, files, [feature.name], ["episode_index"], options
    ):
        if isinstance(table, FormatError):
            raise table
        if table is None:
            raise FormatError(path, "", "is missing")
        own = np.flatnonzero(plan.file_of == file)
        if "episode_index" in table.column_names:
            numbers = table["episode_index"].to_numpy()
        else:
            numbers = np.repeat(plan.numbers[own], plan.lengths[own])[: len(table)]
        column = table[feature.name]
        for episode in own.tolist():
            rows = np.flatnonzero(numbers == plan.numbers[episode])
            for index in wanted.get(episode, ()):
                if index >= len(rows):
                    place = f"episode {plan.numbers[episode]}"
                    raise FormatError(path, place, f"has {len(rows)} rows, expected {index + 1}")
                row = int(rows[index])
                content = content_of(info, path, row, column[row].as_py())
                try:
                    frame = decoder.rgb(content)
                except ValueError as error:
                    raise FormatError(path, f"row {row}", f"the picture {error}") from None
                yield episode, index, frame


def files_of_pictures(meta: Meta, feature: Feature) -> Callable[[int], Iterator[bytes]]:
    """Return a function that yields the files of a camera's pictures in an episode of the plan."""
    return Pictures(meta, feature.name).contents
