"""The cameras of a pipeline: frames of messages on the robot, and frames of bags in training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .._operations.live_cameras import FrameRing
from .._printable import kind_of
from .image_plan import ImagePlan
from .sources import TICKS, same_type, ticks_of
from .strict_json import shown

if TYPE_CHECKING:
    from .plan import Plan

_KEPT = 8  # frames of a camera


class Camera:
    """The newest frames of a camera on the robot, in the order of their arrival."""

    def __init__(self, plan: ImagePlan) -> None:
        self.plan = plan
        self._ring = FrameRing(_KEPT)
        self._decoder: Any = None
        if plan.topic is not None:
            self._typename = _typename(plan)

    def read(self, data: bytes, encoding: str) -> Any:
        """Return the frame [H,W,C] of a message; refuse one of another shape."""
        from ..data._convert.messages import picture_of
        from ..data._frames.picture_decoder import PictureDecoder

        if encoding not in ("cdr", "ros1"):
            raise ValueError(f"encoding: is {encoding!r}, expected 'cdr' or 'ros1'")
        if self._decoder is None:
            self._decoder = PictureDecoder("RGB")
        try:
            pixels = picture_of(self._typename, encoding, bytes(data)).rgb(self._decoder)
        except ValueError as error:
            raise ValueError(f"data: a message of {self.plan.topic!r} {error}") from None
        frame = _with_channels(self.plan, pixels)
        self.plan.require_frame(frame)
        return frame

    def put(self, frame: Any, arrival: int) -> None:
        """Add a frame [H,W,C], which must not change afterwards."""
        import numpy as np

        if not isinstance(frame, np.ndarray) or frame.dtype != np.uint8:
            kind = getattr(frame, "dtype", type(frame).__name__)
            raise TypeError(f"frame: is {kind}, expected a NumPy array of uint8")
        self.plan.require_frame(frame)
        self._ring.put(arrival, frame)

    def clear(self) -> None:
        self._ring.clear()

    def newest(self, until: int) -> tuple[Any, float]:
        """Return the image of the frame that arrived last, up to a time, and its age in seconds.

        Without such a frame: None and infinity.
        """
        found = self._ring.newest(until)
        if found is None:
            return None, float("inf")
        arrival, frame = found
        return self.plan.apply(frame[None]), (until - arrival) / TICKS


def _typename(plan: ImagePlan) -> str:
    """Return the type of the messages, in the spelling of ROS 2."""
    from ..data._convert.messages import TYPES

    typename: str = plan.source["type"]
    for name in sorted(TYPES):
        if same_type(name, typename):
            return name
    raise ValueError(
        f"{plan.place}/source/type: {shown(typename)}; expected one of {', '.join(sorted(TYPES))}"
    )


def _with_channels(plan: ImagePlan, pixels: Any) -> Any:
    """Return RGB pixels [H,W,3] with the channels of the file."""
    channels = plan.frame_shape[2]
    if channels == 3:
        return pixels
    gray = pixels[..., :1]
    if channels != 1 or (pixels != gray).any():
        content = "colours" if channels == 1 else "no fourth channel that is read"
        raise ValueError(
            f"{plan.place}/channels: {channels}; a message of {plan.topic!r} has {content}, "
            "expected 3"
        )
    return gray.copy()


def frames_of_bag(plan: Plan, image: ImagePlan, recording: Any) -> Iterator[tuple[range, Any]]:
    """Yield the rows and the frame [H,W,C] that the robot has there, in the order of the rows."""
    import numpy as np

    from ..data import Recording
    from ..data._convert.cameras import frames_of
    from .rows import samples_of_recording, ticks_between

    if not isinstance(recording, Recording):
        raise TypeError(
            f"data: is {kind_of(recording)}, expected a bag: a path, or a robocache.data.Recording"
        )
    if image.topic is None:
        raise ValueError(f"{image.place}/source: is a column; only topics of bags have frames")
    if image.topic not in recording:
        known = ", ".join(map(repr, recording.names))
        raise ValueError(
            f"{image.place}/source/topic: {image.topic!r} is not in the recording; it has {known}"
        )
    kind = recording.info(image.topic).kind
    if not same_type(image.source["type"], kind):
        raise ValueError(
            f"{image.place}/source/type: {shown(image.source['type'])}; the recording has {kind!r}"
        )
    _typename(image)
    queries = ticks_between(plan, samples_of_recording(plan, recording))
    stream = recording[image.topic]
    arrivals = ticks_of(stream.clocks["log"], stream.unit or recording.unit, image.place)
    numbers = np.searchsorted(arrivals, queries + plan.lag, "right") - 1
    without = int((numbers < 0).sum())  # rows before the first frame
    if without == len(numbers):
        return
    for _, frame in frames_of(recording, {image.topic: numbers[without:]}):
        begin = without + frame.row
        pixels = _with_channels(image, frame.image)
        image.require_frame(pixels)
        yield range(begin, begin + frame.rows), pixels
