"""Times with units: what is taken, in which unit, and what must be refused."""

import datetime

import numpy as np
import pytest

import robocache as rbc

START = np.datetime64("2024-05-01T12:00:00", "ns")
TIMES = START + np.arange(4) * np.timedelta64(1, "s")
QUERIES = TIMES[:3] + np.timedelta64(250, "ms")
VALUES = np.arange(4.0)[:, None] * 10
ANSWER = np.array([[2.5], [12.5], [22.5]])
TICKS = TIMES.view(np.int64)


def seconds(times):
    return times.astype("M8[s]")


def as_pandas(times):
    return pytest.importorskip("pandas").Series(times)


def as_index(times):
    return pytest.importorskip("pandas").Index(times)


def as_column(times):
    return pytest.importorskip("pandas").DataFrame({"t": times})[["t"]]


def as_arrow_dtype(times):
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    return pandas.Series(times).astype(pandas.ArrowDtype(arrow.timestamp("ns")))


def as_zoned(times):
    return as_pandas(times).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")


def as_timestamps(times):
    return list(as_pandas(times))


def as_polars(times):
    return pytest.importorskip("polars").Series(times)


def as_zoned_polars(times):
    return as_polars(times).dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")


def as_arrow(times):
    return pytest.importorskip("pyarrow").array(times)


def as_chunks(times):
    arrow = pytest.importorskip("pyarrow")
    return arrow.chunked_array([arrow.array(times[:1]), arrow.array(times[1:])])


def as_big_endian(times):
    return times.astype(">M8[ns]")


def as_spans(times):
    return times - START


def as_polars_spans(times):
    return as_polars(times - START)


def as_arrow_spans(times):
    return as_arrow(times - START)


def as_datetimes(times):
    return times.astype("M8[us]").tolist()


def as_timedeltas(times):
    return (times - START).astype("m8[us]").tolist()


def as_days(times):
    """Dates with one day per step of the test."""
    return np.datetime64("2024-05-01", "D") + np.arange(len(times))


KINDS = [
    lambda times: times,
    as_pandas,
    as_index,
    as_column,
    as_arrow_dtype,
    as_timestamps,
    as_polars,
    as_arrow,
    as_chunks,
    as_big_endian,
]


@pytest.mark.parametrize("queries", KINDS)
@pytest.mark.parametrize("times", KINDS)
def test_dates_of_one_unit_in_any_form(times, queries):
    out = rbc.resample(VALUES, times(TIMES), queries(QUERIES))
    np.testing.assert_array_equal(out, ANSWER)
    stream = rbc.Stream(VALUES, times(TIMES))
    np.testing.assert_array_equal(rbc.fuse([stream, stream], queries(QUERIES))[:, :1], ANSWER)


@pytest.mark.parametrize(
    "kind", [as_zoned, as_zoned_polars, as_spans, as_polars_spans, as_arrow_spans, as_datetimes]
    + [as_timedeltas]
)  # fmt: skip
def test_zones_spans_and_lists(kind):
    np.testing.assert_array_equal(rbc.resample(VALUES, kind(TIMES), kind(QUERIES)), ANSWER)


@pytest.mark.parametrize("unit", ["h", "m", "s", "ms", "us", "ns", "ps", "10ms", "D", "M", "Y"])
@pytest.mark.parametrize("kind", ["M8", "m8"])
def test_any_unit_is_its_ticks(kind, unit):
    times = np.arange(4).view(f"{kind}[{unit}]")
    out = rbc.resample(VALUES, times, times[1:3])
    np.testing.assert_array_equal(out, VALUES[1:3])


def test_values_stay_where_they_are_and_torch_stays_torch():
    torch = pytest.importorskip("torch")
    values = torch.tensor(VALUES, requires_grad=False)
    out = rbc.resample(values, TIMES, as_pandas(QUERIES))
    assert isinstance(out, torch.Tensor) and out.tolist() == ANSWER.tolist()
    leaf = values.clone().requires_grad_()
    rbc.torch.resample(
        leaf, as_pandas(TIMES), QUERIES, max_gap=np.timedelta64(1, "s")
    ).sum().backward()
    assert leaf.grad.flatten().tolist() == [0.75, 1, 1, 0.25]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint32", "uint64"])
def test_integers_of_any_width_are_ticks(dtype):
    times = np.arange(0, 40, 10).astype(dtype)
    out = rbc.resample(VALUES, times, np.array([5, 35], dtype))
    np.testing.assert_array_equal(out[:, 0], [5, 30])
    assert rbc.resample(VALUES, times, [5])[0, 0] == 5
    torch = pytest.importorskip("torch")
    if hasattr(torch, dtype):
        ours = torch.from_numpy(times)
        assert rbc.resample(torch.tensor(VALUES), ours, ours).flatten().tolist() == [0, 10, 20, 30]
    stream = rbc.Stream(VALUES, times)
    assert rbc.fuse([stream], np.array([15], dtype)).item() == 15


# ---- durations ----------------------------------------------------------------------------------


def lengths(pandas):
    return [
        np.timedelta64(900, "ms"),
        np.timedelta64(900_000_000, "ns"),
        pandas.Timedelta("900ms"),
        datetime.timedelta(milliseconds=900),
        900_000_000,
        np.int64(900_000_000),
        9e8,
    ]


def test_lengths_become_ticks_exactly():
    pandas = pytest.importorskip("pandas")
    holes = np.delete(TIMES, 1)
    for length in lengths(pandas):
        _, mask = rbc.resample(VALUES, TIMES, QUERIES, max_gap=length, return_valid=True)
        assert not mask.any()
        options = {"method": "previous", "return_valid": True, "outside": "fill"}
        _, mask = rbc.resample(VALUES[:3], holes, QUERIES, tolerance=length, **options)
        assert mask.tolist() == [True, False, True]
        moved = rbc.Stream(VALUES, TIMES, clock_offset=length if length != 9e8 else 900_000_000)
        assert rbc.fuse([moved], TIMES[1:2]).item() == pytest.approx(1)
    _, mask = rbc.resample(
        VALUES, TIMES, QUERIES, max_gap=pandas.Timedelta(seconds=1), return_valid=True
    )
    assert mask.all()
    # A nanosecond more, which datetime.timedelta does not hold.
    _, mask = rbc.resample(
        VALUES, TIMES, QUERIES, max_gap=pandas.Timedelta(999_999_999, "ns"), return_valid=True
    )
    assert not mask.any()


def call(**changes):
    return rbc.resample(**{"values": VALUES, "times": TIMES, "query_times": QUERIES, **changes})


def with_nat():
    times = TIMES.copy()
    times[2] = "NaT"
    return times


REFUSED = [
    (
        {"query_times": QUERIES.astype("M8[us]")},
        TypeError,
        r"query_times: is datetime64\[us\], but times is datetime64\[ns\]; convert both to one "
        r"unit, by query_times.astype\('datetime64\[ns\]'\)$",
    ),
    (
        {"query_times": QUERIES - START},
        TypeError,
        r"query_times: is timedelta64\[ns\], but times is datetime64\[ns\]; .* a start time",
    ),
    (
        {"query_times": QUERIES.view(np.int64)},
        TypeError,
        r"query_times: has no unit, but times is datetime64\[ns\]; write "
        r"np.asarray\(query_times\).astype\('datetime64\[ns\]'\) if its numbers are ticks "
        r"of that unit$",
    ),
    ({"query_times": [0.5]}, TypeError, "query_times: has no unit, but times is datetime64"),
    ({"times": TICKS}, TypeError, "times: has no unit, but query_times is datetime64"),
    ({"times": TICKS / 1e9}, TypeError, "times: has no unit, but query_times is datetime64"),
    (
        {"times": with_nat()},
        ValueError,
        "times: is NaT at index 2; remove these rows from times and values$",
    ),
    (
        {"times": TIMES.astype(object)},
        TypeError,
        "times: dtype is object, of int; write np.asarray",
    ),
    (
        {"times": np.zeros(4, [("sec", "i4"), ("nsec", "i4")])},
        TypeError,
        r"times: has the fields sec, nsec, expected one of them, such as times\['sec'\]$",
    ),
    ({"times": np.arange(4).view("m8")}, TypeError, "times: is timedelta64 without a unit"),
    (
        {"times": np.ma.array(TIMES)},
        TypeError,
        "times: is a masked array, and its mask would be lost",
    ),
    (
        {"max_gap": 0.05},
        TypeError,
        r"max_gap: is 0.05, but times are datetime64\[ns\]: write whole ticks of that unit, "
        r"or a duration, such as pd.Timedelta\(seconds=0.05\)$",
    ),
    ({"max_gap": "long"}, TypeError, "max_gap: is 'long', expected a number"),
    ({"max_gap": np.timedelta64("NaT")}, ValueError, "max_gap: is NaT, expected a duration"),
    ({"max_gap": np.timedelta64(1, "M")}, TypeError, r"max_gap: is timedelta64\[M\], which has no"),
    (
        {
            "times": seconds(TIMES),
            "query_times": seconds(TIMES),
            "max_gap": np.timedelta64(1500, "ms"),
        },
        ValueError,
        r"max_gap: is 1500 milliseconds, which is 1.5 ticks of the times \(datetime64\[s\]\), "
        "expected whole ticks$",
    ),
    (
        {"times": TICKS, "query_times": TICKS, "max_gap": 0.05},
        TypeError,
        "max_gap: is 0.05, but times are integers: write whole ticks of their unit, such as "
        "50_000_000 for 0.05 s in nanoseconds$",
    ),
    (
        {"times": TICKS, "query_times": TICKS, "tolerance": 1.5, "method": "next"},
        TypeError,
        "tolerance: is 1.5, but times are integers: write whole ticks",
    ),
    (
        {"times": TICKS, "query_times": TICKS, "max_gap": np.float32(0.5)},
        TypeError,
        "max_gap: is 0.5, but times are integers",
    ),
    (
        {"times": TICKS, "query_times": TICKS, "max_gap": datetime.timedelta(milliseconds=50)},
        TypeError,
        "max_gap: is 0:00:00.050000, but times have no unit: write it in theirs, such as "
        "50_000_000 for nanoseconds or 0.05 for seconds, or pass times as datetime64 or timedelta6",
    ),
    (
        {"times": TICKS / 1e9, "query_times": [1.7e9], "max_gap": np.timedelta64(50, "ms")},
        TypeError,
        "max_gap: is 50 milliseconds, but times have no unit: write it in theirs",
    ),
    (
        {"times": np.arange(4, dtype=np.uint64) + 2**63, "query_times": [0]},
        ValueError,
        "times: has 9223372036854775811, expected at most 9223372036854775807$",
    ),
    ({"times": ["noon"] * 4, "query_times": [0.5]}, TypeError, "times: is a list, expected an arr"),
    (
        {"query_times": [datetime.datetime(2024, 5, 1), datetime.timedelta(1)]},
        TypeError,
        "query_times: has dates and durations",
    ),
    (
        {"query_times": [datetime.datetime(2024, 5, 1), None]},
        TypeError,
        "query_times: has None",
    ),
    (
        {
            "query_times": [
                datetime.datetime(2024, 5, 1, tzinfo=z) for z in (None, datetime.timezone.utc)
            ]
        },
        TypeError,
        "query_times: only some times have a time zone",
    ),
]


@pytest.mark.parametrize(
    ("changes", "error", "message"), REFUSED, ids=[message[:40] for _, _, message in REFUSED]
)
def test_refused(changes, error, message):
    with pytest.raises(error, match=f"^{message}") as caught:
        call(**changes)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_what_is_missing_in_a_series_is_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="^times: is NaT at index 2; remove these rows"):
        call(times=pandas.Series(with_nat()))
    with pytest.raises(ValueError, match="^times: is missing at index 1; remove these rows"):
        call(times=pandas.Series([1, None, 2, 3], dtype="Int64"), query_times=[1])
    with pytest.raises(TypeError, match="^times: is a PeriodIndex; call .to_timestamp"):
        call(times=pandas.period_range("2024", periods=4))
    with pytest.raises(TypeError, match="^times: dtype is object, of Timestamp; write np.asarray"):
        call(times=pandas.Series(list(pandas.Series(TIMES)), dtype=object))
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match="^times: is missing at index 3; remove these rows"):
        call(times=polars.Series([*TIMES.astype("M8[us]").tolist()[:3], None]))
    with pytest.raises(ValueError, match="^times: is missing at index 0; remove these rows"):
        call(times=arrow.array([None, 1, 2, 3]))


def test_zones_are_not_mixed():
    with pytest.raises(
        TypeError, match=r"^query_times: is datetime64\[ns\], but times is .*, UTC\]"
    ):
        call(times=as_zoned(TIMES))


def test_units_of_a_fusion_are_one():
    coarse = TIMES.astype("M8[us]")
    good = rbc.Stream(VALUES, TIMES)
    with pytest.raises(
        TypeError, match=r"^streams\[1\].times: is datetime64\[us\], but streams\[0\].times is dat"
    ):
        rbc.fuse([good, rbc.Stream(VALUES, coarse)], QUERIES)
    with pytest.raises(
        TypeError,
        match=r"^query_times: is datetime64\[us\], but streams\[0\].times is datetime64\[n",
    ):
        rbc.fuse([good], coarse)
    with pytest.raises(TypeError, match=r"^query_times: has no unit, but streams\[0\].times is"):
        rbc.fuse([good], TICKS)
    with pytest.raises(TypeError, match=r"^streams\[0\].times: has no unit, but query_times is"):
        rbc.fuse([rbc.Stream(VALUES, TICKS)], QUERIES)
    with pytest.raises(TypeError, match="^clock_offset: is 0:00:01, but times have no unit"):
        rbc.Stream(VALUES, TICKS, clock_offset=datetime.timedelta(seconds=1))
    with pytest.raises(TypeError, match="^clock_offset: is 0.5, but times are datetime64"):
        rbc.Stream(VALUES, TIMES, clock_offset=0.5)
    with pytest.raises(TypeError, match="^max_gap: is 0.05, but times are integers"):
        rbc.Stream(VALUES, TICKS, max_gap=0.05)


def test_a_stream_shows_and_keeps_what_it_was_given():
    import pickle

    times = as_pandas(TIMES)
    stream = rbc.Stream(VALUES, times, max_gap=np.timedelta64(2, "s"))
    assert stream.times is times
    assert repr(stream) == (
        "Stream(values=<float64 [4,1]>, times=<Series datetime64[ns] [4]>, "
        "max_gap=np.timedelta64(2,'s'))"
    ) or "timedelta64(2,'s')" in repr(stream)
    again = pickle.loads(pickle.dumps(stream))
    np.testing.assert_array_equal(rbc.fuse([again], QUERIES), ANSWER)


def test_limits_of_floats_and_whole_floats_stay():
    floats = TICKS / 1e9
    rbc.resample(VALUES, floats, floats, max_gap=0.05)
    rbc.resample(VALUES, TICKS, TICKS, max_gap=5e7)
    rbc.resample(VALUES, TICKS, TICKS, max_gap=np.inf)
