"""RoboCache: raw robot recordings into model-ready tensors, on the CPU and on CUDA.

Arrays of NumPy, torch, CuPy, JAX, or any other library with ``__dlpack__``, go in without a copy;
results come back in the library, on the device and on the current stream of the first argument.

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
>>> rbc.voxelize(points, mode="count", origin=(0, 0, 0), voxel_size=1, shape=(2, 1, 1)).ravel()
array([2, 1], dtype=int32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import statistics_files
from ._asof import asof
from ._associate import associate
from ._channels import Channel
from ._clock import clock
from ._context import Context, ContextInfo
from ._episodes import Episodes
from ._errors import RoboCacheError, Status
from ._farthest_points import farthest_points, take_rows
from ._frames import fuse_frames, resample_frame
from ._fuse import fuse
from ._info import Info, info
from ._live import Live, LiveCounters, LiveStream, LiveTick
from ._masks import channel_mask
from ._memory import limit_idle_memory, release_idle_memory
from ._normalization import Normalization
from ._report import Report, StreamReport, report
from ._resample import resample
from ._rotations import convert_rotations
from ._statistics import StatisticsAccumulator, statistics
from ._statistics_result import StatisticsResult
from ._stream import Stream
from ._track import Track
from ._transform import Transform
from ._tsdf import voxelize_tsdf
from ._types import Grid
from ._unproject import Cloud, unproject
from ._version import version as __version__
from ._voxelize import voxelize
from ._voxelize_sparse import SparseVoxels, voxelize_sparse
from ._warnings import RangeWarning
from ._window import Window
from ._window_spec import WindowSpec
from ._window_stream import WindowStream
from ._windows import windows

if TYPE_CHECKING:
    from . import data as data
    from . import ray as ray
    from . import torch as torch
else:

    def __getattr__(name):
        if name in ("data", "ray", "torch"):  # they take a while to import: when asked for
            import importlib

            return importlib.import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Channel",
    "Cloud",
    "Context",
    "ContextInfo",
    "Episodes",
    "Grid",
    "Info",
    "Live",
    "LiveCounters",
    "LiveStream",
    "LiveTick",
    "Normalization",
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
    "info",
    "limit_idle_memory",
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
