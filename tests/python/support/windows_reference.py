"""The loaders of other projects, written from their documentation, one sample at a time.

An episode is a separate NumPy array [n,...]. Loops are plain, so that each rule can be read.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import interp1d
from scipy.spatial.transform import Rotation, Slerp

# ---- LeRobot -------------------------------------------------------------------------------------


def lerobot(episode, row, delta_timestamps, fps):
    """`dataset[i][key]` and `[f"{key}_is_pad"]`: rows at whole multiples of 1 / fps from this one.

    A row beyond the episode is its first or last one, and is marked as padding.
    """
    values, is_pad = [], []
    for delta in delta_timestamps:
        wanted = row + round(delta * fps)
        is_pad.append(not 0 <= wanted < len(episode))
        values.append(episode[min(max(wanted, 0), len(episode) - 1)])
    return np.array(values), np.array(is_pad)


# ---- diffusion_policy ----------------------------------------------------------------------------


def diffusion_policy(episode, horizon, pad_before, pad_after):
    """All samples of SequenceSampler: every start for which the padding is not exceeded.

    What lacks is a repetition of the first or the last row. No padding is longer than horizon - 1.
    """
    pad_before = min(max(pad_before, 0), horizon - 1)
    pad_after = min(max(pad_after, 0), horizon - 1)
    samples = []
    for start in range(-pad_before, len(episode) - horizon + pad_after + 1):
        rows = [episode[k] for k in range(start, start + horizon) if 0 <= k < len(episode)]
        before = sum(k < 0 for k in range(start, start + horizon))
        after = horizon - before - len(rows)
        samples.append(np.array([rows[0]] * before + rows + [rows[-1]] * after))
    return samples


# ---- robomimic -----------------------------------------------------------------------------------


def robomimic(episode, frame_stack, seq_length, pad_frame_stack=True, pad_seq_length=True):
    """All samples of SequenceDataset, and their pad_mask, which is True where nothing is padded.

    Each has frame_stack - 1 rows before the index, and seq_length from it on.
    """
    first = 0 if pad_frame_stack else frame_stack - 1
    last = len(episode) - (0 if pad_seq_length else seq_length - 1)
    samples = []
    for index in range(first, last):
        rows = np.arange(index - frame_stack + 1, index + seq_length)
        inside = (rows >= 0) & (rows < len(episode))
        kept = episode[rows[inside]]
        padded = np.concatenate(
            [
                np.repeat(kept[:1], (rows < 0).sum(), axis=0),
                kept,
                np.repeat(kept[-1:], (rows >= len(episode)).sum(), axis=0),
            ]
        )
        samples.append((padded, inside))
    return samples


# ---- openpi --------------------------------------------------------------------------------------


def openpi_delta(state, actions, mask):
    """DeltaActions: the channels of the mask minus the state's; a mask may be shorter than both."""
    result = actions.copy()
    for channel, chosen in enumerate(mask):
        if chosen:
            result[..., channel] -= state[channel]
    return result


def openpi_absolute(state, actions, mask):
    """AbsoluteActions, the way back."""
    result = actions.copy()
    for channel, chosen in enumerate(mask):
        if chosen:
            result[..., channel] += state[channel]
    return result


# ---- GR00T ---------------------------------------------------------------------------------------


def gr00t_relative(states, actions, horizon):
    """Return all whole chunks of one episode minus the state at their begin, [windows,T,D]."""
    chunks = []
    for row in range(len(actions) - horizon + 1):
        chunks.append(actions[row : row + horizon] - states[row])
    return np.array(chunks).reshape(-1, horizon, actions.shape[1])


def gr00t_relative_statistics(chunks):
    """Return statistics of each step and channel, [T,D], over all chunks of all episodes."""
    return {
        "min": chunks.min(0),
        "max": chunks.max(0),
        "mean": chunks.mean(0),
        "std": chunks.std(0),
        "q01": np.quantile(chunks, 0.01, axis=0),
        "q99": np.quantile(chunks, 0.99, axis=0),
    }


# ---- Octo ----------------------------------------------------------------------------------------


def octo(observations, actions, window_size, action_horizon):
    """Return observations [T,W,D], timestep_pad_mask [T,W] and actions [T,W,H,D] of a trajectory.

    A history begins with repetitions of the first row. The chunk of actions of each of its rows
    begins at that row, and ends with repetitions of the last action.
    """
    length = len(actions)
    histories, masks, chunks = [], [], []
    for t in range(length):
        steps = [t - window_size + 1 + w for w in range(window_size)]
        masks.append([step >= 0 for step in steps])
        rows = [max(step, 0) for step in steps]
        histories.append([observations[row] for row in rows])
        chunks.append(
            [[actions[min(row + h, length - 1)] for h in range(action_horizon)] for row in rows]
        )
    return np.array(histories), np.array(masks), np.array(chunks)


# ---- OpenVLA -------------------------------------------------------------------------------------


def openvla_actions(normalized, row, window_size, future, absolute_mask):
    """A chunk of actions that are normalized already: window_size - 1 of the past, now, the future.

    Before the begin, the first action is repeated. Past the end, absolute channels hold the last
    action, and the others are 0 (no motion).
    """
    chunk = []
    for wanted in range(row - window_size + 1, row + future + 1):
        action = normalized[min(max(wanted, 0), len(normalized) - 1)].copy()
        if wanted > len(normalized) - 1:
            action[~absolute_mask] = 0
        chunk.append(action)
    return np.array(chunk)


# ---- UMI -----------------------------------------------------------------------------------------


def umi_observation(episode, row, horizon, down_sample_steps, latency_steps, rotation=False):
    """The history of a low-dimensional key, at times between rows, for a sensor that is late.

    Times are rows, held within the episode. Positions are interpolated linearly; rotations, which
    are rotation vectors here, on the shortest arc.
    """
    steps = row - down_sample_steps * np.arange(horizon)[::-1] + latency_steps
    steps = np.clip(steps.astype(np.float64), 0, len(episode) - 1)
    if len(episode) == 1:
        return np.repeat(episode, horizon, axis=0)
    rows = np.arange(len(episode))
    if rotation:
        return Slerp(rows, Rotation.from_rotvec(episode))(steps).as_rotvec()
    return interp1d(rows, episode, axis=0, assume_sorted=True)(steps)


def umi_actions(episode, row, horizon, down_sample_steps):
    """A chunk of actions, with repetitions of the last one of the episode that it meets.

    That is the last of every down_sample_steps-th row from this one on.
    """
    chunk = list(episode[row::down_sample_steps][:horizon])
    return np.array(chunk + [chunk[-1]] * (horizon - len(chunk)))


def pose_matrix(position, rotvec):
    """[...,4,4]"""
    matrix = np.zeros((*position.shape[:-1], 4, 4))
    matrix[..., :3, 3] = position
    matrix[..., :3, :3] = (
        Rotation.from_rotvec(rotvec.reshape(-1, 3)).as_matrix().reshape(*rotvec.shape[:-1], 3, 3)
    )
    matrix[..., 3, 3] = 1
    return matrix


def umi_pose(poses, base, representation):
    """convert_pose_mat_rep: [T,4,4] relative to [4,4], as "relative", "rel" or "delta"."""
    result = poses.copy()
    if representation == "relative":
        return np.linalg.inv(base) @ poses
    for t in range(len(poses)):
        is_step = representation == "delta" and t > 0
        other = poses[t - 1] if is_step else base
        result[t, :3, 3] = poses[t, :3, 3] - other[:3, 3]
        result[t, :3, :3] = poses[t, :3, :3] @ other[:3, :3].T
    return result


def umi_pose_back(poses, base, representation):
    """The way back of umi_pose."""
    result = poses.copy()
    if representation == "relative":
        return base @ poses
    last = base
    for t in range(len(poses)):
        result[t, :3, 3] = poses[t, :3, 3] + last[:3, 3]
        result[t, :3, :3] = poses[t, :3, :3] @ last[:3, :3]
        if representation == "delta":
            last = result[t]
    return result


def pose10d(poses):
    """[...,9]: the position and the first two rows of the rotation."""
    return np.concatenate([poses[..., :3, 3], poses[..., 0, :3], poses[..., 1, :3]], axis=-1)
