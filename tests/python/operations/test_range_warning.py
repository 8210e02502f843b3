"""rbc.RangeWarning: raised for times that are probably wrong, and for no others."""

import inspect
import warnings

import numpy as np
import pytest

import robocache as rbc

VALUES = np.arange(4.0)[:, None]
NS = 1_700_000_000_000_000_000 + np.arange(4) * 10_000_000


def warned(operation, *arguments, **options):
    """Return the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        operation(*arguments, **options)
    for each in caught:
        assert each.category is rbc.RangeWarning and issubclass(each.category, UserWarning)
        assert each.filename == __file__
    return [str(each.message) for each in caught]


def test_milliseconds_against_nanoseconds():
    (message,) = warned(rbc.resample, VALUES, NS, NS // 1_000_000)
    assert message == (
        "query_times: all lie outside of times: 1700000000000 to 1700000000030, samples "
        "1700000000000000000 to 1700000000030000000; times are about 1e6 times as large as "
        "queries: is their unit the same?"
    )
    (message,) = warned(rbc.resample, VALUES, NS // 1_000_000, NS)
    assert "queries are about 1e6 times as large as times: is their unit the same?" in message
    good = rbc.Stream(VALUES, NS)
    (message,) = warned(rbc.fuse, [good, rbc.Stream(VALUES, NS // 1000)], NS)
    assert message.startswith("query_times: all lie outside of streams[1].times: 17000000000000")


def test_no_factor_where_units_may_agree():
    (message,) = warned(rbc.resample, VALUES, np.arange(4.0), np.array([4.5, 6.0, 4.25]))
    assert message == "query_times: all lie outside of times: 4.25 to 6.0, samples 0.0 to 3.0"


def test_float32_seconds_since_the_epoch():
    seconds = (NS / 1e9).astype(np.float32)
    (message,) = warned(rbc.resample, VALUES, seconds, seconds)
    assert message == (
        "times: float32 resolves only 128 near 1.7e+09, coarser than the interval between "
        "samples; use float64 or int64, or subtract a start time"
    )
    (message,) = warned(rbc.fuse, [rbc.Stream(VALUES, seconds)], seconds)
    assert message.startswith("streams[0].times: float32 resolves")
    # float32 times with a different number for each sample, and times near 0.
    for times in (np.float32([0, 5e8, 1e9, 1.5e9]), np.float32([0, 0, 0, 0])):
        assert not warned(rbc.resample, VALUES, times, times)


T = np.arange(4.0)
QUIET = {
    "inside": (VALUES, T, np.array([0.5])),
    "one of many": (VALUES, T, np.array([-9.0, -8.0, 2.0, -7.0, 9.0])),
    "at an end": (VALUES, T, np.array([3.0, 99.0])),
    "around": (VALUES, T, np.array([-1.0, 9.0])),
    "no queries": (VALUES, T, np.zeros(0)),
    "no samples": (VALUES[:0], T[:0], np.array([5.0])),
    "one sample": (VALUES[:1], T[:1], np.array([5.0])),
    "only NaN": (VALUES, T, np.array([np.nan])),
    "of the second row": (
        np.zeros((2, 4, 1)),
        np.stack([T, T + 100]),
        np.array([101.5]),
    ),
}


@pytest.mark.parametrize("case", QUIET)
def test_nothing_is_said(case):
    assert not warned(rbc.resample, *QUIET[case])


def test_rows_lengths_and_offsets():
    values, times = np.zeros((2, 4, 1)), np.array([[0.0, 1, 50, 50], [0, 1, 2, 50]])
    assert not warned(rbc.resample, values, times, [40.0])
    assert warned(rbc.resample, values, times, [40.0], lengths=[2, 3])
    assert not warned(rbc.resample, values, times, [40.0], lengths=[2, 4])
    assert not warned(rbc.resample, values, times, [40.0], lengths=[0, 0])
    packed = {"batch_offsets": [0, 2, 4]}
    assert warned(rbc.resample, values[0], np.array([0.0, 1, 50, 51]), [40.0], **packed)
    assert not warned(rbc.resample, values[0], np.array([0.0, 1, 50, 51]), [50.5], **packed)
    queries = np.array([[9.0, 1.0], [9.0, 1.0]])
    assert warned(rbc.resample, values, times, queries, lengths=[2, 3], query_lengths=[1, 1])
    assert not warned(rbc.resample, values, times, queries, lengths=[2, 3], query_lengths=[1, 2])
    backwards = np.broadcast_to(T[::-1][::-1], (2, 4))
    assert not warned(rbc.resample, values, backwards, np.array([[9.0], [0.5]]))


def test_offsets_of_the_clock_and_tolerances():
    late = rbc.Stream(VALUES, T, clock_offset=100.0)
    assert not warned(rbc.fuse, [late], [101.5]) and warned(rbc.fuse, [late], [1.5])
    ticks = rbc.Stream(VALUES, T.astype(int), clock_offset=100)
    assert not warned(rbc.fuse, [ticks], [101]) and warned(rbc.fuse, [ticks], [2])
    newest = {"method": "previous", "tolerance": 2.0}
    assert not warned(rbc.resample, VALUES, T, [4.5], **newest)
    assert warned(rbc.resample, VALUES, T, [5.5], **newest)


def test_unchecked_calls_say_nothing_and_errors_come_first():
    assert not warned(rbc.resample, VALUES, T, [9.0], check_times=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="decreases"):
            rbc.resample(VALUES, T[::-1], [9.0])
        with pytest.raises(rbc.RangeWarning):
            rbc.resample(VALUES, T, [9.0])


def test_where_it_points_from_any_way_in():
    """The line of the user's call, however deep the package looked."""
    pandas = pytest.importorskip("pandas")
    stamps = pandas.Series(NS.view("M8[ns]"))
    frame = pandas.DataFrame({"x": VALUES[:, 0]}, index=pandas.Index(stamps))
    day = pandas.Timedelta(days=1)
    with pytest.warns(rbc.RangeWarning) as caught:
        rbc.resample(VALUES, stamps, stamps + day)
        rbc.resample_frame(frame, stamps + day)
    here = inspect.currentframe().f_lineno
    assert [each.filename for each in caught] == [__file__] * 2
    assert [each.lineno for each in caught] == [here - 2, here - 1]


def test_on_cuda_only_where_times_are_checked():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or rbc.info().cuda_unavailable:
        pytest.skip("no CUDA device that torch can use")
    values, times = torch.zeros(4, 1, device="cuda"), torch.tensor(NS, device="cuda")
    far = times // 1_000_000
    assert not warned(rbc.resample, values, times, far)
    assert not warned(rbc.resample, values, times, times, check_times=True)
    (message,) = warned(rbc.resample, values, times, far, check_times=True)
    assert "times are about 1e6 times as large" in message
    stream = rbc.Stream(values, times, clock_offset=5)
    (message,) = warned(rbc.fuse, [stream, stream], far, check_times=True)
    assert message.startswith("query_times: all lie outside of streams[0].times")
    batch = values.expand(2, 4, 1)
    assert warned(rbc.resample, batch, times, far, lengths=[4, 3], check_times=True)


def test_the_look_at_a_gpu_is_a_call_on_the_cpu():
    """The check that calls on CUDA do with copies of their times, here with arrays on the CPU."""
    torch = pytest.importorskip("torch")
    from robocache._operations import fuse, resample

    times = torch.tensor(NS)
    rows = {"lengths": None, "query_lengths": None, "batch_offsets": None, "tolerance": None}
    for changes, queries, expected in (
        ({}, times, 0),
        ({}, times // 1000, 1),
        ({"lengths": torch.tensor([2, 4])}, times[3:], 0),
        ({"lengths": torch.tensor([2, 3])}, times[3:], 1),
        ({"batch_offsets": torch.tensor([0, 2, 4])}, times[3:], 0),
        ({"batch_offsets": torch.tensor([0, 2, 3])}, times[3:], 1),
        ({"tolerance": 10_000_000}, times[3:] + 10_000_000, 0),
    ):
        arguments = {**rows, **changes}
        lengths = arguments["lengths"]
        values = torch.ones((4, 1) if lengths is None else (len(lengths), 4, 1))
        call = resample._check_ranges
        assert len(warned(call, values, times, queries, **arguments)) == expected
    moved = rbc.Stream(torch.tensor(VALUES), times, clock_offset=10**12)
    assert warned(fuse._check_ranges, [moved._native], times, None)
    assert not warned(fuse._check_ranges, [moved._native], times + 10**12, None)


def test_the_look_at_a_gpu_takes_every_form_of_a_batch():
    torch = pytest.importorskip("torch")
    from robocache._operations import fuse, resample

    rows = {"lengths": None, "query_lengths": None, "batch_offsets": None, "tolerance": None}
    for batch, samples, queries in ((0, 0, 0), (0, 3, 2), (2, 0, 2), (2, 3, 0), (2, 3, 2)):
        values = torch.ones((batch, samples, 1))
        for times_shape in ((samples,), (batch, samples)):
            times = torch.zeros(times_shape, dtype=torch.float64)
            for query_shape in ((queries,), (batch, queries)):
                asked = torch.zeros(query_shape, dtype=torch.float64)
                lengths = torch.zeros(batch, dtype=torch.int32)
                for given in (None, lengths):
                    changes = {**rows, "query_lengths": given}
                    assert not warned(resample._check_ranges, values, times, asked, **changes)
                    stream = rbc.Stream(values, times)
                    assert not warned(fuse._check_ranges, [stream._native], asked, given)
