"""``robocache voxelize``: turn point clouds into voxels."""

from typing import Annotated, Any, Optional

import numpy as np
import typer

from .. import voxelize as dense
from .. import voxelize_sparse
from .._files.atomic_write import written_beside
from ..data import PointCloud, PointClouds
from ..data._progress import progress
from ..data._report.overview import disk_size
from . import _display as show
from ._common import (
    AsJson,
    DataPath,
    Failure,
    FollowLinks,
    MaxUnpacked,
    Output,
    Overwrite,
    open_data,
)
from ._inspect_clouds import clouds_of
from ._outputs import check_output

_MODES = ("occupancy", "count", "sum", "mean", "max", "min")
_MOST_BYTES = 4 << 30  # of dense grids
_NO_FEATURES = ("x", "y", "z", "rgb", "rgba")  # colours are packed bits


def voxelize(
    path: DataPath,
    output: Output,
    voxel_size: Annotated[
        float,
        typer.Option(help="Edge length of a voxel in metres.", metavar="M", show_default=False),
    ],
    bounds: Annotated[
        Optional[tuple[float, float, float, float, float, float]],
        typer.Option(
            "--range",
            help="The box to voxelize: x y z of two corners; default: around all points.",
            metavar="X Y Z X Y Z",
        ),
    ] = None,
    mode: Annotated[
        Optional[str],
        typer.Option(
            "--dense",
            help=f"Write a full grid of {', '.join(_MODES)}; default: a list of the occupied "
            "voxels, with means.",
            metavar="MODE",
        ),
    ] = None,
    overwrite: Overwrite = False,
    follow_links: FollowLinks = False,
    max_unpacked: MaxUnpacked = None,
    as_json: AsJson = False,
) -> None:
    """Turn point clouds into voxels, in a single .npz file.

    It holds coords [V,3], features [V,C] (means of x, y, z and the other fields),
    points_per_voxel [V] and offsets [clouds + 1]; with --dense, grids [clouds,X,Y,Z] or
    [clouds,X,Y,Z,C]. Points with a NaN or infinite coordinate are ignored.
    """
    if not voxel_size > 0:
        raise typer.BadParameter("must be above 0", param_hint="--voxel-size")
    if mode is not None and mode not in _MODES:
        raise typer.BadParameter(f"{mode!r}: choose {', '.join(_MODES)}", param_hint="--dense")
    check_output(output, overwrite, [path])
    source = open_data(path, follow_links=follow_links, max_unpacked=max_unpacked)
    if not isinstance(source, (PointCloud, PointClouds)):
        raise Failure(f"{path}: expected point clouds, got {source.format}")
    low, high, fields = _survey(source)
    grid = _grid(source.path, low, high, voxel_size, bounds)
    arrays, rows = _voxels(source, grid, mode, fields)
    arrays.update(origin=np.array(grid["origin"]), voxel_size=np.array(voxel_size))
    with written_beside(str(output), overwrite) as part, open(part, "wb") as file:
        np.savez(file, **arrays)
    if as_json:
        show.print_json({"output": str(output), **grid, "clouds": rows})
    else:
        out = show.Page()
        shape = " x ".join(map(str, grid["shape"]))
        out.print(f"grid of {shape} voxels of {voxel_size:g} m")
        head = ("file", "points", "voxels", "points outside")
        shown = [[r["file"], r["points"], r["voxels"], r["outside"]] for r in rows]
        out.print(show.table(head, shown))
        out.print()
        out.print(f"wrote {output}", wrap=False)


def _survey(source: Any) -> tuple[Any, Any, list[str]]:
    """Return the box around all finite points, and the numeric fields that all clouds have."""
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    fields: Optional[list[str]] = None
    for _, read in clouds_of(source):
        cloud = read()
        points = cloud.points
        points = points[np.isfinite(points).all(axis=1)].astype(np.float64)
        if len(points):
            low, high = np.minimum(low, points.min(axis=0)), np.maximum(high, points.max(axis=0))
        own = [n for n, v in cloud.fields.items() if n not in _NO_FEATURES and v.ndim == 1]
        fields = own if fields is None else [name for name in fields if name in own]
    return low, high, ["x", "y", "z", *(fields or [])]


def _grid(path: Any, low: Any, high: Any, voxel_size: float, bounds: Any) -> dict[str, Any]:
    if bounds is not None:
        low, high = np.array(bounds[:3]), np.array(bounds[3:])
        if not (high > low).all():
            raise typer.BadParameter(
                "the second corner must be above the first on each axis", param_hint="--range"
            )
        shape = np.ceil((high - low) / voxel_size - 1e-9).astype(np.int64)
    else:
        if not np.isfinite(low).all():
            raise Failure(f"{path}: no point is finite")
        low = np.floor(low / voxel_size) * voxel_size
        shape = np.floor((high - low) / voxel_size).astype(np.int64) + 1
    return {"origin": low.tolist(), "voxel_size": voxel_size, "shape": shape.tolist()}


def _voxels(
    source: Any, grid: dict[str, Any], mode: Optional[str], fields: list[str]
) -> tuple[dict[str, Any], Any]:
    """Return the arrays to write, and the numbers to print for each cloud."""
    parts: list[dict[str, Any]] = []
    rows = []
    clouds = clouds_of(source)
    if mode is not None:
        _check_size(grid["shape"], mode, len(fields), len(clouds))
    with progress("Voxelizing", disk_size(source.path) or 0, None) as done:
        for name, read in clouds:
            cloud = read()
            columns = [cloud.fields[name].astype(np.float32) for name in fields]
            points = np.stack(columns, axis=1)
            if mode is None:
                voxels = voxelize_sparse(points, return_point_to_voxel=False, **grid).trimmed()
                counts = voxels.points_per_voxel
                made = {
                    "coords": voxels.coords[:, -3:],
                    "features": voxels.features,
                    "points_per_voxel": counts,
                }
                inside, occupied = int(counts.sum()), len(counts)
            else:
                options: Any = {**grid, "reduction": mode, "return_num_points_outside": True}
                values, dropped = dense(points, **options)
                made = {"grids": values[None]}
                inside = len(points) - int(np.asarray(dropped).sum())
                filled = values if values.ndim == 3 else (values != 0).any(axis=-1)
                occupied = int(np.count_nonzero(filled))
            parts.append(made)
            rows.append(
                {
                    "file": name,
                    "points": len(points),
                    "voxels": occupied,
                    "outside": len(points) - inside,
                }
            )
            done(disk_size(cloud.path) or 0)
    arrays = {key: _joined([part[key] for part in parts]) for key in parts[0]}
    if mode is None:
        ends = np.cumsum([0, *(len(part["points_per_voxel"]) for part in parts)])
        arrays["offsets"] = ends.astype(np.int64)
    arrays["files"] = np.array([row["file"] for row in rows])
    arrays["fields"] = np.array(fields)
    return arrays, rows


def _check_size(shape: list[int], mode: str, channels: int, clouds: int) -> None:
    """Check that dense grids of all clouds fit into memory."""
    each = {"occupancy": 1, "count": 4}.get(mode, 4 * channels)  # bytes per voxel
    needed = float(np.prod([float(n) for n in shape])) * each * clouds
    if needed > _MOST_BYTES:
        raise Failure(
            f"--dense: grids of {' x '.join(map(str, shape))} voxels need "
            f"{needed / (1 << 30):.3g} GiB, more than {_MOST_BYTES >> 30} GiB; use a larger "
            "--voxel-size, a smaller --range, or no --dense"
        )


def _joined(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
