"""Videos: writing with LeRobot's settings, reading frame by frame, and copying a part."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from .._errors import FormatError, reading
from .._frames.pixels import Converter
from .pictures import av

CODECS = ("libsvtav1", "libaom-av1")  # the encoders of AV1, the better one first
_OPTIONS = {"g": "2", "crf": "30"}  # LeRobot's: every second frame can be decoded without others
_SPEEDS = {"libsvtav1": {"preset": "12"}, "libaom-av1": {"cpu-used": "8"}}  # the first: LeRobot's
PIXELS = "yuv420p"
_LOSSLESS = "libx264rgb"
_EXACT = {"qp": "0", "g": "2", "preset": "veryfast"}
_EARLY = 1e-3  # s that a frame may be before its time, for stamps that were rounded


def ratio(rate: float) -> Fraction:
    """Return a rate as the fraction that it was rounded from, such as 30000/1001."""
    return Fraction(rate).limit_denominator(1001)


def encoder() -> str:
    """Return the name of the AV1 encoder that PyAV has.

    Raises
    ------
    ValueError
        It has none.
    """
    known = av().codecs_available
    for name in CODECS:
        if name in known:
            return name
    raise ValueError(
        "image_format: 'video' needs an encoder of AV1 (libsvtav1 or libaom-av1), which this PyAV "
        "does not have; use 'png', or install PyAV from PyPI: pip install av"
    )


def require_lossless() -> None:
    """Refuse a PyAV without the encoder of videos that lose nothing."""
    if _LOSSLESS not in av().codecs_available:
        raise ValueError(
            f"lossless: needs the encoder {_LOSSLESS}, which this PyAV does not have; install PyAV "
            "from PyPI: pip install av"
        )


class Writer:
    """Writes RGB frames of one size as an MP4 file: AV1, or H.264 that loses nothing."""

    def __init__(self, path: str, rate: float, lossless: bool = False) -> None:
        self.path, self.rate, self.lossless = path, rate, lossless
        self.container: Any = None
        self.stream: Any = None
        self.converter: Any = None
        self.shape: tuple[int, ...] = ()
        self.frames = 0

    def add(self, image: Any) -> None:
        """Add a frame [h,w,3]."""
        module = av()
        if self.container is None:
            self._begin(module, image.shape)
        if image.shape != self.shape:
            raise ValueError(changed(self.shape, image.shape))
        frame = module.VideoFrame.from_ndarray(image, format="rgb24")
        if not self.lossless:
            frame = self.converter.converted(frame, format=PIXELS)
        frame.pts = self.frames
        frame.time_base = 1 / ratio(self.rate)
        self.container.mux(self.stream.encode(frame))
        self.frames += 1

    def _begin(self, module: Any, shape: tuple[int, ...]) -> None:
        height, width = shape[:2]
        if not self.lossless and (height % 2 or width % 2):
            raise ValueError(
                f"has {width} x {height} pixels, but videos need even numbers; choose another size "
                "with image_size=, or image_format='png'"
            )
        self.shape = shape
        os.environ.setdefault("SVT_LOG", "1")  # only errors; it prints its settings else
        self.container = module.open(self.path, "w", format="mp4")
        name = _LOSSLESS if self.lossless else encoder()
        options = _EXACT if self.lossless else {**_OPTIONS, **_SPEEDS[name]}
        self.stream = self.container.add_stream(name, ratio(self.rate), options=options)
        self.stream.pix_fmt = "rgb24" if self.lossless else PIXELS
        self.stream.width, self.stream.height = width, height
        self.converter = Converter(module)
        with _scheduling_kept():
            self.container.start_encoding()

    def close(self) -> None:
        """Write the rest, and close the file."""
        if self.container is not None:
            self.container.mux(self.stream.encode(None))
            self.container.close()

    def abandon(self) -> None:
        """Close the file after an error."""
        if self.container is not None:
            self.container.close()


@contextlib.contextmanager
def _scheduling_kept() -> Iterator[None]:
    """Undo what the block does to the scheduling of this process.

    If root runs it, SVT-AV1 gives the thread that opens it, and its own threads, the policy
    SCHED_FIFO with the highest priority. All that these threads start would inherit it, and one
    loop there could keep every other process from a core.
    """
    kept = _scheduling()
    caller = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        yield
    finally:
        for thread, now in _scheduling().items():
            before = kept.get(thread, caller)
            if now[0] != before[0]:
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setscheduler(thread, *before)


def _scheduling() -> dict[int, tuple[int, os.sched_param]]:
    """Return the policy and the parameters of each thread of this process."""
    found = {}
    for name in os.listdir("/proc/self/task"):
        with contextlib.suppress(ProcessLookupError):
            found[int(name)] = os.sched_getscheduler(int(name)), os.sched_getparam(int(name))
    return found


def changed(first: tuple[int, ...], then: tuple[int, ...]) -> str:
    return (
        f"its pictures change from {first[1]} x {first[0]} to {then[1]} x {then[0]} pixels; choose "
        "one size with image_size="
    )


def frames(path: str, begin: float = 0.0) -> Iterator[tuple[float, Any]]:
    """Yield the frames of a video from a time on: their time in the file, and RGB [h,w,3]."""
    module = av()
    with reading(path), module.open(path) as container:
        stream = _stream(path, container)
        stream.thread_type = "AUTO"
        converter = Converter(module)
        if begin > 0:
            container.seek(max(0, int((begin - _EARLY) / stream.time_base)), stream=stream)
        for frame in container.decode(stream):
            if frame.time >= begin - _EARLY:
                yield frame.time, converter.rgb(frame)


def shape_of(path: str) -> tuple[int, int]:
    """Return the height and the width of a video."""
    with reading(path), av().open(path) as container:
        stream = _stream(path, container)
        return stream.height, stream.width


def facts_of(path: str) -> dict[str, Any]:
    """Return what LeRobot states about a video: its size, codec, pixels and rate."""
    with reading(path), av().open(path) as container:
        stream = _stream(path, container)
        name = stream.codec_context.name
        return {
            "video.height": stream.height,
            "video.width": stream.width,
            "video.codec": "av1" if "av1" in name or "dav1d" in name else name,
            "video.pix_fmt": stream.pix_fmt,
            "video.is_depth_map": False,
            "video.fps": _whole(float(stream.average_rate or 0)),
            "video.channels": 3,
            "has_audio": False,
        }


def _whole(rate: float) -> float:
    return int(rate) if rate.is_integer() else rate


def _stream(path: str, container: Any) -> Any:
    if not container.streams.video:
        raise FormatError(path, "", "holds no video")
    return container.streams.video[0]


def copy_part(source: str, target: str, begin: float, count: int) -> bool:
    """Copy ``count`` frames of a video from a time on, without decoding them.

    Returns
    -------
    bool
        False, without a file, if frames before ``begin`` or after the last one are needed to
        decode the part: then it must be decoded and encoded again.
    """
    module = av()
    with reading(source), module.open(source) as container:
        stream = _stream(source, container)
        packets: list[Any] = []
        if begin > 0:
            container.seek(max(0, int((begin - _EARLY) / stream.time_base)), stream=stream)
        last = None
        for packet in container.demux(stream):
            if packet.pts is None:
                continue
            if float(packet.pts * stream.time_base) < begin - _EARLY:
                continue
            if not packets and not packet.is_keyframe:
                return False
            if last is not None and packet.pts < last:
                return False  # the order of storage differs from the order of the times
            last = packet.pts
            packets.append(packet)
            if len(packets) == count:
                break
        if len(packets) != count:
            return False
        first = packets[0].pts
        with module.open(target, "w", format="mp4") as out:
            made = out.add_stream_from_template(stream, opaque=True)
            for packet in packets:
                packet.pts -= first
                packet.dts = packet.pts
                packet.stream = made
                out.mux(packet)
    return os.path.getsize(target) > 0
