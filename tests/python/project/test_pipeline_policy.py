"""examples/python/pipeline_policy.py: from a bag to commands with one pipeline file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("rosbags")
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"


def test_a_policy_commands_what_the_person_did(monkeypatch, capsys, tmp_path):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import pipeline_policy

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for a model this small, more threads only wait for each other
    try:
        arguments = ["--out", str(tmp_path), "--seconds", "20", "--epochs", "40"]
        assert pipeline_policy.main(arguments) == 0
    finally:
        torch.set_num_threads(threads)
    printed = capsys.readouterr().out
    count, off, spread = re.search(
        r"(\d+) commands are off by (\S+) rad; theirs vary by (\S+)", printed
    ).groups()
    assert int(count) > 200
    assert float(off) < 0.5 * float(spread)
    drawing = (tmp_path / "commands.svg").read_text()
    assert drawing.count("<polyline") == 4 and "nan" not in drawing
    assert (tmp_path / "robocache_pipeline.json").exists()
