"""Windows and relative statistics of data sets, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import robocache as rbc

data = rbc.data


def example(state_channels=2):
    rng = np.random.default_rng(0)
    cuts = [0, 7, 7, 12, 20]
    state = rng.normal(size=(20, state_channels))
    action = rng.normal(size=(20, 2)).astype(np.float32)
    tracks = {"observation.state": rbc.Track(state, cuts), "action": rbc.Track(action, cuts)}
    return data.Episodes(tracks), state, action, cuts


def test_windows():
    episodes, state, action, cuts = example()
    spec = rbc.WindowSpec({"observation.state": [-1, 0], "action": range(3)})
    cut = episodes.windows(spec)
    assert cut["action"][0].shape == (20, 3, 2) and cut["observation.state"][0].shape == (20, 2, 2)
    rows = np.repeat(np.array(cuts[1:]) - 1, np.diff(cuts))  # the last of each row's episode
    for offset in range(3):
        held = np.minimum(np.arange(20) + offset, rows)
        np.testing.assert_array_equal(cut["action"][0][:, offset], action[held])
        np.testing.assert_array_equal(cut["action"][1][:, offset], np.arange(20) + offset <= rows)
    few = episodes.windows(spec, [0, 2], [3, 1])
    np.testing.assert_array_equal(few["action"][0][1, 0], action[8])
    with pytest.raises(ValueError, match="anchors: pass both which and anchors"):
        episodes.windows(spec, [0])


@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize("rows", ["whole", "valid", "all"])
def test_relative_statistics(rows, per_step):
    episodes, state, action, cuts = example()
    horizon = 4
    told = episodes.statistics(relative=horizon, rows=rows, per_step=per_step)
    chunks = [[] for _ in range(horizon)]
    for begin, end in zip(cuts[:-1], cuts[1:]):
        for at in range(begin, end):
            if rows == "whole" and at + horizon > end:
                continue
            for step in range(horizon):
                if rows == "valid" and at + step >= end:
                    continue
                held = min(at + step, end - 1)
                chunks[step].append(np.float32(action[held] - state[at]))
    assert list(told) == ["action"]
    found = told["action"]
    steps = (
        [np.concatenate([np.array(c) for c in chunks])] if not per_step else map(np.array, chunks)
    )
    for step, values in enumerate(steps):
        own = found.row(step) if per_step else found
        assert own.count.tolist() == [len(values)] * 2
        np.testing.assert_allclose(own.mean, values.mean(axis=0), rtol=0, atol=1e-6)
        np.testing.assert_allclose(own.std, values.std(axis=0), rtol=1e-5)
        np.testing.assert_allclose(own.min, values.min(axis=0), atol=1e-6)


def test_what_is_refused():
    episodes = example(3)[0]
    with pytest.raises(ValueError, match="action has 2 channels, but observation.state has 3"):
        episodes.statistics(relative=4)
    with pytest.raises(ValueError, match="relative: is 0, expected 1 or more"):
        episodes.statistics(relative=0, to={"action": "action"})
    with pytest.raises(ValueError, match="cannot be combined with tracks or per_episode"):
        episodes.statistics(["action"], relative=4)
    own = episodes.statistics(relative=1, to={"action": "action"})["action"]
    assert own.min.tolist() == own.max.tolist() == [0, 0]


def test_a_real_set(recordings):
    pytest.importorskip("pyarrow")
    folder = recordings / "lerobot_v3_pusht"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    episodes = data.open(folder)
    told = episodes.statistics(relative=16)["action"]
    assert told.count[0] == sum(max(0, n - 15) for n in episodes.lengths("action")) * 16
    assert told.std[0] < episodes.statistics()["action"].std[0]
