"""Recordings and data sets on disk: open them by content, inspect, align and save them.

>>> import pathlib, tempfile
>>> import robocache as rbc
>>> path = pathlib.Path(tempfile.mkdtemp()) / "arm.csv"
>>> _ = path.write_text("time_us,shoulder,elbow\\n0,0.5,1\\n10000,0.6,1.1\\n20000,0.7,1.2\\n")
>>> recording = rbc.data.open(path)
>>> recording.align(200)["arm"].values[1]
array([0.55, 1.05])
"""

from __future__ import annotations

from .. import Episodes
from .._episodes.channels import Channel
from .._episodes.lazy_tracks import TrackInfo
from .._public import publish
from . import checks
from ._align import align
from ._concat import concat
from ._convert.convert import convert
from ._convert.summary import Conversion
from ._edit.edit import Edit, edit
from ._episode_methods import statistics
from ._errors import FormatError, LeftOut, Problem, Unread
from ._formats.description import Format
from ._formats.registry import open, open_clouds, open_episodes, open_recording
from ._frames.arrays import ArrayFrames
from ._frames.bags import RosFrames
from ._frames.pictures import ImageFrames
from ._frames.source import FrameSource
from ._frames.video import VideoFrames
from ._objects import from_datasets, from_xarray
from ._point_clouds import PointCloud, PointClouds
from ._recording import RecordedStream, Recording
from ._report.page import report_html
from ._rerun import save_rerun
from ._save import save
from ._source import Piece, StreamInfo
from ._sync.sync import SyncResult, sync

__all__ = [
    "ArrayFrames",
    "Channel",
    "Conversion",
    "Edit",
    "Episodes",
    "Format",
    "FormatError",
    "FrameSource",
    "ImageFrames",
    "LeftOut",
    "Piece",
    "PointCloud",
    "PointClouds",
    "Problem",
    "RecordedStream",
    "Recording",
    "RosFrames",
    "StreamInfo",
    "SyncResult",
    "TrackInfo",
    "Unread",
    "VideoFrames",
    "align",
    "checks",
    "concat",
    "convert",
    "edit",
    "from_datasets",
    "from_xarray",
    "open",
    "open_clouds",
    "open_episodes",
    "open_recording",
    "report_html",
    "save",
    "save_rerun",
    "statistics",
    "sync",
]


publish(__name__)


def __dir__() -> list[str]:
    return __all__
