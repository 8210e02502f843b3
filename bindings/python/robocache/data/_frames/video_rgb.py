"""Decoded frames to RGB bytes, which do not depend on the processor."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from .._errors import FormatError, needed
from .pixels import Converter
from .video_index import matrix_of, require_progressive

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .video_index import VideoIndex

_EXACT = 1 << 18 | 1 << 19  # ACCURATE_RND and BITEXACT of libswscale
_POINT, _BILINEAR = 16, 2  # its filters
# Formats whose chroma PyAV and torchcodec repeat; they interpolate that of others.
_REPEATED = ("yuv420p", "yuvj420p", "yuv422p", "yuvj422p")
_MATRICES = {"BT.709": 1, "FCC": 4, "BT.601": 5, "SMPTE 240M": 7, "BT.2020": 9}


class FrameKind(NamedTuple):
    """Properties that all frames of a video share, as in the index of a file."""

    path: str
    size: tuple[int, int]
    pixels: str  # the format of FFmpeg
    matrix: str
    full_range: bool


class RgbWriter:
    """Converts the decoded frames of a file by libswscale, with ACCURATE_RND and BITEXACT.

    A shorter way is taken if it gives the same bytes on this machine.
    """

    def __init__(self, index: VideoIndex | FrameKind) -> None:
        self._index = index
        height, width = index.size
        repeats = index.pixels in _REPEATED and height % 2 == 0
        filter_ = _POINT if repeats else _BILINEAR
        steps = _steps(index.pixels, index.matrix, index.full_range, filter_, False)
        if repeats and _short_way_is_exact(
            height, width, index.pixels, index.matrix, index.full_range
        ):
            steps = _steps(index.pixels, index.matrix, index.full_range, filter_, True)
        av = needed("av", "video", "a video")
        self._steps = [(Converter(av), options) for options in steps]

    def write(self, frame: Any, out: NDArray[np.uint8]) -> None:
        """Write a frame to ``out``, uint8 [H,W,3]."""
        import numpy as np

        index = self._index
        require_progressive(index.path, frame)
        for what, found, expected in (
            ("size", (frame.height, frame.width), index.size),
            ("pixel format", frame.format.name, index.pixels),
            ("color matrix", matrix_of(frame), index.matrix),
        ):
            if found != expected:
                text = f"changes its {what} from {expected} to {found}; encode it again with one"
                raise FormatError(index.path, "", text)
        height, width = index.size
        rows = _converted(frame, self._steps)[:height, : 3 * width]
        np.copyto(out.reshape(height, 3 * width), rows)


def _steps(
    pixels: str, matrix: str, full_range: bool, filter_: int, short: bool
) -> list[dict[str, Any]]:
    """Return the arguments of PyAV's ``reformat``, one conversion after the other."""
    first: dict[str, Any] = {
        "format": "argb" if short else "rgb24",
        "interpolation": filter_ if short else filter_ | _EXACT,
        "src_color_range": 2 if full_range else 1,
        # RGB has none of these, but PyAV 14 ignores the source's if both are the same
        "dst_colorspace": _MATRICES["BT.601"],
        "dst_color_range": 1,
    }
    if matrix != "RGB":
        first["src_colorspace"] = _MATRICES[matrix]
    return [first, {"format": "rgb24", "interpolation": filter_}] if short else [first]


def _converted(frame: Any, steps: list[tuple[Converter, dict[str, Any]]]) -> NDArray[np.uint8]:
    """Return the rows of a frame in RGB, with what pads them."""
    import numpy as np

    for converter, options in steps:
        frame = converter.converted(frame, **options)
    plane = frame.planes[0]
    return np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)


@functools.lru_cache(maxsize=256)
def _short_way_is_exact(
    height: int, width: int, pixels: str, matrix: str, full_range: bool
) -> bool:
    """Whether a conversion through ARGB gives the bytes of the exact one, for noise of this size.

    It takes half the time. libswscale converts to RGB with SIMD, whose results differ from its C
    code for most values, but has the C code only for ARGB, and that looks up the exact results.
    """
    import numpy as np

    av = needed("av", "video", "a video")
    noise = np.random.default_rng(0)
    frame = av.VideoFrame(width, height, pixels)
    for plane in frame.planes:
        plane.update(noise.bytes(plane.buffer_size))
    found = []
    for short in (False, True):
        steps = _steps(pixels, matrix, full_range, _POINT, short)
        rows = _converted(frame, [(Converter(av), options) for options in steps])
        found.append(rows[:height, : 3 * width])
    return bool((found[0] == found[1]).all())
