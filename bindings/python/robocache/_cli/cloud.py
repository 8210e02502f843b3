"""``robocache cloud``: depth images into point clouds."""

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Optional

import numpy as np
import typer

from .. import farthest_points, take_rows, unproject, voxelize_sparse
from .._writing import written_beside
from ..data import FormatError
from ..data._progress import progress
from . import show
from .common import AsJson, Failure, Output, Overwrite
from .outputs import check_output

_IMAGES = (".png", ".tif", ".tiff", ".pgm", ".npy")
_COLORS = (".png", ".jpg", ".jpeg", ".ppm", ".npy")
_Six = tuple[float, float, float, float, float, float]


def cloud(
    path: Annotated[
        Path,
        typer.Argument(
            help="A folder of depth images: .png, .tif, .pgm of 16 bits, or .npy.",
            show_default=False,
        ),
    ],
    output: Output,
    intrinsics: Annotated[
        Path,
        typer.Option(
            help="A .json of the camera: fx, fy, cx, cy by name or as a list, a matrix K of 3 "
            "rows, or Open3D's intrinsic_matrix.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    colors: Annotated[
        Optional[Path],
        typer.Option(help="A folder of as many colour images, in the same order.", metavar="DIR"),
    ] = None,
    pose: Annotated[
        Optional[Path],
        typer.Option(
            help="A .json of 4 x 4 numbers: from the camera's frame to the cloud's.",
            metavar="FILE",
        ),
    ] = None,
    depth_scale: Annotated[
        Optional[float],
        typer.Option(
            help="Units of depth to a metre; default: 1000 of integers, 1 of floats.",
            metavar="N",
        ),
    ] = None,
    crop: Annotated[
        Optional[_Six],
        typer.Option(help="Points inside of this box alone: two corners.", metavar="X Y Z X Y Z"),
    ] = None,
    voxel_size: Annotated[
        Optional[float],
        typer.Option(help="Thinned out to the means of voxels of this edge.", metavar="M"),
    ] = None,
    points: Annotated[
        Optional[int],
        typer.Option(help="As many of each cloud, each the farthest from those before."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Turn depth images into point clouds, an .npz file each.

    It holds points [N,3], or [N,6] with colours of 0 to 1. With --points N is the same for all, and
    rows past `count` are 0. x points to the right, y down, z forward, unless a pose says otherwise.
    """
    if points is not None and points < 1:
        raise typer.BadParameter("is below 1", param_hint="--points")
    if voxel_size is not None and not voxel_size > 0:
        raise typer.BadParameter("is not above 0", param_hint="--voxel-size")
    check_output(output, overwrite, [path, intrinsics, colors, pose])
    names = _names(path, _IMAGES, "depth images")
    beside = [] if colors is None else _names(colors, _COLORS, "colour images")
    if colors is not None and len(beside) != len(names):
        raise Failure(f"{colors}: has {len(beside)} images, and {path} {len(names)}")
    options: dict[str, Any] = {"depth_scale": depth_scale, "crop": crop, "color_scale": 255}
    camera = _camera(intrinsics)
    options["pose"] = None if pose is None else _matrix(pose)
    rows = []
    sizes = [os.path.getsize(path / name) for name in names]
    with written_beside(str(output), overwrite) as part:
        os.mkdir(part)
        with progress("Making clouds", sum(sizes), None) as done:
            for i, name in enumerate(names):
                depth = _depth(path / name)
                color = None if colors is None else _color(colors / beside[i], depth.shape)
                try:
                    made = unproject(depth, camera, colors=color, **options).trimmed()
                    arrays = _few(np.asarray(made.points), voxel_size, points)
                except ValueError as error:
                    raise Failure(f"{path / name}: {error}") from None
                row: dict[str, Any] = {"file": name, "pixels": depth.size}
                row["inside"] = int(made.counts)
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
    out.print(f"\nwrote {output}", wrap=False)


def _few(points: Any, voxel_size: Optional[float], most: Optional[int]) -> dict[str, Any]:
    """Thinned out, and chosen from."""
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


# ---- files --------------------------------------------------------------------------------------


def _names(folder: Path, endings: tuple[str, ...], what: str) -> list[str]:
    """In the order of the numbers in their names."""
    if not folder.is_dir():
        raise Failure(f"{folder}: is no folder")
    found = [name for name in os.listdir(folder) if name.lower().endswith(endings)]
    if not found:
        raise Failure(f"{folder}: holds no {what} ({', '.join(endings)})")
    stem, times = Counter(os.path.splitext(name)[0] for name in found).most_common(1)[0]
    if times > 1:
        raise Failure(f"{folder}: holds two images of the name {stem}")
    return sorted(found, key=lambda name: ([int(n) for n in re.findall(r"\d+", name)], name))


def _image(path: Path) -> Any:
    if path.suffix.lower() == ".npy":
        try:
            return np.load(path, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise FormatError(str(path), "", str(error)) from None
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise Failure(f"{path}: reading images needs Pillow: pip install pillow") from None
    try:
        with Image.open(path) as image:
            return np.asarray(image)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FormatError(str(path), "", str(error)) from None


def _depth(path: Path) -> Any:
    depth = _image(path)
    if depth.dtype == np.int32:  # what Pillow makes of 16 bits here and there
        if depth.size and (depth.min() < 0 or depth.max() > 65535):
            raise FormatError(str(path), "", "has depths that 16 bits do not hold")
        depth = depth.astype(np.uint16)
    if depth.ndim != 2 or depth.dtype.kind not in "uf" or depth.dtype.itemsize == 1:
        text = f"is {depth.dtype} {list(depth.shape)}, expected one depth a pixel, of 16 bits or "
        raise FormatError(str(path), "", text + "float")
    if depth.dtype.kind == "f" and depth.dtype.itemsize > 4:
        depth = depth.astype(np.float32)
    return depth


def _color(path: Path, shape: tuple[int, ...]) -> Any:
    color = _image(path)
    if color.ndim != 3 or color.shape[2] < 3 or color.dtype != np.uint8:
        text = f"is {color.dtype} {list(color.shape)}, expected red, green, blue of 8 bits"
        raise FormatError(str(path), "", text)
    if color.shape[:2] != shape:
        text = f"has {list(color.shape[:2])} pixels, and its depth {list(shape)}"
        raise FormatError(str(path), "", text)
    return color[:, :, :3]


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FormatError(str(path), "", f"is no JSON: {error}") from None


def _camera(path: Path) -> list[float]:
    """fx, fy, cx, cy."""
    given = _json(path)
    try:
        if isinstance(given, dict) and "intrinsic_matrix" in given:  # column by column
            fx, _, _, _, fy, _, cx, cy, _ = given["intrinsic_matrix"]
            given = [fx, fy, cx, cy]
        elif isinstance(given, dict) and "K" in given:
            given = given["K"]
        elif isinstance(given, dict):
            given = [given[name] for name in ("fx", "fy", "cx", "cy")]
        if len(given) == 9:  # row by row, as ROS has it
            given = [given[:3], given[3:6], given[6:]]
        if len(given) == 3:
            (fx, _, cx), (_, fy, cy), _ = given
            given = [fx, fy, cx, cy]
        fx, fy, cx, cy = map(float, given)
    except (KeyError, TypeError, ValueError):
        text = "has no camera: expected fx, fy, cx, cy, K, or intrinsic_matrix"
        raise FormatError(str(path), "", text) from None
    return [fx, fy, cx, cy]


def _matrix(path: Path) -> Any:
    try:
        matrix = np.array(_json(path), np.float64)
    except (TypeError, ValueError):
        matrix = np.zeros(0)
    if matrix.size != 16:
        raise FormatError(str(path), "", "has no 4 x 4 numbers")
    return matrix.reshape(4, 4)
