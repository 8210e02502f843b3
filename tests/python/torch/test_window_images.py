"""WindowLoader with cameras: the frames of each row, and the images of plain calls."""

from __future__ import annotations

import io

import numpy as np
import pytest

import frame_sources
import robocache as rbc
from camera_sources import HEIGHT, LENGTHS, WIDTH, ArraySource, file_source, pixels, states

torch = pytest.importorskip("torch")

FRAMES = pixels()
PLAIN = {"dtype": "uint8", "layout": "hwc"}  # the bytes of the frames
JITTER = rbc.ColorJitter(0.3, 0.2, 0.2)
RANDOM = rbc.Images(
    "front", (8, 10), crop=0.8, flip=0.5, augment=JITTER, normalize="imagenet", dtype="float32"
)
SEED = 3
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of "imagenet"


def cameras(**frames):
    frames = frames or {"front": FRAMES}
    sources = {
        name: item if isinstance(item, ArraySource) else ArraySource(item, name)
        for name, item in frames.items()
    }
    return states().with_cameras(sources)


def plain(offsets=(0,), camera="front", **options):
    return rbc.Window(offsets, images=rbc.Images(camera, **PLAIN), **options)


def random(offsets=(0,), images=RANDOM, **options):
    return rbc.Window(offsets, images=images, **options)


def loader(episodes=None, batch_size=4, **windows):
    options = windows.pop("options", {})
    episodes = cameras() if episodes is None else episodes
    spec = rbc.WindowSpec({"state": [0], **windows}, **options.pop("spec", {}))
    return rbc.torch.WindowLoader(
        episodes, spec, batch_size, **{"seed": SEED, "fresh": True, **options}
    )


def samples(batches):
    """Return what each sample has, by episode and anchor: a list, since samples may repeat."""
    found = {}
    for batch in batches:
        for i in range(len(batch)):
            key = int(batch.episodes[i]), int(batch.anchors[i])
            parts = {name: batch[name][i].numpy() for name in batch.values}
            valid = {name: batch.valid[name][i].numpy() for name in batch.valid}
            found.setdefault(key, []).append((parts, valid))
    return found


def rows_of(length, anchor, offsets):
    """Return which rows a window has, and which of them are in the episode."""
    row_numbers = [anchor + offset for offset in offsets]
    return [min(max(row, 0), length - 1) for row in row_numbers], [
        0 <= row < length for row in row_numbers
    ]


def drawn(frames, number, epoch=0, camera=0, images=RANDOM, inside=True, repeat=0):
    """Return images [n,C,h,w] of frames by the plain calls."""
    height, width = frames.shape[1:3]
    options = {"size": (8, 10), "rule": "pillow", "filter": "bilinear", "dtype": "float32"}
    options["table"] = rbc.normalization_table(
        mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)
    )
    draws = rbc.image_draws(
        np.full(len(frames), number + (repeat << 40)),
        (height, width),
        seed=SEED,
        epoch=epoch,
        camera=camera,
        crop=images.crop,
        flip=images.flip,
        color=images.augment,
    )
    rows = np.where(inside, np.arange(len(frames)), -1)
    return rbc.images(frames, rows=rows, **options, **draws.options())


# ---- which frames --------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 4, 100])
@pytest.mark.parametrize("offsets", [(0,), (-1, 0), (2, -9, 0, 0, 9), (5,)])
@pytest.mark.parametrize("outside", ["hold", "fill"])
def test_the_frames_are_those_of_the_rows(offsets, outside, batch_size):
    found = samples(loader(batch_size=batch_size, front=plain(offsets, outside=outside)))
    assert sum(map(len, found.values())) == sum(LENGTHS)
    for (episode, anchor), [(parts, valid)] in found.items():
        rows, inside = rows_of(LENGTHS[episode], anchor, offsets)
        expected = FRAMES[episode][rows]
        if outside == "fill":
            expected = np.where(np.array(inside)[:, None, None, None], expected, 0)
        np.testing.assert_array_equal(parts["front"], expected)
        np.testing.assert_array_equal(valid["front"], inside)


def test_anchors_before_and_after_an_episode():
    window_loader = loader(front=plain((0, 1)), options={"spec": {"anchors": (-1, 1)}})
    found = samples(window_loader)
    assert set(found) == {(e, a) for e, n in enumerate(LENGTHS) if n for a in range(-1, n + 1)}
    for (episode, anchor), [(parts, valid)] in found.items():
        rows, inside = rows_of(LENGTHS[episode], anchor, (0, 1))
        np.testing.assert_array_equal(parts["front"], FRAMES[episode][rows])
        np.testing.assert_array_equal(valid["front"], inside)
    assert len(samples(loader(front=random(), options={"spec": {"anchors": (-1, 1)}}))) == len(
        found
    )


def test_each_frame_is_read_once_for_a_batch():
    source = ArraySource(FRAMES)
    window_loader = loader(
        states().with_cameras({"front": source}), 100, options={"threads": 1},
        a=plain(range(-3, 4)), b=plain((0, 0, 1)),
    )  # fmt: skip
    next(iter(window_loader))
    for episode in (0, 2, 3, 4):
        reads = [rows for e, rows in source.reads if e == episode]
        assert reads == [list(range(LENGTHS[episode]))] * 2  # one for each window
    assert not [e for e, _ in source.reads if e == 1]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads):
    windows = {"front": random((-1, 0, 1))}
    one = samples(loader(options={"threads": threads}, **windows))
    require_same(one, samples(loader(options={"threads": 1}, **windows)))


def require_same(one, other):
    assert one.keys() == other.keys()
    for key in one:
        for (parts, valid), (others, other_valid) in zip(one[key], other[key]):
            for name in parts:
                np.testing.assert_array_equal(parts[name], others[name])
                np.testing.assert_array_equal(valid[name], other_valid[name])


def test_several_cameras_and_two_windows_of_one():
    wrist = pixels(height=6, width=9, channels=1, seed=8)
    window_loader = loader(
        cameras(front=FRAMES, wrist=wrist),
        now=plain((0,)), before=plain((-2, -1)), wrist=plain((1,), None),
    )  # fmt: skip
    for (episode, anchor), [(parts, valid)] in samples(window_loader).items():
        for name, frames, offsets in (
            ("now", FRAMES, (0,)),
            ("before", FRAMES, (-2, -1)),
            ("wrist", wrist, (1,)),
        ):
            rows, inside = rows_of(LENGTHS[episode], anchor, offsets)
            np.testing.assert_array_equal(parts[name], frames[episode][rows])
            np.testing.assert_array_equal(valid[name], inside)


@pytest.mark.parametrize("selection", [[2], [4, 0], [2, 0, 2, 3, 2], [3, 1, 4]])
def test_selections_with_repeats(selection):
    found = samples(loader(cameras().select(selection), front=plain((-1, 0, 1))))
    assert sum(map(len, found.values())) == sum(LENGTHS[e] for e in selection)
    for (episode, anchor), [(parts, valid)] in found.items():
        rows, inside = rows_of(LENGTHS[selection[episode]], anchor, (-1, 0, 1))
        np.testing.assert_array_equal(parts["front"], FRAMES[selection[episode]][rows])
        np.testing.assert_array_equal(valid["front"], inside)


@pytest.mark.parametrize("outside", ["hold", "fill"])
def test_rows_without_a_frame_are_padding(outside):
    missing = {0: [0, 1], 2: [6], 3: [0]}
    source = ArraySource(FRAMES, missing=missing)
    found = samples(loader(cameras(front=source), front=plain((-1, 0), outside=outside)))
    for (episode, anchor), [(parts, valid)] in found.items():
        rows, inside = rows_of(LENGTHS[episode], anchor, (-1, 0))
        has_frame = [row not in missing.get(episode, ()) for row in rows]
        is_visible = has_frame if outside == "hold" else np.logical_and(has_frame, inside)
        expected = np.where(np.array(is_visible)[:, None, None, None], FRAMES[episode][rows], 0)
        np.testing.assert_array_equal(parts["front"], expected)
        np.testing.assert_array_equal(valid["front"], np.logical_and(has_frame, inside))
    for episode, rows in source.reads:
        assert not set(rows) & set(missing.get(episode, ()))


def test_images_only():
    spec = rbc.WindowSpec({"front": plain((0, 1))})
    for batch in rbc.torch.WindowLoader(cameras(), spec, 4):
        for i, (e, a) in enumerate(zip(batch.episodes.tolist(), batch.anchors.tolist())):
            rows, _ = rows_of(LENGTHS[e], a, (0, 1))
            np.testing.assert_array_equal(batch["front"][i].numpy(), FRAMES[e][rows])


# ---- random images -------------------------------------------------------------------------------


@pytest.mark.parametrize("outside", ["hold", "fill"])
@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_random_images_are_those_of_plain_calls(batch_size, outside):
    offsets = (-1, 0, 3)
    window_loader = loader(
        cameras(front=FRAMES, wrist=FRAMES[::-1][::-1]),
        batch_size,
        front=random(offsets, outside=outside),
        wrist=random((0,), rbc.Images("wrist", (8, 10), crop=0.8, flip=0.5, augment=JITTER,
                                      normalize="imagenet")),
    )  # fmt: skip
    begins = np.cumsum([0, *LENGTHS])
    for epoch in range(2):
        for (episode, anchor), [(parts, _)] in samples(window_loader).items():
            rows, inside = rows_of(LENGTHS[episode], anchor, offsets)
            number = begins[episode] + anchor
            inside = np.ones(3, bool) if outside == "hold" else inside
            frames = FRAMES[episode][rows]
            expected = drawn(frames, number, epoch, inside=inside)
            np.testing.assert_array_equal(parts["front"], expected)
            wrist = drawn(FRAMES[episode][[anchor]], number, epoch, camera=1)
            np.testing.assert_array_equal(parts["wrist"], wrist)


def test_one_window_has_one_crop():
    still = [np.repeat(item[:1], len(item), 0) for item in FRAMES]
    for [(parts, _)] in samples(loader(cameras(front=still), front=random((-1, 0, 1)))).values():
        assert (parts["front"] == parts["front"][:1]).all()


def test_repeated_samples_have_other_crops():
    weights = [0.0, 0.0, 0.0, 4.0, 1.0]
    window_loader = loader(front=random(), options={"weights": weights})
    found = samples(window_loader)
    count = len(found[3, 0])
    assert count > 4 and sum(map(len, found.values())) == sum(LENGTHS)
    images = [parts["front"] for parts, _ in found[3, 0]]
    number = sum(LENGTHS[:3])
    expected = [drawn(FRAMES[3], number, repeat=repeat) for repeat in range(count)]
    assert sorted(item.tobytes() for item in images) == sorted(item.tobytes() for item in expected)
    assert len({item.tobytes() for item in images}) == count
    other = samples(loader(front=random(), batch_size=7, options={"weights": weights}))
    assert [p["front"].tobytes() for p, _ in other[3, 0]] == [item.tobytes() for item in images]


def test_without_training_nothing_is_random():
    for options in ({"train": False}, {}):
        images = RANDOM if options else RANDOM.eval()
        window_loader = loader(front=random((0,), images), options=options)
        first, second = samples(window_loader), samples(window_loader)
        require_same(first, second)
        for (episode, anchor), [(parts, _)] in first.items():
            frame = FRAMES[episode][[anchor]]
            np.testing.assert_array_equal(parts["front"], RANDOM.eval()(frame))
            table = rbc.normalization_table(mean=MEAN, std=STD)
            height, width = int(HEIGHT * 0.8), int(WIDTH * 0.8)
            box = [(HEIGHT - height) // 2, (WIDTH - width) // 2, height, width]
            center = rbc.images(
                frame, (8, 10), boxes=[box], crop_size=(height, width), table=table, rule="pillow"
            )
            np.testing.assert_array_equal(parts["front"], center)


# ---- ranks, states and memory --------------------------------------------------------------------


def digest(batch):
    parts = [*batch.values.values(), *batch.valid.values(), batch.episodes, batch.anchors]
    return b"".join(item.contiguous().numpy().tobytes() for item in parts)


@pytest.mark.parametrize("drop_last", [False, True])
def test_ranks_together_are_one_process(drop_last):
    options = {"drop_last": drop_last}
    one_process = loader(batch_size=8, front=random((-1, 0)), options=dict(options))
    ranks = [
        loader(batch_size=2, front=random((-1, 0)), options={"rank": r, "world_size": 4, **options})
        for r in range(4)
    ]
    for _ in range(2):
        for batch, *parts in zip(one_process, *ranks):
            for name in batch.values:
                assert torch.equal(torch.cat([part[name] for part in parts]), batch[name])
                assert torch.equal(torch.cat([p.valid[name] for p in parts]), batch.valid[name])


@pytest.mark.parametrize("stop", range(1, 8))
@pytest.mark.parametrize("options", [{}, {"weights": [1, 2, 3, 4, 5]}])
def test_a_resumed_loader_gives_the_same_images(stop, options):
    windows = {"front": random((0, 1))}
    one_process = loader(options=dict(options), **windows)
    expected = [digest(batch) for _ in range(3) for batch in one_process]
    first = loader(options=dict(options), **windows)
    seen = []
    while len(seen) < stop:
        for batch in first:
            seen.append(digest(batch))
            if len(seen) == stop:
                break
    second = loader(options={**options, "seed": 99}, **windows)
    second.load_state_dict(first.state_dict())
    while second.epoch < 3:
        seen += [digest(batch) for batch in second]
    assert seen == expected


def test_memory_is_used_again_or_fresh():
    used = [
        b["front"].data_ptr() for b in loader(batch_size=2, front=plain(), options={"fresh": False})
    ]
    assert len(set(used)) == 3
    batches = list(loader(batch_size=2, front=plain()))
    assert len({batch["front"].data_ptr() for batch in batches}) == len(batches)


@pytest.mark.parametrize("store", [None, "full", (10, 12), "none"])
def test_a_cache_changes_no_bit(tmp_path, store):
    source = file_source(tmp_path / "frames.bin")
    images = rbc.Images(
        "front", (8, 10), crop=0.8, flip=0.5, augment=JITTER, normalize="imagenet", store=store
    )
    windows = {"front": random((-1, 0, 9), images, outside="fill"), "now": random((0,), images)}
    expected = samples(loader(states().with_cameras({"front": source}), **windows))
    cached = with_cache(states().with_cameras({"front": source}), rbc.Cache(tmp_path / "cache"))
    for _ in range(2):  # stores, then reads
        window_loader = loader(cached, **windows)
        require_same(samples(window_loader), expected)
        stored = [w.reader.are_stored for w in window_loader._batches._images._windows]
        assert stored == [store != "none"] * 2
    assert len(rbc.Cache(tmp_path / "cache").items()) == (0 if store == "none" else 1)


def with_cache(episodes, cache):
    import dataclasses

    episodes._about = dataclasses.replace(episodes._about, cache=cache)
    return episodes


# ---- states --------------------------------------------------------------------------------------

OTHERS = {
    "no images": {},
    "offsets": {"front": random((0, 1))},
    "outside": {"front": random(outside="fill")},
    "another camera": {"front": random(images=rbc.Images("wrist", (8, 10)))},
    "size": {"front": random(images=rbc.Images("front", (8, 11)))},
    "crop": {"front": random(images=rbc.Images("front", (8, 10), crop=0.9))},
    "colours": {"front": random(images=rbc.Images("front", (8, 10), augment=JITTER))},
    "normalization": {"front": random(images=rbc.Images("front", (8, 10), normalize="imagenet"))},
    "a table": {"front": random(images=rbc.Images("front", (8, 10), normalize=np.ones((3, 256))))},
    "evaluation": {"front": random(images=RANDOM.eval())},
    "random": {"front": random()},
}


def test_a_state_of_other_images_is_refused():
    episodes = cameras(front=FRAMES, wrist=FRAMES)
    window_loader = {name: loader(episodes, **windows) for name, windows in OTHERS.items()}
    states_of = {name: item.state_dict() for name, item in window_loader.items()}
    assert len({item["spec"] for item in states_of.values()}) == len(OTHERS)
    for name, item in window_loader.items():
        before = item.state_dict()
        for other, state in states_of.items():
            if other == name:
                item.load_state_dict(state)
                continue
            with pytest.raises(ValueError, match="^state: spec has the digest [0-9]+, expected"):
                item.load_state_dict(state)
            assert item.state_dict() == before


def test_a_state_is_the_same_for_equal_images():
    again = rbc.Images(
        "front", [8, 10], crop=0.8, flip=0.5, augment=rbc.ColorJitter((0.7, 1.3), (0.8, 1.2), 0.2),
        normalize="imagenet", dtype=torch.float32,
    )  # fmt: skip
    torch.save(loader(front=random()).state_dict(), content := io.BytesIO())
    content.seek(0)
    loader(front=random(images=again)).load_state_dict(torch.load(content, weights_only=True))


def test_a_state_from_before_there_were_images():
    """Saved by a loader of the same data without cameras, by a version without images."""
    saved = SAVED_BEFORE_IMAGES
    window_loader = rbc.torch.WindowLoader(states(), rbc.WindowSpec({"state": [-1, 0]}), 4)
    window_loader.load_state_dict(saved)
    assert window_loader.state_dict() == saved


SAVED_BEFORE_IMAGES = {
    "version": 1,
    "seed": 6,
    "epoch": 0,
    "position": 4,
    "num_samples": 15,
    "shuffle": 1,
    "weights": 0,
    "spec": 2698055533273610915,
    "episodes": 1907633825622735578,
}

# ---- errors --------------------------------------------------------------------------------------


def shorter(e, n):
    return [item[:n] if i == e else item for i, item in enumerate(FRAMES)]


REFUSED = {
    "an unknown camera": (
        lambda: loader(front=plain(camera="fromt")),
        "\"camera: is 'fromt', expected one of 'front'. Did you mean front\\?\"$",
    ),
    "no cameras": (
        lambda: loader(states(), front=plain()),
        "\"camera: is 'front', but these episodes have no cameras\"$",
    ),
    "a camera that an episode lacks": (
        lambda: loader(cameras(front=shorter(2, 0)), front=plain()),
        "camera: 'front' has 0 frames in episode 2, expected 7, one for each row of 'state'; align "
        "the episodes, or select episodes with the right number$",
    ),
    "zero frames": (
        lambda: loader(cameras(front=[item[:0] for item in FRAMES]), front=plain()),
        r"camera: 'front' has 0 frames in episode 0, .* \(and 3 more episodes\); align",
    ),
    "other lengths": (
        lambda: loader(cameras(front=shorter(4, 2)), front=plain()),
        "camera: 'front' has 2 frames in episode 4, expected 3, one for each row of 'state'; align",
    ),
    "fewer episodes": (
        lambda: cameras(front=FRAMES[:4]),
        r"cameras\['front'\]: has 4 episodes, but the episodes are 5$",
    ),
    "no source": (
        lambda: states().with_cameras({"front": FRAMES}),
        r"cameras\['front'\]: is a list, expected a FrameSource$",
    ),
    "one camera": (
        lambda: states().with_cameras(ArraySource(FRAMES)),
        "cameras: is an ArraySource, expected a dict of FrameSource by name$",
    ),
    "a crop that is too large": (
        lambda: loader(front=rbc.Window([0], images=rbc.Images("front", crop=(20, 16)))),
        r"windows\['front'\]\.images\.frames: have 12 x 16 pixels, expected at least 20 x 16 for",
    ),
    "threads": (
        lambda: loader(front=plain(), options={"threads": 0}),
        "threads: is 0, expected 1 or more$",
    ),
    "images that are none": (
        lambda: rbc.Window([0], images="front"),
        "images: is 'front', expected a robocache.Images$",
    ),
    "a method": (lambda: plain(method="linear"), "method: is not valid with images$"),
    "neutral": (lambda: plain(outside="neutral"), "outside: is 'neutral', expected 'hold' or"),
    "a reference": (
        lambda: rbc.WindowSpec(
            {
                "front": plain(),
                "state": rbc.Window(
                    [0], transforms=rbc.Transform("subtract", 0, 2, reference=("front", 0))
                ),
            }
        ),
        r"windows\['state'\]\.transforms\[0\]\.reference: is 'front', which has images, expected",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    call, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError, KeyError), match=f"^{message}"):
        call()


def test_a_file_that_is_missing_is_named_when_the_loader_is_created():
    class Missing(ArraySource):
        @property
        def shape(self):
            raise rbc.data.FormatError("front.mp4", "", "is missing")

    with pytest.raises(rbc.data.FormatError, match=r"^front\.mp4.*is missing"):
        loader(cameras(front=Missing(FRAMES)), front=plain())


def test_an_error_of_a_source_reaches_the_loop():
    class Damaged(ArraySource):
        def read(self, episode, rows, out):
            raise rbc.data.FormatError("front.mp4", "row 3 of episode 2", "the frame is damaged")

    window_loader = loader(cameras(front=Damaged(FRAMES)), front=plain())
    with pytest.raises(rbc.data.FormatError, match=r"front\.mp4.*row 3 of episode 2.*is damaged"):
        list(window_loader)


def test_stores_that_may_not_fit_into_memory_are_prefetched(tmp_path, monkeypatch):
    from robocache.data._frames.reader import StoredFrames

    source = frame_sources.made(tmp_path / "data", [5, 7, 3, 10])
    offsets = np.concatenate([[0], np.cumsum(source.lengths)])
    state = rbc.Track(np.zeros((25, 1), np.float32), offsets)
    cache = rbc.Cache(tmp_path / "cache", require=True)
    episodes = rbc.Episodes({"state": state}).with_cameras({"front": source}, cache=cache)
    window = rbc.Window([-1, 0], images=rbc.Images("front", (6, 8)))
    spec = rbc.WindowSpec({"state": [0], "front": window})
    expected = [each["front"].clone() for each in rbc.torch.WindowLoader(episodes, spec, 4)]
    asked = []
    prefetch = StoredFrames.prefetch

    def noted(self, chosen, rows):
        asked.append(list(zip(chosen.tolist(), rows.tolist())))
        prefetch(self, chosen, rows)

    monkeypatch.setattr(StoredFrames, "prefetch", noted)
    assert len(list(rbc.torch.WindowLoader(episodes, spec, 4))) == 7
    assert asked == []
    monkeypatch.setattr("robocache.torch._frames.memory_bytes", lambda: 1000)
    found = [each["front"].clone() for each in rbc.torch.WindowLoader(episodes, spec, 4)]
    assert all(torch.equal(one, other) for one, other in zip(found, expected))
    assert len(asked) == 7 and all(len(set(each)) == len(each) > 0 for each in asked)


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({"dtype": "foo"}, TypeError, "dtype: is 'foo', expected a float"),
        ({"dtype": 5}, TypeError, "dtype: is 5, expected a float"),
        ({"dtype": "int8"}, TypeError, "dtype: is int8, expected uint8 or a float"),
        ({"dtype": "bool"}, TypeError, "dtype: is bool, expected uint8 or a float"),
        ({"rotate": "no"}, TypeError, "rotate: is 'no', expected True or False"),
        ({"color_first": None}, TypeError, "color_first: is None, expected True or False"),
        ({"area": None}, TypeError, "area: is None, expected two numbers"),
        ({"ratio": 5}, TypeError, "ratio: is 5, expected two numbers"),
        ({"normalize": 5}, TypeError, "normalize: is 5, expected a formula or a table"),
        (
            {"model": "openp"},
            ValueError,
            "model: is 'openp', expected one of .* Did you mean openpi",
        ),
        ({"model": 5}, ValueError, "model: is 5, expected one of 'openpi'"),
    ],
)
def test_wrong_options_are_named(options, error, text):
    with pytest.raises(error, match=text):
        rbc.Images("front", **options)


@pytest.mark.parametrize("dtype", [np.float16, np.dtype("float16"), torch.float16, "float16"])
def test_dtypes_of_any_library(dtype):
    frames = FRAMES[0]
    images = rbc.Images("front", dtype=dtype)
    assert images == rbc.Images("front", dtype="float16")
    assert images(frames).dtype == np.float16
    assert images(torch.from_numpy(frames)).dtype == torch.float16


def test_a_recording_has_to_be_aligned():
    class Recording:
        """Only the name of the type counts."""

    with pytest.raises(TypeError, match=r"is a Recording, .*robocache.Episodes; align\(rate\)"):
        rbc.torch.WindowLoader(Recording(), rbc.WindowSpec({"state": [0]}), 4)
