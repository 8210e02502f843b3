"""Images of a pipeline: one call of ``images``, and the same bytes on the robot."""

from __future__ import annotations

import copy

import pytest

np = pytest.importorskip("numpy")

import pipelines  # noqa: E402
import robocache as rbc  # noqa: E402

SIZE = 96


def operations(*changed):
    """Operations of a pipeline file: resize, table and layout, or others before them."""
    resize = {"kind": "resize", "rule": "pillow", "filter": "bilinear", "fit": "stretch"}
    entries = {
        "resize": {**resize, "size": [40, 56]},
        "table": {"kind": "table", "form": "symmetric", "mean": None, "std": None},
        "layout": {"kind": "layout", "layout": "chw", "dtype": "float32"},
    }
    for operation in changed:
        entries[operation["kind"]] = operation
    order = ["crop", "resize", "flip", "color", "pad", "table", "layout"]
    return [entries[kind] for kind in order if kind in entries]


def image(source, steps=None, channels=3, size=(SIZE, SIZE)):
    return {
        "source": source,
        "size": list(size),
        "channels": channels,
        "operations": operations() if steps is None else steps,
    }


def pipeline(images, lag=0.01):
    """The joints of a bag of policy_bags, 10 rows per second, and images."""
    document = pipelines.document(lag=lag, rate=10)
    joints = [pipelines.channel(name) for name in ("shoulder", "elbow")]
    source = pipelines.topic("/joint_states", "sensor_msgs/msg/JointState", "position")
    document["streams"] = {"arm": pipelines.stream(source, joints)}
    document["windows"] = {"state": pipelines.window("arm", [-1, 0])}
    document["normalization"] = {"state": "none"}
    document["actions"] = None
    document["images"] = images
    return rbc.Pipeline(document)


def frames(count=3, size=(SIZE, SIZE), channels=3, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, *size, channels), np.uint8)


CROP = {"kind": "crop", "box": [8, 4, 80, 88]}
FLIP = {"kind": "flip", "axes": "left_right"}
COLOR = {
    "kind": "color", "brightness": 1.25, "contrast": None, "saturation": 0.5,
    "order": ["saturation", "contrast", "brightness"],
}  # fmt: skip
PAD = {"kind": "pad", "anchor": "end", "value": [1, 2, 3]}
TO_PAD = {"kind": "resize", "rule": "pillow_12", "filter": "lanczos3", "fit": "pad"}
TO_PAD["size"] = [50, 31]
MEAN = {"kind": "table", "form": "mean_std", "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4]}
BYTES = {"kind": "layout", "layout": "hwc", "dtype": "uint8"}
SYMMETRIC = {"table": rbc.normalization_table("x / 255 * 2 - 1"), "dtype": "float32"}
NAN = float("nan")
COLORED = {"colors": [[1.25, NAN, 0.5, NAN]] * 3, "color_order": [[2, 1, 0, 3]] * 3}
CASES = {
    "resize": (operations(), (40, 56), SYMMETRIC),
    "crop": (
        operations(CROP),
        (40, 56),
        {**SYMMETRIC, "boxes": [CROP["box"]] * 3},
    ),
    "crop only": (
        [CROP, BYTES],
        (80, 88),
        {"boxes": CROP["box"], "layout": "hwc", "dtype": "uint8"},
    ),
    "bytes": ([BYTES], (SIZE, SIZE), {"layout": "hwc", "dtype": "uint8"}),
    "flip": (operations(FLIP), (40, 56), {**SYMMETRIC, "flips": [1, 1, 1]}),
    "color": (operations(CROP, COLOR), (40, 56), {**SYMMETRIC, **COLORED, "boxes": CROP["box"]}),
    "color first": (
        [COLOR, *operations(CROP)],
        (40, 56),
        {**SYMMETRIC, **COLORED, "boxes": CROP["box"], "color_first": True},
    ),
    "pad": (
        operations(TO_PAD, PAD, MEAN),
        (50, 31),
        {
            "rule": "pillow_12", "filter": "lanczos3", "fit": "pad", "pad_anchor": "end",
            "pad_value": [1, 2, 3], "dtype": "float32",
            "table": rbc.normalization_table(mean=MEAN["mean"], std=MEAN["std"]),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_operations_are_one_call_of_images(case):
    steps, size, options = CASES[case]
    policy = pipeline({"front": image({"column": "front"}, steps)})
    stack = frames()
    expected = rbc.images(stack, size, **options)
    assert policy.images("front", stack).tobytes() == expected.tobytes()
    parts = policy.images("front", [stack[:1], stack[1:]])
    assert parts.tobytes() == expected.tobytes() and parts.shape == expected.shape
    out = np.empty_like(expected)
    assert policy.images("front", stack, out=out) is out and out.tobytes() == expected.tobytes()
    assert policy.images("front", stack[:0]).shape == (0, *expected.shape[1:])
    live = policy.live()
    live.push_image("front", stack[2], 10)
    assert live.observe(10).images["front"].tobytes() == expected[2:].tobytes()


def test_torch_frames_stay_in_torch():
    torch = pytest.importorskip("torch")
    steps, _, _ = CASES["color first"]
    policy = pipeline({"front": image({"column": "front"}, steps)})
    result = policy.images("front", torch.from_numpy(frames()))
    assert isinstance(result, torch.Tensor)
    assert result.numpy().tobytes() == policy.images("front", frames()).tobytes()


def test_a_file_has_the_rules_and_filters_of_images():
    """Exactly the pairs that the library runs can be in a file."""
    from robocache._operations.images import FILTERS, FILTERS_OF, RULES

    assert list(FILTERS_OF) == list(RULES) and "pillow_12" in RULES
    stack = frames(1)
    for rule in RULES:
        for filter_ in FILTERS:
            resize = {"kind": "resize", "rule": rule, "filter": filter_, "fit": "stretch"}
            entry = image({"column": "front"}, operations({**resize, "size": [20, 24]}))
            try:
                expected = rbc.images(stack, (20, 24), rule=rule, filter=filter_, **SYMMETRIC)
            except rbc.RoboCacheError:
                with pytest.raises(ValueError, match="^/images/front/operations/0/filter: "):
                    pipeline({"front": entry})
                continue
            policy = pipeline({"front": entry}).images("front", stack)
            assert policy.tobytes() == expected.tobytes()


# ---- random operations --------------------------------------------------------------------------


def test_draws_replace_fixed_operations():
    steps = operations(CROP, FLIP, COLOR)
    policy = pipeline({"front": image({"column": "front"}, steps)})
    stack, samples = frames(), np.arange(3)
    jitter = rbc.ColorJitter(brightness=0.3, contrast=0.2)
    draws = rbc.image_draws(samples, SIZE, seed=1, crop=(80, 88), flip=0.5, color=jitter)
    expected = rbc.images(stack, (40, 56), **SYMMETRIC, **draws.options())
    assert policy.images("front", stack, draws=draws).tobytes() == expected.tobytes()
    flips = rbc.image_draws(samples, SIZE, seed=1, flip=0.5)  # the crop and the colours stay
    expected = rbc.images(
        stack, (40, 56), **SYMMETRIC, **COLORED, boxes=CROP["box"], flips=flips.flips
    )
    assert policy.images("front", stack, draws=flips).tobytes() == expected.tobytes()
    with pytest.raises(TypeError, match="^draws: is a dict, expected the result of image_draws"):
        policy.images("front", stack, draws={})


def test_a_crop_that_is_not_resized_has_one_size():
    policy = pipeline({"front": image({"column": "front"}, [CROP, BYTES])})
    draws = rbc.image_draws(np.arange(3), SIZE, seed=2, crop=(80, 88))
    boxes = draws.boxes
    result = policy.images("front", frames(), draws=draws)
    for cut, frame, (y, x, height, width) in zip(result, frames(), boxes.tolist()):
        assert np.array_equal(cut, frame[y : y + height, x : x + width])
    for crop, text in (((80, 80), r"\[80, 80\]"), ("area", "several sizes")):
        draws = rbc.image_draws(np.arange(3), SIZE, seed=2, crop=crop)
        with pytest.raises(ValueError, match=rf"^draws: has crops of {text}, .*has no resize"):
            policy.images("front", frames(), draws=draws)


# ---- errors -------------------------------------------------------------------------------------


def test_frames_of_another_shape_are_refused():
    policy = pipeline({"front": image({"column": "front"})})
    refusals = {
        r"/images/front/size: \[96, 96\]; frames has the shape \[2, 96, 80, 3\]": frames(
            2, (96, 80)
        ),
        r"/images/front/channels: 3; frames has the shape \[2, 96, 96, 1\]": frames(2, channels=1),
        r"/images/front/size: \[96, 96\]; frames has the shape \[96, 96, 3\]": frames()[0],
        r"/images/front/size: \[96, 96\]; frames\[1\] has": [frames(1), frames(1, (95, 96))],
    }
    for message, stack in refusals.items():
        with pytest.raises(ValueError, match=f"^{message}"):
            policy.images("front", stack)
    with pytest.raises(ValueError, match="^image: is 'wrist', expected one of .*: 'front'"):
        policy.images("wrist", frames())
    data = rbc.Episodes({"x": rbc.Track(np.zeros((3, 1)), [0, 3])})
    with pytest.raises(TypeError, match="^data: is an Episodes, expected a bag"):
        next(policy.frames(data, "front"))
    live = policy.live()
    with pytest.raises(ValueError, match=r"^/images/front/size: \[96, 96\]; the frame has"):
        live.push_image("front", frames()[0][:90], 0)
    with pytest.raises(TypeError, match="^frame: is float32, expected a NumPy array of uint8"):
        live.push_image("front", frames()[0].astype(np.float32), 0)
    with pytest.raises(ValueError, match="^image: is 'wrist'"):
        live.push_image("wrist", frames()[0], 0)
    assert live.observe(0).images == {"front": None}


def test_a_type_that_is_no_image():
    source = {"topic": "/camera", "type": "sensor_msgs/msg/PointCloud2"}
    with pytest.raises(ValueError, match="^/images/front/source/type: .*expected one of foxglove"):
        pipeline({"front": image(source)}).live()


# ---- the robot ----------------------------------------------------------------------------------


def test_the_frame_that_arrived_last():
    policy = pipeline({"front": image({"column": "front"})})
    stack, live = frames(12), policy.live()
    assert live.observe(5).images == {"front": None}
    assert live.observe(5).image_ages == {"front": float("inf")}
    buffer = stack[0].copy()
    live.push_image("front", buffer, 100)
    buffer[:] = 0  # drivers reuse their memory
    live.push_image("front", stack[1], 300)
    live.push_image("front", stack[2], 200)  # late
    for now, number, age in ((150, 0, 50), (250, 2, 50), (299, 2, 99), (300, 1, 0), (999, 1, 699)):
        seen = live.observe(now)
        expected = policy.images("front", stack[number : number + 1])
        assert seen.images["front"].tobytes() == expected.tobytes()
        assert seen.image_ages["front"] == age / 1e9
    assert live.observe(99).images["front"] is None
    for number in range(3, 12):
        live.push_image("front", stack[number], 1000 + number)
    assert live.observe(1003).images["front"] is None  # the last 8 are kept
    assert live.observe(1004).images["front"] is not None
    live.reset()
    assert live.observe(2000).images["front"] is None


def test_a_pipeline_of_images_only():
    document = pipeline({"front": image({"topic": "/c", "type": "sensor_msgs/Image"})}).to_dict()
    document.update(streams={}, windows={}, normalization={})
    policy = rbc.Pipeline(document)
    live = policy.live()
    assert live.topics == ("/c",) and "images 'front'" in repr(live)
    live.push_image("front", frames()[0], 7)
    seen = live.observe(8)
    assert dict(seen) == {} and seen.raw == {} and seen.images["front"].shape == (1, 3, 40, 56)
    with pytest.raises(ValueError, match="^/windows: is empty"):
        policy.open(rbc.Episodes({"x": rbc.Track(np.zeros((3, 1)), [0, 3], times=np.arange(3.0))}))


ENCODINGS = ("rgb8", "bgr8", "rgba8", "mono8", "jpeg", "png")


@pytest.mark.parametrize("ros1", [False, True], ids=["ros2", "ros1"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_robot_sees_the_images_of_training(tmp_path, encoding, ros1):
    """Messages of a bag, pushed as they arrived, against the frames and images of the bag."""
    pytest.importorskip("rosbags")
    is_file = encoding in ("jpeg", "png")
    if is_file:
        pytest.importorskip("av")
        pytest.importorskip("PIL")
    import policy_bags

    cameras = {"cameras": (), "compressed": ("wrist",)} if is_file else {"compressed": ()}
    bag = policy_bags.write_bag(
        tmp_path / ("bag.bag" if ros1 else "bag"), seconds=1.5, size=SIZE, encoding=encoding,
        ros1=ros1, camera_begins=0.31, **cameras,
    )  # fmt: skip
    topic = "/wrist/compressed" if is_file else "/front/image_raw"
    kind = "sensor_msgs/msg/CompressedImage" if is_file else "sensor_msgs/msg/Image"
    gray = encoding == "mono8"
    steps = operations(CROP, *(() if gray else (COLOR,)))
    policy = pipeline(
        {"front": image({"topic": topic, "type": kind}, steps, channels=1 if gray else 3)}
    )
    rows = policy.open(bag)
    ticks = rows["arm"].times.view("int64")
    found = {row: frame for some, frame in policy.frames(bag, "front") for row in some}
    assert min(found) > 0 and max(found) == len(ticks) - 1
    samples = policy.windows().cut(rows, [0] * len(ticks), np.arange(len(ticks)))["state"]
    live = policy.live()
    assert live.topics == ("/joint_states", topic)
    messages = list(messages_of(bag, ros1, live.topics))
    lag = 10_000_000
    for row, tick in enumerate(ticks.tolist()):
        while messages and messages[0][0] <= tick + lag:
            time, name, data = messages.pop(0)
            assert live.push_message(name, data, time, encoding="ros1" if ros1 else "cdr") == 1
        seen = live.observe(tick + lag)
        if row > 1:
            assert seen["state"].tobytes() == samples[0][row : row + 1].tobytes()
        if row not in found:
            assert seen.images["front"] is None
            continue
        offline = policy.images("front", found[row][None])
        assert seen.images["front"].tobytes() == offline.tobytes()
        number = round((tick + lag - policy_bags.BEGIN) / 1e9 * 30 - 0.5)
        if encoding != "jpeg":
            picture = policy_bags.picture(number, SIZE, 0)
            assert np.array_equal(found[row], picture[..., :1] if gray else picture)


def messages_of(bag, ros1, topics):
    """Yield (log time, topic, bytes) of a bag, by another reader."""
    from pathlib import Path

    if ros1:
        from rosbags.rosbag1 import Reader
    else:
        from rosbags.rosbag2 import Reader
    with Reader(Path(bag)) as reader:
        for connection, time, data in reader.messages():
            if connection.topic in topics:
                yield time, connection.topic, bytes(data)


def test_messages_of_images_that_cannot_be_read(tmp_path):
    pytest.importorskip("rosbags")
    import policy_bags

    bag = policy_bags.write_bag(tmp_path / "bag", seconds=0.3, size=SIZE, encoding="mono16")
    topic = "/front/image_raw"
    source = {"topic": topic, "type": "sensor_msgs/msg/Image"}
    policy = pipeline({"front": image(source)})
    live = policy.live()
    ((_, _, data), *_) = messages_of(bag, False, (topic,))
    with pytest.raises(
        ValueError, match=r"^data: a message of '/front/image_raw' has the encoding"
    ):
        live.push_message(topic, data, 0)
    with pytest.raises(ValueError, match=r"^data: a message of '/front/image_raw' is truncated"):
        live.push_message(topic, data[:60], 0)
    with pytest.raises(ValueError, match="^encoding: is 'json', expected 'cdr' or 'ros1'"):
        live.push_message(topic, data, 0, encoding="json")
    with pytest.raises(ValueError, match="^topic: is '/x', .*'/joint_states', '/front/image_raw'"):
        live.push_message("/x", data, 0)
    assert live.observe(0).images["front"] is None
    colours = policy_bags.write_bag(tmp_path / "b", seconds=0.3, size=64, encoding="rgb8")
    ((_, _, data), *_) = messages_of(colours, False, (topic,))
    with pytest.raises(ValueError, match=r"^/images/front/size: \[96, 96\]; the frame has"):
        live.push_message(topic, data, 0)
    document = copy.deepcopy(policy.to_dict())
    document["images"]["front"]["source"]["topic"] = "/other"
    with pytest.raises(ValueError, match="^/images/front/source/topic: '/other' is not in"):
        next(rbc.Pipeline(document).frames(bag, "front"))


def test_a_message_that_one_camera_refuses_adds_nothing(tmp_path):
    pytest.importorskip("rosbags")
    import policy_bags

    bag = policy_bags.write_bag(tmp_path / "bag", seconds=0.3, size=SIZE, encoding="rgb8")
    topic = "/front/image_raw"
    source = {"topic": topic, "type": "sensor_msgs/msg/Image"}
    live = pipeline({"a": image(source), "b": image(source, size=(64, 64))}).live()
    ((_, _, data), *_) = messages_of(bag, False, (topic,))
    with pytest.raises(ValueError, match=r"^/images/b/size: \[64, 64\]; the frame has"):
        live.push_message(topic, data, 0)
    assert live.observe(0).images == {"a": None, "b": None}


def test_a_bag_is_checked_for_images(tmp_path):
    pytest.importorskip("rosbags")
    import policy_bags
    from robocache._pipeline.checked_data import checked_data

    topic, kind = "/front/image_raw", "sensor_msgs/msg/Image"
    bag = policy_bags.write_bag(tmp_path / "bag", seconds=1, size=64, camera_begins=0.45)
    recording = rbc.data.open(bag)

    def check(size=(64, 64), **source):
        entry = image({"topic": topic, "type": kind, **source}, size=size)
        policy = pipeline({"front": entry})
        findings = checked_data(policy._plan, recording)
        return [str(finding.text) for finding in findings if "/images" in finding.pointer]

    assert check() == ["the first 5 rows have no frame"]
    with pytest.raises(ValueError, match=r"^/images/front/size: \[64, 96\]; the frame has the"):
        check(size=(64, 96))
    with pytest.raises(ValueError, match="^/images/front/source/type: .*has 'sensor_msgs/msg/Im"):
        check(type="sensor_msgs/msg/CompressedImage")
    with pytest.raises(ValueError, match="^/images/front/source/topic: '/x' is not in"):
        check(topic="/x")
