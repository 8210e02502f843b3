"""Frequent mistakes: each raises an error or a warning with a helpful message."""

import re
import warnings

import numpy as np
import pytest

import robocache as rbc

VALUES = np.arange(8.0).reshape(4, 2)
SECONDS = np.arange(4.0)
TICKS = np.arange(4) * 1_000_000_000
STAMPS = np.arange(4).astype("M8[s]").astype("M8[ns]")
GRID = {"origin": (0, 0, 0), "voxel_size": 1, "shape": (2, 2, 2)}
NATIVE = re.escape(
    "expected a float, integer or bool dtype in native byte order "
    "(array.astype(array.dtype.newbyteorder('=')))"
)
FIELDS = np.zeros(4, [("a", "f4"), ("b", "f4")])


def fused(values=VALUES, times=TICKS, query_times=TICKS, **options):
    return rbc.fuse([rbc.Stream(values, times, **options)], query_times)


def resampled(values=VALUES, times=TICKS, query_times=TICKS, **options):
    return rbc.resample(values, times, query_times, **options)


def with_nat():
    stamps = STAMPS.copy()
    stamps[1] = "NaT"
    return stamps


REFUSED = {
    "fractions of ticks in a list": (
        lambda: resampled(query_times=[0.5]),
        "query_times: is a list of float64, expected int64, like times$",
    ),
    "fractions of ticks": (
        lambda: resampled(query_times=np.array([0.5])),
        "query_times: dtype is float64, expected int64 as times$",
    ),
    "max_gap of half a tick": (
        lambda: resampled(max_gap=0.5),
        "max_gap: is 0.5, but times are integers: write whole ticks of their unit, such as "
        "500_000_000 for 0.5 s in nanoseconds$",
    ),
    "tolerance of a fraction": (
        lambda: resampled(method="nearest", tolerance=1.5),
        "tolerance: is 1.5, but times are integers: write whole ticks",
    ),
    "clock_offset of a fraction": (
        lambda: fused(clock_offset=0.5),
        "clock_offset: is a float, expected an int, in ticks of the int64 times$",
    ),
    "two units": (
        lambda: resampled(times=STAMPS, query_times=STAMPS.astype("M8[ms]")),
        r"query_times: is datetime64\[ms\], but times is datetime64\[ns\]; convert both to one "
        r"unit, by query_times.astype\('datetime64\[ns\]'\)$",
    ),
    "two units of streams": (
        lambda: rbc.fuse(
            [rbc.Stream(VALUES, STAMPS), rbc.Stream(VALUES, STAMPS.astype("M8[ms]"))], STAMPS
        ),
        r"streams\[1\].times: is datetime64\[ms\], but streams\[0\].times is datetime64\[ns\]; "
        "convert both to one unit",
    ),
    "NaT": (
        lambda: resampled(times=with_nat(), query_times=STAMPS),
        "times: is NaT at index 1; remove these rows from times and values$",
    ),
    "NaT among queries": (
        lambda: resampled(times=STAMPS, query_times=with_nat()),
        "query_times: is NaT at index 1; remove these queries$",
    ),
    "NaT of a stream": (
        lambda: fused(times=with_nat(), query_times=STAMPS),
        "times: is NaT at index 1; remove these rows from times and values$",
    ),
    "values of objects": (
        lambda: resampled(VALUES.astype(object)),
        "values: dtype is object, expected a float, integer or bool dtype$",
    ),
    "times of objects": (
        lambda: resampled(times=SECONDS.astype(object), query_times=SECONDS),
        r"times: dtype is object, of float; write np.asarray\(times.tolist\(\)\)$",
    ),
    "rows of different lengths": (
        lambda: resampled(np.array([[1], [1, 2]], object), [0.0, 1.0], [0.5]),
        "values: dtype is object, expected a float",
    ),
    "masked times": (
        lambda: resampled(times=np.ma.masked_less(TICKS, 1)),
        "times: is a masked array, and its mask would be lost; pass times.filled",
    ),
    "values with fields": (lambda: resampled(FIELDS), r"values: dtype is \[\('a', '<f4'\)"),
    "times with fields": (
        lambda: resampled(times=FIELDS),
        r"times: has the fields a, b, expected one of them, such as times\['a'\]$",
    ),
    "queries with fields": (
        lambda: resampled(times=SECONDS, query_times=FIELDS),
        r"query_times: has the fields a, b, expected one of them, such as query_times\['a'\]$",
    ),
    "points with fields": (
        lambda: rbc.voxelize(FIELDS, **GRID),
        r"points: dtype is \[\('a', '<f4'\)",
    ),
    "big-endian values": (
        lambda: resampled(VALUES.astype(">f8")),
        f"values: dtype is >f8, {NATIVE}$",
    ),
    "big-endian times": (
        lambda: resampled(times=TICKS.astype(">i8")),
        f"times: dtype is >i8, {NATIVE}$",
    ),
    "big-endian queries": (
        lambda: resampled(times=SECONDS, query_times=SECONDS.astype(">f8")),
        f"query_times: dtype is >f8, {NATIVE}$",
    ),
    "big-endian values of a stream": (
        lambda: fused(VALUES.astype(">f4")),
        rf"streams\[0\].values: dtype is >f4, {NATIVE}$",
    ),
    "big-endian lengths": (
        lambda: resampled(VALUES[None], lengths=np.array([2], ">i8")),
        f"lengths: dtype is >i8, {NATIVE}$",
    ),
    "a big-endian mean": (
        lambda: resampled(mean=np.zeros(2, ">f8")),
        f"mean: dtype is >f8, {NATIVE}$",
    ),
    "a big-endian output": (
        lambda: resampled(out=np.zeros((4, 2), ">f8")),
        f"out: dtype is >f8, {NATIVE}$",
    ),
    "big-endian points": (
        lambda: rbc.voxelize(np.zeros((4, 3), ">f4"), **GRID),
        f"points: dtype is >f4, {NATIVE}$",
    ),
    "big-endian rotations": (
        lambda: rbc.convert_rotations(np.ones((1, 4), ">f8"), "quat_xyzw", "matrix"),
        f"rotations: dtype is >f8, {NATIVE}$",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        call()


def test_big_endian_stamps_are_converted():
    expected = resampled(times=STAMPS, query_times=STAMPS)
    assert (resampled(times=STAMPS.astype(">M8[ns]"), query_times=STAMPS) == expected).all()


FAR = TICKS + 10**18
COARSE = (SECONDS + 1.7e9).astype(np.float32)


@pytest.mark.parametrize("call", [resampled, fused])
@pytest.mark.parametrize(
    ("times", "query_times", "message"),
    [
        (FAR, FAR // 10**6, "times are about 1e6 times as large as queries: is their unit the"),
        (COARSE, COARSE, "times: float32 resolves only 128 near 1.7e+09, coarser than"),
    ],
    ids=["milliseconds of nanoseconds", "float32 since the epoch"],
)
def test_warns(call, times, query_times, message):
    with pytest.warns(rbc.RangeWarning, match=re.escape(message)):
        call(times=times, query_times=query_times)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call()  # and not of what is right


def test_a_series_with_nat():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(with_nat())
    with pytest.raises(ValueError, match="^times: is NaT at index 1; remove these rows from times"):
        rbc.resample(VALUES, series, STAMPS)
    with pytest.raises(ValueError, match="^query_times: is NaT at index 1; remove these queries$"):
        rbc.resample(VALUES, STAMPS, series)


def test_two_columns_of_one_name():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(np.zeros((4, 3)), columns=["a", "b", "a"])
    words = "has two columns named 'a'; rename one, or pass .to_numpy()"
    for name, call in {
        "values": lambda: rbc.resample(table, SECONDS, [0.5]),
        "frame": lambda: rbc.resample_frame(table.set_index(SECONDS), [0.5]),
        "frames['arm']": lambda: rbc.fuse_frames({"arm": table.set_index(SECONDS)}, [0.5]),
    }.items():
        with pytest.raises(ValueError, match=f"^{re.escape(f'{name}: {words}')}$"):
            call()


def test_mapped_by_torch():
    torch = pytest.importorskip("torch")
    values = torch.arange(16.0).reshape(2, 4, 2)
    times = torch.arange(4.0) + torch.tensor([[0.0], [0.25]])

    def plain(values, times):
        return rbc.resample(values, times, [1.5])

    for dims, name in (((0, 0), "values"), ((None, 0), "times")):
        with pytest.raises(
            ValueError, match=f"^{name}: is mapped by torch.vmap .* robocache.torch"
        ):
            torch.vmap(plain, in_dims=dims)(values if dims[0] == 0 else values[0], times)
    mapped = torch.vmap(lambda *of: rbc.torch.resample(*of, [1.5]))(values, times)
    assert torch.equal(mapped[1], plain(values[1], times[1]))


def test_mapped_by_jax():
    jax = pytest.importorskip("jax")
    times = jax.numpy.arange(8.0).reshape(2, 4)
    with pytest.raises(TypeError, match="^times: is traced by JAX .* by jax.pure_callback\n"):
        jax.vmap(lambda own: rbc.resample(VALUES.astype(np.float32), own, [0.5]))(times)


@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_many_clocks_of_one_recording(library):
    module = pytest.importorskip(library)
    own = module.numpy if library == "jax" else module
    clocks = np.array([[0.5, 1.5], [1.5, 2.5], [0.0, 3.0]], np.float32)
    given = [own.asarray(each.astype(np.float32)) for each in (VALUES, SECONDS, clocks)]
    expected = np.stack([rbc.resample(VALUES, SECONDS, each.astype(float)) for each in clocks])
    for out in (rbc.resample(*given), rbc.fuse([rbc.Stream(*given[:2])], given[2])):
        assert type(out) is type(given[0])
        assert out.shape == (3, 2, 2)
        assert np.allclose(np.asarray(out), expected)
