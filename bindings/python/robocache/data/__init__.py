"""Recordings and data sets from disk: opened by their content, inspected, aligned, saved.

>>> import tempfile, numpy as np
>>> import robocache as rbc
>>> folder = tempfile.mkdtemp()
"""

from __future__ import annotations

from . import checks
from ._align import align
from ._clouds import PointCloud, PointClouds
from ._episode_tools import statistics
from ._episodes import Episodes, TrackInfo
from ._errors import FormatError, LeftOut, Problem
from ._open import open
from ._recording import RecordedStream, Recording
from ._save import save
from ._source import Piece, StreamInfo

__all__ = [
    "Episodes",
    "FormatError",
    "LeftOut",
    "Piece",
    "PointCloud",
    "PointClouds",
    "Problem",
    "RecordedStream",
    "Recording",
    "StreamInfo",
    "TrackInfo",
    "align",
    "checks",
    "open",
    "save",
    "statistics",
]
