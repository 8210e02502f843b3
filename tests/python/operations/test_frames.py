"""rbc.resample_frame and rbc.fuse_frames: a table in, a table out."""

import numpy as np
import pytest

import robocache as rbc

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

INDEX = pandas.date_range("2024-05-01", periods=5, freq="100ms", name="t")
HALF = np.sqrt(0.5)
POSE = pandas.DataFrame(
    {
        "x": [0.0, 1, 2, 3, 4],
        "q_x": [0.0, 0, 0, 0, 0],
        "label": [1, 1, 2, 2, 3],
        "q_y": [0.0, 0, 0, 0, 0],
        "q_z": [0, HALF, 1, 1, 1],
        "q_w": [1, HALF, 0, 0, 0],
        "closed": [False, True, True, False, False],
    },
    index=INDEX,
)
CLOCK = INDEX[:2] + pandas.Timedelta("50ms")
METHODS = {"q_*": "slerp", "label": "nearest", "clo*": "previous"}


def test_pandas():
    out = rbc.resample_frame(POSE, CLOCK, methods=METHODS)
    assert list(out.columns) == [*POSE.columns, "valid"] and out.index.equals(CLOCK)
    assert out.index.name == "t"
    assert out["x"].tolist() == [0.5, 1.5] and out["valid"].tolist() == [True, True]
    assert out["label"].tolist() == [1, 1] and out["label"].dtype == np.int64
    assert out["closed"].tolist() == [False, True] and out["closed"].dtype == np.bool_
    turned = rbc.resample(POSE[["q_x", "q_y", "q_z", "q_w"]], INDEX, CLOCK, method="slerp")
    np.testing.assert_array_equal(out[["q_x", "q_y", "q_z", "q_w"]], turned)


def test_polars_is_the_same():
    given = polars.DataFrame({"t": INDEX.to_numpy(), **{c: POSE[c].to_numpy() for c in POSE}})
    clock = polars.Series(CLOCK.to_numpy())
    out = rbc.resample_frame(given, clock, time="t", methods=METHODS)
    expected = rbc.resample_frame(POSE, CLOCK, methods=METHODS)
    assert isinstance(out, polars.DataFrame) and out.columns == ["t", *expected.columns]
    assert out["t"].to_list() == clock.to_list()
    for column in expected:
        assert out[column].to_list() == expected[column].tolist()


def test_gaps_are_missing_and_noted():
    holes = POSE[["x", "label"]].iloc[[0, 1, 4]]
    out = rbc.resample_frame(holes, INDEX, max_gap=pandas.Timedelta("100ms"))
    assert out["valid"].tolist() == [True, True, False, False, True]
    assert (
        out["x"].isna().sum() == 2 and out["label"].isna().sum() == 2
    )  # label is of float64 by linear
    out = rbc.resample_frame(holes, INDEX, method="previous", tolerance=np.timedelta64(100, "ms"))
    assert out["label"].tolist() == [1, 1, 1, 0, 3] and out["label"].dtype == np.int64
    out = rbc.resample_frame(holes, INDEX, max_gap=pandas.Timedelta("100ms"), fill_value=-1)
    assert out["x"].tolist() == [0, 1, -1, -1, 4]
    mixed = {"methods": {"label": "previous"}, "tolerance": pandas.Timedelta("100ms")}
    assert rbc.resample_frame(holes, INDEX, **mixed)["valid"].tolist() == [1, 1, 1, 0, 1]


def test_clocks_of_any_kind():
    zoned = POSE[["x"]].tz_localize("Europe/Berlin")
    clock = CLOCK.tz_localize("Europe/Berlin")
    assert rbc.resample_frame(zoned, clock).index.equals(clock)
    out = rbc.resample_frame(POSE[["x"]], CLOCK.to_numpy())
    assert out.index.equals(CLOCK) and out.index.dtype == CLOCK.dtype
    seconds = pandas.DataFrame({"t": [0.0, 1.0], "x": [0.0, 10.0]})
    out = rbc.resample_frame(seconds, [0.5], time="t")
    assert out.index.tolist() == [0.5] and out.index.name == "t" and out["x"].tolist() == [5]
    assert seconds.columns.tolist() == ["t", "x"]


def test_fuse_frames():
    camera = pandas.DataFrame({"x": [0.0, 4.0]}, index=INDEX[[0, 4]])
    out = rbc.fuse_frames(
        {"arm": POSE, "cam": camera},
        CLOCK,
        methods={"arm.q_*": "slerp", "arm.label": "nearest", "arm.closed": "previous"},
        max_gap={"cam": pandas.Timedelta("100ms")},
    )
    alone = rbc.resample_frame(POSE, CLOCK, methods=METHODS)
    assert list(out.columns) == [*(f"arm.{c}" for c in alone), "cam.x", "cam.valid"]
    for column in alone:
        assert out[f"arm.{column}"].tolist() == alone[column].tolist()
    assert not out["cam.valid"].any() and out["cam.x"].isna().all()
    mixed = {"arm": POSE[["x"]], "cam": polars.DataFrame({"t": [0, 1], "x": [0.0, 1.0]})}
    with pytest.raises(ValueError, match=r"^frames\['cam'\]: a polars DataFrame has no index"):
        rbc.fuse_frames(mixed, CLOCK)


TWICE = pandas.DataFrame(np.ones((5, 2)), columns=["x", "x"], index=INDEX)
REFUSED = [
    (TWICE, {}, ValueError, "frame: has two columns named 'x'; rename one"),
    (POSE.reset_index(drop=True), {}, ValueError, "frame: its index counts rows; pass time="),
    (POSE, {"time": "stamp"}, ValueError, "frame: has no column 'stamp'"),
    (POSE, {"methods": {"z_*": "next"}}, ValueError, r"methods: 'z_\*' matches no column"),
    (
        POSE,
        {"methods": {"q_[xyz]": "slerp"}},
        ValueError,
        "methods: slerp matches 3 columns .q_x, q_y, ",
    ),
    (POSE, {"methods": {"x": "cube"}}, ValueError, r"method\[0\]: is 'cube', expected one of"),
    (POSE["x"], {}, TypeError, "frame: is a Series, expected a DataFrame of pandas or polars"),
    (POSE.values, {}, TypeError, "frame: is an ndarray, expected a DataFrame"),
    (POSE.assign(n="a"), {}, TypeError, r"frame\['n'\]: dtype is .*; remove it, or convert it"),
    (POSE[[]], {}, ValueError, "frame: has no columns other than its times"),
]


@pytest.mark.parametrize(
    ("frame", "options", "error", "message"), REFUSED, ids=[row[-1][:40] for row in REFUSED]
)
def test_refused(frame, options, error, message):
    with pytest.raises(error, match=f"^{message}"):
        rbc.resample_frame(frame, CLOCK, **options)


def test_refused_beside_the_frame():
    with pytest.raises(ValueError, match=r"^frames\['arm'\]: has no columns other than its times$"):
        rbc.fuse_frames({"arm": POSE[[]]}, CLOCK)
    with pytest.raises(
        TypeError, match=r"^query_times: is datetime64\[s\], but times is datetime64"
    ):
        rbc.resample_frame(POSE, CLOCK.as_unit("s"))
    with pytest.raises(TypeError, match="^frames: is \\[\\], expected a dict of DataFrames"):
        rbc.fuse_frames([], CLOCK)


# ---- a step instead of a clock ------------------------------------------------------------------


@pytest.mark.parametrize("step", ["250ms", "0.25s", " 250 ms", pandas.Timedelta("250ms")])
def test_a_step(step):
    clock = pandas.date_range(INDEX[0], INDEX[-1], freq="250ms")
    expected = rbc.resample_frame(POSE, clock, methods=METHODS)
    out = rbc.resample_frame(POSE, step, methods=METHODS)
    assert out.index.tolist() == expected.index.tolist()
    assert (out.to_numpy() == expected.to_numpy()).all()


def test_a_step_of_several_frames_and_of_polars():
    x = POSE[["x"]]
    out = rbc.fuse_frames({"a": x, "b": x.iloc[1:4]}, "100ms")
    assert out.index.tolist() == INDEX[1:4].tolist() and out["a.x"].tolist() == [1, 2, 3]
    table = polars.from_pandas(x.reset_index())
    out = rbc.resample_frame(table, "200ms", time="t")
    assert out["t"].to_list() == INDEX[::2].tolist() and out["x"].to_list() == [0, 2, 4]
    zoned = x.tz_localize("Europe/Berlin")
    assert rbc.resample_frame(zoned, "200ms").index.tolist() == zoned.index[::2].tolist()


def test_steps_that_are_refused():
    for step, message in {
        "5 fortnights": "expected a duration, such as '500ms'",
        "0ms": "expected a duration above 0",
        "0.1ns": "expected a whole number of|expected whole ticks",
        "-5ms": "expected a duration",
    }.items():
        with pytest.raises(ValueError, match=f"^clock: .*({message})"):
            rbc.resample_frame(POSE, step, methods=METHODS)
    numbers = POSE[["x"]].set_axis([0.0, 1, 2, 3, 4])
    with pytest.raises(TypeError, match="^clock: is '1s', but the times of frame have no unit"):
        rbc.resample_frame(numbers, "1s")
    with pytest.raises(ValueError, match="no time in common"):
        rbc.fuse_frames({"a": POSE[["x"]].iloc[:2], "b": POSE[["x"]].iloc[3:]}, "10ms")
    with pytest.raises(ValueError, match="frame: has no rows"):
        rbc.resample_frame(POSE[["x"]].iloc[:0], "10ms")


def test_rows_have_what_had_arrived():
    late = POSE.assign(got=INDEX + pandas.Timedelta("30ms"))
    options = dict(lag=pandas.Timedelta("10ms"), causal=True, max_age=pandas.Timedelta("110ms"))
    clock = INDEX[1:4] + pandas.Timedelta("15ms")
    methods = {"q_*": "slerp", "label": "nearest", "clo*": "previous"}
    out = rbc.resample_frame(late, clock, methods=methods, arrivals="got", **options)
    assert list(out.columns) == [*POSE.columns, "valid"]
    arrived = INDEX + pandas.Timedelta("30ms")
    expected, valid = rbc.resample(
        POSE[["x"]].to_numpy(), INDEX, clock, arrivals=arrived, return_valid=True, **options
    )
    assert out["x"].tolist() == expected[:, 0].tolist() == [0.0, 1.0, 2.0]
    assert out["valid"].tolist() == valid.tolist() == [False, False, False]
    assert out["label"].tolist() == [1, 1, 2]
    later = rbc.resample_frame(
        late, clock, methods=methods, arrivals="got", **{**options, "max_age": None}
    )
    assert later["valid"].all()
    table = polars.DataFrame({"t": INDEX.to_numpy(), "x": POSE["x"].to_numpy(), "got": arrived})
    ours = rbc.resample_frame(table, clock, time="t", arrivals="got", **options)
    assert ours["x"].to_list() == out["x"].tolist()
    label = POSE[["x"]].rename(columns={"x": "action"})
    both = rbc.fuse_frames(
        {"arm": late[["x", "got"]], "act": label},
        clock,
        arrivals={"arm": "got"},
        lag=options["lag"],
    )
    assert both["arm.x"].tolist() == [0.0, 1.0, 2.0]
    np.testing.assert_allclose(both["act.action"], [1.15, 2.15, 3.15])
    assert "arm.got" not in both
    with pytest.raises(ValueError, match="act.*has no column 'got', the value of arrivals"):
        rbc.fuse_frames({"arm": late[["x", "got"]], "act": label}, clock, arrivals="got")
