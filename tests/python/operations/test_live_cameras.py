"""Cameras of Live: the newest frame that had arrived, and the images of training."""

import threading

import numpy as np
import pytest

import robocache as rbc

SHAPE = (24, 32, 3)
COLOR = rbc.ColorJitter(0.3, 0.3)


def live_of(time_dtype="float64", **options):
    images = rbc.Images("front", (12, 16), crop=0.9, flip=0.5, augment=COLOR, normalize="imagenet")
    camera = rbc.LiveCamera(images, SHAPE, **options)
    return rbc.Live([rbc.LiveStream(1)], cameras={"front": camera}, time_dtype=time_dtype), images


@pytest.mark.parametrize("time_dtype", ["float64", "int64"])
def test_each_time_has_the_newest_frame_that_had_arrived(time_dtype):
    rng = np.random.default_rng(0)
    live, images = live_of(time_dtype, capacity=50, max_age=30)
    arrivals = np.sort(rng.choice(2000, 40, replace=False))
    frames = rng.integers(0, 256, (40, *SHAPE), dtype=np.uint8)
    for at in rng.permutation(40):  # frames may come in any order
        live.push_frame("front", frames[at], arrivals[at])
    queries = rng.integers(-50, 2100, 200)
    found = live.images(queries, lag=5)["front"]
    expected = images.eval()(frames)
    padding = np.broadcast_to(
        expected[0] * 0
        + rbc.normalization_table(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))[
            :, 0, None, None
        ],
        expected[0].shape,
    )
    for query, value, valid, age in zip(queries, found.values, found.valid, found.ages):
        number = np.searchsorted(arrivals, query + 5, "right") - 1
        if number < 0:
            assert not valid and age == (np.inf if time_dtype == "float64" else 2**63 - 1)
            np.testing.assert_array_equal(value, padding)
        else:
            np.testing.assert_array_equal(value, expected[number])
            assert age == query - arrivals[number]
            assert valid == (age <= 30)


def test_the_robot_sees_what_evaluation_sees():
    """Also where a stored size rounds in between."""
    frames = np.random.default_rng(1).integers(0, 256, (1, *SHAPE), dtype=np.uint8)
    for options in (
        {"model": "openpi"},
        {"model": "gr00t_n1d7", "crop": "random"},
        {"size": (9, 9), "store": (20, 20), "crop": 0.8},
    ):
        images = rbc.Images("front", **options)
        live = rbc.Live([rbc.LiveStream(1)], cameras={"front": rbc.LiveCamera(images, SHAPE)})
        live.push_frame("front", frames[0], 1.0)
        found = live.images(1.0)["front"].values
        np.testing.assert_array_equal(found, images.eval()(frames))
    preset = rbc.image_preset("openpi")(frames)
    images = rbc.Images("front", model="openpi")
    np.testing.assert_array_equal(images.eval()(frames), preset)


def test_frames_are_copied_and_old_ones_forgotten():
    live, images = live_of(capacity=2)
    frame = np.zeros(SHAPE, np.uint8)
    for at in range(4):
        frame[:] = at
        live.push_frame("front", frame, at)
    found = live.images([0.5, 1.5, 2.5, 3.5])["front"]
    assert found.valid.tolist() == [False, False, True, True]
    expected = images.eval()(np.stack([np.full(SHAPE, at, np.uint8) for at in (2, 3)]))
    np.testing.assert_array_equal(found.values[2:], expected)


def test_threads_push_while_the_loop_reads():
    live, images = live_of(capacity=3)
    frames = np.stack([np.full(SHAPE, at, np.uint8) for at in range(200)])
    expected = images.eval()(frames)

    def push(begin):
        for at in range(begin, 200, 2):
            live.push_frame("front", frames[at], at)

    threads = [threading.Thread(target=push, args=(begin,)) for begin in (0, 1)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        found = live.images(1e9)["front"]
        if found.valid[0]:
            np.testing.assert_array_equal(found.values[0], expected[int(1e9 - found.ages[0])])
    for thread in threads:
        thread.join()
    assert live.images(1e9)["front"].ages[0] == 1e9 - 199


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda live: live.push_frame("frnt", 0, 0), KeyError, "expected one of 'front'.*front"),
        (lambda live: live.push_frame("front", np.zeros(SHAPE), 0), TypeError, "dtype is float64"),
        (
            lambda live: live.push_frame("front", np.zeros((2, 2, 3), np.uint8), 0),
            ValueError,
            r"shape is \[2, 2, 3\], expected \[24, 32, 3\]",
        ),
        (
            lambda live: live.push_frame("front", np.zeros(SHAPE, np.uint8), np.nan),
            ValueError,
            "arrival: is nan",
        ),
    ],
)
def test_what_cannot_be(call, error, text):
    live, _ = live_of()
    with pytest.raises(error, match=text):
        call(live)
    assert not live.images(1e9)["front"].valid[0]


def test_cameras_are_checked():
    images = rbc.Images("front", (99, 99), crop=(30, 30))
    with pytest.raises(ValueError, match=r"cameras\['front'\].frames: have 24 x 32 pixels"):
        rbc.Live([rbc.LiveStream(1)], cameras={"front": rbc.LiveCamera(images, SHAPE)})
    with pytest.raises(TypeError, match="expected a robocache.Images"):
        rbc.Live([rbc.LiveStream(1)], cameras={"front": rbc.LiveCamera("front", SHAPE)})
    with pytest.raises(TypeError, match="expected a robocache.LiveCamera"):
        rbc.Live([rbc.LiveStream(1)], cameras={"front": images})


@pytest.mark.parametrize("age", [float("nan"), -1, -0.5])
def test_a_wrong_max_age_is_refused(age):
    camera = rbc.LiveCamera(rbc.Images("front"), (4, 6, 3), max_age=age)
    with pytest.raises(ValueError, match="max_age: is .*, expected 0 or more"):
        rbc.Live({"arm": rbc.LiveStream(7)}, cameras={"front": camera})


def test_more_frames_than_arrays_of_one_call():
    frames = np.random.default_rng(0).integers(0, 256, (150, 4, 6, 3), np.uint8)
    images = rbc.Images("front", dtype="uint8", layout="hwc")
    camera = rbc.LiveCamera(images, (4, 6, 3), capacity=200)
    robot = rbc.Live({"arm": rbc.LiveStream(7)}, cameras={"front": camera})
    for i, frame in enumerate(frames):
        robot.push_frame("front", frame, arrival=float(i))
    seen = robot.images(np.arange(150.0))["front"]
    np.testing.assert_array_equal(seen.values, frames)
