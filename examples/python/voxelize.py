#!/usr/bin/env python3
"""Voxelize a depth camera's points of a floor with a box on it.

Count the points in each voxel, and average the points of each occupied voxel.
"""

import numpy as np

import robocache as rbc

POINTS = 4000
GRID = {"origin": (0, 0, 0), "voxel_size": 0.25, "shape": (12, 8, 4)}


def look():
    """x y z in metres, and an intensity.

    Spread evenly over 3 m x 2 m. The box is 60 cm high, and brighter; every 50th ray has no return.
    """
    i = np.arange(POINTS)
    x, y = 3 * np.fmod(i * 0.7548776662, 1), 2 * np.fmod(i * 0.5698402910, 1)
    on_box = (x > 1) & (x < 1.75) & (y > 0.5) & (y < 1)
    z = np.where(i % 50 == 0, np.nan, np.where(on_box, 0.6, 0.1))
    return np.stack([x, y, z, np.where(on_box, 0.8, 0.2)], axis=1).astype(np.float32)


def main():
    points = look()
    counts, outside = rbc.voxelize(
        points, reduction="count", return_num_points_outside=True, **GRID
    )
    voxels = rbc.voxelize_sparse(points, **GRID).trimmed()  # the mean of the points' columns

    print(
        f"{POINTS - outside} points are in {voxels.num_voxels} voxels, {outside} outside; "
        "from above, by height:"
    )
    highest = np.where(counts > 0, np.arange(4), -1).max(axis=2)
    for row in highest.T[::-1]:
        print("".join(" " if z < 0 else str(z) for z in row))
    for (_, x, y, z), size, mean in zip(voxels.coords, voxels.points_per_voxel, voxels.features):
        if z > 0:  # not the floor
            place = " ".join(f"{m:.2f}" for m in mean[:3])
            print(f"voxel {x} {y} {z}: {size:2} points around {place}, intensity {mean[3]:.1f}")


if __name__ == "__main__":
    main()
