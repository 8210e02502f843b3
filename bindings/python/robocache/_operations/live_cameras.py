"""Cameras at run time: the newest frames, and the images that a policy sees at a time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from .._arguments.options import count, number
from .._library.errors import shown

if TYPE_CHECKING:
    from .._windows.images import Images


_MOST_ARRAYS = 64  # of a call of images()


class LiveCamera(NamedTuple):
    """One camera of :class:`Live`, and how its frames become images.

    Parameters
    ----------
    images : Images
        The description of training, without its random steps, as :meth:`Images.eval` describes.
    frame_shape : tuple of int
        Height, width and channels of the frames.
    capacity : int
        Number of frames to keep, the newest by their arrival: at least as many as a window has.
    max_age : number, optional
        An image of an older frame is not valid, in the unit of the times. Set it: without a limit,
        the last frame of a camera that has stopped is valid for ever.
    """

    images: Images
    frame_shape: tuple[int, int, int]
    capacity: int = 8
    max_age: float | None = None


class LiveImages(NamedTuple):
    """The images of one camera: see :meth:`Live.images`."""

    values: Any  #: [T,C,h,w]; padding where no frame had arrived
    valid: Any  #: [T] bool: where a frame had arrived, and is not older than ``max_age``
    #: [T]: the time of each image minus the arrival of its frame; infinity without a frame (int64:
    #: the largest)
    ages: Any


class FrameRing:
    """The newest frames by their arrival. Any threads may add and read them."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()  # of writers
        self._frames: tuple[tuple[Any, Any], ...] = ()  # replaced as a whole: readers need no lock

    def put(self, arrival: Any, frame: Any) -> None:
        """Add a frame, which must not change afterwards."""
        with self._lock:
            frames = sorted((*self._frames, (arrival, frame)), key=lambda entry: entry[0])
            self._frames = tuple(frames[-self._capacity :])

    def clear(self) -> None:
        self._frames = ()

    def newest(self, until: Any) -> tuple[Any, Any] | None:
        """Return the arrival and the frame that arrived last, up to a time; None without one."""
        for arrival, frame in reversed(self._frames):
            if arrival <= until:
                return arrival, frame
        return None


class CameraInput:
    """A camera of :class:`Live` with its frames."""

    def __init__(self, camera: LiveCamera, times: Any) -> None:
        """``times``: the dtype of arrivals, of NumPy."""
        shape = tuple(camera.frame_shape)
        if len(shape) != 3:
            raise ValueError(f"frame_shape: is {shown(camera.frame_shape)}, expected [H,W,C]")
        self.shape = (count(shape[0], "H"), count(shape[1], "W"), count(shape[2], "C"))
        try:
            self.steps = camera.images.eval().steps(self.shape)
        except AttributeError:
            kind = type(camera.images).__name__
            raise TypeError(f"images: is a {kind}, expected a robocache.Images") from None
        self._ring = FrameRing(count(camera.capacity, "capacity"))
        if camera.max_age is not None and not number(camera.max_age, "max_age") >= 0:
            raise ValueError(f"max_age: is {shown(camera.max_age)}, expected 0 or more")
        self._max_age, self._times = camera.max_age, times
        self.clear = self._ring.clear

    def put(self, frame: Any, arrival: Any) -> None:
        """Copy a frame."""
        import numpy as np

        array = np.asarray(frame)
        if array.dtype != np.uint8:
            raise TypeError(f"frame: dtype is {array.dtype}, expected uint8")
        if array.shape != self.shape:
            raise ValueError(
                f"frame: shape is {list(array.shape)}, expected {list(self.shape)} of the camera"
            )
        if self._times.kind == "f" and not np.isfinite(arrival):
            raise ValueError(f"arrival: is {arrival}, expected a finite time")
        self._ring.put(arrival, array.copy())

    def images(self, queries: Any, lag: Any) -> LiveImages:
        """Return the images at the query times."""
        import numpy as np

        none = np.iinfo(np.int64).max if self._times.kind == "i" else np.inf
        kind = "int64" if self._times.kind == "i" else "float64"
        ages = np.full(len(queries), none, kind)
        rows = np.full(len(queries), -1, np.int64)
        frames: list[Any] = []
        known: dict[int, int] = {}
        for i, query in enumerate(queries):
            found = self._ring.newest(query + lag)
            if found is None:
                continue
            arrival, frame = found
            ages[i] = query - arrival
            if id(frame) not in known:
                known[id(frame)] = len(frames)
                frames.append(frame)
            rows[i] = known[id(frame)]
        arrays = [frame[None] for frame in frames] or [np.zeros((1, *self.shape), np.uint8)]
        if len(arrays) > _MOST_ARRAYS:
            arrays = [np.stack(frames)]
        values = self.steps.apply(arrays, rows=rows)
        valid = rows >= 0
        if self._max_age is not None:
            valid &= ages <= self._max_age
        return LiveImages(values, valid, ages)
