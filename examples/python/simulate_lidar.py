"""A simulated LiDAR sweep: rays cast into a street of plain solids, with what real sweeps suffer.

Lengths are in metres, in the frame of the sensor: x along the street, y to the left, z up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scans import Scan, grid_over

BEAMS, AZIMUTHS = 128, 1800
#: How high the sensor is mounted: the road is at z = -SENSOR_HEIGHT.
SENSOR_HEIGHT = 1.9

_ELEVATIONS = np.radians(np.linspace(-22.5, 22.5, BEAMS))
_RANGE_M = (0.8, 90.0)
_RANGE_NOISE_M = 0.015
_KERB_Y, _WALL_Y = 5.5, 10.5
_CROSSING_X = (13.0, 22.0)  # of the side street

_ASPHALT, _PAINT, _PAVING, _WALL = 0.15, 0.85, 0.35, 0.5
_BARK, _LEAVES, _STEEL, _CLOTHES = 0.3, 0.5, 0.65, 0.45


@dataclass(frozen=True)
class Box:
    centre: tuple[float, float, float]
    size: tuple[float, float, float]
    reflectivity: float
    yaw: float = 0.0

    @property
    def footprint(self) -> tuple[float, float, float]:
        """A circle around it, seen from above: x, y, radius."""
        return self.centre[0], self.centre[1], np.hypot(self.size[0], self.size[1]) / 2

    def meet(self, rays: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return the range of rays [N, 3], infinity for misses, and the cosine of incidence."""
        cos, sin = np.cos(self.yaw), np.sin(self.yaw)
        turn = np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])  # world to box: row @ turn
        with np.errstate(divide="ignore"):
            slowness = 1 / (rays @ turn)
        to_centre, half = np.array(self.centre) @ turn, np.array(self.size) / 2
        enter = np.minimum((to_centre - half) * slowness, (to_centre + half) * slowness)
        leave = np.maximum((to_centre - half) * slowness, (to_centre + half) * slowness)
        face = enter.argmax(axis=1)
        distance = enter.max(axis=1)
        met = (distance > 0) & (distance <= leave.min(axis=1))
        cosine = 1 / np.abs(slowness[np.arange(len(rays)), face])
        return np.where(met, distance, np.inf), cosine


@dataclass(frozen=True)
class Pole:
    """An upright cylinder."""

    x: float
    y: float
    radius: float
    bottom: float
    top: float
    reflectivity: float

    @property
    def footprint(self) -> tuple[float, float, float]:
        return self.x, self.y, self.radius

    def meet(self, rays: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        a = (rays[:, :2] ** 2).sum(axis=1)
        b = rays[:, :2] @ (self.x, self.y)
        root = b**2 - a * (self.x**2 + self.y**2 - self.radius**2)
        with np.errstate(invalid="ignore"):
            distance = (b - np.sqrt(root)) / a
            height = distance * rays[:, 2]
            met = (root > 0) & (distance > 0) & (height > self.bottom) & (height < self.top)
            cosine = np.sqrt(root) / self.radius
        return np.where(met, distance, np.inf), np.where(met, cosine, 0)


@dataclass(frozen=True)
class Crown:
    """A ball of leaves, which rays enter some way, or pass."""

    centre: tuple[float, float, float]
    radius: float
    reflectivity: float

    @property
    def footprint(self) -> tuple[float, float, float]:
        return self.centre[0], self.centre[1], self.radius

    def meet(self, rays: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        nearest = rays @ self.centre
        chord_sq = self.radius**2 - np.dot(self.centre, self.centre) + nearest**2
        half_chord = np.sqrt(np.maximum(chord_sq, 0))
        depth = rng.exponential(0.7, len(rays))
        met = (depth < 2 * half_chord) & (nearest > half_chord)
        return np.where(met, nearest - half_chord + depth, np.inf), rng.uniform(0.2, 1, len(rays))


def make_street(rng: np.random.Generator) -> list[Box | Pole | Crown]:
    """Walls, trees, lamps, cars and people on both sides of a road with a side street."""
    ground = -SENSOR_HEIGHT
    paved = ground + 0.15
    scene: list[Box | Pole | Crown] = []

    def box(x: float, y: float, bottom: float, *size: float, of: float, yaw: float = 0.0) -> None:
        length, width, height = size
        scene.append(Box((x, y, bottom + height / 2), (length, width, height), of, yaw))

    def car(x: float, y: float, yaw: float = 0.0) -> None:
        paint = rng.uniform(0.2, 0.9)
        length, height = rng.uniform(4.0, 4.7), rng.uniform(0.75, 0.85)
        box(x, y, ground + 0.2, length, 1.8, height, of=paint, yaw=yaw)
        box(x, y, ground + 0.2 + height, 0.55 * length, 1.55, 0.55, of=0.25 * paint, yaw=yaw)

    def tree(x: float, y: float) -> None:
        radius = rng.uniform(1.3, 1.9)
        fork = paved + rng.uniform(2.2, 2.8)
        scene.append(Pole(x, y, rng.uniform(0.14, 0.22), paved, fork + radius, _BARK))
        scene.append(Crown((x, y, fork + radius), radius, _LEAVES))

    for side in (-1, 1):
        for begin, end in ((-75.0, _CROSSING_X[0]), (_CROSSING_X[1], 75.0)):
            middle, length = (begin + end) / 2, end - begin
            box(middle, side * (_KERB_Y + 20), ground, length, 40, 0.15, of=_PAVING)
            wall = begin
            while wall < end - 5:
                width = min(rng.uniform(7, 13), end - wall)
                front = _WALL_Y + rng.uniform(0, 1.2)
                height = rng.uniform(4.5, 11)
                box(wall + width / 2, side * (front + 6), paved, width, 12, height, of=_WALL)
                wall += width + (rng.uniform(2, 4) if rng.random() < 0.3 else 0)
        for x in np.arange(-40.0, 45, 8.5) + rng.uniform(-1, 1) + (3 if side > 0 else 0):
            if not _CROSSING_X[0] - 2 < x < _CROSSING_X[1] + 2:
                tree(x, side * 7.0)
        for x in (-26.0, -4.5, 11.0, 30.0):
            scene.append(Pole(x, side * 6.1, 0.09, paved, 4.5, _STEEL))
            box(x, side * 5.4, 4.4, 0.35, 1.6, 0.15, of=_STEEL)
        for x in np.arange(-33.0, 12, 6.2) + rng.uniform(-1.5, 1.5):
            if abs(x) > 3 and x < _CROSSING_X[0] - 5 and rng.random() < 0.75:
                car(x, side * 4.4, rng.normal(0, 0.02))

    car(17.0, -1.8)
    car(-13.0, 1.7)
    car(17.6, 9.5, np.pi / 2 - 0.1)  # waits in the side street
    box(25.5, 1.9, ground + 0.35, 9.0, 2.5, 2.75, of=0.6)  # a bus
    for x, y in ((10.6, -0.2), (10.9, 3.3), (4.6, 8.4), (-6.1, -8.6), (-6.6, -8.1), (-17.0, 9.0)):
        floor = paved if abs(y) > _KERB_Y else ground
        scene.append(Pole(x, y, 0.24, floor, floor + rng.uniform(1.6, 1.85), _CLOTHES))
    return scene


def cast_rays(
    rays: np.ndarray, scene: list[Box | Pole | Crown], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Range, reflectivity and cosine of incidence of rays [AZIMUTHS, BEAMS, 3]; inf: the sky."""
    with np.errstate(divide="ignore"):
        road = -SENSOR_HEIGHT / rays[..., 2]
    distance = np.where(road > 0, road, np.inf)
    reflectivity = np.where(_is_painted(rays, distance), _PAINT, _ASPHALT)
    cosine = np.abs(rays[..., 2])

    for solid in scene:
        # Only the columns of rays that pass its footprint.
        x, y, radius = solid.footprint
        half = np.arcsin(min(radius / np.hypot(x, y), 1)) if np.hypot(x, y) > radius else np.pi
        step, towards = 2 * np.pi / AZIMUTHS, np.arctan2(y, x)
        first, last = np.floor((towards - half) / step), np.ceil((towards + half) / step)
        columns = np.arange(first, min(last + 1, first + AZIMUTHS)).astype(int) % AZIMUTHS
        found, incidence = solid.meet(rays[columns].reshape(-1, 3), rng)
        found, incidence = (each.reshape(len(columns), -1) for each in (found, incidence))
        nearer = found < distance[columns]
        distance[columns] = np.where(nearer, found, distance[columns])
        reflectivity[columns] = np.where(nearer, solid.reflectivity, reflectivity[columns])
        cosine[columns] = np.where(nearer, incidence, cosine[columns])
    return distance, reflectivity, cosine


def _is_painted(rays: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Whether rays meet the road where there is a line or a zebra crossing."""
    with np.errstate(invalid="ignore"):
        x, y = rays[..., 0] * distance, rays[..., 1] * distance
        dashes = (np.abs(y) < 0.12) & (x % 6 < 3) & (x < _CROSSING_X[0] - 4)
        zebra = (x > 9.6) & (x < 12.2) & (y % 1.2 < 0.6) & (np.abs(y) < _KERB_Y)
        return dashes | zebra


def simulate_sweep(seed: int = 7, voxel_size: float | None = None) -> Scan:
    """One turn of the sensor, column by column; a ray without a return has NaN for x, y and z."""
    rng = np.random.default_rng(seed)
    azimuths = np.arange(AZIMUTHS) * (2 * np.pi / AZIMUTHS)
    level, up = np.cos(_ELEVATIONS), np.sin(_ELEVATIONS)
    rays = np.empty((AZIMUTHS, BEAMS, 3))
    rays[..., 0] = np.cos(azimuths)[:, None] * level
    rays[..., 1] = np.sin(azimuths)[:, None] * level
    rays[..., 2] = up

    distance, reflectivity, cosine = cast_rays(rays, make_street(rng), rng)
    # The returned power decreases with distance, darkness and grazing angles.
    with np.errstate(invalid="ignore"):
        power = reflectivity * cosine * np.minimum((25 / distance) ** 2, 1)
        lost = rng.random(distance.shape) < 0.01 + np.exp(-power / 0.002)
    lost |= (distance < _RANGE_M[0]) | (distance > _RANGE_M[1])
    distance += rng.normal(0, _RANGE_NOISE_M, distance.shape)
    brightness = 255 * reflectivity * (0.35 + 0.65 * cosine)
    intensity = np.clip(brightness + rng.normal(0, 6, distance.shape), 1, 255)

    turn = np.empty((AZIMUTHS, BEAMS, 4), np.float32)
    turn[..., :3] = rays * np.where(lost, np.nan, distance)[..., None]
    turn[..., 3] = np.where(lost, 0, intensity)
    points = turn.reshape(-1, 4)
    return Scan(
        "street",
        f"a simulated street (seed {seed}), {BEAMS} beams x {AZIMUTHS} directions",
        points,
        ("x", "y", "z", "intensity"),
        grid_over((-25.8, -10.2, -2.1), (21.9, 12, 4.5), voxel_size or 0.3),
        sensors=np.zeros((1, 3), np.float32),
        offsets=np.array([0, len(points)]),
        slice_z=1.0 - SENSOR_HEIGHT,
    )
