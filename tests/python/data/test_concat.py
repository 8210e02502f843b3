"""``data.concat`` and ``Episodes + Episodes``."""

import numpy as np
import pytest

from robocache import Episodes, Track, data


def one(seed, lengths=(3, 4), names=("a", "b"), tasks=None, unit=None):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    times = np.concatenate([np.arange(n) / 10 for n in lengths])
    if unit:
        times = (times * 1e9).astype("i8").view(f"timedelta64[{unit}]")
    values = rng.normal(size=(offsets[-1], len(names)))
    return Episodes({"x": Track(values, offsets, times=times, names=names)}, tasks=tasks)


def test_episodes_follow_each_other():
    a, b, c = one(1, tasks=["p", "q"]), one(2, (5,)), one(3, (2,), tasks=["r"])
    both = data.concat([a, b, c])
    assert both == data.concat([a, b]) + c
    assert both.tasks == ("p", "q", None, "r")
    assert both["x"].lengths.tolist() == [3, 4, 5, 2] and both["x"].names == ("a", "b")
    expected = np.concatenate([each["x"].values for each in (a, b, c)])
    assert np.array_equal(both["x"].values, expected)
    assert (a + b)["x"] == data.concat([a, b])["x"] and len(a) == 2
    assert data.concat([a]) is a


def test_times_keep_their_unit():
    both = one(1, unit="ns") + one(2, unit="ns")
    assert both["x"].time_unit == "timedelta64[ns]"
    with pytest.raises(ValueError, match="x: some of its times have the unit"):
        one(1, unit="ns") + one(2)


def test_data_sets_are_read_when_they_are_used(tmp_path):
    pytest.importorskip("pyarrow")
    for k in range(3):
        one(k, (3, k + 2)).save(tmp_path / str(k))
    sets = [data.open(tmp_path / str(k)) for k in range(3)]
    both = data.concat(sets)
    assert not any(each.is_loaded for each in (both, *sets)) and len(both) == 6
    assert both.lengths("x").tolist() == [3, 2, 3, 3, 3, 4]
    chosen = both.select([5, 0, 1, 3])
    expected = [sets[2].select([1]), sets[0], sets[1].select([1])]
    assert np.array_equal(chosen["x"].values, np.concatenate([e["x"].values for e in expected]))
    assert chosen["x"].lengths.tolist() == [4, 3, 2, 3]
    assert both.select([])["x"].num_rows == 0


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (one(2, names=("a", "c")), r"parts\[1\]: x has the names \('a', 'c'\)"),
        (one(2, names=("a",)), "x has the channels 1, in the first one 2"),
        (Episodes({"y": one(2)["x"]}), r"has other tracks than the first one: 'x', 'y'"),
    ],
)
def test_differences_are_refused(other, text):
    with pytest.raises(ValueError, match=text):
        one(1) + other


def test_other_types_are_refused():
    with pytest.raises(TypeError, match=r"parts\[1\]: is an int"):
        data.concat([one(1), 3])
    with pytest.raises(ValueError, match="got 0"):
        data.concat([])
    with pytest.raises(TypeError):
        one(1) + 3
