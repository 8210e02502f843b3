"""Windows equal those of training projects, for random episodes, also of a single row."""

import numpy as np
import pytest

import robocache as rbc
import windows_reference as reference

SEEDS = range(8)


def random_episodes(seed, channels=5, dtype=np.float32):
    """Return values [n,D], offsets [E+1], and a list of the episodes."""
    rng = np.random.default_rng(seed)
    lengths = np.concatenate([[1], rng.integers(1, 12, 5)])
    rng.shuffle(lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = rng.normal(size=(offsets[-1], channels)).astype(dtype)
    return values, offsets, [values[a:b] for a, b in zip(offsets, offsets[1:])]


def every_row(offsets):
    lengths = np.diff(offsets)
    return np.repeat(np.arange(len(lengths)), lengths), np.concatenate(
        [np.arange(n) for n in lengths]
    )


def same(result, expected):
    """Also where an array of NumPy is of numbers that nothing was computed of."""
    assert result.shape == expected.shape and (result == expected).all()


# ---- LeRobot -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_lerobot(seed):
    values, offsets, episodes = random_episodes(seed)
    rng = np.random.default_rng(100 + seed)
    fps = 30
    deltas = (rng.integers(-20, 20, 7) / fps).tolist()
    window = rbc.Window.from_seconds([*deltas, deltas[0]], rate=fps)
    spec = rbc.WindowSpec({"state": window})
    data = rbc.Episodes({"state": rbc.Track(values, offsets)})
    which, rows = spec.samples(data)
    cut, valid = spec.cut(data, which, rows)["state"]
    for b, (e, row) in enumerate(zip(which, rows)):
        expected, is_pad = reference.lerobot(episodes[e], row, [*deltas, deltas[0]], fps)
        same(cut[b], expected)
        same(~valid[b], is_pad)


# ---- diffusion_policy ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("horizon", "before", "after"), [(4, 1, 2), (3, 9, 9), (6, 0, 0), (1, 0, 0)]
)
def test_diffusion_policy(seed, horizon, before, after):
    values, offsets, episodes = random_episodes(seed)
    expected = [
        sample
        for episode in episodes
        for sample in reference.diffusion_policy(episode, horizon, before, after)
    ]
    before, after = min(before, horizon - 1), min(after, horizon - 1)
    spec = rbc.WindowSpec({"x": range(horizon)}, anchors=(-before, after - horizon + 1))
    data = rbc.Episodes({"x": rbc.Track(values, offsets)})
    cut, _ = spec.cut(data, *spec.samples(data))["x"]
    assert len(cut) == len(expected)
    if expected:
        same(cut, np.array(expected))


# ---- robomimic -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("stack", "length"), [(1, 1), (4, 1), (1, 5), (3, 3)])
@pytest.mark.parametrize(("pad_stack", "pad_length"), [(True, True), (False, True), (True, False)])
def test_robomimic(seed, stack, length, pad_stack, pad_length):
    values, offsets, episodes = random_episodes(seed)
    expected = [
        sample
        for episode in episodes
        for sample in reference.robomimic(episode, stack, length, pad_stack, pad_length)
    ]
    anchors = (0 if pad_stack else stack - 1, 0 if pad_length else 1 - length)
    spec = rbc.WindowSpec({"x": range(1 - stack, length)}, anchors=anchors)
    data = rbc.Episodes({"x": rbc.Track(values, offsets)})
    cut, valid = spec.cut(data, *spec.samples(data))["x"]
    assert len(cut) == len(expected)
    for b, (rows, mask) in enumerate(expected):
        same(cut[b], rows)
        same(valid[b], mask)


# ---- openpi --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mask", ["11011", "1", "00000", "01100", "11111"])
def test_openpi_delta_actions(seed, mask):
    states, offsets, state_episodes = random_episodes(seed)
    actions = np.random.default_rng(50 + seed).normal(size=states.shape).astype(np.float32)
    mask = [each == "1" for each in mask]
    horizon = 6
    delta = rbc.Transform.subtract(mask, reference=("state", 0))
    spec = rbc.WindowSpec({"state": [0], "actions": rbc.Window(range(horizon), transforms=delta)})
    data = rbc.Episodes(
        {"state": rbc.Track(states, offsets), "actions": rbc.Track(actions, offsets)}
    )
    which, rows = every_row(offsets)
    cut, _ = spec.cut(data, which, rows)["actions"]
    chunks = []
    for b, (e, row) in enumerate(zip(which, rows)):
        episode = actions[offsets[e] : offsets[e + 1]]
        chunk, _ = reference.lerobot(episode, row, np.arange(horizon) / 50, 50)
        chunks.append(chunk)
        same(cut[b], reference.openpi_delta(state_episodes[e][row], chunk, mask))

    # The way back, of what a model gives at each of these states: an episode of one chunk each.
    stream = rbc.WindowStream(
        cut.reshape(-1, 5),
        range(horizon),
        episode_offsets=np.arange(len(cut) + 1) * horizon,
        transforms=rbc.Transform.subtract(mask, reference=(1, 0), inverse=True),
    )
    now = rbc.WindowStream(
        states[offsets[which] + rows], [0], episode_offsets=np.arange(len(cut) + 1)
    )
    (absolute, _), _ = rbc.windows([stream, now], np.arange(len(cut)), np.zeros(len(cut), int))
    for b, (e, row) in enumerate(zip(which, rows)):
        same(absolute[b], reference.openpi_absolute(state_episodes[e][row], cut[b], mask))


# ---- GR00T ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_gr00t_relative_actions_and_their_statistics(seed):
    states, offsets, state_episodes = random_episodes(seed, dtype=np.float64)
    actions = np.random.default_rng(50 + seed).normal(size=states.shape)
    horizon = 3
    data = rbc.Episodes(
        {"state": rbc.Track(states, offsets), "action": rbc.Track(actions, offsets)}
    )
    relative = rbc.Transform("subtract", 0, 5, reference=("state", 0))
    spec = rbc.WindowSpec(
        {"state": [0], "action": rbc.Window(range(horizon), transforms=[relative])},
        anchors="whole",
    )
    action_episodes = [actions[a:b] for a, b in zip(offsets, offsets[1:])]
    chunks = np.concatenate(
        [reference.gr00t_relative(*pair, horizon) for pair in zip(state_episodes, action_episodes)]
    )
    cut, valid = spec.cut(data, *spec.samples(data))["action"]
    same(cut, chunks)
    assert valid.all()

    expected = reference.gr00t_relative_statistics(chunks)
    # Anchors whose windows are not whole are excluded.
    padded = rbc.WindowSpec(spec.windows)
    for each, rows in ((spec, "all"), (padded, "whole")):
        stats = each.statistics(data, rows=rows, per_step=True, quantiles=[0.01, 0.99])["action"]
        assert (stats.count == len(chunks)).all()
        same(stats.min, expected["min"])
        same(stats.max, expected["max"])
        same(stats.quantile(0.01), expected["q01"])
        same(stats.quantile(0.99), expected["q99"])
        np.testing.assert_allclose(stats.mean, expected["mean"], rtol=0, atol=1e-15)
        np.testing.assert_allclose(stats.std, expected["std"], rtol=1e-14)

    # Normalized by them, step by step.
    norm = rbc.Normalization.of(stats, "min_max", style="gr00t")
    scaled, _ = spec.normalized({"action": norm}).cut(data, *spec.samples(data))["action"]
    same(scaled, norm.apply(chunks))


# ---- Octo ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("window", "horizon"), [(1, 1), (2, 4), (5, 3)])
def test_octo(seed, window, horizon):
    values, offsets, episodes = random_episodes(seed)
    stream = rbc.WindowStream(values, range(1 - window, 1), episode_offsets=offsets)
    chunk = rbc.WindowStream(values, range(horizon), episode_offsets=offsets)
    for e, episode in enumerate(episodes):
        steps = np.arange(len(episode))
        history, mask, actions = reference.octo(episode, episode, window, horizon)
        ((observed, valid),) = rbc.windows([stream], np.full(len(steps), e), steps)
        same(observed, history)
        same(valid, mask)
        # A chunk for each row of a history: its anchors one by one.
        anchors = np.maximum(steps[:, None] + np.arange(1 - window, 1), 0).ravel()
        ((chunks, _),) = rbc.windows([chunk], np.full(len(anchors), e), anchors)
        same(chunks.reshape(actions.shape), actions)


# ---- OpenVLA -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_openvla_neutral_actions(seed):
    values, offsets, episodes = random_episodes(seed)
    absolute = np.array([False, False, True, False, True])
    norm = rbc.Normalization(
        shift=np.arange(5) / 4, scale=np.arange(5) - 1.5, bias=-1.0, low=-1.0, high=1.0
    )
    past, future = 3, 7
    stream = rbc.WindowStream(
        values,
        range(1 - past, future + 1),
        episode_offsets=offsets,
        normalization=norm,
        outside="neutral",
        neutral_channels=~absolute,
    )
    which, rows = every_row(offsets)
    ((cut, valid),) = rbc.windows([stream], which, rows)
    for b, (e, row) in enumerate(zip(which, rows)):
        normalized = norm.apply(episodes[e])
        same(cut[b], reference.openvla_actions(normalized, row, past, future + 0, absolute))
    assert not valid.all()


# ---- UMI -----------------------------------------------------------------------------------------


def umi_episodes(seed):
    """Positions and rotations [n,3], as quaternions in a pose too, of episodes of random motion."""
    rng = np.random.default_rng(seed)
    lengths = [1, *rng.integers(2, 12, 4)]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    position = rng.normal(size=(offsets[-1], 3))
    rotvec = rng.normal(size=(offsets[-1], 3)) * 0.8
    quaternion = rbc.convert_rotations(rotvec, "rotvec", "quat_xyzw")
    return position, rotvec, np.concatenate([position, quaternion], axis=1), offsets


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("latency", [0.0, -1.3, 0.6, 2.0])
@pytest.mark.parametrize("kind", ["relative", "rel", "delta"])
def test_umi(seed, latency, kind):
    position, rotvec, pose, offsets = umi_episodes(seed)
    times = np.concatenate([np.arange(n) for n in np.diff(offsets)]).astype(np.float64)
    horizon, every, chunk = 3, 2, 5
    names = {"relative": "se3_relative", "rel": "se3_world", "delta": "se3_step"}
    poses = {"rotation": "quat_xyzw", "out_rotation": "rot6d_rows", "reference": (0, -1)}
    observed = rbc.Transform(names[kind], 0, 7, **poses)
    streams = [
        rbc.WindowStream(
            pose,
            [latency - k * every for k in reversed(range(horizon))],
            episode_offsets=offsets,
            times=times,
            method=[(0, 3, "linear"), (3, 4, "slerp")],
            transforms=[observed],
        ),
        rbc.WindowStream(
            pose, range(chunk), episode_offsets=offsets, times=times, transforms=[observed]
        ),
    ]
    which, rows = every_row(offsets)
    (history, _), (actions, valid) = rbc.windows(streams, which, rows, anchor_stream=1)
    for b, (e, row) in enumerate(zip(which, rows)):
        within = slice(offsets[e], offsets[e + 1])
        steps = (horizon, every, latency)
        seen = reference.pose_matrix(
            reference.umi_observation(position[within], row, *steps),
            reference.umi_observation(rotvec[within], row, *steps, rotation=True),
        )
        expected = reference.pose10d(reference.umi_pose(seen, seen[-1], kind))
        np.testing.assert_allclose(history[b], expected, rtol=0, atol=1e-12)
        future = reference.pose_matrix(
            reference.umi_actions(position[within], row, chunk, 1),
            reference.umi_actions(rotvec[within], row, chunk, 1),
        )
        relative = reference.umi_pose(future, seen[-1], kind)
        np.testing.assert_allclose(actions[b], reference.pose10d(relative), rtol=0, atol=1e-12)
        same(valid[b], row + np.arange(chunk) < np.diff(offsets)[e])
        back = reference.umi_pose_back(relative, seen[-1], kind)
        np.testing.assert_allclose(back, future, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["relative", "rel", "delta"])
def test_umi_actions_back_to_absolute_ones(seed, kind):
    position, rotvec, pose, offsets = umi_episodes(seed)
    names = {"relative": "se3_relative", "rel": "se3_world", "delta": "se3_step"}
    chunk, count = 4, len(pose)
    future = reference.pose_matrix(
        np.random.default_rng(seed).normal(size=(count, chunk, 3)),
        np.random.default_rng(seed + 9).normal(size=(count, chunk, 3)),
    )
    base = reference.pose_matrix(position, rotvec)
    relative = [reference.umi_pose(*pair, kind) for pair in zip(future, base)]
    given = reference.pose10d(np.array(relative)).reshape(-1, 9)
    inverse = rbc.Transform(
        names[kind],
        0,
        9,
        reference=(1, 0),
        rotation="rot6d_rows",
        reference_rotation="quat_xyzw",
        inverse=True,
    )
    streams = [
        rbc.WindowStream(
            given,
            range(chunk),
            episode_offsets=np.arange(count + 1) * chunk,
            transforms=[inverse],
        ),
        rbc.WindowStream(pose, [0], episode_offsets=np.arange(count + 1)),
    ]
    (absolute, _), _ = rbc.windows(streams, np.arange(count), np.zeros(count, int))
    np.testing.assert_allclose(absolute, reference.pose10d(future), rtol=0, atol=1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_umi_every_other_action(seed):
    position, _, _, offsets = umi_episodes(seed)
    stream = rbc.WindowStream(position, range(0, 12, 3), episode_offsets=offsets)
    which, rows = every_row(offsets)
    ((cut, valid),) = rbc.windows([stream], which, rows)
    for b, (e, row) in enumerate(zip(which, rows)):
        episode = position[offsets[e] : offsets[e + 1]]
        expected = reference.umi_actions(episode, row, 4, 3)
        # Past the end UMI repeats the last row that it took, which may not be the episode's last.
        same(cut[b][valid[b]], expected[valid[b]])
