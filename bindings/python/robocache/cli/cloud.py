"""``robocache cloud``: turn depth images into point clouds."""

import os
from pathlib import Path
from typing import Annotated, Any, Optional

import numpy as np
import typer

from .. import farthest_points, take_rows, unproject, voxelize_sparse
from .._files.atomic_write import written_beside
from ..data._progress import progress
from . import _display as show
from ._common import AsJson, Failure, Output, Overwrite
from ._depth_files import (
    COLORS,
    DEPTHS,
    check_pairs,
    color_of,
    depth_of,
    names_of,
    read_camera,
    read_pose,
)
from ._outputs import check_output

_Six = tuple[float, float, float, float, float, float]


def cloud(
    path: Annotated[
        Path,
        typer.Argument(
            help="A folder of depth images: .png, .tif or .pgm with 16 bits, or .npy.",
            show_default=False,
        ),
    ],
    output: Output,
    intrinsics: Annotated[
        Path,
        typer.Option(
            help="A .json file of the camera: fx, fy, cx, cy by name or as a list, a 3 x 3 matrix "
            "K, or Open3D's intrinsic_matrix.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    colors: Annotated[
        Optional[Path],
        typer.Option(
            help="A folder with one colour image per depth image, in the same order.",
            metavar="DIR",
        ),
    ] = None,
    pose: Annotated[
        Optional[Path],
        typer.Option(
            help="A .json file of a 4 x 4 matrix from the camera's frame to the cloud's.",
            metavar="FILE",
        ),
    ] = None,
    depth_scale: Annotated[
        Optional[float],
        typer.Option(
            help="Depth units per metre; default: 1000 for integers, 1 for floats.",
            metavar="N",
        ),
    ] = None,
    crop: Annotated[
        Optional[_Six],
        typer.Option(
            help="Keep only points in this box: x y z of two corners.", metavar="X Y Z X Y Z"
        ),
    ] = None,
    voxel_size: Annotated[
        Optional[float],
        typer.Option(help="Downsample to the means of voxels with this edge.", metavar="M"),
    ] = None,
    points: Annotated[
        Optional[int],
        typer.Option(help="Number of points to keep, by farthest point sampling."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Turn depth images into point clouds, one .npz file each.

    Each file holds points [N,3], or [N,6] with colours from 0 to 1. With --points, N is the same
    in all files, and rows from `count` on are 0. x points right, y down and z forward, unless
    --pose is given.
    """
    if points is not None and points < 1:
        raise typer.BadParameter("must be at least 1", param_hint="--points")
    if voxel_size is not None and not voxel_size > 0:
        raise typer.BadParameter("must be above 0", param_hint="--voxel-size")
    check_output(output, overwrite, [path, intrinsics, colors, pose])
    names = names_of(path, DEPTHS, "depth images")
    color_names = [] if colors is None else names_of(colors, COLORS, "colour images")
    if colors is not None and len(color_names) != len(names):
        raise Failure(f"{colors} has {len(color_names)} images, but {path} has {len(names)}")
    check_pairs(names, color_names)
    options: dict[str, Any] = {"depth_scale": depth_scale, "crop": crop, "color_divisor": 255}
    camera = read_camera(intrinsics)
    options["pose"] = None if pose is None else read_pose(pose)
    rows = []
    first = None
    sizes = [os.path.getsize(path / name) for name in names]
    with written_beside(str(output), overwrite) as part:
        os.mkdir(part)
        with progress("Making clouds", sum(sizes), None) as done:
            for i, name in enumerate(names):
                depth = depth_of(path / name)
                first = first or depth.shape
                camera.check(path / name, depth.shape, first)
                color = None if colors is None else color_of(colors / color_names[i], depth.shape)
                try:
                    made = unproject(depth, camera.values, colors=color, **options).trimmed()
                    arrays = _few(np.asarray(made.points), voxel_size, points)
                except (ValueError, TypeError) as error:
                    raise Failure(f"{path / name}: {error}") from None
                row: dict[str, Any] = {"file": name, "pixels": depth.size}
                row["inside"] = int(made.num_points)
                row["points"] = int(arrays["count"])
                np.savez(os.path.join(part, f"{os.path.splitext(name)[0]}.npz"), **arrays)
                rows.append(row)
                done(sizes[i])
    if as_json:
        show.print_json({"output": str(output), "clouds": rows})
        return
    out = show.Page()
    head = ("file", "pixels", "inside", "points")
    out.print(show.table(head, [list(row.values()) for row in rows]))
    out.print()
    out.print(f"wrote {output}", wrap=False)


def _few(points: Any, voxel_size: Optional[float], most: Optional[int]) -> dict[str, Any]:
    """Downsample to voxel means, then choose at most ``most`` points."""
    if voxel_size is not None and len(points):
        low = points[:, :3].min(axis=0).astype(np.float64)
        high = points[:, :3].max(axis=0).astype(np.float64)
        low = np.floor(low / voxel_size) * voxel_size
        shape = (np.floor((high - low) / voxel_size) + 2).astype(np.int64).tolist()
        grid: Any = {"origin": low.tolist(), "voxel_size": voxel_size, "shape": shape}
        voxels = voxelize_sparse(points, return_point_to_voxel=False, **grid)
        points = voxels.trimmed().features
    count = len(points)
    if most is not None:
        if count:
            points = take_rows(points, farthest_points(points, most))
        else:
            points = np.zeros((most, points.shape[1]), np.float32)
        count = min(count, most)
    return {"points": points, "count": np.int64(count)}
