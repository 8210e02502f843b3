#!/usr/bin/env python3
"""Fuse an arm's pose (100 Hz) and its forces (500 Hz) on a camera's 30 Hz clock, in one call."""

import numpy as np

import robocache as rbc

POSES, FORCES, FRAMES = 200, 1100, 60


def record():
    """Poses, forces and the camera's frames, with stamps in nanoseconds since the epoch.

    Two seconds: the arm circles and turns, the gripper closes. 0.2 s of its poses were lost.
    """
    start = 1_700_000_000_000_000_000
    i = np.arange(POSES)
    since_start = i * 10_000_000 + np.where(i < 100, 0, 200_000_000)
    t = 1e-9 * since_start
    poses = np.zeros((POSES, 8), np.float32)  # x y z, a quaternion x y z w, the gripper
    poses[:, 0], poses[:, 1], poses[:, 2] = np.cos(t), np.sin(t), 0.5
    poses[:, 5], poses[:, 6] = np.sin(t / 2), np.cos(t / 2)
    poses[:, 7] = t >= 0.75

    i = np.arange(FORCES)
    forces = np.sin(0.002 * i[:, None] + np.arange(3)).astype(np.float32)
    force_stamps = start + i * 2_000_000 + 4_000_000  # stamped when it arrives: 4 ms late
    frames = start + np.arange(FRAMES) * 1_000_000_000 // 30
    return poses, start + since_start, forces, force_stamps, frames


def main():
    poses, pose_stamps, forces, force_stamps, frames = record()

    pose = rbc.Stream(
        poses,
        pose_stamps,
        # Positions smoothly, rotations at constant speed, the gripper as it last was.
        method=[(0, 3, "pchip"), (3, 4, "slerp"), (7, 1, "previous")],
        max_gap=50e6,  # ns: across a longer hole in the stream, nothing is made up
    )
    force = rbc.Stream(forces, force_stamps, clock_offset=-4_000_000)
    fused, valid = rbc.fuse([pose, force], frames, return_valid=True)

    has_pose, has_force = valid.T
    t = np.arange(FRAMES) / 30
    # float64, as atan2 of float32 would round what is compared
    turned = 2 * np.arctan2(fused[:, 5].astype(float), fused[:, 6].astype(float))
    error = max(
        np.abs(turned - t)[has_pose].max(), np.abs(fused[:, 8] - np.sin(t))[has_force].max()
    )
    print(
        f"of {FRAMES} frames {has_pose.sum()} have a pose and {has_force.sum()} a force; "
        f"rotation and force are off by at most {error:.0e}"
    )
    for i in range(20, 40, 2):
        x, gripper, push = fused[i, [0, 7, 8]]
        mark = "pose" if has_pose[i] else "    "
        print(f"frame {i}  {mark}  x {x:7.4f}  gripper {gripper:.0f}  force {push:7.4f}")


if __name__ == "__main__":
    main()
