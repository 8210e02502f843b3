"""images and image_draws against NumPy and against the libraries whose bits they have."""

import importlib.metadata
import math

import numpy as np
import pytest

import images_reference
import robocache as rbc
from robocache._operations.images import FILTERS_OF

RANDOM = np.random.RandomState(3)
FRAMES = RANDOM.randint(0, 256, (3, 9, 13, 3)).astype(np.uint8)
PAIRS = [(rule, each) for rule, filters in images_reference.FILTERS.items() for each in filters]


def made(frames, size, **options):
    return rbc.images(frames, size, dtype="uint8", layout="hwc", **options)


def version(package):
    try:
        parts = importlib.metadata.version(package).split(".")
    except importlib.metadata.PackageNotFoundError:
        return None
    return tuple(map(int, parts[:2]))


# ---- against the reference -----------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "each"), PAIRS)
def test_every_rule_and_filter(rule, each):
    random = np.random.RandomState(len(rule) + len(each))
    for size in [(4, 5), (9, 13), (20, 7), (3, 26), (1, 1)]:
        frames = random.randint(0, 256, (2, 9, 13, 3)).astype(np.uint8)
        answer = made(frames, size, rule=rule, filter=each)
        for i in range(2):
            expected = images_reference.resize(frames[i], *size, rule, each)
            np.testing.assert_array_equal(answer[i], expected)


@pytest.mark.parametrize("fit", ["stretch", "pad", "cover"])
@pytest.mark.parametrize("anchor", ["center", "start", "end"])
def test_fits_boxes_and_flips(fit, anchor):
    boxes = [[0, 0, 9, 13], [2, 3, 5, 2], [8, 12, 1, 1]]
    answer = made(
        FRAMES,
        (6, 7),
        boxes=boxes,
        flips=[1, 2, 3],
        fit=fit,
        pad_anchor=anchor,
        pad_value=(9, 8, 7),
    )
    for i, box in enumerate(boxes):
        expected = images_reference.images(
            FRAMES[i], 6, 7, box=box, fit=fit, anchor=anchor, pad=(9, 8, 7, 0), flip=i + 1
        )
        np.testing.assert_array_equal(answer[i], expected)


@pytest.mark.parametrize("first", [False, True])
def test_colors(first):
    colors = np.array([[1.2, 0.7, 0.3, 0], [np.nan, 1.4, np.nan, np.nan], [0.5, 0, 1.9, np.nan]])
    order = [[2, 0, 1, 3], [0, 1, 2, 3], [3, 1, 0, 2]]
    answer = made(FRAMES, (5, 6), colors=colors, color_order=order, color_first=first)
    for i in range(3):
        expected = images_reference.images(
            FRAMES[i], 5, 6, factors=colors[i], order=order[i], color_first=first
        )
        np.testing.assert_array_equal(answer[i], expected)


def test_rows_of_several_arrays_and_a_table():
    table = rbc.normalization_table(mean=(0.4, 0.5, 0.6), std=0.25)
    rows = [3, -1, 0]
    answer = rbc.images([FRAMES, FRAMES[::-1]], (4, 4), rows=rows, table=table, pad_value=5)
    assert answer.dtype == np.float32
    assert answer.shape == (3, 3, 4, 4)
    for i, row in enumerate(rows):
        image = np.full((4, 4, 3), 5, np.uint8)
        if row >= 0:
            image = images_reference.resize([*FRAMES, *FRAMES[::-1]][row], 4, 4)
        for c in range(3):
            np.testing.assert_array_equal(answer[i, c], table[c][image[..., c]])


def test_out_and_strides():
    window = np.zeros((3, 2, 3, 4, 5), np.float64)
    frames = np.ascontiguousarray(FRAMES[:, ::-1].transpose(0, 3, 1, 2))  # planes
    result = rbc.images(frames.transpose(0, 2, 3, 1), out=window[:, 1])
    assert result.base is window
    expected = made(FRAMES[:, ::-1], (4, 5)).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(window[:, 1], expected)
    assert not window[:, 0].any()
    with pytest.raises(ValueError, match="size: is 3, but out has images of"):
        rbc.images(FRAMES, 3, out=window[:, 1])
    with pytest.raises(ValueError, match="frames"):
        rbc.images(FRAMES, out=FRAMES.transpose(0, 3, 1, 2))


def test_one_box_and_sizes():
    one = made(FRAMES, 4, boxes=[1, 2, 6, 7], crop_size=(6, 7))
    np.testing.assert_array_equal(one, made(FRAMES[:, 1:7, 2:9], 4))
    assert made(FRAMES[:0], 4).shape == (0, 4, 4, 3)


def test_torch():
    torch = pytest.importorskip("torch")
    frames = torch.from_numpy(FRAMES)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        answer = rbc.images(frames, (4, 5), dtype=dtype)
        assert answer.dtype == dtype
        expected = torch.from_numpy(made(FRAMES, (4, 5)).transpose(0, 3, 1, 2).copy())
        assert torch.equal(answer, expected.to(dtype))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"size": None}, TypeError, "size: is None, expected height and width, or out"),
        ({"size": (4,)}, TypeError, "size: is .*expected height and width"),
        ({"size": (4, 0)}, ValueError, r"size\[1\]: is 0, expected 1 or more"),
        ({"rule": "nearest"}, ValueError, "rule: is 'nearest', expected one of 'pillow'"),
        ({"filter": "area"}, rbc.RoboCacheError, "filter: is AREA, expected BOX"),
        ({"pad_value": 1.5}, ValueError, r"pad_value\[0\]: is 1.5, expected an integer"),
        ({"pad_value": ()}, ValueError, "pad_value: has 0 numbers"),
        ({"boxes": [[0, 0, 9, 14]] * 3}, ValueError, r"boxes: \[0\] is y 0, x 0, height 9"),
        ({"rows": [3]}, ValueError, "rows: index 0 is 3, expected -1, or one of the 3"),
        ({"colors": [[1, 1, 1, 0.6]] * 3}, ValueError, "hue of image 0 is 0.6, expected NaN"),
        ({"dtype": "int8"}, TypeError, "out: dtype is int8, expected uint8 or a float"),
        ({"crop_size": 3}, ValueError, "crop_size: is 3, expected None without boxes"),
        ({"size": 0}, ValueError, "size: is 0, expected 1 or more"),
        ({"size": -2}, ValueError, "size: is -2, expected 1 or more"),
        ({"size": 65537}, ValueError, "size: is 65537, expected at most 65536"),
        ({"size": True}, TypeError, "size: is True, expected height and width"),
        ({"size": "44"}, TypeError, "size: is '44', expected height and width"),
        ({"size": (4, 4.5)}, TypeError, r"size\[1\]: is 4.5, expected an int"),
        ({"pad_value": (1, 2)}, ValueError, "pad_value: has 2 numbers, .* of 3 channels"),
        ({"pad_value": (1, 2, 3, 4)}, ValueError, "pad_value: has 4 numbers, .* of 3 channels"),
        ({"pad_value": "black"}, TypeError, "pad_value: is 'black', expected a number"),
        ({"pad_value": math.nan}, ValueError, r"pad_value\[0\]: is nan, expected an integer"),
        ({"pad_value": 256}, ValueError, r"pad_value\[0\]: is 256, expected an integer"),
        ({"flips": [257, 0, 0]}, ValueError, "flips: has 257, expected 0 to 255"),
        ({"flips": [-1, 0, 0]}, ValueError, "flips: has -1, expected 0 to 255"),
        ({"flips": [4, 0, 0]}, ValueError, "flips: index 0 is 4, expected 0 to 3"),
        ({"rows": [2**63]}, ValueError, "rows: has 9223372036854775808, expected -9223372036"),
        ({"rows": [0.5]}, TypeError, "rows: is a list of float64, expected int64"),
        ({"rows": [[0]]}, ValueError, r"rows: shape is \[1,1\], expected \[1\]"),
        ({"boxes": [0, 0, 0, 4]}, ValueError, r"boxes: \[0\] is y 0, x 0, height 0"),
        ({"boxes": [[0, 0, 4, 4]] * 2}, ValueError, r"boxes: shape is \[2,4\], expected \[3,4\]"),
        ({"color_first": "no"}, TypeError, "color_first: is 'no', expected True or False"),
        ({"colors": [[-1, 1, 1, 0]] * 3}, ValueError, "colors: brightness of image 0 is -1"),
        ({"color_order": [[0, 1, 2, 3]] * 3}, ValueError, "color_order: is given"),
        ({"table": np.ones((3, 255))}, ValueError, r"table: shape is \[3,255\]"),
        ({"table": np.ones((3, 256), int)}, TypeError, "table: dtype is int64, expected a float"),
        ({"table": np.ones((3, 256)), "dtype": "uint8"}, TypeError, "out: dtype is uint8"),
    ],
)
def test_errors(options, kind, message):
    with pytest.raises(kind, match=message):
        rbc.images(FRAMES, **{"size": 4, **options})


def test_nan_in_a_table():
    table = rbc.normalization_table()
    table[1, 7] = np.nan
    with pytest.raises(ValueError, match=r"table: \[1,7\] is NaN, expected a number"):
        rbc.images(FRAMES, 4, table=table)


def test_arrays_as_they_come():
    expected = rbc.images(FRAMES, (4, 5))
    frozen = FRAMES.copy()
    frozen.flags.writeable = False
    for frames in [
        frozen,
        np.asfortranarray(FRAMES),
        np.ascontiguousarray(FRAMES[::-1, ::-1, ::-1, ::-1])[::-1, ::-1, ::-1, ::-1],
        np.ascontiguousarray(FRAMES.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1),
        np.repeat(FRAMES, 2, axis=2)[:, :, ::2],
        list(FRAMES[:, None]),
    ]:
        np.testing.assert_array_equal(rbc.images(frames, (4, 5)), expected)
    same = np.broadcast_to(FRAMES[:1], FRAMES.shape)
    np.testing.assert_array_equal(rbc.images(same, (4, 5))[2], expected[0])
    backward = np.empty((3, 3, 4, 5), np.float32)[::-1, :, ::-1]
    np.testing.assert_array_equal(rbc.images(FRAMES, out=backward), expected)
    padded = rbc.images(FRAMES, 20, fit="pad", pad_value=np.array([1, 2, 3]))
    assert padded[0, :, 0, 0].tolist() == [1, 2, 3]


def test_torch_as_it_comes():
    torch = pytest.importorskip("torch")
    frames = torch.from_numpy(FRAMES)
    expected = torch.from_numpy(rbc.images(FRAMES, (4, 5)))
    planes = frames.permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1)
    wide = torch.stack([frames, frames], dim=3).flatten(2, 3)[:, :, ::2]
    for each in [planes, wide, [frames[:1], frames[1:]]]:
        assert torch.equal(rbc.images(each, (4, 5)), expected)
    assert torch.equal(rbc.images(frames.flip(0), (4, 5)), expected.flip(0))
    assert rbc.images(frames[:0], (4, 5)).shape == (0, 3, 4, 5)
    with pytest.raises(ValueError, match="frames: requires grad"):
        rbc.images(torch.ones(1, 4, 4, 3, requires_grad=True), 4)


def test_empty_batches_and_frames_without_pixels():
    assert rbc.images(FRAMES, 4, rows=[]).shape == (0, 3, 4, 4)
    assert (rbc.images(FRAMES[:0], 4, rows=[-1], pad_value=7) == 7).all()
    with pytest.raises(ValueError, match="rows: index 0 is 0, expected -1, or one of the 0 frames"):
        rbc.images(FRAMES[:0], 4, rows=[0])
    for frames in (FRAMES[:, :0], FRAMES[:, :, :0]):
        with pytest.raises(ValueError, match=r"frames\[0\]: shape is .* H and W of 1 to 65536"):
            rbc.images(frames, 4)
    with pytest.raises(ValueError, match=r"frames\[0\]: shape is .* C of 1, 3 or 4"):
        rbc.images(FRAMES[..., :0], 4)
    assert rbc.images(FRAMES, out=np.empty((3, 3, 0, 4), np.float32)).size == 0


@pytest.mark.parametrize(
    ("frames", "kind", "message"),
    [
        (FRAMES[0], ValueError, r"frames\[0\]: rank is 3 .*, expected 4"),
        (FRAMES[..., :2], ValueError, r"frames\[0\]: shape is \[3,9,13,2\], expected .* C of 1, 3"),
        (FRAMES.astype(np.uint16), TypeError, r"frames\[0\]: dtype is uint16, expected uint8"),
        (FRAMES > 3, TypeError, r"frames\[0\]: dtype is bool, expected uint8"),
        (FRAMES.tolist(), TypeError, "frames: is a list, expected an array"),
        (None, TypeError, "frames: is None, expected an array"),
        ("x.png", TypeError, "frames: is a str, expected an array"),
        (np.ma.masked_array(FRAMES, FRAMES > 9), TypeError, "frames: is a masked array"),
        ([FRAMES] * 65, ValueError, "frames: has 65 arrays, expected an array, or 1 to 64"),
    ],
)
def test_what_is_not_frames(frames, kind, message):
    with pytest.raises(kind, match=message):
        rbc.images(frames, 4)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"formula": ["x"]}, ValueError, r"formula: is \['x'\], expected one of 'x'"),
        ({"formula": "x/255"}, ValueError, "formula: is 'x/255', expected one of 'x'"),
        ({"channels": 2}, ValueError, "channels: is 2, expected 1, 3 or 4"),
        ({"std": 1e-38 / 64}, ValueError, "std: is .*, so small that float32 overflows"),
        ({"std": 1e50}, ValueError, r"std: is 1e\+50, expected 3 finite numbers"),
        ({"mean": "imagenet"}, TypeError, "mean: is 'imagenet', expected numbers"),
    ],
)
def test_errors_of_tables(options, kind, message):
    with pytest.raises(kind, match=message):
        rbc.normalization_table(**options)


def test_errors_of_frames():
    with pytest.raises(ValueError, match="frames: is empty"):
        rbc.images([], 4)
    with pytest.raises(ValueError, match=r"frames\[1\]: shape is \[3,9,12,3\]"):
        rbc.images([FRAMES, FRAMES[:, :, 1:]], 4)
    with pytest.raises(TypeError, match=r"frames\[0\]: dtype is float64, expected uint8"):
        rbc.images(FRAMES.astype(float), 4)


# ---- tables and draws ----------------------------------------------------------------------------


def test_tables():
    byte = np.arange(256, dtype=np.float32)
    table = rbc.normalization_table("x / 255 * 2 - 1", channels=1)
    np.testing.assert_array_equal(table[0], byte / np.float32(255) * 2 - 1)
    table = rbc.normalization_table(mean=(0.1, 0.2, 0.3), std=(1, 2, 4))
    np.testing.assert_array_equal(
        table[2], (byte / np.float32(255) - np.float32(0.3)) / np.float32(4)
    )
    for options in ({"formula": "x / 2"}, {"mean": (1, 2)}, {"std": 0}, {"std": math.nan}):
        with pytest.raises(ValueError):
            rbc.normalization_table(**options)


def test_draws():
    samples = np.array([0, 5, 1 << 40])
    jitter = rbc.ColorJitter(0.2, (0.5, 1.5))
    draws = rbc.image_draws(
        samples, (100, 120), seed=2**64 - 3, epoch=4, camera=1, crop=0.9, flip=0.5, color=jitter
    )
    assert draws.crop_size == (90, 108)
    for i, sample in enumerate(samples):
        box, flip, colors, order = images_reference.draws(
            int(sample), 2**64 - 3, 4, 1, frame=(100, 120), crop=("fraction", 0.9), flip=0.5,
            ranges=[(0.8, 1.2), (0.5, 1.5), None, None],
        )  # fmt: skip
        assert tuple(draws.boxes[i]) == box
        assert draws.flips[i] == flip
        np.testing.assert_array_equal(draws.colors[i], np.float32(colors))
        assert list(draws.color_order[i]) == order
    frames = RANDOM.randint(0, 256, (3, 100, 120, 3)).astype(np.uint8)
    answer = made(frames, 8, **draws.options())
    expected = images_reference.images(
        frames[2], 8, 8, box=tuple(draws.boxes[2]), flip=int(draws.flips[2]),
        factors=draws.colors[2], order=tuple(draws.color_order[2]),
    )  # fmt: skip
    np.testing.assert_array_equal(answer[2], expected)


def test_draws_do_not_depend_on_the_batch():
    every = rbc.image_draws(np.arange(50), 64, seed=1, crop="area")
    some = rbc.image_draws(np.arange(20, 30), 64, seed=1, crop="area")
    np.testing.assert_array_equal(every.boxes[20:30], some.boxes)
    other = rbc.image_draws(np.arange(50), 64, seed=1, crop="area", epoch=1)
    assert (every.boxes != other.boxes).any()
    assert every.flips is None
    assert every.options().keys() == {"boxes"}


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"crop": 2}, TypeError, "frame_size: is None"),
        ({"crop": "corner", "frame_size": 8}, ValueError, "crop: is 'corner'"),
        ({"crop": 1.5, "frame_size": 8}, ValueError, "crop_fraction: is 1.5"),
        ({"crop": 9, "frame_size": 8}, ValueError, "crop_height: is 9, expected 1 to 8"),
        ({"flip": 2}, ValueError, "flip_probability: is 2"),
        ({"camera": -1}, ValueError, "camera: is -1"),
        ({"seed": 2**64}, ValueError, "seed: is"),
        ({"seed": "one"}, TypeError, "seed: is 'one'"),
        ({"color": 0.5}, TypeError, "color: is 0.5, expected a ColorJitter"),
        ({"color": rbc.ColorJitter(hue=0.6)}, ValueError, "hue: is -0.6 to 0.6, expected a range"),
        ({"color": rbc.ColorJitter(-1)}, ValueError, "brightness: is -1.0"),
    ],
)
def test_errors_of_draws(options, kind, message):
    with pytest.raises(kind, match=message):
        rbc.image_draws(np.arange(3), **{"seed": 0, **options})


# ---- against other libraries ---------------------------------------------------------------------


def pictures(count):
    """Yield images of noise, of black and white, and of ramps, and a size for each."""
    random = np.random.RandomState(7)
    for n in range(count):
        height, width, h, w = (int(x) for x in random.randint(1, 130, 4))
        if n % 5 == 0:
            height, width = 2 * h, 2 * w
        elif n % 5 == 1:
            height, width = 3 * h, 2 * w
        elif n % 5 == 2:
            height, width = max(height, 101 * (width % 3 + 1)), width % 3 + 1
        image = random.randint(0, 256, (height, width, 3))
        if n % 3 == 0:
            image = image // 128 * 255
        elif n % 3 == 1:
            image = np.indices((height, width, 3)).sum(axis=0) * 5 % 256
        yield image.astype(np.uint8), h, w


@pytest.mark.skipif(
    not (10, 4) <= (version("pillow") or (0, 0)) <= (13, 0), reason="no Pillow that was compared"
)
@pytest.mark.parametrize("each", images_reference.FILTERS["pillow"])
def test_pillow(each):
    from PIL import Image

    installed = version("pillow")
    rule = (
        "pillow_13" if installed >= (13, 0) else "pillow_12" if installed >= (12, 2) else "pillow"
    )
    name = "LANCZOS" if each == "lanczos3" else each.upper()
    for image, h, w in pictures(60):
        expected = Image.fromarray(image).resize((w, h), Image.Resampling[name])
        np.testing.assert_array_equal(
            made(image[None], (h, w), rule=rule, filter=each)[0], expected
        )


@pytest.mark.skipif(version("opencv-python-headless") is None, reason="OpenCV is not installed")
@pytest.mark.parametrize("each", images_reference.FILTERS["opencv"])
def test_opencv(each):
    cv2 = pytest.importorskip("cv2")
    for image, h, w in pictures(60):
        flag = getattr(cv2, f"INTER_{each.upper()}")
        expected = cv2.resize(image, (w, h), interpolation=flag)
        answer = made(image[None], (h, w), rule="opencv", filter=each)[0]
        np.testing.assert_array_equal(answer, expected.reshape(answer.shape))


@pytest.mark.parametrize("each", images_reference.FILTERS["torchvision"])
def test_torch_interpolate(each):
    """The function of torchvision's resize of uint8, whose bits x86 CPUs with AVX2 have."""
    torch = pytest.importorskip("torch")
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        pytest.skip("torch uses other instructions here")
    mode = "bilinear" if each == "linear" else each
    for image, h, w in pictures(60):
        planes = torch.from_numpy(image).permute(2, 0, 1)[None]
        try:
            expected = torch.nn.functional.interpolate(
                planes, (h, w), mode=mode, antialias=each != "linear", align_corners=False
            )
        except RuntimeError:  # an assertion of torch fails for some images of one pixel
            continue
        answer = rbc.images(image[None], (h, w), rule="torchvision", filter=each, dtype="uint8")
        np.testing.assert_array_equal(answer, expected.numpy())


@pytest.mark.parametrize("rule", FILTERS_OF)
def test_images_in_the_size_of_their_frames_are_copies(rule):
    rng = np.random.default_rng(0)
    for channels in (1, 3, 4):
        for height, width in ((1, 1), (7, 5), (33, 300), (100, 1), (1, 100), (40, 260)):
            frames = rng.integers(0, 256, (2, height, width, channels), dtype=np.uint8)
            for name in FILTERS_OF[rule]:
                options = {"rule": rule, "filter": name, "dtype": "uint8", "layout": "hwc"}
                np.testing.assert_array_equal(
                    rbc.images(frames, (height, width), **options), frames
                )
                if min(height, width) < 4:
                    continue
                box = [1, 2, height - 2, width - 3]
                made = rbc.images(
                    frames[:, :, ::-1], tuple(box[2:]), boxes=box, flips=[3, 1], **options
                )
                crop = frames[:, :, ::-1][:, 1 : height - 1, 2 : width - 1]
                np.testing.assert_array_equal(made[0], crop[0][::-1, ::-1])
                np.testing.assert_array_equal(made[1], crop[1][:, ::-1])


def test_colours_of_copies_equal_those_of_resized_frames():
    """Colours need the mean of the whole image, which the copied rows add."""
    rng = np.random.default_rng(1)
    frames = rng.integers(0, 256, (3, 50, 70, 3), dtype=np.uint8)
    small = rbc.images(frames, (37, 300), dtype="uint8", layout="hwc")
    colors = [[0.7, 1.4, 0.3, 0.1], [1.2, np.nan, 2.0, np.nan], [np.nan, 0.5, np.nan, -0.2]]
    options = {"colors": colors, "flips": [0, 1, 3], "table": rbc.normalization_table()}
    np.testing.assert_array_equal(
        rbc.images(small, (37, 300), **options), rbc.images(frames, (37, 300), **options)
    )
