"""Pixels of PyAV's frames in other formats and sizes."""

from __future__ import annotations

from typing import Any


class Converter:
    """Converts frames of PyAV, with one converter of FFmpeg for all of them.

    Methods of the frames, such as ``to_ndarray``, make a converter for each frame, whose threads
    wait for each other: that takes about 15 times as long.
    """

    def __init__(self, av: Any) -> None:
        self._converter = av.video.reformatter.VideoReformatter()
        self._options = {"threads": 1}

    def converted(self, frame: Any, **options: Any) -> Any:
        """Return a frame in another format or size, by the arguments of PyAV's ``reformat``."""
        try:
            return self._converter.reformat(frame, **options, **self._options)
        except TypeError:
            if not self._options:
                raise
        self._options = {}  # PyAV 14 has no such option, and uses one thread
        return self._converter.reformat(frame, **options)

    def rgb(self, frame: Any) -> Any:
        """Return a frame as RGB, uint8 [h,w,3], in new memory."""
        return self.converted(frame, format="rgb24").to_ndarray().copy()
