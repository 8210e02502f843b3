#!/usr/bin/env python3
"""Align a robot's joints, recorded at about 100 Hz with jitter, on a camera's 30 Hz clock."""

import numpy as np

import robocache as rbc

SAMPLES, FRAMES, JOINTS = 200, 60, 7


def record():
    """Positions, their stamps, and the stamps of the frames, in nanoseconds since the epoch.

    Two seconds of motion. The joint stamps jitter by up to 4 ms, and 0.2 s were lost at second 1.
    """
    start = 1_700_000_000_000_000_000
    positions = np.empty((SAMPLES, JOINTS), np.float32)
    stamps = np.empty(SAMPLES, np.int64)
    seed = 1
    for i in range(SAMPLES):
        seed = (seed * 1664525 + 1013904223) % 2**32
        jitter = (seed >> 8) % 8_000_001 - 4_000_000
        since_start = i * 10_000_000 + jitter + (0 if i < 100 else 200_000_000)
        stamps[i] = start + since_start
        positions[i] = np.sin(1e-9 * since_start + np.arange(JOINTS))
    frames = start + np.arange(FRAMES) * 1_000_000_000 // 30
    return positions, stamps, frames


def main():
    positions, stamps, frames = record()

    # Tensors on a GPU would be resampled there, and the call would return at once.
    aligned, valid = rbc.resample(
        positions,
        stamps,
        frames,
        max_gap=50e6,  # ns: across a longer hole in the stream, nothing is made up
        return_valid=True,
    )

    expected = np.sin(np.arange(FRAMES)[:, None] / 30 + np.arange(JOINTS))
    error = np.abs(aligned - expected)[valid].max()
    print(f"{valid.sum()} of {FRAMES} frames have joint positions, off by at most {error:.0e}")
    for i in range(28, 38):
        mark = "valid" if valid[i] else "     "
        print(f"frame {i}  {mark}  {aligned[i, 0]:7.4f} {aligned[i, 1]:7.4f}")


if __name__ == "__main__":
    main()
