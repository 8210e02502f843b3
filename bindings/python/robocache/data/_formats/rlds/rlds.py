"""RLDS data sets, such as Open X-Embodiment and DROID, read without TensorFlow."""

from __future__ import annotations

import functools
import mmap
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .... import Track
from ...._episodes.episodes import Episodes, make_episodes
from ...._episodes.lazy_tracks import About, LazyTracks, TrackInfo
from ..._errors import FormatError, LeftOut
from ..._file_access import Folder, json_object, opened
from ..._frames.pictures import Files, ImageFrames
from ..._options import Options
from ..._progress import progress
from ..description import Format
from ..messages.protobuf_wire import Malformed
from .records import features_in, numbers_of, places, record_at, texts_of

FEATURES, INFO, OWN = "features.json", "dataset_info.json", "robocache.json"
STEPS = "steps"
_TASK = "language_instruction"
_SHARD = re.compile(r".+\.tfrecord-\d+-of-\d+")
_DEEPEST = 32
_MOST = 1 << 24  # bytes of a description
_ENCODINGS = ("bytes", "zlib")
# Of a step: flags of its place in the episode, which the episodes say.
_PLACES = ("is_first", "is_last", "is_terminal")

FORMAT = Format(
    name="rlds",
    title="RLDS (TensorFlow Datasets)",
    files="a folder with features.json and *.tfrecord-*",
    reads="Episodes of Open X-Embodiment, DROID and others: a track for each tensor of numbers of "
    "the steps, the task in language_instruction, and RGB pictures in PNG and JPEG as cameras. "
    "TensorFlow is not needed.",
    refuses="Pictures of other dtypes, videos and other texts are listed. RLDS states no times: "
    "pass rate=.",
    example='episodes = rbc.data.open("bridge", rate=5)',
)


@dataclass(frozen=True)
class Leaf:
    """A feature of the steps that is not a dict."""

    place: str  # "observation/state"
    kind: str  # "number", "picture", "text" or the name of its class
    shape: tuple[int, ...]
    dtype: str
    is_rgb: bool = False  # a picture of three channels of 8 bits
    encoding: str = ""  # "bytes" or "zlib": a text per step, with the numbers in it

    @property
    def name(self) -> str:
        return self.place.replace("/", ".")

    @property
    def width(self) -> int:
        width = 1
        for extent in self.shape:
            width *= extent
        return width


@dataclass(frozen=True)
class _Place:
    """An episode: a record of a file."""

    file: str
    at: int
    size: int
    rows: int


def sniff(path: str) -> bool:
    return all(os.path.isfile(os.path.join(path, name)) for name in (FEATURES, INFO))


def open(path: str, options: Options) -> Episodes:
    folder = Folder(path, options.follow_links)
    leaves = leaves_of(folder)
    own = json_object(folder.file(OWN), _MOST) if folder.has(OWN) else {}
    added = own.get("added")
    unused = {*_PLACES, *(added if isinstance(added, list) else ())}
    numbers = [leaf for leaf in leaves if leaf.kind == "number" and leaf.place not in unused]
    left_out = [
        LeftOut(leaf.name, _why_not(leaf))
        for leaf in leaves
        if leaf.kind != "number" and leaf.place != _TASK and not leaf.is_rgb
    ]
    if not numbers:
        raise FormatError(os.path.join(path, FEATURES), STEPS, "has no tensor of numbers")
    episodes, tasks = _index(folder, leaves, options)
    _require_room(path, numbers, episodes, options)
    names: Any = own.get("names")
    names = names if isinstance(names, dict) else {}
    infos = {}
    for leaf in numbers:
        channels = names.get(leaf.name)
        fits = isinstance(channels, list) and len(channels) == leaf.width
        labels = tuple(map(str, channels)) if fits and isinstance(channels, list) else None
        infos[leaf.name] = TrackInfo(labels, leaf.dtype, leaf.width)
    rate = options.rate or (own.get("rate") if isinstance(own.get("rate"), float) else None)
    read = functools.partial(_read, episodes, {leaf.name: leaf for leaf in numbers}, infos, rate)
    import numpy as np

    lengths = np.array([episode.rows for episode in episodes], np.int64)
    records = _Records(episodes)
    cameras = {
        leaf.name: ImageFrames.made(leaf.name, StepPictures(path, records, leaf, lengths))
        for leaf in leaves
        if leaf.is_rgb
    }
    about = About(
        format="RLDS",
        unit="s",
        rate=rate,
        left_out=tuple(left_out),
        problems=options.damage.problems,
        cameras=cameras,
        pictures={name: camera.encoded for name, camera in cameras.items()},
    )
    known = tasks if any(task is not None for task in tasks) else None
    lazy = LazyTracks(infos, lengths, functools.partial(read, options), path=path)
    return make_episodes(lazy, tasks=known, source=path, about=about)


class _Records:
    """Keeps the features of the last episode, which all cameras of it share."""

    def __init__(self, episodes: list[_Place]) -> None:
        self.episodes = episodes
        self.last: tuple[int, dict[str, memoryview]] = (-1, {})

    def __getstate__(self) -> dict[str, Any]:
        return {"episodes": self.episodes, "last": (-1, {})}

    def features(self, episode: int) -> dict[str, memoryview]:
        if self.last[0] != episode:
            self.last = (-1, {})
            place = self.episodes[episode]
            record = record_at(place.file, place.at, place.size)
            self.last = (episode, features_in(record))
        return self.last[1]


class StepPictures(Files):
    """The pictures of a feature of the steps."""

    def __init__(self, path: str, records: _Records, leaf: Leaf, lengths: Any) -> None:
        self.path = path
        self.records = records
        self.leaf = leaf
        self.lengths = lengths

    def files(self, episode: int) -> tuple[str, ...]:
        return (self.records.episodes[episode].file,)

    def place(self, episode: int) -> Any:
        own = self.records.episodes[episode]
        return [own.at, own.size, self.leaf.place, own.rows]

    def where(self, episode: int, row: int) -> tuple[str, str]:
        own = self.records.episodes[episode]
        place = f"the record at byte {own.at}, {self.leaf.place}, episode {episode}, row {row}"
        return own.file, place

    def contents(self, episode: int, rows: Any) -> Iterator[bytes]:
        own = self.records.episodes[episode]
        try:
            texts = texts_of(_feature(self.records.features(episode), self.leaf))
        except Malformed as error:
            raise FormatError(own.file, f"byte {own.at}", f"the record {error}") from None
        except FileNotFoundError:
            raise FormatError(own.file, "", "is missing") from None
        if len(texts) != own.rows:
            reason = f"has {len(texts)} pictures of {self.leaf.place}, expected {own.rows}"
            raise FormatError(own.file, f"byte {own.at}", reason)
        for row in rows.tolist():
            yield bytes(texts[row])

    def copy(self) -> StepPictures:
        return StepPictures(self.path, _Records(self.records.episodes), self.leaf, self.lengths)

    def close(self) -> None:
        self.records.last = (-1, {})


def _require_room(path: str, numbers: list[Leaf], episodes: list[_Place], options: Options) -> None:
    """Refuse shapes of encoded tensors for which the episodes are larger than their files allow."""
    import numpy as np

    rows = sum(episode.rows for episode in episodes)
    size = sum(episode.size for episode in episodes)
    unpacked = 0
    for leaf in numbers:
        if leaf.encoding:  # other tensors are as large as their records
            unpacked += rows * leaf.width * np.dtype(leaf.dtype).itemsize
            if unpacked > options.limit.least:
                place = f"{leaf.place} {list(leaf.shape)}, {rows:,} steps"
                options.limit.require(os.path.join(path, FEATURES), place, unpacked, size)


def _why_not(leaf: Leaf) -> str:
    if leaf.kind == "picture":
        return "pictures that are not RGB of 8 bits in PNG or JPEG, which are not read"
    return "texts are not read" if leaf.kind == "text" else f"{leaf.kind} is not read"


# ---- the description ----------------------------------------------------------------------------


def leaves_of(folder: Folder) -> list[Leaf]:
    """Return the features of the steps."""
    content = json_object(folder.file(FEATURES), _MOST)
    path = os.path.join(folder.path, FEATURES)
    top = _members(content)
    steps = top.get(STEPS) if top else None
    inner = (steps or {}).get("sequence", {})
    feature = inner.get("feature") if isinstance(inner, dict) else None
    if not isinstance(feature, dict):
        raise FormatError(path, "", "has no sequence 'steps', as RLDS data sets have")
    return list(_leaves(path, feature, "", 0))


def _members(feature: Any) -> dict[str, Any]:
    """Return the features of a dict of features."""
    inner = feature.get("featuresDict") if isinstance(feature, dict) else None
    members = inner.get("features") if isinstance(inner, dict) else None
    return members if isinstance(members, dict) else {}


def _leaves(path: str, feature: dict[str, Any], place: str, depth: int) -> Iterator[Leaf]:
    if depth > _DEEPEST:
        raise FormatError(path, place, f"has features nested deeper than {_DEEPEST} levels")
    members = _members(feature)
    if members:
        for name, member in members.items():
            if isinstance(member, dict):
                inner = f"{place}/{name}" if place else name
                yield from _leaves(path, member, inner, depth + 1)
        return
    own = str(feature.get("pythonClassName", "")).rpartition(".")[2] or "a feature"
    tensor = feature.get("tensor")
    if "image" in feature or own in ("Image", "Video"):
        yield _picture(place, own, feature.get("image"))
    elif "text" in feature or own == "Text":
        yield Leaf(place, "text", (), "string")
    elif isinstance(tensor, dict):
        yield _tensor(path, place, tensor)
    else:
        yield Leaf(place, own, (), "")


def _picture(place: str, own: str, image: Any) -> Leaf:
    """Return a feature of pictures; only RGB of 8 bits in PNG or JPEG can become a camera."""
    stated = image if isinstance(image, dict) else {}
    shape = stated.get("shape")
    extents = shape.get("dimensions") if isinstance(shape, dict) else None
    depth = str(extents[-1]) if isinstance(extents, list) and extents else "3"
    coded = str(stated.get("encodingFormat", "png")).lower() in ("png", "jpeg", "")
    is_rgb = own != "Video" and depth == "3" and stated.get("dtype", "uint8") == "uint8" and coded
    return Leaf(place, "picture", (), "uint8", is_rgb)


def _tensor(path: str, place: str, tensor: dict[str, Any]) -> Leaf:
    import numpy as np

    dtype = str(tensor.get("dtype", ""))
    shape = tensor.get("shape")
    extents = shape.get("dimensions", []) if isinstance(shape, dict) else []
    try:
        sizes = tuple(int(extent) for extent in extents)
    except (TypeError, ValueError):
        raise FormatError(path, place, f"has the shape {extents!r}, expected numbers") from None
    if dtype in ("string", "object") or dtype.startswith("object"):
        return Leaf(place, "text", sizes, "string")
    encoding = str(tensor.get("encoding", "none")).lower()
    if encoding not in ("none", "", *_ENCODINGS):
        return Leaf(place, "a compressed tensor", sizes, dtype)
    if any(size < 0 for size in sizes):
        return Leaf(place, "a tensor of several lengths", sizes, dtype)
    try:
        known = np.dtype(dtype)
    except TypeError:
        return Leaf(place, f"a tensor of {dtype or 'no dtype'}", sizes, "")
    if known.kind not in "biuf":
        return Leaf(place, f"a tensor of {dtype}", sizes, "")
    encoding = encoding if encoding in _ENCODINGS else ""
    return Leaf(place, "number", sizes, known.name, encoding=encoding)


# ---- records ------------------------------------------------------------------------------------


def _index(folder: Folder, leaves: list[Leaf], options: Options) -> tuple[list[_Place], list[Any]]:
    """Find the episodes in all files, and read their tasks. Pictures are skipped."""
    files = sorted(name for name in os.listdir(folder.path) if _SHARD.fullmatch(name))
    if not files:
        raise FormatError(folder.path, "", "has no file *.tfrecord-*")
    first = next(leaf for leaf in leaves if leaf.kind == "number")
    has_task = any(leaf.place == _TASK and leaf.kind == "text" for leaf in leaves)
    found: list[_Place] = []
    tasks: list[Any] = []
    for name in files:
        path = folder.file(name)
        if os.path.getsize(path) == 0:
            continue
        try:
            with (
                opened(path) as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
            ):
                for at, size in places(path):
                    with memoryview(content) as whole, whole[at : at + size] as record:
                        rows, task = _facts(path, at, record, first, has_task)
                    found.append(_Place(path, at, size, rows))
                    tasks.append(task)
        except FormatError as error:
            options.damage.found(error.path, error.place, error.reason)
    return found, tasks


def _facts(
    path: str, at: int, record: memoryview, first: Leaf, has_task: bool
) -> tuple[int, str | None]:
    """Return the number of steps of an episode, and its task."""
    try:
        features = features_in(record)
        feature = _feature(features, first)
        width = 1 if first.encoding else max(1, first.width)
        count = len(texts_of(feature) if first.encoding else numbers_of(feature))
        task = None
        if has_task:
            texts = texts_of(features.get(f"{STEPS}/{_TASK}", memoryview(b"")))
            task = bytes(texts[0]).decode("utf-8", "replace") if texts else None
    except Malformed as error:
        raise FormatError(path, f"byte {at}", f"the record {error}") from None
    finally:
        features = {}
    rows, rest = divmod(count, width)
    if rest:
        text = f"{first.place} has {count} numbers, not a multiple of {width}"
        raise FormatError(path, f"byte {at}", text)
    return rows, task or None


def _feature(features: dict[str, memoryview], leaf: Leaf) -> memoryview:
    feature = features.get(f"{STEPS}/{leaf.place}")
    if feature is None:
        raise Malformed(f"has no feature {STEPS}/{leaf.place}")
    return feature


def _numbers(feature: memoryview, leaf: Leaf) -> Any:
    """Return the numbers of a feature in all steps, [n]."""
    import numpy as np

    if not leaf.encoding:
        return numbers_of(feature)
    kind = np.dtype(leaf.dtype).newbyteorder("<")
    size = kind.itemsize * leaf.width
    steps = []
    for text in texts_of(feature):
        content = bytes(text)
        if leaf.encoding == "zlib":
            unpacker = zlib.decompressobj()
            try:
                content = unpacker.decompress(content, size + 1)  # no more than is compared
            except zlib.error as error:
                raise Malformed(f"has {leaf.place} that zlib cannot unpack: {error}") from None
        if len(content) != size:
            more = "more" if len(content) > size else str(len(content))
            raise Malformed(f"has {more} bytes in a step of {leaf.place}, expected {size}")
        steps.append(np.frombuffer(content, kind))
    return np.concatenate(steps) if steps else np.zeros(0, kind)


def _read(
    episodes: list[_Place],
    leaves: dict[str, Leaf],
    infos: dict[str, TrackInfo],
    rate: float | None,
    options: Options,
    names: Any,
    chosen: Any,
) -> dict[str, Track]:
    """Read tracks of the chosen episodes."""
    import numpy as np

    own = [episodes[e] for e in chosen.tolist()]
    offsets = np.concatenate([[0], np.cumsum([each.rows for each in own])]).astype(np.int64)
    values = {
        name: np.zeros((int(offsets[-1]), leaves[name].width), leaves[name].dtype) for name in names
    }
    with progress("Reading RLDS", sum(each.size for each in own), options.progress) as advance:
        for e, episode in enumerate(own):
            record = record_at(episode.file, episode.at, episode.size)
            try:
                features = features_in(record)
                for name in names:
                    numbers = _numbers(_feature(features, leaves[name]), leaves[name])
                    expected = episode.rows * leaves[name].width
                    if len(numbers) != expected:
                        raise Malformed(f"has {len(numbers)} numbers of {name}, not {expected}")
                    part = values[name][offsets[e] : offsets[e + 1]]
                    part[...] = numbers.reshape(part.shape)
            except Malformed as error:
                raise FormatError(
                    episode.file, f"byte {episode.at}", f"the record {error}"
                ) from None
            advance(episode.size)
    times = None
    if rate is not None:
        times = np.concatenate([np.arange(each.rows) / rate for each in own] or [np.zeros(0)])
    return {
        name: Track(values[name], offsets, times=times, names=infos[name].names) for name in names
    }
