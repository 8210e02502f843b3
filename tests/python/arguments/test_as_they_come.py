"""Values of pandas, polars, pyarrow and lists, one recording under many clocks, channel masks."""

import subprocess
import sys

import numpy as np
import pytest

import robocache as rbc
from child_processes import environment

TIMES = np.arange(4.0)
QUERIES = np.array([0.5, 2.25])
X, COUNT = np.array([0.0, 10, 20, 30]), np.array([4, 3, 2, 1])
ANSWER = np.array([[5.0, 3.5], [22.5, 1.75]])


def pandas_frame():
    return pytest.importorskip("pandas").DataFrame({"x": X, "count": COUNT})


def polars_frame():
    return pytest.importorskip("polars").DataFrame({"x": X, "count": COUNT})


def arrow_table():
    return pytest.importorskip("pyarrow").table({"x": X, "count": COUNT})


def nullable_frame():
    return pandas_frame().astype({"x": "Float64", "count": "Int64"})


def lists():
    return np.stack([X, COUNT], axis=1).tolist()


def fixed_size_lists():
    arrow = pytest.importorskip("pyarrow")
    flat = arrow.array(np.stack([X, COUNT], axis=1).ravel())
    return arrow.FixedSizeListArray.from_arrays(flat, 2)


def chunks_of_lists():
    arrow, whole = pytest.importorskip("pyarrow"), fixed_size_lists()
    return arrow.chunked_array([whole[:1], whole[1:]])


@pytest.mark.parametrize(
    "values",
    [pandas_frame, polars_frame, arrow_table, nullable_frame, lists, fixed_size_lists]
    + [chunks_of_lists],
)
def test_values_in_any_form(values):
    out = rbc.resample(values(), TIMES, QUERIES)
    assert type(out) is np.ndarray and out.dtype == np.float64
    np.testing.assert_array_equal(out, ANSWER)
    np.testing.assert_array_equal(rbc.fuse([rbc.Stream(values(), TIMES)], QUERIES), ANSWER)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_series_is_a_channel(library):
    module = pytest.importorskip(library)
    column = module.array(X) if library == "pyarrow" else module.Series(X)
    np.testing.assert_array_equal(rbc.resample(column, TIMES, QUERIES), ANSWER[:, :1])
    assert rbc.resample(column, [0, 1, 2, 3], [1]).tolist() == [[10]]


def test_frames_of_one_dtype_keep_it_and_missing_numbers_are_nan():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    narrow = pandas_frame().astype(np.float32)
    assert rbc.resample(narrow, TIMES, QUERIES).dtype == np.float32
    steps = rbc.resample(
        pandas.Series([True, False, True, True]), TIMES, QUERIES, method="previous"
    )
    assert steps.dtype == np.bool_ and steps.ravel().tolist() == [True, True]
    for hole in (pandas.Series([0, None, 2, 3], dtype="Int64"), polars.Series([0, None, 2, 3])):
        out = rbc.resample(hole, TIMES, np.array([0.5, 2.5]))
        assert np.isnan(out[0, 0]) and out[1, 0] == 2.5
    flags = pandas.DataFrame({"x": X, "closed": [True, False, False, True]})
    assert rbc.resample(flags, TIMES, QUERIES, method="previous").tolist() == [[0, 1], [20, 0]]


def refused():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    stamps = np.arange(4).view("M8[ns]")
    vectors = pandas.DataFrame({"state": [np.zeros(2)] * 4})
    twice = pandas.DataFrame(np.ones((4, 2)), columns=["x", "x"])
    return [
        (twice, ValueError, "values: has two columns named 'x'; rename one, or pass .to_num"),
        (
            pandas.DataFrame({"n": list("abcd")}),
            TypeError,
            r"values\['n'\]: dtype is .*; remove it",
        ),
        (
            pandas.DataFrame({"t": stamps}),
            TypeError,
            r"values\['t'\]: dtype is datetime64\[ns\]; pass",
        ),
        (
            vectors,
            TypeError,
            r"values\['state'\]: dtype is object; if all its lists have the same",
        ),
        (
            polars.DataFrame({"n": list("abcd")}),
            TypeError,
            r"values\['n'\]: dtype is String; remove",
        ),
        (polars.LazyFrame({"x": X}), TypeError, "values: is a LazyFrame; call .collect"),
        (arrow.table({"n": list("abcd")}), TypeError, r"values\['n'\]: dtype is string; remove it"),
        (pandas.DataFrame(index=range(4)), ValueError, "values: has no columns"),
        (np.array([[None]] * 4), TypeError, "values: dtype is object, expected a float, integer"),
        (X[:, None].astype(">f8"), TypeError, "values: dtype is >f8, .* in native byte order"),
        (np.zeros((4, 1), "i4,f4"), TypeError, "values: dtype is .*, expected a float, integer"),
        ([[1.0], [2.0, 3.0]], ValueError, "values: "),
        ([["a"]], TypeError, "values: is a list of <U1, expected numbers"),
        ("joints", TypeError, "values: is a str, expected an array"),
    ]


def test_what_cannot_be_taken_says_what_to_call():
    for values, error, message in refused():
        with pytest.raises(error, match=f"^{message}"):
            rbc.resample(values, TIMES, QUERIES)
        if not isinstance(values, np.ndarray):
            with pytest.raises(error, match=f"^{message}"):
                rbc.Stream(values, TIMES)


@pytest.mark.parametrize(
    ("library", "kind", "message"),
    [
        ("xarray.core.dataarray", "DataArray", r"values is an xarray DataArray: pass values\.to_n"),
        ("datasets.arrow_dataset", "Column", r"values is a Column of .*: pass numpy\.asarray\("),
    ],
)
def test_arrays_of_other_libraries(library, kind, message):
    given = type(kind, (), {"__module__": library})()
    with pytest.raises(TypeError, match=f"^{message}"):
        rbc.resample(given, TIMES, QUERIES)
    with pytest.raises(TypeError, match=f"^{message}"):
        rbc.Stream(given, TIMES)


def test_nothing_is_imported_for_arrays():
    done = subprocess.run(
        [sys.executable, "-c", "import sys, numpy as np, robocache as rbc\n"
         "t = np.arange(3.0)\n"
         "rbc.fuse([rbc.Stream(t[:, None], t)], [[0.5], [1.5]])\n"
         "rbc.report([rbc.Stream(t[:, None], t.astype('M8[s]'))])\n"
         "print(sorted({'pandas', 'polars', 'pyarrow', 'torch', 'jax'} & set(sys.modules)))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "[]\n"


def test_each_call_may_be_the_first_of_a_process():
    code = (
        "import forked, good_calls\n"
        "def made(name):\n"
        "    function, arguments, options = calls[name]()\n"
        "    function(*arguments, **options)\n"
        "calls = good_calls.all_calls()\n"
        "answers = {name: forked.call(made, name, seconds=60) for name in calls}\n"
        "print({name: each for name, each in answers.items() if 'result' not in each})"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert done.stdout == "{}\n", done.stdout + done.stderr


# ---- windows: one recording under many clocks ---------------------------------------------------


@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_windows_of_one_recording(library):
    random = np.random.default_rng(0)
    values = random.normal(size=(50, 3)).astype(np.float32)
    times, windows = np.arange(50, dtype=np.float32), random.uniform(0, 49, (7, 5)).astype("f4")
    expected = rbc.resample(np.broadcast_to(values, (7, 50, 3)), times, windows)
    module = pytest.importorskip(library)
    array = {"numpy": np.asarray, "torch": getattr(module, "from_numpy", None)}.get(library)
    array = array or module.numpy.asarray
    given = array(values), array(times), array(windows)
    out, mask = rbc.resample(*given, return_valid=True)
    assert type(out) is type(given[0]) and mask.shape == (7, 5)
    np.testing.assert_array_equal(np.asarray(out), expected)
    whole, batch = rbc.Stream(*given[:2]), rbc.Stream(array(np.stack([values] * 7)), given[1])
    both = np.concatenate([expected, expected], axis=2)
    np.testing.assert_array_equal(np.asarray(rbc.fuse([whole, whole], given[2])), both)
    np.testing.assert_array_equal(np.asarray(rbc.fuse([batch, whole], given[2])), both)


def test_windows_copy_nothing_and_write_into_out():
    values, out = np.zeros((1000, 64)), np.empty((3, 2, 64))
    windows = np.arange(6.0).reshape(3, 2)
    assert rbc.resample(values, np.arange(1000.0), windows, out=out) is out
    from robocache._arguments.coerce import one_for_each

    broadcast = one_for_each(values, np.arange(1000.0), windows, None)
    assert np.shares_memory(broadcast, values) and broadcast.strides[0] == 0


def test_windows_have_gradients():
    torch = pytest.importorskip("torch")
    values = torch.zeros(4, 1, dtype=torch.float64, requires_grad=True)
    windows = torch.tensor([[0.5], [0.5], [2.0]], dtype=torch.float64)
    rbc.torch.resample(values, torch.arange(4.0, dtype=torch.float64), windows).sum().backward()
    assert values.grad.flatten().tolist() == [1, 1, 1, 0]


def test_only_one_recording_is_broadcast():
    with pytest.raises(ValueError, match="^times: rank is 2"):
        rbc.resample(np.zeros((4, 1)), np.zeros((2, 4)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"^query_times: shape is \[3,5\], expected \[2,5\]"):
        rbc.resample(np.zeros((2, 4, 1)), TIMES, np.zeros((3, 5)))


# ---- masks of channels --------------------------------------------------------------------------


def test_channel_masks():
    streams = [rbc.Stream(np.zeros((4, d)), TIMES, max_gap=gap) for d, gap in ((2, 2), (1, 0.5))]
    out, mask = rbc.fuse(streams, QUERIES, return_valid=True)
    spread = rbc.channel_mask(mask, streams)
    assert spread.shape == out.shape and spread[0].tolist() == [True, True, False]
    torch = pytest.importorskip("torch")
    assert rbc.channel_mask(torch.from_numpy(mask), streams).numpy().tolist() == spread.tolist()
    with pytest.raises(ValueError, match="^valid: its last dimension is 2, expected 1"):
        rbc.channel_mask(mask, streams[:1])
    with pytest.raises(TypeError, match=r"^streams\[0\]: is an int, expected a Stream"):
        rbc.channel_mask(mask, [1, 2])
