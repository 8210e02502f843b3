"""Episodes in memory: what they are made of, what is refused, and their copies."""

import copy
import pickle

import numpy as np
import pytest

import robocache as rbc

OFFSETS = [0, 3, 3, 8]


def arm(**options):
    values = np.arange(16, dtype=np.float32).reshape(8, 2)
    times = np.array([0.0, 0.1, 0.2, 5.0, 5.1, 5.2, 5.3, 5.4])
    return rbc.Track(values, OFFSETS, times=times, **options)


def camera():
    files = ["a.mp4", None, ("b.mp4", 2.5)]
    return rbc.Track(None, [0, 1, 2, 4], times=np.array([0.0, 0.0, 5.0, 5.5]), files=files)


def episodes():
    tasks = ["open", None, ["close", "lock"]]
    return rbc.Episodes({"arm": arm(names=["a", "b"]), "camera": camera()}, tasks=tasks)


def test_facts_of_a_track():
    track = arm(names=["a", "b"])
    assert (track.num_rows, track.num_channels, track.num_episodes) == (8, 2, 3)
    assert track.lengths.tolist() == [3, 0, 5]
    assert track.names == ("a", "b") and track.time_unit is None
    assert track.rate == pytest.approx(10)
    assert track.nbytes == 16 * 4 + 4 * 8 + 8 * 8
    assert track.episode_offsets.dtype == np.int64
    frames = camera()
    assert (frames.num_rows, frames.num_channels, frames.values) == (4, 0, None)
    assert frames.files == ("a.mp4", None, ("b.mp4", 2.5))
    assert repr(frames) == "Track(None, 3 episodes, times=<float64 [4]>, files=3)"


def test_rows_without_values_or_times():
    track = rbc.Track(None, [0, 2, 6])
    assert track.num_rows == 6 and np.isnan(track.rate)


def test_one_task_is_that_of_all_episodes():
    made = rbc.Episodes({"arm": arm()}, tasks="wave")
    assert made.tasks == ("wave",) * 3 and made.select([1]).tasks == ("wave",)


def test_no_copy_is_made():
    values, offsets, times = np.zeros((4, 2)), np.array([0, 4]), np.arange(4.0)
    track = rbc.Track(values, offsets, times=times)
    assert track.values is values and track.times is times and track.episode_offsets is offsets


def test_a_track_cannot_be_changed():
    with pytest.raises(AttributeError):
        arm().values = None


def test_times_with_a_unit():
    stamps = np.array([0, 100, 200, 5000], "M8[ms]")
    track = rbc.Track(np.zeros((4, 1)), [0, 4], times=stamps)
    assert track.times.dtype == np.int64 and track.time_unit == "datetime64[ms]"
    assert track.rate == pytest.approx(10)
    assert track.select([0]).time_unit == "datetime64[ms]"
    assert track != rbc.Track(track.values, [0, 4], times=track.times)


def test_a_frame_of_pandas_and_lists():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]})
    track = rbc.Track(frame, [0, 2], times=pandas.to_datetime([0, 10**9]))
    assert track.values.tolist() == [[1, 3], [2, 4]] and track.rate == 1
    assert rbc.Track([[1, 2], [3, 4]], [0, 2]).values.dtype == np.float64


def test_select():
    chosen = episodes().select([2, 0, 2])
    assert chosen.lengths("arm").tolist() == [5, 3, 5] and chosen.lengths("camera").tolist() == [
        2, 1, 2,
    ]  # fmt: skip
    assert chosen["arm"].values[:, 0].tolist() == [6, 8, 10, 12, 14, 0, 2, 4, 6, 8, 10, 12, 14]
    assert chosen["arm"].times[:2].tolist() == [5.0, 5.1]
    assert chosen["camera"].files == (("b.mp4", 2.5), "a.mp4", ("b.mp4", 2.5))
    assert chosen.tasks == (("close", "lock"), "open", ("close", "lock"))
    assert chosen["arm"].names == ("a", "b")


@pytest.mark.parametrize(
    ("indices", "lengths"),
    [
        (slice(None, None, -1), [5, 0, 3]),
        ([-1], [5]),
        (1, [0]),
        (np.array([True, False, True]), [3, 5]),
        ([], []),
        (np.array([0, 1], np.uint8), [3, 0]),
    ],
)
def test_ways_to_select(indices, lengths):
    assert episodes().select(indices).lengths("arm").tolist() == lengths


def test_select_is_a_copy():
    track = arm()
    track.select([0]).values[:] = -1
    assert track.values[0, 1] == 1


def test_random_selections_are_those_of_a_loop():
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 6, 40)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = rng.normal(size=(offsets[-1], 3))
    track = rbc.Track(values, offsets)
    chosen = rng.integers(0, 40, 60)
    expected = [values[offsets[e] : offsets[e + 1]] for e in chosen]
    assert (track.select(chosen).values == np.concatenate(expected)).all()


def test_as_a_collection():
    given = episodes()
    assert len(given) == given.num_episodes == 3
    assert list(given.tracks) == ["arm", "camera"] and "arm" in given and "leg" not in given
    assert given["arm"].num_channels == 2
    assert given.nbytes == given["arm"].nbytes + given["camera"].nbytes
    each = list(given)
    assert each == [given.select([e]) for e in range(3)] and len(each[0]) == 1
    assert given.select([]).num_episodes == 0 and list(given.select([])) == []
    with pytest.raises(TypeError):
        given.tracks["leg"] = arm()


def test_equal_and_not():
    given = episodes()
    assert given == episodes() and given != given.select([0, 1])
    assert given != rbc.Episodes(given.tracks) and given != 3
    assert arm() != arm(names=["a", "b"])
    doubles = rbc.Track(arm().values.astype(np.float64), OFFSETS, times=arm().times)
    assert arm() != doubles
    nan = rbc.Track([[np.nan]], [0, 1])
    assert nan == rbc.Track([[np.nan]], [0, 1])


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))]
)
def test_copies(copied):
    assert copied(episodes()) == episodes()
    assert copied(arm()).lengths.tolist() == [3, 0, 5]


def test_the_table():
    shown = repr(rbc.Episodes(episodes().tracks, source="a folder")).splitlines()
    assert shown[0] == "3 episodes of a folder, 224 bytes"
    assert [line.split() for line in shown[1:]] == [
        ["track", "rows", "lengths", "channels", "dtype", "times", "rate"],
        ["arm", "8", "0", "to", "5", "2", "float32", "float64", "10"],
        ["camera", "4", "1", "to", "2", "-", "-", "float64", "2"],
    ]


def test_tensors():
    torch = pytest.importorskip("torch")
    values = torch.arange(16, dtype=torch.bfloat16).reshape(8, 2)
    track = rbc.Track(values, OFFSETS, times=np.arange(8.0))
    assert isinstance(track.episode_offsets, torch.Tensor) and track.times.dtype == torch.float64
    chosen = track.select([2])
    assert torch.equal(chosen.values, values[3:]) and chosen.episode_offsets.tolist() == [0, 5]
    assert pickle.loads(pickle.dumps(track)) == track
    assert track.nbytes == 32 + 4 * 8 + 8 * 8


def test_to_a_device():
    torch = pytest.importorskip("torch")
    given = episodes()
    assert given.to("cpu") == given and given.to("cpu")["arm"].values is given["arm"].values
    moved = given.to(torch.device("cpu"))
    assert isinstance(moved["arm"].values, torch.Tensor) and moved["camera"].values is None
    assert isinstance(moved["camera"].episode_offsets, torch.Tensor)
    assert moved == given and moved.select([2]) == given.select([2])
    moved["arm"].values[:] = 0
    assert given["arm"].values[1, 0] == 2  # its own memory
    with pytest.raises(ValueError, match="^device: is 'moon', which torch refuses"):
        given.to("moon")


def test_to_a_gpu():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    given = episodes()
    moved = given.to("cuda")
    assert moved["arm"].values.is_cuda and moved["arm"].episode_offsets.is_cuda
    assert moved == given and moved.select([2, 0]) == given.select([2, 0])
    assert moved.to("cpu") == given


VALUES = np.zeros((8, 2))
REFUSED = {
    "flat values": (
        lambda: rbc.Track(np.zeros(8), OFFSETS),
        r"values: shape is \[8\], expected \[n,D\]; pass values\[:, None\]$",
    ),
    "images": (
        lambda: rbc.Track(np.zeros((8, 2, 2)), OFFSETS),
        r"values: shape is \[8, 2, 2\], expected \[n,D\]; flatten the axes after the first$",
    ),
    "values that are no array": (lambda: rbc.Track("v", OFFSETS), "values: is a str, expected"),
    "offsets that fall": (
        lambda: rbc.Track(VALUES, [0, 5, 3, 8]),
        r"episode_offsets: decreases from 5 to 3 at index 2; if these are lengths, pass "
        r"np.concatenate\(\[\[0\], np.cumsum\(lengths\)\]\)$",
    ),
    "offsets of other rows": (
        lambda: rbc.Track(VALUES, [0, 9]),
        "episode_offsets: ends with 9, expected 8, the number of rows$",
    ),
    "offsets that begin late": (
        lambda: rbc.Track(VALUES, [1, 8]),
        "episode_offsets: begins with 1, expected 0$",
    ),
    "no offsets": (lambda: rbc.Track(VALUES, []), r"episode_offsets: shape is \[0\], expected"),
    "offsets of floats": (
        lambda: rbc.Track(VALUES, [0.0, 8.0]),
        "episode_offsets: dtype is float64, expected int64$",
    ),
    "offsets in rows": (
        lambda: rbc.Track(VALUES, [[0, 8]]),
        r"episode_offsets: shape is \[1, 2\], expected \[E\+1\]: where each",
    ),
    "too few times": (
        lambda: rbc.Track(VALUES, OFFSETS, times=np.zeros(7)),
        r"times: got 7, expected 8 \(one per row of values\)$",
    ),
    "times of halves": (
        lambda: rbc.Track(VALUES, OFFSETS, times=np.zeros(8, np.float16)),
        "times: dtype is float16, expected float32, float64 or int64$",
    ),
    "times in rows": (
        lambda: rbc.Track(VALUES, OFFSETS, times=np.zeros((8, 1))),
        r"times: shape is \[8, 1\], expected \[n\] \(one per row\)$",
    ),
    "too few names": (
        lambda: rbc.Track(VALUES, OFFSETS, names=["x"]),
        r"names: got 1, expected 2 \(one per channel of values\)$",
    ),
    "a name twice": (
        lambda: rbc.Track(VALUES, OFFSETS, names=["x", "x"]),
        "names: has 'x' twice, expected different names$",
    ),
    "a string of names": (
        lambda: rbc.Track(VALUES, OFFSETS, names="xy"),
        "names: is 'xy', expected a list with a string per channel$",
    ),
    "names of nothing": (
        lambda: rbc.Track(None, OFFSETS, names=["x"]),
        "names: only valid with values, whose channels they name$",
    ),
    "too few files": (
        lambda: rbc.Track(None, OFFSETS, files=["a.mp4"]),
        r"files: got 1, expected 3 \(one per episode\)$",
    ),
    "one file": (
        lambda: rbc.Track(None, OFFSETS, files="a.mp4"),
        "files: is 'a.mp4', expected a list with one per episode$",
    ),
    "no tracks": (lambda: rbc.Episodes({}), "tracks: got 0, expected 1 or more$"),
    "a list of tracks": (
        lambda: rbc.Episodes([arm()]),
        "tracks: is a list, expected a dict of robocache.Track by name$",
    ),
    "a track of an array": (
        lambda: rbc.Episodes({"arm": VALUES}),
        r"tracks\['arm'\]: is an ndarray, expected a robocache.Track$",
    ),
    "a number for a name": (
        lambda: rbc.Episodes({1: arm()}),
        "tracks: has the name 1, expected a string$",
    ),
    "other numbers of episodes": (
        lambda: rbc.Episodes({"arm": arm(), "leg": rbc.Track(VALUES, [0, 8])}),
        r"tracks\['leg'\]: has 1 episodes, but tracks\['arm'\] has 3; an episode in which a "
        "track has no rows has length 0$",
    ),
    "too few tasks": (
        lambda: rbc.Episodes({"arm": arm()}, tasks=["a"]),
        r"tasks: got 1, expected 3 \(one per episode\)$",
    ),
    "tasks that are a number": (
        lambda: rbc.Episodes({"arm": arm()}, tasks=3),
        "tasks: is 3, expected a string, or a list with one per episode$",
    ),
    "a number for a task": (
        lambda: rbc.Episodes({"arm": arm()}, tasks=["a", "b", 3]),
        r"tasks\[2\]: is 3, expected a string, several strings, or None$",
    ),
    "an unknown track": (
        lambda: episodes()["leg"],
        "\"track: is 'leg', expected one of 'arm', 'camera'\"$",
    ),
    "a track by number": (
        lambda: episodes()[0],
        r"track: is of type int, expected a name; select\(\[0\]\) selects an episode, and",
    ),
    "tracks that are a name": (
        lambda: episodes().select(tracks="arm"),
        r"tracks: is 'arm', expected a list of names: \['arm'\]$",
    ),
    "tracks that are a dict": (
        lambda: episodes().select(tracks={"arm": ["a"]}),
        "tracks: is a dict, expected a list of names$",
    ),
    "an episode that is none": (
        lambda: episodes().select([3]),
        r"indices: has 3, expected -3 to 2 \(3 episodes\)$",
    ),
    "episodes by name": (
        lambda: episodes().select(["arm"]),
        r"indices: is \['arm'\], expected indices of episodes$",
    ),
    "bools of other episodes": (
        lambda: episodes().select([True]),
        r"indices: got \[1\] bools, expected \[3\]$",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    call, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError, LookupError), match=f"^{message}"):
        call()
