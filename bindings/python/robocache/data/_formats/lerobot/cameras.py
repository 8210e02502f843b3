"""The cameras of a LeRobot data set, as sources of frames: videos, and pictures in the rows."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from ..._errors import FormatError, needed, reading
from ..._file_access import Folder
from ..._frames.picture_decoder import PictureDecoder, shape_of
from ..._frames.source import FrameSource, require_request
from ..._frames.video import VideoFrames
from ..._frames.video_times import rate_of
from ..tables.parquet import read_rows
from .meta import Feature, Info, Plan, episodes_of, info_of
from .rows import tables_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..._options import Options


_FILES = 64  # data files whose episodes are kept, as numbers by row


def is_camera(feature: Feature) -> bool:
    """Whether the feature has frames: of a video, or pictures in the rows."""
    return feature.is_video or feature.dtype == "image"


def cameras_of(meta: Meta) -> dict[str, FrameSource]:
    """Return the cameras of a data set with frames of colors. No file is opened."""
    made: dict[str, FrameSource] = {}
    for name, feature in meta.info.features.items():
        if feature.is_video:
            made[name] = LeRobotVideo(meta, name)
        elif feature.dtype == "image" and 3 in feature.shape:
            made[name] = LeRobotPictures(meta, name)
    return made


class Meta:
    """The content of ``meta``: what a reader has read, else it is read when it is first needed.

    A pickle holds the path: another process reads ``meta`` again.
    """

    def __init__(
        self, path: str, options: Options, info: Info | None = None, plan: Plan | None = None
    ) -> None:
        self.path, self.options = path, options
        self._info, self._plan = info, plan

    @property
    def info(self) -> Info:
        if self._info is None:
            self._info = info_of(Folder(self.path, self.options.follow_links))
        return self._info

    @property
    def plan(self) -> Plan:
        if self._plan is None:
            info, options = self.info, self.options
            self._plan = episodes_of(info.folder, info, options.damage, options.limit)
        return self._plan

    def label(self, episode: int) -> str:
        """Return the name of an episode for messages: by its number in the data set."""
        return f"episode {self.plan.numbers[episode]}"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_info": None, "_plan": None}


# ---- videos -------------------------------------------------------------------------------------


class LeRobotVideo(VideoFrames):
    """The frames of a camera in the videos of a LeRobot data set.

    v2 has a file per episode, v3 several episodes in a file, with the times at which they begin
    and end. For the options see :class:`VideoFrames`.
    """

    def __init__(
        self,
        meta: Meta,
        name: str,
        *,
        tolerance: float | Fraction | None = None,
        rotate: bool = False,
        threads: int | Literal["auto"] = 1,
    ) -> None:
        import numpy as np

        none = np.zeros(0, np.int64)
        options: Any = {"tolerance": tolerance, "rotate": rotate, "threads": threads}
        super().__init__(name, meta.path, (), none, 1, **options)
        self._meta = meta
        self._overlaps: dict[int, int] | None = None

    @property
    def lengths(self) -> NDArray[np.int64]:
        return self._meta.plan.lengths

    @property
    def whole(self) -> bool:
        return not self._meta.info.is_v3

    @property
    def rate(self) -> Fraction:
        info = self._meta.info
        if info.fps is None:
            raise FormatError(info.path, "fps", "is missing, so frames of videos have no times")
        try:
            return rate_of(info.fps)
        except ValueError as error:
            raise FormatError(info.path, "fps", str(error).partition(": ")[2]) from None

    def label(self, episode: int) -> str:
        return self._meta.label(episode)

    def video_of(self, episode: int) -> tuple[str, float]:
        info, plan = self._meta.info, self._meta.plan
        name = plan.video_name(self.name, episode)
        if name is None:
            raise FormatError(info.path, self.label(episode), f"has no video of {self.name}")
        begin = float(plan.videos[self.name][2][episode]) if info.is_v3 else 0.0
        return info.folder.file(name), begin

    def _find_frames(self, episode: int) -> NDArray[np.int64]:
        if self._meta.info.is_v3:
            self._require_own_frames(episode)
        return super()._find_frames(episode)

    def _require_own_frames(self, episode: int) -> None:
        """Refuse an episode with a duration that does not fit its rows, or that overlaps others."""
        plan, fps = self._meta.plan, float(self.rate)
        columns, rows = plan.videos[self.name], int(plan.lengths[episode])
        place = f"{self.label(episode)}, {self.name}"
        meta = os.path.join(self.path, "meta")
        if len(columns) > 3:
            begin, end = float(columns[2][episode]), float(columns[3][episode])
            if abs((end - begin) * fps - rows) >= 0.5:
                text = f"is from {begin:.6f} s to {end:.6f} s in its video, which is "
                text += f"{(end - begin) * fps:.2f} frames, expected {rows}: one for each row"
                raise FormatError(meta, place, text)
        if self._overlaps is None:
            self._overlaps = _overlaps(plan, columns, fps)
        if episode in self._overlaps:
            other = self.label(self._overlaps[episode])
            text = f"has frames of the same video as {other}: both are in "
            raise FormatError(meta, place, text + str(plan.video_name(self.name, episode)))


def _overlaps(plan: Plan, columns: Any, fps: float) -> dict[int, int]:
    """Return the episodes whose frames are also frames of another episode, by that episode."""
    import numpy as np

    chunk, file, begin = columns[:3]
    order = np.lexsort((begin, file, chunk))
    order = order[plan.lengths[order] > 0]
    left, right = order[:-1], order[1:]
    same = (chunk[left] == chunk[right]) & (file[left] == file[right])
    apart = (begin[right] - begin[left]) * fps
    found = np.flatnonzero(same & (apart <= plan.lengths[left] - 0.5))
    pairs = [(int(left[i]), int(right[i])) for i in found.tolist()]
    return dict([*pairs, *((b, a) for a, b in pairs)])


# ---- pictures -----------------------------------------------------------------------------------


class Pictures:
    """The pictures of a camera in the rows of data files.

    It keeps the row groups that were read last, and the episodes of some files.
    """

    def __init__(self, meta: Meta, name: str) -> None:
        self.meta, self.name = meta, name
        self._numbers: OrderedDict[int, tuple[str, Any]] = OrderedDict()
        self._held: tuple[int, int, Any] | None = None  # file, its row, the column from there on

    def place(self, episode: int) -> tuple[str, NDArray[np.int64], int, Any]:
        """Return where the pictures of an episode are.

        Returns
        -------
        str
            The data file.
        int64 [n]
            The rows of the episode there.
        int
            The row at which the column begins.
        ChunkedArray
            The column of pictures.
        """
        import numpy as np

        plan = self.meta.plan
        file = int(plan.file_of[episode])
        path, numbers = self._episodes_of(file)
        rows: NDArray[np.int64] = np.flatnonzero(numbers == plan.numbers[episode])
        if len(rows) != plan.lengths[episode]:
            text = f"has {len(rows)} rows, expected {plan.lengths[episode]}"
            raise FormatError(path, self.meta.label(episode), text)
        if not len(rows):
            return path, rows, 0, ()
        first, last = int(rows[0]), int(rows[-1])
        held = self._held
        if held is None or held[0] != file or not held[1] <= first <= last < held[1] + len(held[2]):
            self._held = None
            with reading(path):
                begin, column = read_rows(path, self.name, first, last, self.meta.options.limit)
            if len(column) <= last - begin:
                text = f"ends at row {begin + len(column)}, expected rows up to {last}"
                raise FormatError(path, self.meta.label(episode), text)
            self._held = held = file, begin, column
        return path, rows, held[1], held[2]

    def _episodes_of(self, file: int) -> tuple[str, Any]:
        """Return the path of a data file, and the number of the episode of each row."""
        import numpy as np

        if file in self._numbers:
            return self._numbers[file]
        info, plan, options = self.meta.info, self.meta.plan, self.meta.options
        own = np.flatnonzero(plan.file_of == file)
        numbers = np.repeat(plan.numbers[own], plan.lengths[own])
        path = info.folder.file(plan.files[file])
        if "episode_index" in info.features:
            for _, path, table in tables_of(info, plan, [file], (), ["episode_index"], options):
                if isinstance(table, FormatError):
                    raise table
                if table is None:
                    raise FormatError(path, "", "is missing")
                if table.column_names:
                    numbers = table["episode_index"].to_numpy()
        while len(self._numbers) >= _FILES:
            self._numbers.popitem(last=False)
        self._numbers[file] = path, numbers
        return path, numbers

    def contents(self, episode: int, chosen: Sequence[int] | None = None) -> Iterator[bytes]:
        """Yield the files of the pictures of an episode, in the rows or named there."""
        path, rows, begin, column = self.place(episode)
        for i in range(len(rows)) if chosen is None else chosen:
            row = int(rows[i])
            yield content_of(self.meta.info, path, row, column[row - begin].as_py())

    def close(self) -> None:
        self._held = None


def content_of(info: Info, path: str, row: int, cell: Any) -> bytes:
    """Return the file of a picture: in the row, or named there."""
    content = cell.get("bytes") if isinstance(cell, dict) else cell
    if content is None and isinstance(cell, dict) and cell.get("path"):
        with open(info.folder.file(cell["path"]), "rb") as file:
            content = file.read()
    if not isinstance(content, bytes):
        raise FormatError(path, f"row {row}", "has no picture")
    return content


class LeRobotPictures(FrameSource):
    """The frames of a camera whose PNG or JPEG pictures are in the rows, or named there.

    Parameters
    ----------
    convert
        ``"RGB"`` also accepts CMYK, alpha, palettes and 16 bits: see :class:`PictureDecoder`.
    """

    def __init__(self, meta: Meta, name: str, *, convert: str | None = None) -> None:
        self.name, self.path = name, meta.path
        self._meta, self._pictures = meta, Pictures(meta, name)
        self._decoder = PictureDecoder(convert)
        self._shape: tuple[int, int, int] | None = None
        self._named: dict[int, bool] = {}  # by data file: whether rows name files

    @property
    def shape(self) -> tuple[int, int, int]:
        if self._shape is None:
            lengths = self.lengths
            first = next((e for e in range(len(lengths)) if lengths[e]), None)
            if first is None:
                raise FormatError(self.path, self.name, "has no frames: all episodes are empty")
            content = next(self._pictures.contents(first, [0]))
            try:
                self._shape = shape_of(content)
            except ValueError as error:
                raise self._wrong(first, 0, error) from None
        return self._shape

    @property
    def lengths(self) -> NDArray[np.int64]:
        return self._meta.plan.lengths

    def files(self, episode: int) -> tuple[str, ...]:
        info, plan = self._meta.info, self._meta.plan
        file = int(plan.file_of[episode])
        path = info.folder.file(plan.files[file])
        if file not in self._named:
            self._named[file] = _names_files(path, self.name)
        if not self._named[file]:
            return (path,)
        _, rows, begin, column = self._pictures.place(episode)
        cells = [column[row - begin].as_py() for row in rows.tolist()]
        named = [cell["path"] for cell in cells if cell.get("bytes") is None and cell.get("path")]
        return (path, *(info.folder.file(name) for name in dict.fromkeys(named)))

    def place(self, episode: int) -> Any:
        """Return the number of an episode and its rows: its index depends on the others.

        Without numbers in the data file, episodes follow each other.
        """
        plan = self._meta.plan
        made = [int(plan.numbers[episode]), int(plan.lengths[episode])]
        if "episode_index" not in self._meta.info.features:
            before = plan.file_of[:episode] == plan.file_of[episode]
            made.append(int(plan.lengths[:episode][before].sum()))
        return made

    def arithmetic(self) -> Mapping[str, Any]:
        return self._decoder.arithmetic()

    def with_options(
        self,
        *,
        convert: str | None = None,
        rotate: bool = False,
        max_age: float | None = None,
    ) -> FrameSource:
        super().with_options(max_age=max_age)
        if convert == self._decoder.convert:
            return self
        return LeRobotPictures(self._meta, self.name, convert=convert)

    def read(self, episode: int, rows: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
        chosen = require_request(self, episode, rows, out).tolist()
        contents = self._pictures.contents(episode, chosen)
        for i, (row, content) in enumerate(zip(chosen, contents)):
            try:
                image = self._decoder.rgb(content)
                if image.shape != out.shape[1:]:
                    height, width = out.shape[1:3]
                    text = f"has {image.shape[1]} x {image.shape[0]} pixels, expected {width} x "
                    raise ValueError(f"{text}{height}: all pictures of a camera have one size")
            except ValueError as error:
                raise self._wrong(episode, row, error) from None
            out[i] = image

    def _wrong(self, episode: int, row: int, error: ValueError) -> FormatError:
        plan = self._meta.plan
        path = os.path.join(self.path, plan.files[int(plan.file_of[episode])])
        place = f"{self._meta.label(episode)}, row {row}"
        return FormatError(path, place, f"the picture of {self.name} {error}")

    def close(self) -> None:
        self._pictures.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"meta": self._meta, "name": self.name, "convert": self._decoder.convert}

    def __setstate__(self, state: dict[str, Any]) -> None:
        type(self).__init__(self, state["meta"], state["name"], convert=state["convert"])


def _names_files(path: str, name: str) -> bool:
    """Whether some rows of a data file name the files of their pictures, from its statistics."""
    parquet = needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
    meta = parquet.read_metadata(path)
    for group in range(meta.num_row_groups):
        own = meta.row_group(group)
        for i in range(own.num_columns):
            column = own.column(i)
            if column.path_in_schema != f"{name}.bytes":
                continue
            statistics = column.statistics
            if statistics is None or not statistics.has_null_count or statistics.null_count:
                return True
    return False
