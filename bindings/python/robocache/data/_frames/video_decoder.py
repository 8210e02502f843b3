"""Decodes frames of one video file, in sequence or from keyframes, and converts them to RGB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from .._errors import FormatError, needed, raise_shortage
from .video_index import opened, stream_of
from .video_rgb import RgbWriter

if TYPE_CHECKING:
    from .video_index import VideoIndex

_SEEK = 6  # frames that decode in about the time of a seek
_UNKNOWN = -(1 << 63)  # a time of decoding
_BEGIN = -(1 << 40)  # a time before every file
_INTRA = 1  # kind of a picture that needs no other one
# Decoders that show damaged frames without this option; the one of H.264 marks them.
_CONCEALS = {"hevc", "mpeg4", "vp9", "vp8"}


class VideoDecoder:
    """Decodes frames of a file. Frames that follow the last one need no seek."""

    def __init__(self, index: VideoIndex, threads: int | Literal["auto"]) -> None:
        self.index = index
        self._av = needed("av", "video", "a video")
        self._container = opened(index.path)
        self._stream = stream_of(index.path, self._container)
        context = self._stream.codec_context
        if threads == "auto":
            self._stream.thread_type = "AUTO"
            context.thread_count = 0
        else:
            self._stream.thread_type = "AUTO" if threads > 1 else "NONE"
            context.thread_count = threads
        if context.name in _CONCEALS:
            context.options = {"err_detect": "crccheck+explode"}
        self.rgb = RgbWriter(index)
        self._frames: Iterator[Any] = iter(())
        self._at = -1  # the frame that was decoded last
        self._last: Any = None

    def close(self) -> None:
        self._frames = iter(())
        self._last = None
        self._at = -1
        self._container.close()

    def frame(self, place: int) -> Any:
        """Decode the frame at a place of the index.

        Raises
        ------
        FormatError
            It, or a frame that it needs, is missing or damaged.
        """
        if place == self._at:
            return self._last
        start = self.index.start_before(place)
        if start >= 0 and self.index.has_gap(start, place):
            text = "cannot be decoded: a picture that it needs is missing in the file"
            raise FormatError(self.index.path, self._name(place), text)
        if self._continues(place, start):
            try:
                return self._next(place)
            except _NotFound:
                pass  # begin again
        why = "no keyframe is before it"
        while start >= 0:
            try:
                self._begin(start)
                return self._next(place)
            except _NotFound as error:
                why = str(error)
                start -= 1
        self._at = -1
        raise FormatError(self.index.path, self._name(place), f"cannot be decoded: {why}")

    def _continues(self, place: int, start: int) -> bool:
        """Whether decoding on is at least as fast as beginning at a keyframe."""
        if self._at < 0 or place < self._at:
            return False
        if start < 0:
            return True
        skipped = int(self.index.starts[start]) - int(self.index.order[self._at])
        return skipped <= _SEEK

    def _next(self, place: int) -> Any:
        """Decode up to a frame.

        Raises
        ------
        _NotFound
            It, or a frame on the way to it, is missing or damaged.
        """
        try:
            for found, frame in self._frames:
                self._at, self._last = found, frame
                if found >= place:  # it comes exactly here: places have no gaps
                    return frame
        except BaseException:
            self._at, self._last = -1, None
            raise
        self._at, self._last = -1, None
        raise _NotFound("the file ends before it")

    def _begin(self, start: int) -> None:
        self._at, self._last = -1, None
        self._frames = self._decoded(start)

    def _decoded(self, start: int) -> Iterator[tuple[int, Any]]:
        """Decode from a start to the end of the file: the place of each frame, and the frame.

        Frames that are shown before the start belong to the group before, and are skipped.
        """
        import numpy as np

        index, context = self.index, self._stream.codec_context
        begin = int(index.start_pts[start])
        expected = int(np.searchsorted(index.pts, begin))
        is_shown = expected < len(index.pts) and int(index.pts[expected]) == begin
        for packet in self._packets(start):
            early = packet.size > 0 and packet.pts < begin
            try:
                frames = context.decode(packet)
            except self._av.error.FFmpegError as error:
                raise_shortage(index.path)
                if early:
                    continue
                raise _NotFound(f"{error.strerror}") from None
            for frame in frames:
                time = frame.pts
                if time is None:
                    raise _NotFound("a frame has no time")
                if time < begin or time < index.pts[0]:
                    continue
                if expected == len(index.pts) or time != index.pts[expected]:
                    at = float(time * index.time_base)
                    raise _NotFound(f"the decoder gives the frame at {at:.6f} s instead")
                if frame.is_corrupt:
                    raise _NotFound("it, or a frame that it needs, is damaged")
                if is_shown and time == begin and int(frame.pict_type) != _INTRA:
                    raise _NotFound("its keyframe is a picture that needs others")
                yield expected, frame
                expected += 1

    def _packets(self, start: int) -> Iterator[Any]:
        """Yield the packets of the file from a start on, after a seek that resets the decoder."""
        pts, dts = int(self.index.start_pts[start]), int(self.index.start_dts[start])
        for target in self._targets(start):
            try:
                self._container.seek(target, stream=self._stream)
                packets = self._container.demux(self._stream)
                for packet in packets:
                    if packet.size and packet.pts == pts:
                        yield packet
                        yield from packets
                        return
                    if packet.size and packet.dts is not None and dts < packet.dts:
                        break  # it is behind the start
            except self._av.error.FFmpegError as error:
                raise_shortage(self.index.path)
                if target == _BEGIN:
                    raise _NotFound(f"{error.strerror}") from None
        raise _NotFound("its keyframe is not where the index of the file has it")

    def _targets(self, start: int) -> list[int]:
        """Return the times to seek to until the packet of a start is reached.

        MP4 seeks by times of decoding, Matroska by times of presentation.
        """
        index = self.index
        targets = [int(index.start_pts[start])]
        if int(index.start_dts[start]) != _UNKNOWN:
            targets.append(int(index.start_dts[start]))
            if "mp4" in self._container.format.name:
                targets.reverse()
        if start:
            targets.append(min(int(index.start_pts[start - 1]), targets[-1] - 1))
        return [*dict.fromkeys(targets), _BEGIN]

    def _name(self, place: int) -> str:
        time = (int(self.index.pts[place]) - int(self.index.pts[0])) * self.index.time_base
        return f"frame {place} at {float(time):.6f} s"


class _NotFound(Exception):
    """A frame does not come out of the decoder."""
