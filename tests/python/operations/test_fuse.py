"""rbc.fuse and rbc.Stream: the same as resampling stream by stream, and all that is refused."""

import copy
import dataclasses
import gc
import math
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robocache as rbc
from dlpack_producers import Producer
from fuse_problems import problems
from random_share import random_share
from resample_problems import assert_answers, same_bits

# ---- at random -----------------------------------------------------------------------------------


def promoted(dtypes):
    floats = [dtype for dtype in dtypes if dtype.kind == "f"]
    return np.result_type(*floats) if floats else np.dtype("float32")


@settings(max_examples=random_share(300))
@given(problems())
def test_streams_side_by_side_are_resampled_streams(problem):
    out, mask = problem.fuse()
    widths = [stream["values"].shape[-1] for stream in problem.streams]
    dtype = problem.options["dtype"] or promoted([s["values"].dtype for s in problem.streams])
    assert type(out) is np.ndarray and out.dtype == dtype and mask.dtype == np.bool_
    assert out.shape[-1] == sum(widths) and mask.shape == (*out.shape[:-1], len(widths))
    begin = 0
    for n, (stream, width) in enumerate(zip(problem.streams, widths)):
        part = out[..., begin : begin + width]
        begin += width
        stream = dict(stream)
        offset = stream.pop("clock_offset", 0)
        options = {**problem.options, "dtype": dtype, **stream}
        values, times = options.pop("values"), options.pop("times")
        # Small offsets of times on a grid: moving the queries rounds nothing.
        moved = (problem.query_times - offset).astype(problem.query_times.dtype)
        each, valid = rbc.resample(values, times, moved, return_valid=True, **options)
        assert same_bits(part, each) and same_bits(mask[..., n], valid)


@settings(max_examples=random_share(500))
@given(problems())
def test_every_stream_against_the_reference(problem):
    for stream in problem.streams:  # their errors have bounds only as they come out
        stream.pop("mean", None)
        stream.pop("std", None)
    out, mask = problem.fuse()
    begin = 0
    for n, stream in enumerate(problem.streams):
        width = stream["values"].shape[-1]
        rules = {k: v for k, v in stream.items() if k not in ("values", "times")}
        if "query_lengths" in problem.options:
            rules["query_lengths"] = problem.options["query_lengths"]
        part = out[..., begin : begin + width]
        begin += width
        assert_answers(
            part, mask[..., n], stream["values"], stream["times"], problem.query_times, **rules
        )


@settings(max_examples=random_share(200))
@given(problems(), st.randoms(use_true_random=False))
def test_permuted_streams_are_permuted_channels(problem, order):
    problem.options["dtype"] = problem.options["dtype"] or "float64"
    out, mask = problem.fuse()
    widths = [stream["values"].shape[-1] for stream in problem.streams]
    parts = np.split(out, np.cumsum(widths)[:-1], axis=-1)
    turn = list(range(len(widths)))
    order.shuffle(turn)
    problem.streams = [problem.streams[n] for n in turn]
    other, other_mask = problem.fuse()
    assert same_bits(other, np.concatenate([parts[n] for n in turn], axis=-1))
    assert same_bits(other_mask, mask[..., turn])


@settings(max_examples=random_share(200))
@given(problems(), st.data())
def test_out_in_any_layout_and_nothing_beside_it(problem, data):
    expected, _ = problem.fuse()
    order = data.draw(st.permutations(range(expected.ndim)))
    room = np.full([2 * expected.shape[axis] + 5 for axis in order], expected.dtype.type(99))
    room = room.transpose(np.argsort(order))
    view = room[tuple(slice(2, 2 + 2 * n, 2) for n in expected.shape)]
    view = view[tuple(slice(None, None, data.draw(st.sampled_from([1, -1]))) for _ in order)]
    out, _ = problem.fuse(out=view)
    assert out is view and same_bits(view, expected)
    view[...] = 99
    assert (room == 99).all()


@settings(max_examples=random_share(200))
@given(problems())
def test_torch_gives_the_same_bits(problem):
    torch = pytest.importorskip("torch")
    expected, expected_mask = problem.fuse()
    for stream in problem.streams:
        for name in ("values", "times", "lengths", "batch_offsets", "mean"):
            if name in stream:
                stream[name] = torch.from_numpy(stream[name])
        if "std" in stream:
            stream["std"] = torch.from_numpy(stream["std"])  # of float64, as NumPy's
    problem.query_times = torch.from_numpy(problem.query_times)
    out, mask = problem.fuse()
    assert isinstance(out, torch.Tensor) and mask.dtype == torch.bool
    assert same_bits(out.numpy(), expected) and same_bits(mask.numpy(), expected_mask)


# ---- by hand -------------------------------------------------------------------------------------

TIMES = np.array([0.0, 1.0, 2.0, 4.0])
VALUES = np.array([[0.0], [10.0], [20.0], [40.0]])


def test_by_hand():
    fast = rbc.Stream(VALUES, TIMES, max_gap=1.5)
    switch = rbc.Stream(np.array([[False], [True]]), np.array([0.5, 3.0]), method="previous")
    late = rbc.Stream(VALUES, TIMES, method="nearest", tolerance=0.25, clock_offset=0.5)
    out, mask = rbc.fuse([fast, switch, late], [0.0, 0.75, 3.0, 9.0], return_valid=True)
    assert out.dtype == np.float64
    np.testing.assert_array_equal(out, [[0, 0, 0], [7.5, 0, 0], [0, 1, 0], [40, 1, 0]])
    np.testing.assert_array_equal(mask, [[1, 0, 0], [1, 1, 1], [0, 1, 0], [0, 0, 0]])


def test_a_pose_an_angle_and_a_switch_in_groups():
    values = np.array([[0, 0, 0, 1, 3, 0], [2, 0, 0, -1, -3, 1]], np.float32)
    groups = [(0, 1, "linear"), (1, 3, "pchip"), (4, 1, "angle"), (5, 1, "previous")]
    out = rbc.fuse([rbc.Stream(values, np.array([0.0, 1.0]), method=groups)], [0.5])
    np.testing.assert_allclose(out[0, :4], [1, 0, 0, 0])
    assert abs(abs(out[0, 4]) - math.pi) < 1e-6 and out[0, 5] == 0


def test_a_stream_that_is_absent_from_some_of_the_batch():
    here = rbc.Stream(np.ones((3, 2, 1)), np.array([0.0, 1.0]))
    some = rbc.Stream(np.ones((3, 2, 2)), np.array([0.0, 1.0]), lengths=[2, 0, 1], fill_value=-1)
    out, mask = rbc.fuse([here, some], [0.5], return_valid=True)
    np.testing.assert_array_equal(out[:, 0], [[1, 1, 1], [1, -1, -1], [1, 1, 1]])
    np.testing.assert_array_equal(mask[:, 0], [[1, 1], [1, 0], [1, 0]])


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (["float16"], "float16"),
        (["bfloat16"], "bfloat16"),
        (["float32", "float16"], "float32"),
        (["float16", "bfloat16"], "float32"),
        (["bfloat16", "uint8", "bfloat16"], "bfloat16"),
        (["int64", "float16"], "float16"),
        (["float16", "float64", "bfloat16"], "float64"),
        (["int64", "bool"], "float32"),
        (["uint8"], "float32"),
    ],
)
def test_the_narrowest_float_that_holds_all(dtypes, expected):
    torch = pytest.importorskip("torch")
    streams = [
        rbc.Stream(torch.ones(2, 3, dtype=getattr(torch, name)), TIMES[:2], method="previous")
        for name in dtypes
    ]
    assert rbc.fuse(streams, [0.5]).dtype == getattr(torch, expected)
    assert rbc.fuse(streams, [0.5], dtype="float16").dtype == torch.float16


def test_clock_offsets_in_ticks_are_exact():
    start = 1_700_000_000_123_456_789
    times = start + 10 * np.arange(5)
    for offset in (-3, 7, np.int32(7), 10**18, -(2**62)):
        stream = rbc.Stream(np.arange(5.0)[:, None], times, clock_offset=offset)
        queries = times[:4] + 5 + int(offset)
        out, mask = rbc.fuse([stream], queries, return_valid=True)
        np.testing.assert_array_equal(out[:, 0], [0.5, 1.5, 2.5, 3.5])
        assert mask.all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_clock_offsets_of_floats_are_one_subtraction(dtype):
    random = np.random.default_rng(1)
    times = np.cumsum(random.random(50)).astype(dtype)
    queries = (random.random(80) * times[-1]).astype(dtype)
    values = random.normal(size=(50, 3))
    for offset in (0.1, -2.7, np.float32(0.3), 3):
        stream = rbc.Stream(values, times, clock_offset=offset)
        moved = queries - np.dtype(dtype).type(offset)
        assert same_bits(rbc.fuse([stream], queries), rbc.resample(values, times, moved))


# ---- frameworks ----------------------------------------------------------------------------------


def test_the_library_of_the_first_stream():
    torch = pytest.importorskip("torch")
    ours, theirs = rbc.Stream(VALUES, TIMES), rbc.Stream(torch.from_numpy(VALUES), TIMES)
    assert type(rbc.fuse([ours, theirs], torch.from_numpy(TIMES))) is np.ndarray
    out, mask = rbc.fuse([theirs, ours], TIMES, return_valid=True)
    assert type(out) is torch.Tensor and type(mask) is torch.Tensor
    room = np.empty((4, 2))
    assert rbc.fuse([theirs, ours], TIMES, out=room) is room
    assert same_bits(room, np.tile(VALUES, 2))
    assert rbc.fuse([ours, theirs], TIMES, out=room, return_valid=True)[0] is room


def test_jax():
    jax = pytest.importorskip("jax")
    values, times = (jax.numpy.asarray(each.astype(np.float32)) for each in (VALUES, TIMES))
    mean = jax.numpy.ones(1, np.float32)
    streams = [rbc.Stream(values, times, mean=mean, std=values[1]), rbc.Stream(values, times)]
    queries = jax.numpy.asarray(np.array([0.5, 9.0], np.float32))
    out, mask = rbc.fuse(streams, queries, return_valid=True)
    assert isinstance(out, jax.Array) and mask.tolist() == [[True, True], [False, False]]
    np.testing.assert_allclose(np.asarray(out), [[0.4, 5], [3.9, 40]], rtol=1e-6)


def test_arrays_that_only_export_dlpack(few_objects):
    arrays = {"values": VALUES[None], "times": TIMES, "lengths": np.array([3])}
    arrays |= {"mean": np.array([1.0]), "fill_value": 0.0}
    expected = rbc.fuse([rbc.Stream(**arrays)] * 2, TIMES)
    for versioned in (True, False):
        producers = {
            name: Producer(each, versioned=versioned)
            for name, each in arrays.items()
            if name != "fill_value"
        }
        out = np.empty((1, 4, 2))
        stream = rbc.Stream(**producers)
        assert rbc.fuse([stream, stream], Producer(TIMES), out=out) is out
        assert same_bits(out, expected)
        gc.collect()
        for producer in producers.values():
            assert producer.deleted == len(producer.given) >= 2
    with pytest.raises(TypeError, match="has no from_dlpack, which the result needs; pass out"):
        rbc.fuse([stream], TIMES)


def test_no_reference_is_kept_or_lost(few_objects):
    torch = pytest.importorskip("torch")
    for kind in (np.array, lambda each: torch.from_numpy(np.array(each))):
        values, times, queries = (kind(each) for each in (VALUES[None], TIMES, TIMES))
        lengths, mean, std = kind(np.array([4])), kind(np.ones(1)), kind(np.ones(1))
        out = np.empty((1, 4, 2))

        def calls(v=values, t=times, q=queries, n=lengths, m=mean, s=std, out=out):
            good = rbc.Stream(v, t, lengths=n, mean=m, std=s, method=[(0, 1, "pchip")])
            rbc.fuse([good, good], q, out=out, return_valid=True)
            rbc.fuse([good], q)
            with pytest.raises(ValueError, match=r"^streams\[1\].max_gap"):
                rbc.fuse([good, rbc.Stream(v, t, max_gap=-1)], q, out=out)
            with pytest.raises(TypeError, match=r"^streams\[1\].lengths"):
                rbc.fuse([good, rbc.Stream(v, t, lengths="all")], q, out=out)
            with pytest.raises(TypeError, match="^query_times"):
                rbc.fuse([good, good], "noon", out=out)
            with pytest.raises(ValueError, match="^std"):
                rbc.Stream(v, t, mean=m, std=[0])

        calls()
        objects = (values, times, queries, lengths, mean, std, out)
        gc.collect()
        before = [sys.getrefcount(each) for each in objects]
        for _ in range(20):
            calls()
        gc.collect()
        assert [sys.getrefcount(each) for each in objects] == before


# ---- streams as objects --------------------------------------------------------------------------


def test_a_stream_is_a_description():
    stream = rbc.Stream(VALUES, TIMES, method="pchip", max_gap=1.5, std=[2.0])
    assert stream.values is VALUES and stream.times is TIMES and stream.std == [2.0]
    assert (stream.method, stream.max_gap, stream.tolerance) == ("pchip", 1.5, None)
    assert repr(stream) == (
        "Stream(values=<float64 [4,1]>, times=<float64 [4]>, method='pchip', max_gap=1.5, "
        "std=[2.0])"
    )
    with pytest.raises(AttributeError):
        stream.values = TIMES
    with pytest.raises(AttributeError):
        stream.speed = 3
    other = dataclasses.replace(stream, max_gap=None, method=[(0, 1, "cubic")])
    assert other.values is VALUES and other.max_gap is None and stream.max_gap == 1.5
    expected = rbc.resample(VALUES, TIMES, [3.0], method="cubic", std=[2.0])
    assert same_bits(rbc.fuse([other], [3.0]), expected)


def test_a_stream_of_torch_shows_its_shapes():
    torch = pytest.importorskip("torch")
    stream = rbc.Stream(torch.zeros(2, 3, 4, dtype=torch.bfloat16), torch.zeros(3))
    assert repr(stream) == "Stream(values=<bfloat16 [2,3,4]>, times=<float32 [3]>)"
    assert repr(rbc.Stream(Producer(VALUES), TIMES)).startswith("Stream(values=<Producer>, ")


def test_copies_and_pickles():
    stream = rbc.Stream(VALUES, TIMES, method=[(0, 1, "cubic")], mean=[3.0], clock_offset=0.25)
    expected = rbc.fuse([stream], [0.3, 2.9])
    for other in (copy.copy(stream), copy.deepcopy(stream), pickle.loads(pickle.dumps(stream))):
        assert repr(other) == repr(stream) and same_bits(rbc.fuse([other], [0.3, 2.9]), expected)
    assert copy.copy(stream).values is VALUES


def test_streams_serve_many_calls_and_see_new_values():
    values, times = VALUES.copy(), TIMES.copy()
    stream = rbc.Stream(values, times, lengths=None, mean=[0.0])
    for n in range(5):
        values[...] = n
        assert rbc.fuse([stream, stream], [0.5], dtype="float32").tolist() == [[n, n]]
    times[1] = 9.0
    with pytest.raises(
        ValueError, match=r"^streams\[0\].times: row 0 decreases at index 2 \(9 -> 2\)"
    ):
        rbc.fuse([stream], [0.5])
    assert rbc.fuse([stream], [0.5], check_times=False).shape == (1, 1)


def test_streams_serve_many_threads():
    random = np.random.default_rng(3)
    times = np.cumsum(random.random((4, 200)), axis=1)
    streams = [
        rbc.Stream(random.normal(size=(4, 200, 8)), times, method=method, lengths=[200] * 4)
        for method in ("slerp", "pchip", [(4, 4, "next"), (0, 4, "linear")])
    ]
    cases = []
    for _ in range(4):
        queries = random.random((4, 300)) * 90
        cases.append((queries, rbc.fuse(streams, queries).tobytes()))

    def work(turn):
        for i in range(40):
            queries, expected = cases[(turn + i) % len(cases)]
            assert rbc.fuse(streams, queries).tobytes() == expected

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))  # raises what a thread raised


def test_64_streams_and_a_context():
    streams = [rbc.Stream(VALUES + n, TIMES) for n in range(64)]
    with rbc.Context("cpu", threads=1) as context:
        out, mask = rbc.fuse(streams, TIMES, backend=context, return_valid=True)
    assert same_bits(out, VALUES + np.arange(64)) and mask.all() and mask.shape == (4, 64)
    assert same_bits(rbc.fuse(tuple(streams), TIMES), out)


# ---- what must be refused ------------------------------------------------------------------------

GOOD = rbc.Stream(np.zeros((2, 4, 3), np.float32), np.arange(4.0))


def stream(**changes):
    return {"values": np.zeros((2, 4, 3), np.float32), "times": np.arange(4.0), **changes}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"values": [["a"]]}, TypeError, "values: is a list of <U1, expected numbers"),
        ({"times": ["a", "b"]}, TypeError, "times: is a list, expected an array"),
        ({"method": "cubist"}, ValueError, "method: is 'cubist', expected one of 'linear'"),
        ({"method": [(0, 3)]}, TypeError, r"method\[0\]: is \(0, 3\), expected \(begin, count"),
        ({"outside": "wrap"}, ValueError, "outside: is 'wrap', expected one of 'hold'"),
        ({"lengths": [1.5]}, TypeError, "lengths: is a list of float64, expected int64"),
        ({"std": [1, 0, 0]}, ValueError, "std: channel 1 is 0; use 1 for a constant channel"),
        ({"clock_offset": "noon"}, TypeError, "clock_offset: is a str, expected a number in the"),
        ({"clock_offset": None}, TypeError, "clock_offset: is None, expected a number"),
        (
            {"clock_offset": 0.5, "times": np.arange(4)},
            TypeError,
            "clock_offset: is a float, expected an int, in ticks of the int64 times",
        ),
        (
            {"clock_offset": 2**63, "times": np.arange(4)},
            ValueError,
            "clock_offset: is 9223372036854775808, expected ticks in 64 bits",
        ),
        ({"speed": 3}, TypeError, ".*unexpected keyword argument 'speed'"),
    ],
)
def test_refused_streams(changes, error, message):
    with pytest.raises(error, match=f"^{message}"):
        rbc.Stream(**stream(**changes))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"values": np.zeros((2, 4, 3), object)},
            TypeError,
            r"streams\[1\].values: dtype is object",
        ),
        (
            {"values": np.zeros((2, 4, 3), np.int8)},
            TypeError,
            r"streams\[1\].values: dtype is int8, expected a float for method linear",
        ),
        (
            {"values": np.zeros((3, 4, 3))},
            ValueError,
            r"streams\[1\].values: batch is 3, expected 2 as streams\[0\]",
        ),
        ({"values": np.zeros((4, 3))}, ValueError, r"streams\[1\].values: "),
        ({"values": np.zeros(())}, ValueError, r"streams\[1\].values: rank is 0"),
        (
            {"times": np.zeros(4, "M8[ns]")},
            TypeError,
            r"streams\[0\].times: has no unit, but streams\[1\].times is datetime64\[ns\]; write",
        ),
        (
            {"times": np.arange(4, dtype=np.float32)},
            TypeError,
            r"streams\[1\].times: dtype is float32, expected float64 as streams\[0\]",
        ),
        ({"times": np.zeros((2, 5))}, ValueError, r"streams\[1\].times: shape is \[2,5\]"),
        (
            {"times": np.array([[0.0, 1.0, 2.0, 3.0], [0.0, 2.5, 2.25, 3.0]])},
            ValueError,
            r"streams\[1\].times: row 1 decreases at index 2 \(2.5 -> 2.25\)",
        ),
        ({"lengths": "all"}, TypeError, r"streams\[1\].lengths: is a str, expected an array"),
        ({"lengths": [4, 5]}, ValueError, r"streams\[1\].lengths: row 1 is 5, expected 0 to 4"),
        ({"lengths": np.zeros(2)}, TypeError, r"streams\[1\].lengths: dtype is float64"),
        ({"max_gap": -1}, ValueError, r"streams\[1\].max_gap: is -1, expected 0 or more"),
        ({"tolerance": 1}, ValueError, r"streams\[1\].tolerance: is for methods nearest"),
        ({"method": "slerp"}, ValueError, r"streams\[1\].values: has 3 channels, expected"),
        (
            {"method": [(0, 2, "next")]},
            ValueError,
            r"streams\[1\].method: channel 2 is in none of the groups",
        ),
        ({"mean": [0.0]}, ValueError, r"streams\[1\].mean: shape is \[1\], expected \[3\]"),
        (
            {"clock_offset": math.inf},
            ValueError,
            r"streams\[1\].clock_offset: is inf, expected a finite float64",
        ),
    ],
)
def test_refused(changes, error, message):
    with pytest.raises(error, match=f"^{message}"):
        rbc.fuse([GOOD, rbc.Stream(**stream(**changes))], np.zeros(5))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"streams": []}, ValueError, "streams: got 0, expected 1 to 64"),
        ({"streams": [GOOD] * 65}, ValueError, "streams: got 65, expected 1 to 64"),
        ({"streams": GOOD}, TypeError, "streams: is a Stream, expected a list of"),
        ({"streams": None}, TypeError, "streams: is None, expected a list of"),
        ({"streams": [GOOD, VALUES]}, TypeError, r"streams\[1\]: is an ndarray, expected a robo"),
        ({"query_times": "noon"}, TypeError, "query_times: is a str, expected an array"),
        ({"query_times": np.zeros((3, 5))}, ValueError, r"query_times: shape is \[3,5\]"),
        (
            {"query_times": np.zeros(5, np.float32)},
            TypeError,
            "query_times: dtype is float32, expected float64 as times",
        ),
        ({"query_lengths": [5, 6]}, ValueError, "query_lengths: row 1 is 6, expected 0 to 5"),
        ({"dtype": "int32"}, TypeError, "dtype: is int32, expected a float"),
        ({"dtype": "quaternion"}, TypeError, "dtype: is 'quaternion', expected"),
        (
            {"dtype": "float16", "out": np.zeros((2, 5, 6), np.float32)},
            TypeError,
            "dtype: is float16, but out is float32",
        ),
        (
            {"out": np.zeros((2, 5, 3), np.float32)},
            ValueError,
            r"out: shape is \[2,5,3\], expected \[2,5,6\]",
        ),
        ({"out": np.zeros((2, 5, 6), int)}, TypeError, "out: dtype is int64, expected a float"),
        ({"backend": "tpu"}, ValueError, "backend: is 'tpu', expected"),
    ],
)
def test_refused_calls(arguments, error, message):
    with pytest.raises(error, match=f"^{message}"):
        rbc.fuse(**{"streams": [GOOD, GOOD], "query_times": np.zeros(5), **arguments})


def test_nothing_is_written_on_an_error():
    out = np.full((2, 5, 6), 123, np.float32)
    bad = rbc.Stream(**stream(times=np.array([0.0, 2.0, 1.0, 3.0])))
    with pytest.raises(ValueError, match=r"^streams\[1\].times: "):
        rbc.fuse([GOOD, bad], np.zeros(5), out=out)
    assert (out == 123).all()


def test_an_output_that_overlaps_a_stream_is_refused():
    room = np.zeros(128, np.float32)
    values, out = room[:24].reshape(2, 4, 3), room[20:80].reshape(2, 5, 6)
    with pytest.raises(ValueError, match=r"^streams\[1\].values: overlaps out"):
        rbc.fuse([GOOD, rbc.Stream(values, np.arange(4.0))], np.zeros(5), out=out)


def test_gradients_are_not_lost_silently():
    torch = pytest.importorskip("torch")
    values = torch.zeros(4, 1, requires_grad=True)
    with pytest.raises(ValueError, match="^values: requires grad"):
        rbc.Stream(values, TIMES)
    with torch.no_grad():
        stream = rbc.Stream(values, TIMES)
        assert rbc.fuse([stream], TIMES).shape == (4, 1)


def test_packed_streams_at_whole_query_times():
    """Query times that need a conversion find the rows of packed values by their offsets."""
    values, times = np.arange(8.0).reshape(4, 2), np.array([0.0, 1, 0, 1])
    stream = rbc.Stream(values, times, batch_offsets=[0, 2, 4])
    fused = rbc.fuse([stream], [[1], [0]])
    assert fused.tolist() == [[[2, 3]], [[4, 5]]]
