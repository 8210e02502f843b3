"""Frames of the cameras of a LeRobot data set: of videos by PyAV, of pictures by Pillow."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..._errors import FormatError, needed, raise_shortage
from ..pixels import Converter
from .rows import tables_of

if TYPE_CHECKING:
    from ..._options import Options
    from .meta import Feature, Info, Plan

_EXTRA = "video"


def is_camera(feature: Feature) -> bool:
    """Whether the feature has frames: of a video, or pictures in the rows."""
    return feature.is_video or feature.dtype == "image"


def frames_of(
    info: Info, plan: Plan, feature: Feature, wanted: dict[int, Sequence[int]], options: Options
) -> Iterator[tuple[int, int, Any]]:
    """Yield the episode, the index in it and the frame, uint8 [H,W,3], of each wanted frame.

    ``wanted`` has by episode of the plan the indices of its frames, ascending. A frame that is
    missing or cannot be decoded is a FormatError.
    """
    if feature.is_video:
        yield from _of_videos(info, plan, feature, wanted)
    else:
        yield from _of_pictures(info, plan, feature, wanted, options)


# ---- videos -------------------------------------------------------------------------------------


def _of_videos(
    info: Info, plan: Plan, feature: Feature, wanted: dict[int, Sequence[int]]
) -> Iterator[tuple[int, int, Any]]:
    """Decode each file once; its frames are found by their times, as LeRobot finds them."""
    if info.fps is None:
        raise FormatError(info.path, "fps", "is missing, so frames of videos have no times")
    by_file: dict[str, list[tuple[float, int, int]]] = {}
    for episode, frames in wanted.items():
        name = plan.video_name(feature.name, episode)
        if name is None:
            place = f"episode {plan.numbers[episode]}"
            raise FormatError(info.path, place, f"has no video of {feature.name}")
        begin = float(plan.videos[feature.name][2][episode]) if info.is_v3 else 0.0
        by_file.setdefault(name, []).extend(
            (begin + frame / info.fps, episode, frame) for frame in frames
        )
    for name, places in by_file.items():
        yield from _decoded(info.folder.file(name), sorted(places), 0.5 / info.fps)


def _decoded(
    path: str, places: list[tuple[float, int, int]], near: float
) -> Iterator[tuple[int, int, Any]]:
    """Yield the frames at the times of the places, each at most ``near`` seconds away."""
    av = needed("av", _EXTRA, "a video")
    at = 0
    try:
        with av.open(path) as container:
            if not container.streams.video:
                raise FormatError(path, "", "has no video stream")
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            converter = Converter(av)
            for frame in container.decode(stream):
                if at == len(places):
                    break
                pixels = None
                while at < len(places) and frame.time is not None:
                    time, episode, index = places[at]
                    if frame.time > time + near:
                        raise FormatError(path, f"{time:.3f} s", "has no frame at this time")
                    if frame.time < time - near:
                        break
                    if pixels is None:
                        pixels = converter.rgb(frame)
                    yield episode, index, pixels
                    at += 1
    except av.error.FFmpegError as error:
        raise_shortage(path)
        raise FormatError(path, "", f"cannot be decoded: {error.strerror}") from None
    if at < len(places):
        left = len(places) - at
        text = f"ends before {left} of the {len(places)} frames that meta/ places in it"
        raise FormatError(path, f"{places[at][0]:.3f} s", text)


# ---- pictures -----------------------------------------------------------------------------------


def _of_pictures(
    info: Info, plan: Plan, feature: Feature, wanted: dict[int, Sequence[int]], options: Options
) -> Iterator[tuple[int, int, Any]]:
    """Decode PNG or JPEG bytes in the rows, or files that the rows name."""
    import numpy as np

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
                yield episode, index, _picture(info, path, row, column[row].as_py())


def files_of_pictures(
    info: Info, plan: Plan, feature: Feature, options: Options
) -> Callable[[int], Iterator[bytes]]:
    """Return a function that yields the files of a camera's pictures in an episode of the plan.

    It keeps the column of the last data file, since the next episode is usually in it.
    """
    import numpy as np

    held: list[tuple[int, str, Any]] = []

    def pictures(episode: int) -> Iterator[bytes]:
        file = int(plan.file_of[episode])
        if not held or held[0][0] != file:
            held.clear()
            names = [feature.name]
            held.extend(tables_of(info, plan, [file], names, ["episode_index"], options))
        _, path, table = held[0]
        if isinstance(table, FormatError):
            raise table
        if table is None:
            raise FormatError(path, "", "is missing")
        rows = list(range(int(plan.lengths[episode])))
        if "episode_index" in table.column_names:
            numbers = table["episode_index"].to_numpy()
            rows = np.flatnonzero(numbers == plan.numbers[episode]).tolist()
        for row in rows:
            yield content_of(info, path, row, table[feature.name][row].as_py())

    return pictures


def content_of(info: Info, path: str, row: int, cell: Any) -> bytes:
    """Return the file of a picture: in the row, or named there."""
    content = cell.get("bytes") if isinstance(cell, dict) else cell
    if content is None and isinstance(cell, dict) and cell.get("path"):
        with open(info.folder.file(cell["path"]), "rb") as file:
            content = file.read()
    if not isinstance(content, bytes):
        raise FormatError(path, f"row {row}", "has no picture")
    return content


def _picture(info: Info, path: str, row: int, cell: Any) -> Any:
    """Return a picture as uint8 [H,W,3]."""
    import numpy as np

    image = needed("PIL.Image", _EXTRA, "a picture")
    content = content_of(info, path, row, cell)
    try:
        with image.open(io.BytesIO(content)) as opened:
            pixels: Any = np.asarray(opened.convert("RGB"))
    except (OSError, ValueError, SyntaxError, image.DecompressionBombError) as error:
        raise_shortage(path)
        raise FormatError(path, f"row {row}", f"is not a picture: {error}") from None
    return pixels
