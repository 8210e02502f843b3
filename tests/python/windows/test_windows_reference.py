"""The references of windows against cases that were worked out by hand."""

import numpy as np

import windows_reference as reference

ROWS = np.array([[10.0], [11.0], [12.0], [13.0]])
ONE = ROWS[:1]


def flat(array):
    return np.asarray(array)[..., 0].tolist()


def test_lerobot():
    values, is_pad = reference.lerobot(ROWS, 1, [-0.2, 0.0, 0.1, 0.4], 10)
    assert flat(values) == [10, 11, 12, 13] and is_pad.tolist() == [True, False, False, True]
    values, is_pad = reference.lerobot(ONE, 0, [-0.1, 0.0, 0.1], 10)
    assert flat(values) == [10, 10, 10] and is_pad.tolist() == [True, False, True]


def test_diffusion_policy():
    samples = reference.diffusion_policy(ROWS, 3, 1, 1)
    assert list(map(flat, samples)) == [
        [10, 10, 11],
        [10, 11, 12],
        [11, 12, 13],
        [12, 13, 13],
    ]
    assert list(map(flat, reference.diffusion_policy(ONE, 2, 1, 9))) == [[10, 10], [10, 10]]
    assert reference.diffusion_policy(ONE, 2, 0, 0) == []


def test_robomimic():
    samples = reference.robomimic(ROWS, 2, 2)
    assert [flat(rows) for rows, _ in samples] == [
        [10, 10, 11],
        [10, 11, 12],
        [11, 12, 13],
        [12, 13, 13],
    ]
    assert samples[0][1].tolist() == [False, True, True]
    assert [flat(rows) for rows, _ in reference.robomimic(ROWS, 2, 2, False, False)] == [
        [10, 11, 12],
        [11, 12, 13],
    ]


def test_openpi():
    state, actions = np.array([1, 2, 3]), np.array([[3, 4, 5], [5, 6, 7]])
    delta = reference.openpi_delta(state, actions, [False, True])
    assert delta.tolist() == [[3, 2, 5], [5, 4, 7]]
    assert (reference.openpi_absolute(state, delta, [False, True]) == actions).all()


def test_gr00t():
    chunks = reference.gr00t_relative(ROWS - 1, ROWS, 2)
    assert flat(chunks) == [[1, 2], [1, 2], [1, 2]]
    assert reference.gr00t_relative(ONE, ONE, 2).shape == (0, 2, 1)
    assert flat(reference.gr00t_relative_statistics(chunks)["mean"]) == [1, 2]


def test_octo():
    history, mask, chunks = reference.octo(ROWS, ROWS, 2, 3)
    assert flat(history) == [[10, 10], [10, 11], [11, 12], [12, 13]]
    assert mask[:2].tolist() == [[False, True], [True, True]]
    assert flat(chunks[0]) == [[10, 11, 12], [10, 11, 12]]
    assert flat(chunks[3]) == [[12, 13, 13], [13, 13, 13]]


def test_openvla():
    both = np.repeat(ROWS, 2, axis=1)
    chunk = reference.openvla_actions(both, 3, 2, 1, np.array([False, True]))
    assert chunk.tolist() == [[12, 12], [13, 13], [0, 13]]
    assert reference.openvla_actions(both, 0, 2, 0, np.array([False, True])).tolist() == [
        [10, 10],
        [10, 10],
    ]


def test_umi():
    assert flat(reference.umi_observation(ROWS, 2, 3, 1, -0.5)) == [10, 10.5, 11.5]
    assert flat(reference.umi_observation(ONE, 0, 2, 1, 0.5)) == [10, 10]
    assert flat(reference.umi_actions(ROWS, 1, 3, 2)) == [11, 13, 13]
    turn = np.array([[0, 0, 0.0], [0, 0, np.pi / 2]])
    poses = reference.pose_matrix(np.array([[1.0, 0, 0], [1.0, 2, 0]]), turn)
    relative = reference.umi_pose(poses, poses[1], "relative")
    np.testing.assert_allclose(relative[0, :3, 3], [-2, 0, 0], atol=1e-15)
    np.testing.assert_allclose(reference.umi_pose(poses, poses[0], "rel")[1, :3, 3], [0, 2, 0])
    steps = reference.umi_pose(poses, poses[0], "delta")
    np.testing.assert_allclose(steps[0], np.eye(4), atol=1e-15)
    for kind in ("relative", "rel", "delta"):
        back = reference.umi_pose_back(reference.umi_pose(poses, poses[0], kind), poses[0], kind)
        np.testing.assert_allclose(back, poses, atol=1e-15)
    assert reference.pose10d(poses).shape == (2, 9)
