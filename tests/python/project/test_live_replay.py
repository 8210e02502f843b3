"""A recording that is replayed from threads gives the same rows as training."""

import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"


@pytest.fixture
def live_replay(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import live_replay

    return live_replay


def counted(text):
    equal, different = re.search(r"(\d+) parts of rows .*; (\d+) differ", text).groups()
    dropped = sum(int(number) for number in re.findall(r"(\d+) dropped", text))
    late = sum(int(number) for number in re.findall(r"(\d+) late", text))
    return int(equal), int(different), late, dropped


@pytest.mark.parametrize("rate", [50, 1000])
def test_of_a_simulated_arm(live_replay, capsys, rate):
    assert live_replay.main(["--rate", str(rate), "--speed", "20", "--history", "3"]) == 0
    equal, different, late, dropped = counted(capsys.readouterr().out)
    assert equal > 1000 and different == 0 and late > 0 and dropped > 0


@pytest.mark.parametrize("name", ["comma2k19", "px4"])
def test_of_a_real_recording(live_replay, capsys, recordings, name):
    assert live_replay.main(["--data", str(recordings / name), "--speed", "50"]) == 0
    equal, different, late, dropped = counted(capsys.readouterr().out)
    assert equal > 1000 and different == 0 and late > 0 and dropped > 0


def test_a_row_that_differs_is_found(live_replay, monkeypatch, capsys):
    replay = live_replay.replay

    def spoiled(*arguments):
        ticks, live, skipped = replay(*arguments)
        ticks[len(ticks) // 2].values[-1, 0] += 1
        return ticks, live, skipped

    monkeypatch.setattr(live_replay, "replay", spoiled)
    assert live_replay.main(["--speed", "50"]) == 1
    assert counted(capsys.readouterr().out)[1] > 0
