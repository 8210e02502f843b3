"""Depth images with their colours: files in four encodings of depth, or simulated."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

#: Units per metre of the result of ``read_depth``, by encoding.
ENCODINGS = {"millimetres": 1000.0, "tum": 5000.0, "sun": 1000.0, "nyu": 1.0}


@dataclass(frozen=True)
class Frames:
    """Images of one camera, one after the other."""

    depth: np.ndarray  #: [B,H,W] uint16 or float32
    colors: np.ndarray  #: [B,H,W,3] uint8
    intrinsics: np.ndarray  #: [4]: fx, fy, cx, cy
    depth_scale: float  #: units of depth per metre
    words: str  #: their source, to print


def read_depth(path: Path, encoding: str = "millimetres") -> np.ndarray:
    """Read depth as uint16 units, or NYU's raw disparities as float32 metres; 0 means no depth."""
    from PIL import Image

    raw = np.asarray(Image.open(path)).astype(np.uint16)
    if encoding == "sun":  # SUN3D rotates the bits
        return raw >> 3 | raw << 13
    if encoding == "nyu":  # a Kinect's disparity, little-endian, although PGM is not; 2047 is none
        raw = raw.byteswap()
        metres = 351.3 / (1092.5 - raw.astype(np.float32))
        return np.where(raw < 1084, metres, 0).astype(np.float32)
    return raw


def read_colors(path: Path) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(path).convert("RGB"))


def read_intrinsics(path: Path) -> np.ndarray:
    """Read fx, fy, cx, cy from a file of Open3D, which stores the matrix by columns."""
    matrix = json.loads(path.read_text())["intrinsic_matrix"]
    return np.array([matrix[0], matrix[4], matrix[6], matrix[7]])


def read_frames(folder: Path, encoding: str = "millimetres") -> Frames:
    """Read a folder with depth/, color/ and a camera*.json, as in Open3D's examples."""
    cameras = sorted(folder.glob("camera*.json"))
    depths = sorted((folder / "depth").glob("*.png"))
    colors = sorted((folder / "color").glob("*.[jp][pn]g"))
    if not cameras or not depths or len(depths) != len(colors):
        raise ValueError(
            f"{folder}: has {len(cameras)} camera*.json, {len(depths)} depth/*.png and "
            f"{len(colors)} color/*, expected a camera and as many colours as depths"
        )
    return Frames(
        np.stack([read_depth(path, encoding) for path in depths]),
        np.stack([read_colors(path) for path in colors]),
        read_intrinsics(cameras[-1]),
        ENCODINGS[encoding],
        f"{len(depths)} frames of {folder.name}, camera {cameras[-1].name}",
    )


def simulate_frames(count: int = 4, height: int = 240, width: int = 320) -> Frames:
    """Simulate three balls on a table in front of a wall; the camera moves to the right."""
    focal = 0.9 * width
    intrinsics = np.array([focal, focal, (width - 1) / 2, (height - 1) / 2])
    v, u = np.mgrid[:height, :width]
    rays = np.stack([(u - intrinsics[2]) / focal, (v - intrinsics[3]) / focal, np.ones_like(u)], -1)
    balls = [((-0.25, 0.1, 1.1), 0.15, (200, 60, 50)), ((0.1, 0.14, 0.9), 0.11, (60, 160, 80))]
    balls.append(((0.3, 0.05, 1.4), 0.2, (60, 90, 200)))
    depth = np.zeros((count, height, width))
    colors = np.zeros((count, height, width, 3), np.uint8)
    for i in range(count):
        shift = np.array([0.06 * i, 0, 0])
        nearest = np.full((height, width), 1.8)  # the wall
        colors[i] = 205
        with np.errstate(divide="ignore"):
            table = np.where(rays[..., 1] > 0, 0.25 / rays[..., 1], np.inf)
        colors[i][table < nearest] = (150, 110, 70)
        nearest = np.minimum(nearest, table)
        for center, radius, color in balls:
            away = np.array(center) - shift
            along = rays @ away
            squared = (rays**2).sum(-1)
            root = along**2 - squared * (away @ away - radius**2)
            hit = (along - np.sqrt(np.maximum(root, 0))) / squared
            seen = (root > 0) & (hit < nearest)
            nearest = np.where(seen, hit, nearest)
            colors[i][seen] = color
        depth[i] = nearest
    depth[np.random.default_rng(1).random(depth.shape) < 0.05] = (
        0  # lost pixels, as in real cameras
    )
    return Frames(
        np.round(depth * 1000).astype(np.uint16), colors, intrinsics, 1000.0, f"{count} simulated"
    )
