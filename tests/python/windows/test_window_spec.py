"""WindowSpec: plain data that goes with any episodes, its samples and its statistics."""

import copy
import datetime
import pickle

import numpy as np
import pytest

import robocache as rbc

OFFSETS = [0, 4, 4, 7]
STATE = np.arange(14.0).reshape(7, 2) ** 1.5
ACTION = np.random.default_rng(1).normal(size=(7, 2))
TIMES = np.array([0, 1, 2, 3, 10, 11, 12]) * 1000


def episodes(unit="M8[ms]"):
    times = TIMES if unit is None else TIMES.astype(unit)
    force = rbc.Track(
        np.arange(14.0)[:, None], [0, 8, 8, 14], times=np.repeat(times, 2), names=["z"]
    )
    return rbc.Episodes(
        {
            "state": rbc.Track(STATE, OFFSETS, times=times),
            "action": rbc.Track(ACTION, OFFSETS, times=times),
            "force": force,
            "camera": rbc.Track(None, OFFSETS, times=times, files=["a", None, "b"]),
        }
    )


RELATIVE = rbc.Transform("subtract", 0, 2, reference=("now", -1))
WINDOWS = {
    "now": rbc.Window([-1, 0], track="state"),
    "action": rbc.Window(range(3), transforms=RELATIVE),
    "force": rbc.Window(
        [datetime.timedelta(seconds=-0.5), datetime.timedelta(0)],
        method="linear",
        max_gap=datetime.timedelta(seconds=2),
    ),
    "camera": [0],
}


def test_the_windows_are_those_of_streams():
    spec, data = rbc.WindowSpec(WINDOWS), episodes()
    which, anchors = spec.samples(data)
    assert which.tolist() == [0, 0, 0, 0, 2, 2, 2] and anchors.tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert spec.counts(data).tolist() == [4, 0, 3]
    cut = spec.cut(data, which, anchors)
    assert list(cut) == list(WINDOWS)
    relative = rbc.Transform("subtract", 0, 2, reference=(0, 1))
    streams = [
        rbc.WindowStream(STATE, [-1, 0], episode_offsets=OFFSETS),
        rbc.WindowStream(ACTION, range(3), episode_offsets=OFFSETS, transforms=relative),
    ]
    for pair, expected in zip(cut.values(), rbc.windows(streams, which, anchors)):
        assert all((a == b).all() for a, b in zip(pair, expected))
    assert cut["camera"][0][:, 0].tolist() == list(range(7))
    assert cut["force"][0].shape == (7, 2, 1) and cut["force"][1].any()


def test_times_of_other_libraries_keep_their_unit():
    torch = pytest.importorskip("torch")
    data = episodes().to(torch.device("cpu"))
    spec = rbc.WindowSpec(WINDOWS)
    samples = spec.samples(data)
    for name, pair in spec.cut(data, *samples).items():
        for a, b in zip(pair, spec.cut(episodes(), *samples)[name]):
            assert isinstance(a, torch.Tensor) and (a.numpy() == b).all()
    again = pickle.loads(pickle.dumps(spec.streams(data)[2]))
    assert again._opened.unit == spec.streams(data)[2]._opened.unit


def test_anchors():
    spec = rbc.WindowSpec({"x": rbc.Window(range(3), track="state")}, anchors=(-1, -2))
    assert spec.counts(episodes()).tolist() == [3, 0, 2]
    assert spec.samples(episodes())[1].tolist() == [-1, 0, 1, -1, 0]
    whole = rbc.WindowSpec({"state": [-1, 0], "action": range(3)}, anchors="whole")
    assert whole.anchors == (1, -2)
    assert whole.samples(episodes())[1].tolist() == [1]
    assert whole.cut(episodes(), *whole.samples(episodes()))["action"][1].all()
    of_force = rbc.WindowSpec({"state": [0], "force": [0]}, anchor="force")
    assert of_force.counts(episodes()).tolist() == [8, 0, 6] and of_force.anchor_stream == 1
    cut = of_force.cut(episodes(), [0, 0], [3, 4])
    assert (cut["state"][0][:, 0] == STATE[[1, 2]]).all()


def test_no_output():
    spec = rbc.WindowSpec({**WINDOWS, "now": rbc.Window([0], track="state", output=False)})
    cut = spec.cut(episodes(), [0], [1])
    assert list(cut) == ["action", "force", "camera"]


def test_dtype():
    spec = rbc.WindowSpec({"state": [0], "action": rbc.Window([0], dtype="f8")}, dtype="float32")
    cut = spec.cut(episodes(), [0], [1])
    assert cut["state"][0].dtype == np.float32 and cut["action"][0].dtype == np.float64


# ---- statistics ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", ["all", "valid", "whole"])
@pytest.mark.parametrize("per_step", [False, True])
def test_statistics(rows, per_step):
    spec, data = rbc.WindowSpec(WINDOWS), episodes()
    stats = spec.statistics(data, rows=rows, per_step=per_step, quantiles=[0.25, 0.9], ddof=1)
    assert list(stats) == ["now", "action", "force"]
    for name, result in stats.items():
        values, valid = spec.cut(data, *spec.samples(data))[name]
        keep = valid if rows != "all" else np.ones_like(valid)
        if rows == "whole":
            keep = np.repeat(valid.all(1)[:, None], valid.shape[1], axis=1)
        groups = (
            [values[:, o][keep[:, o]] for o in range(values.shape[1])]
            if per_step
            else [values[keep]]
        )
        for o, group in enumerate(groups):
            expected = rbc.statistics(group, quantiles=[0.25, 0.9], ddof=1)
            of_step = result.row(o) if per_step else result
            for field in ("count", "min", "max", "mean", "std", "quantiles"):
                np.testing.assert_array_equal(getattr(of_step, field), getattr(expected, field))


@pytest.mark.parametrize("rows", ["all", "valid", "whole"])
def test_statistics_of_steps_whose_references_are_transformed_or_empty(rows):
    """Both statistics computed one step at a time, and those that cannot be."""
    own = rbc.Transform("subtract", 0, 2, reference=("now", 0))
    window = rbc.Window(range(-1, 3), track="action", transforms=RELATIVE, outside="neutral")
    spec = rbc.WindowSpec(
        {
            "other": rbc.Window([0], track="state"),
            "now": rbc.Window([-1, 0], track="state", transforms=own),
            "action": window,
            "filled": rbc.Window([0, 2], track="state", outside="fill", fill_value=9.0),
        }
    )
    for offsets in (OFFSETS, [0, 4, 4, 4]):
        data = rbc.Episodes(
            {
                "state": rbc.Track(STATE[: offsets[-1]], offsets),
                "action": rbc.Track(ACTION, OFFSETS),
            }
        )
        spec = rbc.WindowSpec(spec.windows, anchor="action")
        stats = spec.statistics(data, rows=rows, per_step=True, quantiles=[0.5])
        plain = spec.statistics(data, rows=rows, per_step=True, quantiles=())
        held = rbc.Window(range(-1, 3), track="action", transforms=RELATIVE)
        counted = rbc.WindowSpec({**spec.windows, "action": held}, anchor="action")
        cut = counted.cut(data, *spec.samples(data))
        for name, (values, valid) in cut.items():
            for o in range(values.shape[1]):
                keep = valid.all(1) if rows == "whole" else valid[:, o]
                if rows == "all" and name != "filled":
                    keep = cut["other"][1][:, 0]  # where there are states at all
                expected = rbc.statistics(values[keep, o], quantiles=[0.5])
                for field in ("count", "min", "mean", "std", "nonfinite"):
                    np.testing.assert_array_equal(
                        getattr(stats[name], field)[o], getattr(expected, field)
                    )
                    np.testing.assert_array_equal(
                        getattr(plain[name], field)[o], getattr(expected, field)
                    )
                assert (stats[name].quantiles[o] == expected.quantiles).all() or not keep.any()


def test_statistics_by_name():
    spec, data = rbc.WindowSpec(WINDOWS), episodes()
    stats = spec.statistics(data, rows={"action": "whole"}, quantiles=())
    steps = spec.statistics(data, rows={"action": "whole"}, quantiles=(), per_step=True)
    assert steps["action"].mean.shape == (3, 2) and steps["action"].quantiles.shape == (3, 0, 2)
    assert stats["action"].count.tolist() == [9, 9] and stats["now"].count.tolist() == [14, 14]
    with pytest.raises(
        ValueError, match="^rows: no window with output is named 'leg', expected one of 'now'"
    ):
        spec.statistics(data, rows={"leg": "all"})


def test_statistics_of_no_samples():
    spec = rbc.WindowSpec({"state": range(9)}, anchors="whole")
    stats = spec.statistics(episodes())["state"]
    assert stats.count.tolist() == [0, 0] and np.isnan(stats.mean).all()


def test_statistics_are_not_normalized_and_normalizations_come_from_them():
    spec, data = rbc.WindowSpec(WINDOWS), episodes()
    stats = spec.statistics(data, rows="valid", per_step=True)
    norm = {"action": rbc.Normalization.of(stats["action"], "min_max")}
    scaled = spec.normalized(norm)
    again = scaled.statistics(data, rows="valid", per_step=True)["action"]
    assert (again.mean == stats["action"].mean).all()
    values, valid = scaled.cut(data, *scaled.samples(data))["action"]
    inside = values[valid]
    assert inside.min() == -1 and inside.max() == pytest.approx(1)
    assert spec.windows["action"].normalization is None
    assert scaled.normalized({"action": None}) == spec


# ---- seconds -------------------------------------------------------------------------------------


def test_offsets_from_seconds():
    window = rbc.Window.from_seconds([-1 / 30, 0.0, 0.1, 1 / 3], rate=30, outside="fill")
    assert window.offsets == (-1, 0, 3, 10) and window.outside == "fill"
    with pytest.raises(ValueError, match=r"^seconds\[1\]: is 0.05, which is 1.5 rows at 30 Hz, "):
        rbc.Window.from_seconds([0.0, 0.05], rate=30)


# ---- plain data ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))]
)
def test_copies(copied):
    norm = rbc.Normalization([1.0, 2.0], 3.0)
    spec = rbc.WindowSpec(WINDOWS, anchor="action", anchors=(0, -2), dtype="float32")
    spec = spec.normalized({"action": norm})
    assert copied(spec) == spec and repr(copied(spec)) == repr(spec)
    assert spec != rbc.WindowSpec(WINDOWS) and spec != 3
    with pytest.raises(TypeError):
        spec.windows["leg"] = rbc.Window([0])
    with pytest.raises(AttributeError):
        spec.windows["now"].outside = "fill"


def test_windows_of_arrays():
    window = rbc.Window(np.arange(3), neutral=np.ones((3, 2)), neutral_channels=[True, False])
    assert window == rbc.Window(range(3), neutral=[[1.0] * 2] * 3, neutral_channels=(True, False))
    assert window.offsets == (0, 1, 2) and rbc.Window(np.array([5], "m8[s]")).offsets[0] == (
        np.timedelta64(5, "s")
    )


def test_what_is_shown():
    spec = rbc.WindowSpec(
        {
            **WINDOWS,
            "hand": rbc.Window(
                range(8, 0, -2),
                outside="neutral",
                normalization=rbc.Normalization(1.0, 2.0),
                transforms=rbc.Transform(
                    "se3_relative", 0, 7, reference=(0, 0), rotation="quat_xyzw",
                    out_rotation="rot6d_rows", inverse=True,
                ),
                output=False,
            ),
        },
        anchors=(-1, -5),
        dtype="bfloat16",
    )  # fmt: skip
    assert repr(spec).splitlines() == [
        "window  track   offsets          form",
        "now     state   [-1, 0]          hold",
        "action  action  range(0, 3)      hold, subtract 0:2 of now[-1]",
        "force   force   [-0.5 s, 0 s]    linear, hold",
        "camera  camera  [0]              hold",
        "hand    hand    range(8, 1, -2)  neutral, inverse se3_relative 0:7 of now[0] "
        "in rot6d_rows, normalized, not output",
        "anchors: rows -1 to n - 6 of 'now'",
        "dtype: bfloat16",
    ]
    assert repr(rbc.WindowSpec({"a": [0]}, anchors=(2, 1))).endswith("rows 2 to n of 'a'")
    assert repr(rbc.WindowSpec({"a": [0]}, anchors=(0, 3))).endswith("rows 0 to n + 2 of 'a'")
    assert repr(rbc.Window([1], method="linear", max_gap=0.5)) == (
        "Window([1], method='linear', max_gap=0.5)"
    )


# ---- bad input -----------------------------------------------------------------------------------

REFUSED = {
    "no windows": (lambda: rbc.WindowSpec({}), "windows: got 0, expected 1 or more$"),
    "a list of windows": (
        lambda: rbc.WindowSpec([rbc.Window([0])]),
        "windows: is a list, expected a dict of robocache.Window by name$",
    ),
    "an unknown anchor": (
        lambda: rbc.WindowSpec(WINDOWS, anchor="leg"),
        "anchor: is 'leg', expected one of 'now', 'action', 'force', 'camera'$",
    ),
    "anchors of a word": (
        lambda: rbc.WindowSpec(WINDOWS, anchors="some"),
        r"anchors: is 'some', expected 'whole' or two ints, such as \(0, -49\)$",
    ),
    "a reference to nothing": (
        lambda: rbc.WindowSpec({"action": rbc.Window([0], transforms=RELATIVE)}),
        r"windows\['action'\].transforms\[0\].reference: is 'now', expected one of 'action'$",
    ),
    "an offset that is none": (
        lambda: rbc.WindowSpec(
            {"a": rbc.Window([0], transforms=rbc.Transform("subtract", 0, 1, reference=("a", 1)))}
        ),
        r"windows\['a'\].transforms\[0\].reference: is offset 1 of 'a', which has 1 offsets$",
    ),
    "offsets that are none": (
        lambda: rbc.Window("abc"),
        "offsets: is 'abc', expected numbers$",
    ),
    "durations without a method": (
        lambda: rbc.WindowSpec({"state": rbc.Window([-1, 0.5])}),
        r"offsets: are \[-1, 0.5\], expected whole rows; durations need a method, such as ",
    ),
    "a single offset": (lambda: rbc.Window(3), "offsets: is 3, expected numbers$"),
    "a track that is not there": (
        lambda: rbc.WindowSpec({"leg": [0]}).cut(episodes(), [0], [0]),
        "\"track: is 'leg', expected one of 'state', ",
    ),
    "a window that does not fit": (
        lambda: rbc.WindowSpec(
            {"state": rbc.Window([0], normalization=rbc.Normalization([1.0] * 3, 1.0))}
        ).streams(episodes()),
        r"windows\['state'\].normalization: shape is \[3\], expected \[2\] or \[1, 2\]$",
    ),
    "a name that is unknown": (
        lambda: rbc.WindowSpec(WINDOWS).normalized({"leg": None}),
        "normalizations: has 'leg', expected one of 'now', 'action', 'force', 'camera'$",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    call, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError, KeyError), match=f"^{message}"):
        call()
