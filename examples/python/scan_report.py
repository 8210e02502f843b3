"""A summary of the voxels of a scan, in numbers."""

from __future__ import annotations

import numpy as np

from report import table
from scans import Scan, Voxelized

_NOTES = """\
dropped: outside the grid, or NaN for beams without a return; tsdf: on no voxel's ray.
beyond: points that exceed the size of the output.
"""


def summarize(scan: Scan, voxelized: Voxelized) -> str:
    points, grid = len(scan.points), scan.grid
    returned = int(np.isfinite(scan.points[:, :3]).all(axis=1).sum())
    spans = (f"{axis} {a:.4g} to {b:.4g}" for axis, a, b in zip("xyz", grid.origin, grid.end))
    return "\n".join(
        [
            f"{scan.title}: {points} points ({', '.join(scan.columns)}), {returned} with a return",
            f"grid: {' x '.join(map(str, grid.shape))} voxels of {grid.voxel_size:.4g} m, "
            f"{', '.join(spans)} m",
            "",
            _table_out(voxelized),
            _NOTES,
        ]
    )


def _table_out(voxelized: Voxelized) -> str:
    rows = ["call,out,voxels,points,dropped,beyond".split(",")]
    for call in voxelized.calls:
        shape = ",".join(map(str, call.out.shape))
        numbers = (call.voxels, call.points, call.dropped, call.beyond)
        rows.append([call.name, f"{call.out.dtype} {shape}", *map(str, numbers)])
    return table(rows)


def timings(scan: Scan, voxelized: Voxelized, where: str) -> str:
    """Return a table of the times of the calls, which differ from run to run."""
    rows = ["call,ms,M points/s".split(",")]
    for call in voxelized.calls:
        rate = len(scan.points) / call.took_ms / 1e3
        rows.append([call.name, f"{call.took_ms:.2f}", f"{rate:.1f}"])
    return f"{table(rows)}medians of several calls {where}"
