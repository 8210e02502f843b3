"""RoboCache: from raw robot recordings to model-ready tensors, on the CPU and on CUDA.

Arrays of NumPy, torch, CuPy, JAX, or any other library with ``__dlpack__`` are read without a copy.
Results are arrays of the library of the first argument, on its device and on its current stream.

>>> import numpy as np
>>> import robocache as rbc
>>> times = np.array([0.0, 1.0, 2.0])            # [S], seconds
>>> values = np.array([[0.0], [10.0], [20.0]])   # [S, D]
>>> rbc.resample(values, times, np.array([0.5, 1.75]))
array([[ 5. ],
       [17.5]])
>>> other = rbc.Stream(np.array([[1], [0]]), times[:2], method="previous")
>>> rbc.fuse([rbc.Stream(values, times), other], np.array([0.5, 1.75]))
array([[ 5. ,  1. ],
       [17.5,  0. ]])
>>> points = np.array([[0.2, 0.1, 0.0], [0.4, 0.3, 0.9], [1.5, 0.0, 0.0]])   # [N, 3], metres
>>> rbc.voxelize(points, reduction="count", origin=(0, 0, 0), voxel_size=1, shape=(2, 1, 1)).ravel()
array([2, 1], dtype=int32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import statistics_files
from ._cache.cache import Cache
from ._episodes.channels import Channel
from ._episodes.episodes import Episodes
from ._episodes.track import Track
from ._library.context import Context, ContextInfo
from ._library.errors import RoboCacheError, Status
from ._library.info import Info, info
from ._library.memory import limit_idle_memory, release_idle_memory
from ._library.version import version as __version__
from ._operations.channel_mask import channel_mask
from ._operations.convert_rotations import convert_rotations
from ._operations.data_frames import fuse_frames, resample_frame
from ._operations.farthest_points import farthest_points, take_rows
from ._operations.fuse import fuse
from ._operations.image_draws import ColorJitter, ImageDraws, image_draws
from ._operations.image_presets import ImagePreset, image_preset, image_presets
from ._operations.images import images, normalization_table
from ._operations.live import Live, LiveCounters, LiveStream, LiveTick
from ._operations.live_cameras import LiveCamera, LiveImages
from ._operations.live_kept import live_kept
from ._operations.range_warning import RangeWarning
from ._operations.resample import resample
from ._operations.stream import Stream
from ._operations.unproject import Cloud, unproject
from ._operations.voxelize import voxelize
from ._operations.voxelize_sparse import SparseVoxels, voxelize_sparse
from ._operations.voxelize_tsdf import voxelize_tsdf
from ._pipeline.pipeline import Pipeline
from ._pipeline.session import LivePipeline, Observation
from ._public import publish
from ._statistics.accumulator import StatisticsAccumulator, statistics
from ._statistics.normalization import Normalization
from ._statistics.result import StatisticsResult
from ._timing.associate import asof, associate
from ._timing.clock import clock
from ._timing.report import Report, StreamReport, report
from ._typing import Grid
from ._windows.images import Images
from ._windows.spec import WindowSpec
from ._windows.transform import Transform
from ._windows.window import Window
from ._windows.window_stream import WindowStream
from ._windows.windows import windows

__all__ = [
    "Cache",
    "Channel",
    "Cloud",
    "ColorJitter",
    "Context",
    "ContextInfo",
    "Episodes",
    "Grid",
    "ImageDraws",
    "ImagePreset",
    "Images",
    "Info",
    "Live",
    "LiveCamera",
    "LiveCounters",
    "LiveImages",
    "LivePipeline",
    "LiveStream",
    "LiveTick",
    "Normalization",
    "Observation",
    "Pipeline",
    "RangeWarning",
    "Report",
    "RoboCacheError",
    "SparseVoxels",
    "StatisticsAccumulator",
    "StatisticsResult",
    "Status",
    "Stream",
    "StreamReport",
    "Track",
    "Transform",
    "Window",
    "WindowSpec",
    "WindowStream",
    "__version__",
    "asof",
    "associate",
    "channel_mask",
    "clock",
    "convert_rotations",
    "farthest_points",
    "fuse",
    "fuse_frames",
    "image_draws",
    "image_preset",
    "image_presets",
    "images",
    "info",
    "limit_idle_memory",
    "live_kept",
    "normalization_table",
    "release_idle_memory",
    "report",
    "resample",
    "resample_frame",
    "statistics",
    "statistics_files",
    "take_rows",
    "unproject",
    "voxelize",
    "voxelize_sparse",
    "voxelize_tsdf",
    "windows",
]

publish(__name__)

if TYPE_CHECKING:
    from . import data as data
    from . import ray as ray
    from . import torch as torch
else:
    _LAZY = ("data", "ray", "torch")  # they import slowly, or need other packages

    def __getattr__(name):
        if name in _LAZY:
            import importlib

            return importlib.import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted([*__all__, *_LAZY])
