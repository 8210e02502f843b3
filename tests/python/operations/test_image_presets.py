"""The presets of images against the functions of the projects, or the formulas of these.

The formulas are written with other libraries or in NumPy; they do not use robocache.
"""

import importlib
import importlib.metadata
import math
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import robocache as rbc

SIZES = [(480, 640), (96, 96), (360, 640), (359, 211), (224, 224)]
RANDOM = np.random.default_rng(7)


def frames_of(height, width, count=2):
    """Noise, and a smooth picture with edges, as uint8 [count,height,width,3]."""
    y, x = np.mgrid[:height, :width]
    smooth = np.stack([y * 255 / height, x * 255 / width, (x // 9 + y // 7) % 2 * 255], -1)
    noise = RANDOM.integers(0, 256, (count - 1, height, width, 3), dtype=np.uint8)
    return np.concatenate([noise, smooth.astype(np.uint8)[None]])


def images_of(name, frames, **options):
    return rbc.image_preset(name, **options)(frames, dtype="uint8", layout="hwc")


def worst(answer, expected):
    assert answer.shape == expected.shape
    return int(np.abs(answer.astype(np.int16) - expected.astype(np.int16)).max(initial=0))


def pillow_rule():
    parts = tuple(map(int, importlib.metadata.version("pillow").split(".")[:2]))
    return "pillow_13" if parts >= (13, 0) else "pillow_12" if parts >= (12, 2) else "pillow"


def padded(resized, height, width, at_end=False):
    """Put images [n,h,w,3] on black, in the middle or at the lower right."""
    h, w = resized.shape[1:3]
    top = height - h if at_end else (height - h) // 2
    left = width - w if at_end else (width - w) // 2
    page = np.zeros((len(resized), height, width, 3), resized.dtype)
    page[:, top : top + h, left : left + w] = resized
    return page


def inner_size(frames, height, width):
    ratio = max(frames.shape[2] / width, frames.shape[1] / height)
    return int(frames.shape[1] / ratio), int(frames.shape[2] / ratio)


# ---- openpi --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_openpi_is_the_function_of_its_client(size):
    tools = pytest.importorskip("openpi_client.image_tools")
    frames = frames_of(*size)
    for target in [(224, 224), (180, 320)]:
        expected = tools.resize_with_pad(frames, *target)
        answer = images_of("openpi", frames, size=target, rule=pillow_rule())
        np.testing.assert_array_equal(answer, expected)


@pytest.mark.parametrize("size", SIZES)
def test_openpi_with_pillow(size):
    image = pytest.importorskip("PIL.Image")
    frames = frames_of(*size)
    h, w = inner_size(frames, 224, 224)
    each = [image.fromarray(frame).resize((w, h), image.Resampling.BILINEAR) for frame in frames]
    expected = padded(np.stack([np.asarray(one) for one in each]), 224, 224)
    np.testing.assert_array_equal(images_of("openpi", frames, rule=pillow_rule()), expected)


def test_the_numbers_of_openpi():
    frames = frames_of(48, 64)
    bytes_of = images_of("openpi", frames)
    answer = rbc.image_preset("openpi")(frames)
    expected = bytes_of.astype(np.float32) / 255.0 * 2.0 - 1.0  # as openpi's Observation
    np.testing.assert_array_equal(answer, expected.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("size", SIZES)
def test_openpi_in_jax_is_within_a_level(size):
    jax = pytest.importorskip("jax")
    frames = frames_of(*size)
    h, w = inner_size(frames, 224, 224)
    resized = jax.image.resize(frames, (len(frames), h, w, 3), "linear")
    resized = jax.numpy.round(resized).clip(0, 255).astype("uint8")
    assert worst(images_of("openpi_jax", frames), padded(np.asarray(resized), 224, 224)) <= 1


def interpolated(frames, h, w, antialias=False):
    torch = pytest.importorskip("torch")
    floats = torch.from_numpy(frames).permute(0, 3, 1, 2).float()
    resized = torch.nn.functional.interpolate(
        floats, size=(h, w), mode="bilinear", align_corners=False, antialias=antialias
    )
    return resized.permute(0, 2, 3, 1).numpy()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("name", "side"), [("openpi_torch", 224), ("smolvla", 512)])
def test_padding_in_torch_is_within_a_level(name, side, size):
    frames = frames_of(*size)
    resized = np.rint(interpolated(frames, *inner_size(frames, side, side))).clip(0, 255)
    expected = padded(resized.astype(np.uint8), side, side, at_end=name == "smolvla")
    assert worst(images_of(name, frames), expected) <= 1


# ---- GR00T ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_gr00t_n1d5_is_within_a_level(size):
    frames = frames_of(*size)
    high, wide = (int(side * 0.95) for side in size)
    top, left = int(round((size[0] - high) / 2.0)), int(round((size[1] - wide) / 2.0))
    cropped = np.ascontiguousarray(frames[:, top : top + high, left : left + wide])
    expected = (interpolated(cropped, 224, 224, True) / 255 * 255).astype(np.uint8)
    assert worst(images_of("gr00t_n1d5", frames), expected) <= 1


def center(image, fraction):
    """GR00T's FractionalCenterCrop."""
    high, wide = image.shape[:2]
    h, w = max(1, int(high * fraction)), max(1, int(wide * fraction))
    return image[(high - h) // 2 :, (wide - w) // 2 :][:h, :w]


@pytest.mark.parametrize("size", SIZES)
def test_gr00t_n1d6_is_albumentations(size):
    a = pytest.importorskip("albumentations")
    cv2 = pytest.importorskip("cv2")
    resize = a.SmallestMaxSize(max_size=256, interpolation=cv2.INTER_AREA)
    frames = frames_of(*size)
    answer = images_of("gr00t_n1d6", frames)
    for i, frame in enumerate(frames):
        whole = resize(image=frame)["image"]
        expected = resize(image=np.ascontiguousarray(center(whole, 0.95)))["image"]
        np.testing.assert_array_equal(answer[i], expected)


@pytest.mark.parametrize("size", SIZES)
def test_gr00t_n1d7_is_opencv(size):
    cv2 = pytest.importorskip("cv2")
    frames = frames_of(*size)
    answer = images_of("gr00t_n1d7", frames)
    for i, frame in enumerate(frames):
        whole = cv2.resize(frame, (256, 256), interpolation=cv2.INTER_AREA)
        part = np.ascontiguousarray(center(whole, 230 / 256))
        expected = cv2.resize(part, (256, 256), interpolation=cv2.INTER_AREA)
        np.testing.assert_array_equal(answer[i], expected)


@pytest.mark.parametrize("size", SIZES)
def test_gr00t_n1d6_sizes(size):
    """Sides as albumentations rounds them, without albumentations."""
    scale = 256 / min(size)
    first = tuple(max(1, round(side * scale)) for side in size)
    crop = tuple(int(side * 0.95) for side in first)
    second = tuple(max(1, round(side * (256 / min(crop)))) for side in crop)
    stages = rbc.image_preset("gr00t_n1d6").stages(size)
    assert [stage["size"] for stage in stages] == [first, second]
    assert stages[1]["crop_size"] == crop


@pytest.mark.parametrize("name", ["gr00t_n1d5", "gr00t_n1d6", "gr00t_n1d7"])
def test_the_numbers_of_gr00t(name):
    frames = frames_of(48, 64)
    expected = (images_of(name, frames).astype(np.float32) - np.float32(127.5)) / np.float32(127.5)
    answer = rbc.image_preset(name)(frames, layout="hwc")
    np.testing.assert_array_equal(answer, expected)


# ---- LeRobot, diffusion policy, robomimic --------------------------------------------------------


def test_lerobot_has_the_numbers_of_its_processor():
    torch = pytest.importorskip("torch")
    frames = frames_of(48, 64)
    mean = torch.tensor([0.485, 0.456, 0.406]).reshape(3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).reshape(3, 1, 1)
    images = torch.from_numpy(frames).permute(0, 3, 1, 2).float() / 255
    expected = (images - mean) / (std + 1e-8)
    answer = rbc.image_preset("lerobot")(torch.from_numpy(frames))
    assert torch.equal(answer, expected)


@pytest.mark.parametrize("size", SIZES)
def test_diffusion_policy_is_opencv(size):
    cv2 = pytest.importorskip("cv2")
    frames = frames_of(*size)
    (high, wide), (h, w) = size, (240, 320)
    if wide / high >= w / h:
        rh, rw, enlarged = h, math.ceil(h / high * wide), h > high
    else:
        rh, rw, enlarged = math.ceil(w / wide * high), w, w > wide
    how = cv2.INTER_LINEAR if enlarged else cv2.INTER_AREA
    answer = images_of("diffusion_policy", frames)
    for i, frame in enumerate(frames):
        whole = cv2.resize(frame, (rw, rh), interpolation=how)
        image = whole[(rh - h) // 2 :, (rw - w) // 2 :][:h, :w]
        np.testing.assert_array_equal(answer[i], image[12:228, 16:304])


def test_the_numbers_of_diffusion_policy():
    frames = frames_of(48, 64)
    images = images_of("diffusion_policy", frames).astype(np.float32) / np.float32(255)
    mean = np.array([0.485, 0.456, 0.406], np.float32)
    std = np.array([0.229, 0.224, 0.225], np.float32)
    expected = (images * np.float32(2) + np.float32(-1) - mean) / std
    answer = rbc.image_preset("diffusion_policy")(frames, layout="hwc")
    np.testing.assert_array_equal(answer, expected)


def test_robomimic_crops_the_centre():
    for size, offset in [((84, 84), (4, 4)), ((85, 91), (4, 7))]:
        frames = frames_of(*size)
        part = frames[:, offset[0] : offset[0] + 76, offset[1] : offset[1] + 76]
        answer = rbc.image_preset("robomimic")(frames, layout="hwc")
        np.testing.assert_array_equal(answer, part.astype(np.float32) / np.float32(255))


# ---- OpenVLA, Octo -------------------------------------------------------------------------------


def lanczos3(frames, side):
    jax = pytest.importorskip("jax")
    resized = jax.image.resize(
        frames.astype(np.float32), (len(frames), side, side, 3), "lanczos3", antialias=True
    )
    return np.rint(np.asarray(resized)).clip(0, 255).astype(np.uint8)


def crop_and_resize(images, share, side):
    """tf.image.crop_and_resize of the centre, in float64."""
    n = images.shape[1]
    part = math.sqrt(share)
    at = (1 - part) / 2 * (n - 1) + np.arange(side) * part * (n - 1) / (side - 1)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, n - 1)
    f = at - low
    values = images.astype(np.float64)
    rows = values[:, low] * (1 - f)[:, None, None] + values[:, high] * f[:, None, None]
    return rows[:, :, low] * (1 - f)[:, None] + rows[:, :, high] * f[:, None]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("name", "side"), [("openvla", 224), ("octo", 256), ("octo_wrist", 128)])
def test_lanczos_is_within_a_level(name, side, size):
    frames = frames_of(*size)
    options = rbc.image_preset(name).stages(size)[0]
    answer = rbc.images(frames, dtype="uint8", layout="hwc", **options)
    assert worst(answer, lanczos3(frames, side)) <= 1


@pytest.mark.parametrize(("name", "side", "most"), [("openvla", 224, 0.3), ("octo", 256, 0.45)])
def test_the_crop_is_within_half_a_pixel(name, side, most):
    """A ramp shows the places in the image from which pixels are taken."""
    ramp = np.zeros((2, side, side, 3), np.uint8)
    ramp[0] = np.arange(side, dtype=np.uint8)[:, None, None]
    ramp[1] = np.arange(side, dtype=np.uint8)[None, :, None]
    stage = rbc.image_preset(name).stages((side, side))[1]
    answer = rbc.images(ramp, dtype="uint8", layout="hwc", **stage)
    exact = crop_and_resize(ramp, 0.9, side)
    inner = np.s_[:, 1:-1, 1:-1]  # a crop takes no pixel beyond its edge
    assert np.abs(answer - exact)[inner].max() <= most + 0.5  # half a level of rounding
    assert np.abs(answer - exact).max() <= 1


# ---- of all --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", rbc.image_presets())
def test_what_all_presets_do(name):
    preset = rbc.image_preset(name)
    frames = frames_of(120, 160, 3)
    answer = preset(frames)
    h, w = preset.output_size((120, 160))
    assert answer.shape == (3, 3, h, w) and answer.dtype == np.float32
    again = pickle.loads(pickle.dumps(preset))
    np.testing.assert_array_equal(
        again([frames[:1], frames[1:]], rows=[2, 0, 1])[[1, 2, 0]], answer
    )
    out = np.empty((3, h, w, 3), np.uint8)
    assert preset(frames, out=out, layout="hwc") is out
    for c in range(3):
        np.testing.assert_array_equal(preset.table[c][out[..., c]], answer[:, c])
    assert preset(frames[:0]).shape == (0, 3, h, w)
    assert preset(frames[:, ::-1]).shape == answer.shape  # strides may be negative
    black = preset(frames, rows=[-1], dtype="uint8")
    assert not black.any()
    assert preset.project and preset.steps and not preset.table.flags.writeable
    assert "table" not in repr(preset)


def test_torch():
    torch = pytest.importorskip("torch")
    frames = frames_of(60, 80)
    preset = rbc.image_preset("gr00t_n1d7")
    answer = preset(torch.from_numpy(frames), dtype=torch.bfloat16)
    assert answer.dtype == torch.bfloat16
    expected = torch.from_numpy(preset(frames)).bfloat16()
    assert torch.equal(answer, expected)


def test_arrays_for_another_device():
    """On a GPU, boxes and the table are moved once for each size of frames."""
    torch = pytest.importorskip("torch")
    preset = rbc.image_preset("gr00t_n1d6")
    like = torch.zeros(1, 60, 80, 3, dtype=torch.uint8)
    from robocache._arguments.arrays import framework_of

    stages, table = preset._prepare(framework_of(like, "frames"), 0, (60, 80), like)
    assert torch.equal(table, torch.from_numpy(preset.table.copy()))
    plain = preset.stages((60, 80))
    assert stages[0] == plain[0]
    assert stages[1]["boxes"].dtype == torch.int64
    assert stages[1]["boxes"].tolist() == plain[1]["boxes"]
    expected = preset(like)
    resized = rbc.images(like, dtype="uint8", layout="hwc", **stages[0])
    assert torch.equal(rbc.images(resized, table=table, **stages[1]), expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "open_pi"}, "name: is 'open_pi', expected one of 'openpi', .*mean openpi"),
        ({"name": 3}, "name: is 3, expected one of 'openpi'"),
        ({"name": "lerobot", "size": 4}, "size: is 4, but 'lerobot' keeps the size of the frames"),
        ({"name": "octo", "size": (0, 4)}, r"size\[0\]: is 0, expected 1 or more"),
        ({"name": "octo", "rule": "pillow"}, "rule: is 'pillow', but 'octo' has one rule"),
        ({"name": "openpi", "rule": "exact"}, "rule: is 'exact', expected one of 'pillow', 'pil"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        rbc.image_preset(**arguments)


def test_errors_of_frames():
    preset = rbc.image_preset("robomimic")
    with pytest.raises(ValueError, match="frames: have 60 x 80 pixels, expected at least 76 x 76"):
        preset(frames_of(60, 80))
    with pytest.raises(ValueError, match=r"frames: shape is \[84,84,3\], expected \[n,H,W,3\]"):
        preset(frames_of(84, 84)[0])
    with pytest.raises(ValueError, match=r"frames: shape is \[2,84,84,1\], expected \[n,H,W,3\]"):
        preset(frames_of(84, 84)[..., :1])
    with pytest.raises(ValueError, match="frames: is empty"):
        preset([])
    with pytest.raises(TypeError, match="frames"):
        preset("picture.png")
    with pytest.raises(ValueError, match=r"frames: have 84 x 84 pixels, expected .* for a crop"):
        rbc.image_preset("robomimic", size=90)(frames_of(84, 84))


def test_the_page_lists_every_preset():
    page = Path(__file__).resolve().parents[3] / "docs" / "concepts" / "images.md"
    rows = re.findall(r"^\| `(\w+)` \| (?:[^|]+\|){2} ([^|]+) \|", page.read_text(), re.M)
    rows = dict(row for row in rows if row[0] in rbc.image_presets())
    assert tuple(rows) == rbc.image_presets()
    for name, difference in rows.items():
        exact = all(how == "exact" for _, how in rbc.image_preset(name).steps)
        assert exact == (difference == "exact"), name
