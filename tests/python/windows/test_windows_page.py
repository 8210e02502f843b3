"""The worked example of docs/concepts/windows.md, on the recording that it reads."""

import re
from pathlib import Path

import numpy as np
import pytest

import robocache as rbc

PAGE = Path(__file__).resolve().parents[3] / "docs" / "concepts" / "windows.md"


def test_the_humanoid_in_15_lines(recordings, capsys):
    pytest.importorskip("torch")
    text = PAGE.read_text()
    code = re.search(r"skipped: reads a data set.*?```python\n(.*?)```", text, re.DOTALL)[1]
    lines = [line for line in code.splitlines() if line.strip() not in ("", ")")]
    assert len(lines) <= 15
    there = code.replace('"unitree_g1/"', repr(f"{recordings / 'unitree_g1'}/"))
    assert there != code and '.to("cuda")' in there
    names = {"rbc": rbc}
    exec(there.replace('.to("cuda")', ""), names)
    batch, episodes = names["batch"], names["episodes"]
    count = len(batch)
    assert batch["state"].shape == (count, 2, 26) and batch["action"].shape == (count, 50, 26)
    which, anchors = batch.episodes.numpy(), batch.anchors.numpy()
    offsets = episodes["state"].episode_offsets
    last = offsets[which + 1] - 1
    rows = offsets[which] + anchors
    state, action = episodes["state"].values, episodes["action"].values
    relative = (
        action[np.minimum(rows[:, None] + np.arange(50), last[:, None])] - state[rows][:, None]
    )
    norm = names["spec"].windows["action"].normalization
    assert (batch["action"].numpy() == norm.apply(relative)).all()
    assert (batch.valid["action"].numpy() == (rows[:, None] + np.arange(50) <= last[:, None])).all()
