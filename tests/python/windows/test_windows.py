"""rbc.windows as Python calls it: libraries, dtypes, outputs, units, masks, accumulators."""

import copy
import datetime
import pickle

import numpy as np
import pytest

import robocache as rbc

OFFSETS = [0, 4, 4, 7]
VALUES = np.arange(14, dtype=np.float32).reshape(7, 2)
TIMES = np.array([0.0, 1, 2, 3, 10, 11, 12])


def stream(values=VALUES, offsets=(-1, 0, 2), **options):
    offsets = list(offsets) if isinstance(offsets, tuple) else offsets
    return rbc.WindowStream(values, offsets, episode_offsets=OFFSETS, **options)


def cut(*streams, episodes=(0, 2, 1), anchors=None, **options):
    anchors = [1, 2, 0][: len(episodes)] if anchors is None else anchors
    return rbc.windows(list(streams), list(episodes), anchors, **options)


def rows(result):
    """The rows of VALUES, by their first channel; 0 too where nothing is."""
    return (np.asarray(result)[..., 0] / 2).tolist()


HELD, VALID = [[0, 1, 3], [5, 6, 6], [0, 0, 0]], [[1, 1, 1], [1, 1, 0], [0, 0, 0]]


def test_rows_around_anchors():
    ((values, valid),) = cut(stream())
    assert rows(values) == HELD and valid.tolist() == VALID
    assert values.dtype == np.float32 and values.flags.c_contiguous and valid.dtype == bool


def test_padding():
    ((values, valid),) = cut(stream(outside="fill", fill_value=-2.0))
    assert rows(values) == [[0, 1, 3], [5, 6, -1], [-1, -1, -1]] and valid.tolist() == VALID
    ((values, _),) = cut(stream(outside="neutral", neutral=[2.0, 3.0]), anchors=[0, 2, 0])
    assert values[1].tolist() == [[10, 11], [12, 13], [2, 3]]
    assert values[0].tolist() == [[0, 1], [0, 1], [4, 5]]  # before the begin it holds
    by_step = np.arange(6).reshape(3, 2)
    ((values, _),) = cut(stream(outside="neutral", neutral=by_step, neutral_channels=[False, True]))
    assert values[1, 2].tolist() == [12, 5]


def test_row_numbers():
    ((numbers, valid),) = cut(stream(None))
    assert numbers.tolist()[:2] == [[0, 1, 3], [5, 6, 6]] and valid.tolist() == VALID
    assert numbers.dtype == np.int64
    ((numbers, _),) = cut(stream(None, outside="fill", fill_value=-1))
    assert numbers.tolist() == [[0, 1, 3], [5, 6, -1], [-1, -1, -1]]


def test_rates_of_their_own():
    slow = rbc.WindowStream(
        np.array([[0.0], [1.0], [2.0]]),
        [-1, 0],
        episode_offsets=[0, 2, 2, 3],
        times=np.array([0.5, 2.5, 10.0]),
    )
    fast = stream(times=TIMES, offsets=[0])
    _, (values, valid) = cut(fast, slow, episodes=[0, 0, 0, 2], anchors=[0, 1, 3, 2])
    assert values[..., 0].tolist() == [[0, 0], [0, 0], [0, 1], [2, 2]]
    assert valid.tolist() == [[0, 0], [0, 1], [1, 1], [0, 1]]
    _, (again, _) = cut(
        fast, slow, episodes=[0, 0, 0, 2], anchors=[0.4, 1.9, 99.0, 12.0], anchor_times=True
    )
    assert (again == values).all()
    (values, _), _ = cut(fast, slow, episodes=[0], anchors=[1], anchor_stream=1)
    assert rows(values) == [[2]]


def test_interpolation():
    moved = stream(times=TIMES, offsets=[-0.5, 0.25], method="linear", clock_offset=0.25)
    ((values, valid),) = cut(moved, episodes=[0, 2, 1], anchors=[1, 0, 0])
    assert rows(values)[0] == [0.5, 1.25] and valid[0].tolist() == [True, True]
    assert rows(values)[1] == [4, 4.25] and valid[1].tolist() == [False, True]
    assert not valid[2].any()
    ((values, valid),) = cut(
        stream(times=TIMES, offsets=[0.5], method="linear", max_gap=0.5, fill_value=-2.0)
    )
    assert rows(values) == [[-1], [6], [-1]] and not valid.any()


def test_normalization():
    norm = rbc.Normalization([1.0, 2.0], [0.5, 3.0], 0.25, -1.0, [2.0, np.inf])
    (plain, _), (values, _) = cut(stream(), stream(normalization=norm), episodes=[0, 2])
    assert values.dtype == np.float32 and (values == norm.apply(plain)).all()
    divided = rbc.Normalization([1.0, 2.0], [0.3, 7.7], 0.25, high=[2.0, np.inf], divides=True)
    ((values, _),) = cut(stream(normalization=divided), episodes=[0, 2])
    expected = (plain - np.float32([1, 2])) / np.float32([0.3, 7.7]) + np.float32(0.25)
    assert (values == np.minimum(expected, np.float32([2, np.inf]))).all()
    assert (values == divided.apply(plain)).all()
    steps = rbc.Normalization(np.arange(6.0).reshape(3, 2), 2.0)
    ((values, _),) = cut(stream(normalization=steps), episodes=[0, 2])
    assert (values == steps.apply(plain)).all()
    ((values, _),) = cut(stream(normalization=rbc.Normalization(1.0, 2.0)), episodes=[0, 2])
    assert (values == (plain - 1) * 2).all()
    ((values, _),) = cut(stream(outside="fill", fill_value=7.0, normalization=norm))
    assert values[1, 2].tolist() == [7, 7]  # which is not normalized


def test_values_that_are_missing():
    given = VALUES.copy()
    given[1, 1] = np.nan
    ((values, valid),) = cut(stream(given, missing="nan", fill_value=-2.0))
    assert rows(values)[0] == [0, -1, 3] and valid[0].tolist() == [True, False, True]
    there = [True, False, True, True, True, True, True]
    for masked in (
        stream(sample_mask=there, fill_value=-2.0),
        stream(np.ma.masked_where(np.isnan(given), given), fill_value=-2.0),
    ):
        assert rows(cut(masked)[0][0])[0] == [0, -1, 3]


def test_a_zero_quaternion_is_no_rotation():
    poses = np.zeros((7, 7), np.float32)
    poses[:, 6] = 1
    poses[2, 6] = 0
    now = {"rotation": "quat_xyzw", "out_rotation": "rot6d_rows", "reference": (0, 0)}
    relative = [rbc.Transform("se3_relative", 0, 7, **now)]
    made = stream(poses, [0, 1], transforms=relative, fill_value=-3.0)
    ((values, valid),) = cut(made, episodes=[0, 0, 0], anchors=[0, 1, 2])
    assert valid.tolist() == [[True, True], [True, False], [False, False]]
    assert (values[~valid] == -3).all() and values[0, 1].tolist() == [0, 0, 0, 1, 0, 0, 0, 1, 0]


# ---- dtypes and libraries ------------------------------------------------------------------------


def test_dtypes():
    labels = np.arange(7, dtype=np.uint8)[:, None]
    norm = rbc.Normalization(1.0, 2.0)
    results = cut(
        stream(),
        stream(dtype="float64"),
        stream(VALUES.astype(np.float16)),
        stream(labels),
        stream(labels > 3),
        stream(labels, normalization=norm),
        stream(labels, dtype=np.float16),
        stream(None),
        dtype=np.float64,
    )
    assert [values.dtype.name for values, _ in results] == [
        "float64", "float64", "float64", "uint8", "bool", "float64", "float16", "int64",
    ]  # fmt: skip
    ((values, _),) = cut(stream(labels, normalization=norm))
    assert values.dtype == np.float32 and values[0, :, 0].tolist() == [-2, 0, 4]
    ml_dtypes = pytest.importorskip("ml_dtypes")
    ((values, _),) = cut(stream(), dtype="bfloat16")
    assert values.dtype == ml_dtypes.bfloat16


def test_tensors():
    torch = pytest.importorskip("torch")
    given = torch.from_numpy(VALUES.copy())
    norm = rbc.Normalization([1.0, 2.0], 0.5)
    made = rbc.WindowStream(
        given, range(-1, 1), episode_offsets=torch.tensor(OFFSETS), normalization=norm
    )
    (values, valid), (numbers, _) = rbc.windows(
        [made, rbc.WindowStream(None, [0], episode_offsets=OFFSETS)],
        torch.tensor([0, 2]),
        np.array([1, 2]),
        dtype=torch.bfloat16,
    )
    assert values.dtype == torch.bfloat16 and valid.dtype == torch.bool
    assert isinstance(numbers, torch.Tensor) and numbers.tolist() == [[1], [6]]
    expected = norm.apply(given[torch.tensor([[0, 1], [5, 6]])]).bfloat16()
    assert torch.equal(values, expected)


def test_jax():
    jax = pytest.importorskip("jax")
    given = jax.numpy.asarray(VALUES)
    made = rbc.WindowStream(given, [-1, 0, 2], episode_offsets=jax.numpy.asarray(OFFSETS))
    ((values, valid),) = cut(made)
    assert isinstance(values, jax.Array) and isinstance(valid, jax.Array)
    assert rows(values) == HELD and valid.tolist() == VALID


def test_a_frame_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": VALUES[:, 0], "y": VALUES[:, 1]})
    ((values, _),) = cut(stream(frame))
    assert rows(values) == HELD


def test_any_strides():
    wide = np.zeros((14, 6), np.float32)
    wide[::-2, 4:1:-2] = VALUES
    given = wide[::-2, 4:1:-2]
    ((values, _),) = cut(stream(given), episodes=np.array([0, 9, 2, 9, 1])[::2])
    assert rows(values) == HELD
    one = np.broadcast_to(VALUES[:1], (7, 2))
    assert (cut(stream(one))[0][0][:2] == VALUES[0]).all()


# ---- outputs -------------------------------------------------------------------------------------


def test_given_outputs():
    poisoned = np.full((3, 3, 4), np.nan, np.float64)
    out, valid = poisoned[..., 1:3], np.zeros((3, 3), np.uint8)
    (first, second) = cut(stream(), stream(), out=[(out, valid), None])
    assert first[0] is out and first[1] is valid
    assert rows(out) == HELD and valid.tolist() == VALID
    assert np.isnan(poisoned[..., [0, 3]]).all()
    assert rows(second[0]) == HELD
    ((only, made),) = cut(stream(), out=[np.empty((3, 3, 2), np.float32)])
    assert rows(only) == HELD and made.tolist() == VALID


def test_outputs_of_another_library():
    torch = pytest.importorskip("torch")
    out, valid = torch.empty(3, 3, 2), torch.empty(3, 3, dtype=torch.bool)
    version = out._version
    cut(stream(), out=[(out, valid)])
    assert rows(out) == HELD and out._version > version


def test_streams_that_are_not_output():
    relative = rbc.Transform("subtract", 0, 2, reference=(0, 0))
    first, (values, _) = cut(
        stream(offsets=[0], output=False), stream(transforms=[relative]), episodes=[0, 2]
    )
    assert first == (None, None) and rows(values) == [[-1, 0, 2], [-1, 0, 0]]


def test_nothing_is_written_by_a_call_that_fails():
    out, valid = np.full((1, 3, 2), 5.0), np.full((1, 3), 7, np.uint8)
    with pytest.raises(ValueError, match="^episodes: index 0 is 3, expected 0 to 2$"):
        cut(stream(), episodes=[3], anchors=[0], out=[(out, valid)])
    assert (out == 5).all() and (valid == 7).all()


def test_no_samples_and_no_offsets():
    ((values, valid),) = cut(stream(), episodes=[], anchors=[])
    assert values.shape == (0, 3, 2) and valid.shape == (0, 3)
    ((values, valid),) = cut(stream(offsets=[]))
    assert values.shape == (3, 0, 2) and valid.shape == (3, 0)
    ((values, _),) = cut(stream(VALUES[:, :0]))
    assert values.shape == (3, 3, 0)


# ---- units ---------------------------------------------------------------------------------------


def test_times_with_a_unit():
    stamps = (TIMES * 1000).astype("M8[ms]")
    made = stream(
        times=stamps,
        offsets=[datetime.timedelta(seconds=-0.5), datetime.timedelta(seconds=0.25)],
        method="linear",
        max_gap=datetime.timedelta(seconds=1),
        clock_offset=np.timedelta64(250, "ms"),
    )
    ((values, _),) = cut(made, episodes=[0], anchors=[1])
    assert rows(values) == [[0.5, 1.25]]
    ((values, _),) = cut(
        stream(times=stamps, offsets=np.array([0, 500], "m8[ms]"), method="linear"),
        episodes=[2],
        anchors=np.array(["1970-01-01T00:00:10.500"], "M8[ms]"),
        anchor_times=True,
    )
    assert rows(values) == [[4.5, 5]]


# ---- accumulators --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accumulate", "expected"),
    [("all", [0, 1, 3, 5, 6, 6]), ("valid", [0, 1, 3, 5, 6]), ("whole", [0, 1, 3])],
)
def test_accumulators(accumulate, expected):
    accumulator = rbc.StatisticsAccumulator(2, quantiles=())
    norm = rbc.Normalization(5.0, 7.0)
    made = stream(accumulator=accumulator, accumulate=accumulate, normalization=norm)
    assert cut(made) == [(None, None)]
    whole = rbc.statistics(VALUES[expected], quantiles=())
    result = accumulator.result()
    assert result.count.tolist() == [len(expected)] * 2
    for name in ("min", "max", "mean", "std"):
        assert (getattr(result, name) == getattr(whole, name)).all()


def test_an_accumulator_by_step_beside_an_output():
    accumulator = rbc.StatisticsAccumulator(6, quantiles=())
    ((values, _),) = cut(
        stream(accumulator=accumulator, output=True), episodes=[0, 2], anchors=[1, 2]
    )
    assert rows(values) == HELD[:2]
    assert accumulator.result().mean.tolist() == values.mean(0).ravel().tolist()
    for _ in range(3):  # the accumulator outlives its streams
        cut(stream(accumulator=accumulator), episodes=[0], anchors=[1])
    assert accumulator.result().count.tolist() == [5] * 6


# ---- plain data ----------------------------------------------------------------------------------


def test_streams_are_copied_and_pickled():
    stamps = (TIMES * 1000).astype("M8[ms]")
    relative = rbc.Transform("subtract", 0, 2, reference=(0, 1), inverse=True)
    made = stream(
        times=stamps,
        normalization=rbc.Normalization(1.0, 2.0),
        transforms=[relative],
        offsets=[-1, 0],
    )
    expected = cut(made, episodes=[0, 2], anchors=[1, 1])
    for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        got = cut(again, episodes=[0, 2], anchors=[1, 1])
        assert (got[0][0] == expected[0][0]).all() and repr(again) == repr(made)


def test_a_stream_cannot_be_changed():
    with pytest.raises(AttributeError):
        stream().outside = "fill"


def test_how_streams_are_shown():
    assert repr(stream(None, [0])) == (
        "WindowStream(values=None, offsets=[0], episode_offsets=[0, 4, 4, 7])"
    )
    made = stream(times=TIMES, outside="fill", offsets=np.array([0.5]), method="linear")
    assert repr(made) == (
        "WindowStream(values=<float32 [7,2]>, offsets=<float64 [1]>, "
        "episode_offsets=[0, 4, 4, 7], times=<float64 [7]>, method='linear', outside='fill')"
    )


def test_transforms_are_plain():
    pose = rbc.Transform(
        "se3_step", 2, 7, reference=("hand", -1), rotation="quat_wxyz", out_rotation="rotvec"
    )
    assert pickle.loads(pickle.dumps(pose)) == pose and hash(pose) == hash(copy.copy(pose))
    assert (pose.end, pose.out_count, pose.reference_begin) == (9, 6, 2)
    assert repr(pose) == (
        "Transform('se3_step', 2, 7, reference=('hand', -1), rotation='quat_wxyz', "
        "out_rotation='rotvec')"
    )
    subtract = rbc.Transform("subtract", 0, 2, reference=(1, 0), reference_begin=3, inverse=True)
    assert repr(subtract) == (
        "Transform('subtract', 0, 2, reference=(1, 0), reference_begin=3, inverse=True)"
    )
    assert rbc.Transform.subtract([False, False], reference=(0, 0)) == ()


def test_a_context():
    with rbc.Context("cpu", threads=1) as context:
        ((values, _),) = cut(stream(), backend=context)
        assert rows(values) == HELD
