"""Wrong arguments of windows: each raises an error with the name of the stream and the field."""

import numpy as np
import pytest

import robocache as rbc

VALUES = np.arange(14.0).reshape(7, 2)
TIMES = np.array([0.0, 1, 2, 3, 0, 1, 2])
POSES = np.tile([0.0, 0, 0, 0, 0, 0, 1], (7, 1))


def stream(values=VALUES, offsets=(0, 1), episode_offsets=(0, 4, 7), **options):
    return rbc.WindowStream(values, list(offsets), episode_offsets=list(episode_offsets), **options)


def cut(*streams, episodes=(0,), anchors=(0,), **options):
    return rbc.windows(list(streams), list(episodes), anchors, **options)


def rows(anchors):
    return cut(stream(), anchors=anchors)


def subtract(begin=0, count=2, reference=(0, 0), **options):
    return rbc.Transform("subtract", begin, count, reference=reference, **options)


def pose(count=7, rotation="quat_xyzw", **options):
    return rbc.Transform("se3_relative", 0, count, reference=(0, 0), rotation=rotation, **options)


ACCUMULATOR = rbc.StatisticsAccumulator(2)

CALLS = {
    "an episode too many": (
        lambda: cut(stream(), episodes=[2]),
        "episodes: index 0 is 2, expected 0 to 1$",
    ),
    "an episode before the first": (
        lambda: cut(stream(), episodes=[-1]),
        "episodes: index 0 is -1, expected 0 to 1$",
    ),
    "episodes of floats": (
        lambda: cut(stream(), episodes=[0.5]),
        "episodes: is a list of float64, expected int64$",
    ),
    "anchors of floats": (
        lambda: rows(np.array([0.5])),
        "anchors: dtype is float64, expected rows of int64; pass anchor_times=True if they are "
        "times$",
    ),
    "a list of floats for anchors": (
        lambda: rows([0.5]),
        "anchors: is a list of float64, expected int64$",
    ),
    "too many anchors": (lambda: rows([0, 1]), r"anchors: shape is \[2\], expected \[1\]$"),
    "times without streams' times": (
        lambda: cut(stream(), anchors=[0.5], anchor_times=True),
        r"streams\[0\].times: required in every stream when anchors are times$",
    ),
    "anchors of another dtype": (
        lambda: cut(stream(times=TIMES), anchors=np.array([0]), anchor_times=True),
        "anchors: dtype is int64, expected float64 as times$",
    ),
    "anchors without a unit": (
        lambda: cut(stream(times=TIMES.astype("M8[s]")), anchors=[3], anchor_times=True),
        r"anchors: has no unit, but streams\[0\].times is datetime64\[s\]; ",
    ),
    "a stream for anchors that is none": (
        lambda: cut(stream(), anchor_stream=1),
        "anchor_stream: is 1, expected 0 to 0$",
    ),
    "offsets of episodes that decrease": (
        lambda: cut(stream(episode_offsets=[0, 5, 4]), episodes=[1]),
        r"streams\[0\].episode_offsets: decrease at index 2 \(5 -> 4\)$",
    ),
    "offsets of episodes past the end": (
        lambda: cut(stream(), stream(episode_offsets=[0, 4, 8]), episodes=[1]),
        r"streams\[1\].episode_offsets: index 2 is 8, past the 7 rows$",
    ),
    "another number of episodes": (
        lambda: cut(stream(), stream(episode_offsets=[0, 7])),
        r"streams\[1\].episode_offsets: number of episodes is 1, expected 2 as in streams\[0\]$",
    ),
    "times that decrease": (
        lambda: cut(stream(times=TIMES[::-1].copy()), check_times=True),
        r"streams\[0\].times: episode 0 decreases at index 1 \(2 -> 1\)$",
    ),
    "too few times": (
        lambda: cut(stream(times=TIMES[:5])),
        r"streams\[0\].times: shape is \[5\], expected \[7\]$",
    ),
    "times of two dtypes": (
        lambda: cut(stream(times=TIMES), stream(times=TIMES.astype("f4"))),
        r"streams\[1\].times: dtype is float32, expected float64 as the streams before$",
    ),
    "times of two units": (
        lambda: cut(stream(times=TIMES.astype("M8[s]")), stream(times=TIMES.astype("M8[ms]"))),
        r"streams\[1\].times: is datetime64\[ms\], but streams\[0\].times is datetime64\[s\]; ",
    ),
    "a reference to no stream": (
        lambda: cut(stream(transforms=subtract(reference=(3, 0)))),
        r"streams\[0\].transforms\[0\].reference: is stream 3, expected 0 to 0$",
    ),
    "a reference to no offset": (
        lambda: cut(stream(transforms=subtract(reference=(0, 2)))),
        r"streams\[0\].transforms\[0\].reference: is offset 2 of stream 0, which has 2 offsets$",
    ),
    "a reference by name": (
        lambda: cut(stream(transforms=subtract(reference=("arm", 0)))),
        r"streams\[0\].transforms\[0\].reference: is \('arm', 0\), expected the index of a stream; "
        "only a robocache.WindowSpec has names$",
    ),
    "a reference with too few channels": (
        lambda: cut(stream(), stream(POSES, transforms=subtract(count=5))),
        r"streams\[1\].transforms\[0\].reference_begin: is 0, expected 5 channels from there "
        r"within the 2 of streams\[0\]$",
    ),
    "a reference of another representation": (
        lambda: cut(stream(POSES), stream(POSES, transforms=pose(reference_rotation="matrix"))),
        r"streams\[1\].transforms\[0\].reference_begin: is 0, expected 12 channels from there "
        r"within the 7 of streams\[0\]$",
    ),
    "a reference without values": (
        lambda: cut(stream(None), stream(transforms=subtract())),
        r"streams\[1\].transforms\[0\].reference: is 0, which has no values to refer to$",
    ),
    "interpolation of integers": (
        lambda: cut(stream(VALUES.astype(int), times=TIMES, method="linear")),
        r"streams\[0\].values: dtype is int64, expected a float to interpolate$",
    ),
    "a mask of other rows": (
        lambda: cut(stream(sample_mask=[True])),
        r"streams\[0\].sample_mask: shape is \[1\], expected \[7\]$",
    ),
    "an output over an input": (
        lambda: cut(stream(), out=[VALUES[:2].reshape(1, 2, 2)]),
        r"streams\[0\].values: overlaps out\[0\], expected memory of its own$",
    ),
    "an output of another shape": (
        lambda: cut(stream(), out=[np.zeros((1, 3, 2))]),
        r"out\[0\]: shape is \[1,3,2\], expected \[1,2,2\]$",
    ),
    "an output of integers": (
        lambda: cut(stream(), out=[np.zeros((1, 2, 2), int)]),
        r"out\[0\]: dtype is int64, expected a float$",
    ),
    "an output that is read-only": (
        lambda: cut(stream(), out=[np.broadcast_to(0.0, (1, 2, 2))]),
        r"out\[0\]: is read-only, expected an array to write to$",
    ),
    "an output of valid rows of another shape": (
        lambda: cut(stream(), out=[(None, np.zeros((1, 3), bool))]),
        r"out\[0\]\[1\]: shape is \[1,3\], expected \[1,2\]$",
    ),
    "an output of another dtype": (
        lambda: cut(stream(), out=[np.zeros((1, 2, 2))], dtype="f4"),
        r"dtype: is float32, but out\[0\] is float64$",
    ),
    "too few outputs": (
        lambda: cut(stream(), out=[]),
        r"out: is a list of 0, expected a list of 1 \(one per stream\)$",
    ),
    "one output": (
        lambda: cut(stream(), out=3),
        r"out: is 3, expected a list of 1 \(one per stream\)$",
    ),
    "three outputs of a stream": (
        lambda: cut(stream(), out=[(None, None, None)]),
        r"out\[0\]: has 3 arrays, expected values and valid$",
    ),
    "a dtype of integers": (
        lambda: cut(stream(), dtype="int32"),
        r"out\[0\]: dtype is int32, expected a float$",
    ),
    "integers as others": (
        lambda: cut(stream(VALUES.astype(int), dtype="int32")),
        r"out\[0\]: dtype is int32, expected int64 or a float$",
    ),
    "no streams": (lambda: cut(), "streams: got 0, expected 1 to 16$"),
    "seventeen streams": (
        lambda: cut(*[stream()] * 17),
        "streams: got 17, expected 1 to 16$",
    ),
    "a stream instead of a list": (
        lambda: rbc.windows(stream(), [0], [0]),
        "streams: is a WindowStream, expected a list of robocache.WindowStream$",
    ),
    "an array for a stream": (
        lambda: rbc.windows([VALUES], [0], [0]),
        r"streams\[0\]: is an ndarray, expected a robocache.WindowStream$",
    ),
    "an accumulator of other channels": (
        lambda: cut(stream(accumulator=rbc.StatisticsAccumulator(3))),
        r"streams\[0\].accumulator: has 3 channels, expected 2, or 2 \* 2 to count each offset "
        "separately$",
    ),
    "an accumulator of two streams": (
        lambda: cut(stream(accumulator=ACCUMULATOR), stream(accumulator=ACCUMULATOR)),
        r"streams\[1\].accumulator: is that of streams\[0\], expected another$",
    ),
    "big-endian values": (
        lambda: cut(stream(VALUES.astype(">f8"))),
        r"streams\[0\].values: dtype is >f8, expected a float, integer or bool dtype in native ",
    ),
}

STREAMS = {
    "flat values": (
        lambda: stream(VALUES[:, 0]),
        r"values: shape is \[7\], expected \[n,D\]; pass values\[:, None\]$",
    ),
    "values of objects": (
        lambda: stream(VALUES.astype(object)),
        "values: dtype is object, expected a float, integer or bool dtype$",
    ),
    "offsets beyond 64 bits": (
        lambda: stream(offsets=[0, 2**70]),
        "offsets: has 1180591620717411303424, which does not fit into int64$",
    ),
    "offsets of 64 bits without a sign": (
        lambda: stream(offsets=[2**63]),
        "offsets: has 9223372036854775808, which does not fit into int64$",
    ),
    "offsets of floats": (
        lambda: stream(offsets=[0.5]),
        "offsets: is an? .* of float64, expected int64$",
    ),
    "offsets in rows": (
        lambda: stream(offsets=[[0]]),
        r"offsets: shape is \[1, 1\], expected \[O\]$",
    ),
    "offsets of a fraction of a tick": (
        lambda: stream(times=TIMES.astype("M8[s]"), method="linear", offsets=[0.05]),
        r"offsets: is 0.05, but times are datetime64\[s\]: write whole ticks of that unit",
    ),
    "offsets with a unit": (
        lambda: stream(times=TIMES, method="linear", offsets=[np.timedelta64(50, "ms")]),
        r"offsets: is timedelta64\[ms\], but times have no unit; pass times as datetime64 or ",
    ),
    "offsets of a finer unit": (
        lambda: stream(
            times=TIMES.astype("M8[s]"), method="linear", offsets=[np.timedelta64(50, "ms")]
        ),
        r"offsets: is 0.05 ticks of datetime64\[s\], expected whole ticks$",
    ),
    "offsets of episodes that are floats": (
        lambda: stream(episode_offsets=[0.0, 4, 7]),
        "episode_offsets: is a list of float64, expected int64$",
    ),
    "interpolation without times": (
        lambda: stream(method="linear"),
        "times: required when method is given$",
    ),
    "a method without values": (
        lambda: stream(None, method="linear", times=TIMES),
        "method: only valid for a stream with values$",
    ),
    "transforms without values": (
        lambda: stream(None, transforms=subtract()),
        "transforms: only valid for a stream with values$",
    ),
    "a gap of rows": (
        lambda: stream(max_gap=1.0),
        "max_gap: only valid with a method, such as method='linear'$",
    ),
    "a clock without times": (
        lambda: stream(clock_offset=0.5),
        "clock_offset: only valid for a stream with times$",
    ),
    "a mean": (lambda: stream(mean=[0.0, 1.0]), ".*unexpected keyword argument 'mean'$"),
    "an unknown padding": (
        lambda: stream(outside="wrap"),
        "outside: is 'wrap', expected one of 'hold', 'fill', 'neutral'$",
    ),
    "a padding of resample": (
        lambda: stream(outside="extrapolate"),
        "outside: is 'extrapolate', expected one of 'hold', 'fill', 'neutral'$",
    ),
    "an unknown method": (
        lambda: stream(times=TIMES, method="spline"),
        "method: is 'spline', expected one of 'linear', ",
    ),
    "neutral numbers of others": (
        lambda: stream(outside="neutral", neutral=[1.0, 2, 3]),
        r"neutral: shape is \[3\], expected \[2\] or \[2, 2\]$",
    ),
    "neutral numbers that are held": (
        lambda: stream(neutral=[1.0, 2.0]),
        "neutral: only valid with outside='neutral'$",
    ),
    "a normalization of others": (
        lambda: stream(normalization=rbc.Normalization([0.0, 1, 2], 1)),
        r"normalization: shape is \[3\], expected \[2\] or \[2, 2\]$",
    ),
    "a scale that is no number": (
        lambda: rbc.Normalization([0.0, 1], [1, np.nan]),
        "scale: is nan in channel 1, expected a number$",
    ),
    "a normalization that is none": (
        lambda: stream(normalization=(0.0, 1.0)),
        "normalization: is a tuple, expected a robocache.Normalization$",
    ),
    "an accumulator that is none": (
        lambda: stream(accumulator=3),
        "accumulator: is an int, expected a robocache.StatisticsAccumulator$",
    ),
    "transforms that overlap": (
        lambda: stream(POSES, transforms=[subtract(0, 3), subtract(2, 2)]),
        r"transforms\[1\]: begins with channel 2, which transforms\[0\] also has; a channel "
        "has at most one transform$",
    ),
    "a transform outside": (
        lambda: stream(transforms=[subtract(1, 2)]),
        r"transforms\[0\]: has channels 1 to 2, but values have only 2$",
    ),
    "a transform that is none": (
        lambda: stream(transforms=["subtract"]),
        r"transforms\[0\]: is a str, expected a robocache.Transform$",
    ),
}

TRANSFORMS = {
    "an unknown kind": (
        lambda: rbc.Transform("divide", 0, 1, reference=(0, 0)),
        "kind: is 'divide', expected one of 'subtract', 'se3_relative', 'se3_world', 'se3_step'$",
    ),
    "a reference without an offset": (
        lambda: subtract(reference=0),
        "reference: is 0, expected a stream and the index of one of its offsets, such as",
    ),
    "no rotation": (
        lambda: pose(rotation=None),
        "rotation: is None, but 'se3_relative' needs the representation of rotations, such as ",
    ),
    "an unknown rotation": (
        lambda: pose(out_rotation="quat"),
        "out_rotation: is 'quat', expected one of 'quat_xyzw', ",
    ),
    "another number of channels": (
        lambda: pose(6),
        "count: is 6, expected 7: 3 for a position and 4 for 'quat_xyzw'$",
    ),
    "a rotation without a pose": (
        lambda: subtract(rotation="matrix"),
        "rotation: is 'matrix', but 'subtract' takes no rotation$",
    ),
    "a channel before the first": (
        lambda: subtract(begin=-1),
        "begin: is -1, expected the index of a channel, 0 or more$",
    ),
    "no channels": (lambda: subtract(count=0), "count: is 0, expected 1 or more$"),
}


@pytest.mark.parametrize("case", [*CALLS, *STREAMS, *TRANSFORMS])
def test_refused(case):
    call, message = {**CALLS, **STREAMS, **TRANSFORMS}[case]
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        call()


def test_cases_have_names_of_their_own():
    assert len({**CALLS, **STREAMS, **TRANSFORMS}) == len(CALLS) + len(STREAMS) + len(TRANSFORMS)


@pytest.mark.parametrize("case", CALLS)
def test_nothing_is_written(case):
    """Calls with given output arrays."""
    values, valid = np.full((1, 2, 2), 3.0), np.full((1, 2), 7, np.uint8)
    given = rbc.windows

    def with_outputs(streams, *arguments, **options):
        if isinstance(streams, list) and "out" not in options:
            options["out"] = [(values, valid), *[None] * len(streams)][: len(streams)]
        return given(streams, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rbc, "windows", with_outputs)
        with pytest.raises((ValueError, TypeError)):
            CALLS[case][0]()
    assert (values == 3).all() and (valid == 7).all()
