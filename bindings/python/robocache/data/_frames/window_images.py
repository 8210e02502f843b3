"""The images of a specification's windows: which frames a batch needs, and the images of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._episodes.episodes import Episodes
from ..._library.errors import shown
from ..._printable import plural, printable
from ..._suggestions import did_you_mean
from .filling import Filling
from .reader import DecodedFrames, FrameReader, StoredFrames
from .source import FrameSource

if TYPE_CHECKING:
    from ..._windows.image_steps import ImageSteps
    from ..._windows.spec import WindowSpec
    from ..._windows.window import Window

_AGAIN = 1 << 40  # added to the number of a sample for each time that it came before in an epoch


@dataclass(frozen=True)
class Frames:
    """The frames that a batch of one window needs."""

    rows: Any  # int64 [B O], the index of the frame of each image; -1: none
    valid: Any  # bool [B,O]
    episodes: Any  # int64 [n], of each frame, in the data set
    places: Any  # int64 [n], the row of each frame in its episode

    def __len__(self) -> int:
        return len(self.episodes)


class WindowImages:
    """One window of images over episodes."""

    def __init__(
        self,
        name: str,
        window: Window,
        camera: tuple[str, int],
        rows: tuple[Any, Any],
        source: FrameSource,
        reader: FrameReader,
        steps: ImageSteps,
    ) -> None:
        """``camera``: its name and number; ``rows``: offsets [E+1], and the data set's episodes."""
        import numpy as np

        self.name, self.steps, self.reader = name, steps, reader
        self.camera, self._number = camera
        self.offsets = np.asarray(window.offsets, np.int64)
        self._holds = window.outside == "hold"
        self._begins, self._chosen = rows
        self._missing = _missing_rows(source, self._begins, self._chosen)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a sample: [O,C,h,w] or [O,h,w,C]."""
        return (len(self.offsets), *self.steps.image_shape)

    def frames(self, episodes: Any, anchors: Any) -> Frames:
        """Return the frames that samples need, each one once.

        Parameters
        ----------
        episodes, anchors : int64 [B] of NumPy
            The episode of each sample, and its row there.
        """
        import numpy as np

        first, last = self._begins[episodes], self._begins[episodes + 1] - 1
        wanted = (first + anchors)[:, None] + self.offsets
        rows = np.clip(wanted, first[:, None], last[:, None])
        valid = rows == wanted
        exists = np.ones(rows.shape, bool) if self._holds else valid.copy()
        if self._missing is not None:
            exists &= ~self._missing[rows]
            valid &= exists
        needed, index = np.unique(rows[exists], return_inverse=True)
        images = np.full(rows.size, -1, np.int64)
        images[exists.ravel()] = index
        at = np.searchsorted(self._begins, needed, "right") - 1
        places = needed - self._begins[at]
        if self._chosen is None:
            return Frames(images, valid, at, places)
        at = self._chosen[at]
        order = np.lexsort((places, at))  # readers take ascending frames
        if len(order) and not np.array_equal(order, np.arange(len(order))):
            keys = np.stack([at[order], places[order]], 1)
            different = np.ones(len(order), bool)  # a selection may repeat an episode
            different[1:] = (keys[1:] != keys[:-1]).any(1)
            rank = np.empty(len(order), np.int64)
            rank[order] = np.cumsum(different) - 1
            images[images >= 0] = rank[images[images >= 0]]
            at, places = keys[different, 0], keys[different, 1]
        return Frames(images, valid, at, places)

    def draws(
        self, episodes: Any, anchors: Any, repeats: Any, seed: int, epoch: int
    ) -> dict[str, Any] | None:
        """Return the random arguments of :func:`images` for each image, in NumPy."""
        import numpy as np

        samples = self._begins[episodes] + anchors
        if repeats is not None:
            samples = samples + repeats * _AGAIN
        drawn = self.steps.draws(samples, seed, epoch, self._number)
        if drawn is None:
            return None
        size = len(self.offsets)
        return {
            name: each if name == "crop_size" else np.repeat(each, size, axis=0)
            for name, each in drawn.options().items()
        }

    def write(self, frames: Frames, draws: Mapping[str, Any] | None, out: Any) -> None:
        """Write the images of a batch to ``out`` [B,O,...], in the memory of the CPU."""
        import numpy as np

        images = out.reshape(-1, *self.steps.image_shape)
        reader = self.reader
        if isinstance(reader, StoredFrames) and reader.is_mapped:
            held = np.maximum(frames.rows, 0)
            if len(frames) == 0:
                self._pad(images)
                return
            rows = np.where(frames.rows < 0, -1, frames.places[held])
            for part, arrays, local in reader.views(frames.episodes[held], rows):
                self._apply(arrays, local, part, draws, images)
            return
        if len(frames) == 0:
            self._pad(images)
            return
        memory = np.empty((len(frames), *reader.shape), np.uint8)
        reader.read(frames.episodes, frames.places, memory)
        self._apply([memory], frames.rows, slice(0, len(images)), draws, images)

    def cut(self, episodes: Any, anchors: Any, seed: int, epoch: int) -> tuple[Any, Any]:
        """Return images [B,O,...] and ``valid`` [B,O], in NumPy."""
        import numpy as np

        count = len(self._begins) - 1
        if len(episodes) and not 0 <= episodes.min() <= episodes.max() < count:
            raise ValueError(f"which: has an episode that is not 0 to {count - 1}")
        dtype = str(self.steps.dtype or "float32").rpartition(".")[2]
        if dtype == "bfloat16":
            import ml_dtypes

            dtype = ml_dtypes.bfloat16
        out = np.empty((len(episodes), *self.shape), dtype)
        frames = self.frames(episodes, anchors)
        self.write(frames, self.draws(episodes, anchors, None, seed, epoch), out)
        return out, frames.valid

    def _apply(
        self, arrays: list[Any], rows: Any, part: slice, draws: Mapping[str, Any] | None, out: Any
    ) -> None:
        own = None
        if draws is not None:
            own = {n: each if n == "crop_size" else each[part] for n, each in draws.items()}
        stored = self.reader.are_stored
        self.steps.apply(arrays, rows=rows, draws=own, are_stored=stored, out=out[part])

    def _pad(self, out: Any) -> None:
        """Write padding to images without a frame."""
        import numpy as np

        memory = np.zeros((1, *self.reader.shape), np.uint8)
        rows = np.full(len(out), -1, np.int64)
        self.steps.apply([memory], rows=rows, are_stored=self.reader.are_stored, out=out)


def window_images(
    episodes: Episodes,
    spec: WindowSpec,
    *,
    fill: bool = True,
    show: bool | None = None,
    threads: int | None = None,
) -> list[WindowImages]:
    """Return the windows of images of a specification; their frames are stored if there is a cache.

    Parameters
    ----------
    fill
        Whether frames that are not in the cache of the episodes are stored there.
    show
        Whether to show a progress bar. None: on a terminal.
    threads
        The number of threads that decode frames without a cache. None: as many as cores.

    Raises
    ------
    KeyError
        The episodes lack a camera.
    ValueError
        A camera has other numbers of frames than the rows of the anchor's track.
    FormatError
        A frame is missing or damaged.
    """
    cameras = spec.cameras
    if not cameras:
        return []
    numbers = {camera: i for i, camera in enumerate(sorted(set(cameras.values())))}
    rows = _rows(episodes, spec)
    sources: dict[tuple[Any, ...], FrameSource] = {}
    readers: dict[Any, FrameReader] = {}
    made = []
    for name, camera in cameras.items():
        window = spec.windows[name]
        images = window.images
        assert images is not None
        options = (camera, *images.source_options.values())
        if options not in sources:
            sources[options] = camera_of(episodes, camera, **images.source_options)
            _require_rows(episodes, spec, camera, sources[options], rows)
        source = sources[options]
        shape = source.shape  # its errors name the file
        try:
            steps = images.steps(shape)
        except ValueError as error:
            raise ValueError(f"windows[{name!r}].images.{error}") from None
        key = (*options, images.store == "none", str(steps.document()))
        if key not in readers:
            cached = fill and images.store != "none"
            stored = _stored(episodes, source, steps, rows[1], show) if cached else None
            readers[key] = stored or DecodedFrames(source, threads)
        number = (camera, numbers[camera])
        made.append(WindowImages(name, window, number, rows, source, readers[key], steps))
    return made


def fillings(episodes: Episodes, spec: WindowSpec) -> list[Filling]:
    """Return what a cache stores of the cameras of a specification."""
    cache = episodes._about.cache
    if cache is None:
        raise ValueError("episodes: have no cache; open them with robocache.data.open(cache=...)")
    rows = _rows(episodes, spec)
    made: dict[Any, Filling] = {}
    for name, camera in spec.cameras.items():
        images = spec.windows[name].images
        assert images is not None
        source = camera_of(episodes, camera, **images.source_options)
        _require_rows(episodes, spec, camera, source, rows)
        steps = images.steps(source.shape)
        key = camera, *images.source_options.values(), str(steps.document())
        if key not in made:
            made[key] = _filling(episodes, source, steps, rows[1], cache)
    return list(made.values())


def camera_of(episodes: Episodes, name: str, **options: Any) -> FrameSource:
    """Return a camera of episodes; refuse an unknown name."""
    known = episodes._about.cameras
    if name not in known:
        near = did_you_mean(name, known)
        if not known:
            raise KeyError(f"camera: is {shown(name)}, but these episodes have no cameras")
        raise KeyError(
            f"camera: is {shown(name)}, expected one of {', '.join(map(repr, known))}{near}"
        )
    source = known[name].with_options(**options)
    cache = episodes._about.cache
    if cache is not None and cache.enabled:
        source.use_cache(cache.paths)
    return source


def _rows(episodes: Episodes, spec: WindowSpec) -> tuple[Any, Any]:
    """Return the offsets of the anchor's track, and the episodes of the data set."""
    import numpy as np

    lengths = episodes.lengths(spec._rows_track(episodes))
    chosen = episodes._about.chosen
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), chosen


def _require_rows(
    episodes: Episodes,
    spec: WindowSpec,
    camera: str,
    source: FrameSource,
    rows: tuple[Any, Any],
) -> None:
    """Refuse a camera whose episodes have other numbers of rows."""
    import numpy as np

    lengths, own = np.diff(rows[0]), source.lengths
    if rows[1] is not None:
        own = own[rows[1]]
    if len(own) != len(lengths):
        raise ValueError(
            f"camera: {camera!r} has {len(own)} episodes, but the episodes are {len(lengths)}"
        )
    wrong = np.flatnonzero(own != lengths)
    if len(wrong):
        e = int(wrong[0])
        track = spec._rows_track(episodes)
        more = f" (and {len(wrong) - 1} more episodes)" if len(wrong) > 1 else ""
        raise ValueError(
            f"camera: {camera!r} has {plural(int(own[e]), 'frame')} in episode {e}, expected "
            f"{lengths[e]}, one for each row of {track!r}{more}; align the episodes, or select "
            "episodes with the right number"
        )


def _stored(
    episodes: Episodes, source: FrameSource, steps: ImageSteps, chosen: Any, show: bool | None
) -> StoredFrames | None:
    cache = episodes._about.cache
    if cache is None or not cache.enabled:
        return None
    filling = _filling(episodes, source, steps, chosen, cache)
    if filling.fill(show):
        return filling.reader()
    if filling.unstored:
        text = f"cache: frames of {printable(source.name)} are not stored: {filling.unstored}"
        warnings.warn(text, RuntimeWarning, stacklevel=4)
    return None


def _filling(
    episodes: Episodes, source: FrameSource, steps: ImageSteps, chosen: Any, cache: Any
) -> Filling:
    wanted: Sequence[int] = range(len(source.lengths)) if chosen is None else chosen
    return Filling(source, steps, cache, episodes._about.identity, wanted)


def _missing_rows(source: FrameSource, begins: Any, chosen: Any) -> Any:
    """Return which rows have no frame, bool [n]; None if all have one."""
    import numpy as np

    without = np.zeros(int(begins[-1]), bool)
    for e in range(len(begins) - 1):
        missing = source.missing(e if chosen is None else int(chosen[e]))
        if missing is not None:
            without[begins[e] : begins[e + 1]] = missing
    return without if without.any() else None
