"""A small dose of fuzz_calls.py, and what it has found."""

from __future__ import annotations

import numpy as np
import pytest

import fuzz_calls
import robocache as rbc

ROWS = np.zeros((8, 4), np.float32)


def test_odd_arguments():
    assert fuzz_calls.run(3000, 1) == []


def test_the_harness_finds_what_it_looks_for():
    def has_no_place(n):
        return [][n]

    def says_nothing(n):
        raise ValueError

    def fails(n):
        raise AttributeError("x")

    for function, wrong in ((says_nothing, "without a text"), (fails, "AttributeError")):
        assert wrong in fuzz_calls.complaint((function, [1], {}))
    assert fuzz_calls.complaint((has_no_place, [1], {})) is None
    assert fuzz_calls.complaint((len, [[1]], {})) is None


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: rbc.Live([np.zeros(3)]), TypeError, r"streams\[0\]: is an ndarray"),
        (lambda: rbc.StatisticsAccumulator(2**63), ValueError, "channels: is 9223372036854775808"),
        (
            lambda: rbc.StatisticsResult(None, 1, 2, 3, 4, 5, 6),
            TypeError,
            "count: is None, expected an array",
        ),
        (lambda: rbc.WindowSpec({"a": [0]}).samples("a"), TypeError, "episodes: is a str"),
        (lambda: _live().push([0, 1], 0, ROWS[0]), TypeError, "stream: is .* expected an int"),
        (lambda: _live().push(0, [object()], ROWS[:1]), TypeError, "times: "),
        (lambda: _live().fuse([None, []]), (TypeError, ValueError), "query_times: "),
        (lambda: rbc.channel_mask(_OnlyDLPack(), []), TypeError, "valid: is a _OnlyDLPack"),
    ],
)
def test_what_was_another_exception(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_what_torch_has_not_written_for_sparse_tensors():
    torch = pytest.importorskip("torch")
    streams = [rbc.Stream(np.ones((2, 1)), np.arange(2.0))]
    with pytest.raises(ValueError, match="^valid: "):
        rbc.channel_mask(torch.ones(3, 1, dtype=torch.bool).to_sparse(), streams)
    with pytest.raises(ValueError, match="^clock_offset: "):
        rbc.WindowStream(ROWS, [0], episode_offsets=[0, 8], clock_offset=torch.zeros(1).to_sparse())


def test_a_window_of_arrays_has_a_repr():
    assert "neutral=" in repr(rbc.Window([0, 1], outside="neutral", neutral=np.zeros(4)))


def _live():
    return rbc.Live([rbc.LiveStream(4, capacity=8)])


class _OnlyDLPack:
    def __dlpack__(self, **named):
        return np.zeros(3).__dlpack__()

    def __dlpack_device__(self):
        return 1, 0


def test_tensors_without_strides_are_refused():
    torch = pytest.importorskip("torch")
    sparse = torch.zeros(6, 5).to_sparse()
    with pytest.raises(TypeError, match="depth: has layout torch.sparse_coo"):
        rbc.torch.unproject(sparse, [2, 2, 1, 1])
    episodes = rbc.Episodes({"state": rbc.Track(ROWS, [0, 8])})
    with pytest.raises(ValueError, match="device: "):
        spec = rbc.WindowSpec({"state": [0]})
        rbc.torch.WindowLoader(episodes, spec, batch_size=4, device="")
