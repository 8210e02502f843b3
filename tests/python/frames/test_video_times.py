"""The frame of each row, against the rule in fractions, frame by frame."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robocache.data import FormatError
from robocache.data._frames.video_index import VideoIndex
from robocache.data._frames.video_times import frames_at, rate_of, rounded


def index_of(pts, time_base):
    pts = np.array(pts, np.int64)
    none = np.zeros(0, np.int64)
    order = np.arange(len(pts), dtype=np.int32)
    return VideoIndex(
        "a.mp4",
        time_base,
        pts,
        order,
        order[:1],
        pts[:1],
        none,
        order[:0],
        (2, 2),
        0,
        "",
        "",
        False,
        "",
    )


def reference(pts, time_base, begin, rate, rows):
    """The rule as it is written, one row after the other."""
    begin = Fraction(begin)
    near = Fraction(math.floor(begin * rate + Fraction(1, 2))) / rate
    if abs(begin - near) * 8 * rate <= 1:
        begin = near
    times = [(each - pts[0]) * time_base for each in pts]
    found = []
    for row in range(rows):
        wanted = begin + row / rate
        distances = [abs(time - wanted) for time in times]
        found.append(distances.index(min(distances)))  # the first of equal ones
    return found, max(abs(times[place] - begin - row / rate) for row, place in enumerate(found))


@given(
    rate=st.sampled_from([Fraction(30), Fraction(25), Fraction(30000, 1001), Fraction(7)]),
    ticks=st.sampled_from([1000, 15360, 90000, 600, 30000]),
    start=st.integers(0, 40),
    rows=st.integers(1, 30),
    shift=st.floats(-0.6, 0.6),
    noise=st.lists(st.integers(-3, 3), min_size=80, max_size=80),
    late=st.sampled_from([0, 3600, 10**7]),
)
def test_rows_take_the_nearest_frames(rate, ticks, start, rows, shift, noise, late):
    base = Fraction(1, ticks)
    late = late * ticks
    pts = [late + round(i / rate / base) + (noise[i] if i else 0) for i in range(80)]
    if any(b <= a for a, b in zip(pts, pts[1:])):
        return
    begin = float((start + Fraction(shift)) / rate)
    if begin < 0:
        return
    index = index_of(pts, base)
    wanted, farthest = reference(pts, base, begin, rate, rows)
    tolerance = 1 / (4 * rate)
    consecutive = all(b == a + 1 for a, b in zip(wanted, wanted[1:]))
    late_file = late * base > tolerance
    if farthest > tolerance or not consecutive or late_file:
        with pytest.raises(FormatError):
            frames_at(index, begin, rate, rows, tolerance, "episode 0")
        with pytest.raises(FormatError):
            frames_at(index, begin, rate, rows, Fraction(0), "episode 0")
    else:
        found = frames_at(index, begin, rate, rows, tolerance, "episode 0")
        assert found.tolist() == wanted


def test_large_numbers_are_exact():
    # a time base and times whose products do not fit 64 bits, and a begin that is not rounded
    base = Fraction(1, 10**9)
    pts = [i * 10**9 // 30 for i in range(2000)]
    begin = (1900 + 0.2) / 30
    found = frames_at(index_of(pts, base), begin, Fraction(30), 50, Fraction(1, 120), "episode 0")
    assert found.tolist() == list(range(1900, 1950))


def test_hours_at_film_rates_do_not_drift():
    rate = Fraction(30000, 1001)
    pts = [i * 1001 for i in range(30 * 3600 * 4)]
    index = index_of(pts, Fraction(1, 30000))
    begin = float(400000 / rate)
    found = frames_at(index, begin, rate, 30000, Fraction(0), "episode 0")
    assert found.tolist() == list(range(400000, 430000))


@pytest.mark.parametrize(
    ("fps", "rate"),
    [
        (30, Fraction(30)),
        (30.0000005, Fraction(30)),
        (29.97002997, Fraction(30000, 1001)),
        (23.976023976, Fraction(24000, 1001)),
        (59.94005994, Fraction(60000, 1001)),
        (Fraction(30000, 1001), Fraction(30000, 1001)),
    ],
)
def test_rates(fps, rate):
    assert rate_of(fps) == rate


@pytest.mark.parametrize("fps", [29.97, 12.5, 0, -30, float("nan"), float("inf"), 1e-9])
def test_other_rates_are_refused(fps):
    with pytest.raises(ValueError, match="expected a whole number of frames per second"):
        rate_of(fps)


def test_begins():
    assert rounded(0.1, Fraction(30)) == Fraction(1, 10)
    assert rounded((3 + 0.124) / 30, Fraction(30)) == Fraction(1, 10)
    exact = (3 + 0.126) / 30
    assert rounded(exact, Fraction(30)) == Fraction(exact)


def test_messages():
    base = Fraction(1, 30)
    gap = index_of([0, 1, 2, 4, 5], base)
    with pytest.raises(FormatError) as caught:
        frames_at(gap, 0.0, Fraction(30), 5, Fraction(1, 120), "episode 7")
    assert str(caught.value) == (
        "a.mp4: episode 7, row 3: has no frame at 0.100000 s; the nearest is at 0.066667 s, and "
        "the last of 5 at 0.166667 s"
    )
    with pytest.raises(FormatError, match="rows 0 and 1: have the same frame, at 0.000000 s"):
        frames_at(gap, 0.0, Fraction(60), 3, Fraction(1, 60), "episode 7")
    with pytest.raises(FormatError, match="rows 0 and 1: have frames with others between"):
        frames_at(gap, 0.0, Fraction(15), 3, Fraction(1, 30), "episode 7")
