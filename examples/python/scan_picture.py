"""A picture of a scan: its voxels in three dimensions, and maps of them seen from above."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from page import STYLE, UNKNOWN, WIDTH, draw_title, save
from scans import Grid, Scan, Voxelized

# Inches.
_LEFT, _RIGHT, _BETWEEN, _TOP = 0.75, 0.3, 0.75, 0.95
_ABOVE_MAP, _BELOW_MAP, _BAR, _BOTTOM = 0.45, 0.52, 0.1, 0.55
_TALLEST_SCENE, _TALLEST_MAP = 6.2, 4.0


def _steps(name: str, begin: float, end: float) -> ListedColormap:
    """A part of a colour map, in so few steps that all of the picture takes 256 colours."""
    return ListedColormap(matplotlib.colormaps[name](np.linspace(begin, end, 32)))


# Colours that grow evenly from dark to light, for colour-blind eyes too: not the darkest of them,
# on which no edge is seen.
_HEIGHT_COLOURS = _steps("viridis", 0.12, 1.0)
_COUNT_COLOURS = _steps("magma", 0.15, 0.95)
_INTENSITY_COLOURS = _steps("cividis", 0.0, 1.0)
# Two of Okabe and Ito's, as in the picture of streams.
_DISTANCE_COLOURS = LinearSegmentedColormap.from_list("", ["#D55E00", "#FFFFFF", "#0072B2"], 31)


@dataclass(frozen=True)
class _View:
    """From afar, in parallel lines, at an azimuth and an elevation in degrees."""

    azimuth: float
    elevation: float

    @staticmethod
    def of(scan: Scan) -> _View:
        """From above and with the longer side across; with a camera, over its shoulder."""
        if scan.has_colours:
            return _View(-158, 24)
        return _View(164 if _is_upright(scan.grid) else -106, 38)

    @property
    def towards_eye(self) -> np.ndarray:
        azimuth, elevation = np.radians((self.azimuth, self.elevation))
        level = np.cos(elevation)
        return np.array([level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)])

    @property
    def light(self) -> np.ndarray:
        """Return the brightness of sides facing x, y and z: top brightest, edge-on darkest."""
        x, y, _ = np.abs(self.towards_eye)
        return np.array([0.82, 0.62, 1.0] if x > y else [0.62, 0.82, 1.0])

    def project(self, places: np.ndarray) -> np.ndarray:
        """Project points [..., 3] to right and up on the paper [..., 2]."""
        eye = self.towards_eye
        right = np.array([-eye[1], eye[0], 0]) / np.hypot(eye[0], eye[1])
        return places @ np.stack([right, np.cross(eye, right)], axis=1)


@dataclass(frozen=True)
class _Map:
    """A value for each pillar [X, Y], NaN for empty pillars; or its colour [X, Y, 3]."""

    title: str
    values: np.ndarray
    bar_label: str = ""
    colours: Colormap | None = None
    norm: Normalize | None = None
    nothing: str = "white"  # the colour of NaN


def draw_picture(path: Path, scan: Scan, voxelized: Voxelized) -> None:
    maps = _maps(scan, voxelized)
    faces, tints = _faces(voxelized.coords, scan.grid, _tints(scan, voxelized), _View.of(scan))
    with plt.rc_context(STYLE):
        figure, scene, panels = _lay_out(scan.grid, np.ptp(faces.reshape(-1, 2), axis=0), len(maps))
        _draw_scene(scene, faces, tints)
        for (axis, bar), shown in zip(panels, maps):
            _draw_map(figure, axis, bar, scan, shown)
        voxels, points = len(voxelized.coords), int(voxelized.counts.sum())
        draw_title(
            figure,
            _LEFT,
            f"{points:,} points in {voxels:,} voxels of {scan.grid.voxel_size:.3g} m",
            scan.title,
        )
        save(figure, path, colours=256)


def _is_upright(grid: Grid) -> bool:
    """Whether maps have x up and y to the left, so that their longer side lies."""
    return grid.shape[1] > grid.shape[0]


def _maps(scan: Scan, voxelized: Voxelized) -> list[_Map]:
    columns = voxelized.counts.sum(axis=2)
    most = max(int(columns.max()), 2)
    highest = voxelized.highest
    maps = [
        _Map(
            "points in each column of voxels",
            np.where(columns > 0, columns, np.nan),
            "points",
            _COUNT_COLOURS,
            LogNorm(1, most),
        ),
        _Map("highest point", highest, "m", _HEIGHT_COLOURS, _height_norm(highest)),
    ]
    if voxelized.measured is not None and scan.has_colours:
        maps.append(_Map("mean colour", voxelized.measured))
    elif voxelized.measured is not None:
        intensity = voxelized.measured[:, :, 0]
        top = float(np.nanpercentile(intensity, 99))
        maps.append(
            _Map("mean intensity", intensity, "intensity", _INTENSITY_COLOURS, Normalize(0, top))
        )
    if voxelized.distances is not None:
        grid = scan.grid
        layer = grid.shape[2] // 2
        if scan.slice_z is not None:
            layer = int((scan.slice_z - grid.origin[2]) / grid.voxel_size)
            layer = min(max(layer, 0), grid.shape[2] - 1)
        z = grid.origin[2] + (layer + 0.5) * grid.voxel_size
        limit = scan.grid.truncation
        maps.append(
            _Map(
                f"signed distance at z = {z:.2g} m; grey: never seen".replace("-", "\u2212"),
                voxelized.distances[:, :, layer],
                "behind the surface          m          in front of it",
                _DISTANCE_COLOURS,
                Normalize(-limit, limit),
                nothing=UNKNOWN,
            )
        )
    return maps


def _height_norm(heights: np.ndarray) -> Normalize:
    low, high = np.nanpercentile(heights, (1, 99))
    return Normalize(float(low), float(high))


def _tints(scan: Scan, voxelized: Voxelized) -> np.ndarray:
    """The colour [M, 3] of each voxel: that of its points, or one for its height."""
    if scan.has_colours:
        return voxelized.means[:, 3:6].astype(np.float64)
    heights = voxelized.means[:, 2]
    scale = ScalarMappable(_height_norm(heights), _HEIGHT_COLOURS)
    return scale.to_rgba(heights)[:, :3]


def _faces(
    coords: np.ndarray, grid: Grid, tints: np.ndarray, view: _View
) -> tuple[np.ndarray, np.ndarray]:
    """The sides of voxels that may be seen, [K, 4, 2] on the paper and the farthest first."""
    eye = view.towards_eye
    solid = np.zeros([n + 2 for n in grid.shape], bool)  # with a margin of nothing
    solid[tuple(coords.T + 1)] = True
    quads, colours, depths = [], [], []
    for axis, light in enumerate(view.light):
        step = np.zeros(3, int)
        step[axis] = np.sign(eye[axis])
        shown = ~solid[tuple((coords + 1 + step).T)]
        corner = coords[shown] + np.maximum(step, 0)
        u, v = np.delete(np.eye(3), axis, axis=0)
        quad = corner[:, None] + np.stack([0 * u, u, u + v, v])
        quads.append(view.project(quad * grid.voxel_size))
        colours.append(tints[shown] * light)
        depths.append(coords[shown] @ eye)
    # Of two cubes of one grid, the one that hides the other is nearer to the eye.
    order = np.argsort(np.concatenate(depths), kind="stable")
    return np.concatenate(quads)[order], np.concatenate(colours)[order]


def _lay_out(
    grid: Grid, scene_size: np.ndarray, maps: int
) -> tuple[Figure, Axes, list[tuple[Axes, Axes]]]:
    """The scene over the whole width, then the maps, two in a row, each with a bar of colours."""
    whole = WIDTH - _LEFT - _RIGHT
    scene_height = min(whole * scene_size[1] / scene_size[0], _TALLEST_SCENE)
    column = (whole - _BETWEEN) / 2
    aspect = min(grid.shape[:2]) / max(grid.shape[:2])
    map_height = min(column * aspect, _TALLEST_MAP)
    map_width = map_height / aspect
    row = _ABOVE_MAP + map_height + _BELOW_MAP + _BAR + _BOTTOM
    height = _TOP + scene_height + row * ((maps + 1) // 2)
    figure = plt.figure(figsize=(WIDTH, height))

    def add(left: float, top: float, wide: float, tall: float) -> Axes:
        return figure.add_axes(
            (left / WIDTH, 1 - (top + tall) / height, wide / WIDTH, tall / height)
        )

    scene = add(_LEFT, _TOP, whole, scene_height)
    panels = []
    for index in range(maps):
        left = _LEFT + index % 2 * (column + _BETWEEN)
        top = _TOP + scene_height + index // 2 * row + _ABOVE_MAP
        axis = add(left, top, map_width, map_height)
        panels.append((axis, add(left, top + map_height + _BELOW_MAP, map_width, _BAR)))
    return figure, scene, panels


def _draw_scene(scene: Axes, faces: np.ndarray, tints: np.ndarray) -> None:
    scene.add_collection(
        PolyCollection(faces, facecolors=tints, edgecolors=0.75 * tints + 0.1, linewidths=0.3)
    )
    scene.set_aspect("equal")
    scene.autoscale_view()
    scene.margins(0)
    scene.set_axis_off()


def _draw_map(figure: Figure, axis: Axes, bar: Axes, scan: Scan, shown: _Map) -> None:
    grid, values = scan.grid, shown.values
    (x0, y0), (x1, y1) = grid.origin[:2], grid.end[:2]
    upright = _is_upright(grid)
    image = values if upright else values.swapaxes(0, 1)
    extent = (y0, y1, x0, x1) if upright else (x0, x1, y0, y1)
    if values.ndim == 3:
        image = np.where(np.isnan(image), 1.0, image)
    axis.set_facecolor(shown.nothing)
    drawn = axis.imshow(
        image,
        origin="lower",
        extent=extent,
        cmap=shown.colours,
        norm=shown.norm,
        interpolation="nearest",
    )
    if upright:
        axis.invert_xaxis()
    axis.set_title(shown.title)
    axis.set_xlabel("y [m]" if upright else "x [m]", labelpad=1)
    axis.set_ylabel("x [m]" if upright else "y [m]")
    for each in (axis.xaxis, axis.yaxis):
        each.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    if values.ndim == 3:
        bar.set_axis_off()
        return
    figure.colorbar(drawn, cax=bar, orientation="horizontal", label=shown.bar_label)
    if isinstance(shown.norm, LogNorm):
        bar.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        bar.xaxis.set_minor_formatter(NullFormatter())
    bar.tick_params(labelsize=10.5, length=2)
    bar.spines["outline"].set_visible(False)
