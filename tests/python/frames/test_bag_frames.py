"""Frames of bags: images of ROS 1, ROS 2 and foxglove, and packets of videos."""

from __future__ import annotations

import fractions
import json
import os
import pickle
import sqlite3
import struct

import numpy as np
import pytest

import data_files
import robocache as rbc
from picture_files import decoded, encoded, pixels, read, require_equal, whole
from robocache.data._frames.bags import RosFrames

pytest.importorskip("rosbags")
pytest.importorskip("PIL.Image")
data = rbc.data
BEGIN = 1_700_000_000 * 10**9
IMAGE, COMPRESSED = "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"
STEP = 33_000_000


def image(store, frame, encoding="rgb8", stamp=BEGIN, padding=0, height=None, width=None):
    height = frame.shape[0] if height is None else height
    width = frame.shape[1] if width is None else width
    rows = frame.reshape(len(frame), -1)
    rows = np.pad(rows, ((0, 0), (0, padding)))
    return data_files.make(
        store, IMAGE, header=data_files.header(store, stamp), height=height, width=width,
        encoding=encoding, step=rows.shape[1], data=rows.reshape(-1),
    )  # fmt: skip


def messages_of(store, frames, topic="/cam", **options):
    return [
        (topic, IMAGE, BEGIN + i * STEP,
         image(store, frame, stamp=BEGIN + i * STEP - 5_000_000, **options))
        for i, frame in enumerate(frames)
    ]  # fmt: skip


def write(path, messages, kind="mcap", **options):
    store = data_files.typestore(kind == "ros1")
    messages = sorted(messages(store), key=lambda message: message[2])
    if kind == "ros1":
        return data_files.write_ros1(path.with_suffix(".bag"), messages, store, **options)
    return data_files.write_ros2(path, messages, store, kind, **options)


KINDS = [
    ("mcap", {}), ("sqlite3", {}), ("mcap", {"compressed": True}), ("ros1", {}),
    ("ros1", {"compression": "BZ2"}), ("ros1", {"compression": "LZ4"}),
]  # fmt: skip


def both(frames, other):
    """Two cameras, and messages of other topics between them."""

    def messages(store):
        own = messages_of(store, frames) + messages_of(store, other, "/other", padding=5)
        return own + data_files.messages(store, 60)

    return messages


@pytest.mark.parametrize("kind, options", KINDS)
def test_bags(tmp_path, kind, options):
    """Each camera is one episode in the order of the log; random rows need no pass."""
    frames, other = pixels(40), pixels(15, 6, 8, seed=4)
    path = write(tmp_path / "bag", both(frames, other), kind, **options)
    recording = data.open(path)
    assert sorted(recording.cameras) == ["/cam", "/other"]
    camera = recording.cameras["/cam"]
    assert camera.shape == (12, 16, 3)
    require_equal(camera, [frames])
    require_equal(recording.cameras["/other"], [other])
    assert camera.times.tolist() == [BEGIN + i * STEP for i in range(40)]
    assert camera.stamps.tolist() == [BEGIN + i * STEP - 5_000_000 for i in range(40)]
    assert all(os.path.isfile(file) for file in camera.files(0))
    assert camera.place(0) != recording.cameras["/other"].place(0)
    fresh = pickle.dumps(data.open(path).cameras["/cam"])
    assert len(fresh) < 2000
    for content in (fresh, pickle.dumps(camera)):
        again = pickle.loads(content)
        assert again.times.tolist() == camera.times.tolist()
        require_equal(again, [frames])
        again.close()
        require_equal(again, [frames])


def test_selected_topics(tmp_path):
    path = write(tmp_path / "bag", both(pixels(8), pixels(5)))
    recording = data.open(path)
    assert list(recording.select(["/imu", "/cam"]).cameras) == ["/cam"]
    assert list(recording.without(["/cam"]).cameras) == ["/other"]
    assert sorted(recording.select(begin=BEGIN + STEP).cameras) == ["/cam", "/other"]
    with pytest.raises(KeyError, match="'/imu' is not a camera of the bag, which has '/cam'"):
        RosFrames(recording, "/imu")


def test_messages_out_of_order(tmp_path):
    """The log times of a file may go back."""
    frames = pixels(6)
    order = [0, 2, 1, 5, 4, 3]

    def messages(store):
        own = messages_of(store, frames)
        return [(*own[i][:2], i, own[i][3]) for i in range(6)]

    store = data_files.typestore()
    made = messages(store)
    path = data_files.write_ros2(tmp_path / "bag", [made[i] for i in order], store)
    camera = data.open(path).cameras["/cam"]
    assert camera.times.tolist() == list(range(6))
    require_equal(camera, [frames])


# ---- encodings ----------------------------------------------------------------------------------


def yuv(frame):
    """BT.601 of limited range, in floats: Y, U and V [H,W]."""
    r, g, b = (frame[..., c].astype(float) for c in range(3))
    y = 16 + 0.256788 * r + 0.504129 * g + 0.097906 * b
    u = 128 - 0.148223 * r - 0.290993 * g + 0.439216 * b
    v = 128 + 0.439216 * r - 0.367788 * g - 0.071427 * b
    return [np.rint(each).astype(np.uint8) for each in (y, u, v)]


def rgb_of(y, u, v):
    """Its inverse, in floats."""
    y, u, v = y.astype(float) - 16, u.astype(float) - 128, v.astype(float) - 128
    y = np.maximum(y, 0) * 1.164
    channels = [y + 1.596 * v, y - 0.813 * v - 0.391 * u, y + 2.018 * u]
    return np.stack(channels, -1).clip(0, 255)


def packed(frame, places):
    y, u, v = yuv(frame)
    four = np.empty((frame.shape[0], frame.shape[1] // 2, 4), np.uint8)
    parts = [y[:, ::2], u[:, ::2], y[:, 1::2], v[:, ::2]]
    for place, part in zip(places, parts):
        four[..., place] = part
    expected = rgb_of(y, np.repeat(u[:, ::2], 2, 1), np.repeat(v[:, ::2], 2, 1))
    return four.reshape(len(frame), -1), expected


def planar(frame, swapped):
    y, u, v = yuv(frame)
    pairs = np.stack([v, u] if swapped else [u, v], -1)[::2, ::2].reshape(len(frame) // 2, -1)
    u, v = (each[::2, ::2].repeat(2, 0).repeat(2, 1) for each in (u, v))
    return np.concatenate([y, pairs]), rgb_of(y, u, v)


def camera_of(path, made, kind="mcap", count=3, **options):
    """A bag of frames ``made(i)`` and its camera."""

    def messages(store):
        return [("/cam", IMAGE, BEGIN + i, image(store, *made(i)[:1], **made(i)[1]))
                for i in range(count)]  # fmt: skip

    return RosFrames(data.open(write(path, messages, kind)), "/cam", **options)


@pytest.mark.parametrize("padding", [0, 7])
@pytest.mark.parametrize("encoding, order", [("rgb8", [0, 1, 2]), ("bgr8", [2, 1, 0]),
                                             ("8UC3", [2, 1, 0])])  # fmt: skip
def test_three_channels(tmp_path, encoding, order, padding):
    frames = pixels(3)
    options = {"encoding": encoding, "padding": padding}
    camera = camera_of(tmp_path / "bag", lambda i: (frames[i], {**options, "width": 16}))
    require_equal(camera, [frames[..., order]])


@pytest.mark.parametrize("encoding", ["mono8", "8UC1"])
def test_gray(tmp_path, encoding):
    frames = pixels(3, channels=0)
    camera = camera_of(tmp_path / "bag", lambda i: (frames[i], {"encoding": encoding}))
    assert camera.shape == (12, 16, 1)
    require_equal(camera, [frames[..., None]])


@pytest.mark.parametrize("encoding, order", [("rgba8", [0, 1, 2]), ("bgra8", [2, 1, 0])])
def test_alpha(tmp_path, encoding, order):
    frames = pixels(3, channels=4)

    def made(i):
        return frames[i], {"encoding": encoding, "width": 16}

    with pytest.raises(data.FormatError, match=r'message 0: .*with alpha; convert="RGB"'):
        _ = camera_of(tmp_path / "bag", made).shape
    camera = camera_of(tmp_path / "again", made, convert="RGB")
    require_equal(camera, [frames[..., order]])


@pytest.mark.parametrize(
    "encoding, make",
    [
        ("yuv422", lambda f: packed(f, (1, 0, 3, 2))),
        ("uyvy", lambda f: packed(f, (1, 0, 3, 2))),
        ("yuv422_yuy2", lambda f: packed(f, (0, 1, 2, 3))),
        ("yuyv", lambda f: packed(f, (0, 1, 2, 3))),
        ("nv12", lambda f: planar(f, False)),
        ("nv21", lambda f: planar(f, True)),
    ],
)
def test_yuv(tmp_path, encoding, make):
    """Each value is the nearest to the formula in floats, up to the digits of its constants."""
    frames = pixels(3)
    camera = camera_of(
        tmp_path / "bag",
        lambda i: (make(frames[i])[0], {"encoding": encoding, "width": 16, "height": 12}),
    )
    found = whole(camera, 0).astype(float)
    expected = np.stack([make(frame)[1] for frame in frames])
    assert np.abs(found - expected).max() <= 0.51 + 0.01


def test_yuv_as_opencv(tmp_path):
    cv2 = pytest.importorskip("cv2")
    from types import SimpleNamespace

    from robocache.data._frames.ros_pixels import pixels_of

    raw = np.random.default_rng(0).integers(0, 256, (64, 128), np.uint8)
    for encoding, code, own in [
        ("uyvy", cv2.COLOR_YUV2RGB_UYVY, raw), ("yuyv", cv2.COLOR_YUV2RGB_YUY2, raw),
        ("nv12", cv2.COLOR_YUV2RGB_NV12, raw[:48]), ("nv21", cv2.COLOR_YUV2RGB_NV21, raw[:48]),
    ]:  # fmt: skip
        is_planar = encoding.startswith("nv")
        height, width = (32, 128) if is_planar else (64, 64)
        picture = SimpleNamespace(data=own.tobytes(), encoding=encoding, height=height, width=width,
                               step=128)  # fmt: skip
        image_in = own if is_planar else own.reshape(64, 64, 2)
        np.testing.assert_array_equal(pixels_of(picture), cv2.cvtColor(image_in, code))


@pytest.mark.parametrize(
    "encoding, options, words",
    [
        ("bayer_rggb8", {}, "Bayer pattern .*image_proc"),
        ("16UC1", {}, "unproject"),
        ("32FC1", {}, "unproject"),
        ("hsv", {}, "expected one of rgb8"),
        ("rgb8", {"width": 17}, "too few for 17 x 12"),
        ("rgb8", {"height": 0}, "at least 1 x 1"),
        ("yuv422", {"width": 15}, "even number"),
        ("nv12", {"height": 11}, "even numbers"),
    ],
)
def test_images_that_are_refused(tmp_path, encoding, options, words):
    camera = camera_of(
        tmp_path / "bag", lambda i: (pixels(1)[0], {"encoding": encoding, **options})
    )
    with pytest.raises(data.FormatError, match=f"topic /cam, message 0: .*{words}"):
        _ = camera.shape


def test_a_change_of_the_size(tmp_path):
    frames = [*pixels(3), pixels(1, 12, 18)[0]]
    camera = camera_of(tmp_path / "bag", lambda i: (frames[i], {}), count=4)
    read(camera, 0, [0, 2])
    with pytest.raises(data.FormatError, match=r"message 3: has 18 x 12 pixels .*\[12, 16, 3\]"):
        whole(camera, 0)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("storage", ["mcap", "ros1"])
def test_compressed_images(tmp_path, kind, storage):
    contents = [encoded(frame, kind) for frame in pixels(5)]

    def messages(store):
        return [
            ("/cam/compressed", COMPRESSED, BEGIN + i,
             data_files.make(store, COMPRESSED, header=data_files.header(store, BEGIN - i),
                             format=kind, data=np.frombuffer(content, np.uint8)))
            for i, content in enumerate([*contents, contents[0][:40]])
        ]  # fmt: skip

    camera = data.open(write(tmp_path / "bag", messages, storage)).cameras["/cam/compressed"]
    assert camera.stamps.tolist() == [BEGIN - i for i in range(6)]
    np.testing.assert_array_equal(
        read(camera, 0, range(5)), [decoded(content) for content in contents]
    )
    with pytest.raises(data.FormatError, match=r"/cam/compressed, message 5: is a"):
        whole(camera, 0)


def test_depth_in_compressed_images_is_no_camera(tmp_path):
    def messages(store):
        content = np.frombuffer(bytes(12) + encoded(np.zeros((4, 4), np.uint16)), np.uint8)
        depth = data_files.make(store, COMPRESSED, format="16UC1; compressedDepth", data=content)
        return [("/depth/compressedDepth", COMPRESSED, BEGIN, depth),
                *messages_of(store, pixels(2))]  # fmt: skip

    assert list(data.open(write(tmp_path / "bag", messages)).cameras) == ["/cam"]


# ---- foxglove -----------------------------------------------------------------------------------


def field(number, content):
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value):
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def mcap_of(path, typename, contents, *declared):
    """Write messages of one topic outside of chunks."""
    made = data_files.McapBytes()
    number, declarations = made.declared("/cam", typename, *declared)
    made.data += declarations
    for i, content in enumerate(contents):
        made.data += made.message(number, BEGIN + i * STEP, content)
    path.write_bytes(made.finished(summary=False))
    return path


def test_foxglove(tmp_path):
    frames = pixels(4)
    stamp = field(1, field(1, 1_700_000_001) + field(2, 5))

    def fixed(number, value):
        return varint(number << 3 | 5) + struct.pack("<I", value)

    raw = [stamp + fixed(2, 16) + fixed(3, 12) + field(4, b"bgr8") + fixed(5, 48)
           + field(6, frame.tobytes()) for frame in frames]  # fmt: skip
    made = [stamp + field(2, encoded(frame)) + field(3, b"png") for frame in frames]
    for typename, contents, expected in [
        ("foxglove.RawImage", raw, frames[..., ::-1]), ("foxglove.CompressedImage", made, frames),
    ]:  # fmt: skip
        path = mcap_of(
            tmp_path / f"{typename}.mcap", typename, contents, b"", "protobuf", "protobuf"
        )
        recording = data.open(path)
        camera = recording.cameras["/cam"]
        require_equal(camera, [expected])
        assert set(camera.stamps.tolist()) == {1_700_000_001 * 10**9 + 5}
        assert camera.times.tolist() == [BEGIN + i * STEP for i in range(4)]


# ---- damage -------------------------------------------------------------------------------------


def test_no_frames(tmp_path):
    def messages(store):
        return [*messages_of(store, pixels(1)), *data_files.messages(store, 5)]

    path = write(tmp_path / "bag", messages, "sqlite3")
    (database,) = path.glob("*.db3")
    with sqlite3.connect(database) as connection:
        topic = connection.execute("SELECT id FROM topics WHERE name = '/cam'").fetchone()[0]
        connection.execute("DELETE FROM messages WHERE topic_id = ?", [topic])
    connection.close()
    camera = data.open(path, damaged="keep").cameras["/cam"]
    assert camera.lengths.tolist() == [0]
    with pytest.raises(data.FormatError, match="topic /cam: has no frames"):
        _ = camera.shape


@pytest.mark.parametrize("kind", ["mcap", "ros1"])
def test_truncated_bags(tmp_path, kind):
    path = write(tmp_path / "bag", both(pixels(300), pixels(9)), kind)
    file = path if kind == "ros1" else next(path.glob("*.mcap"))
    camera = data.open(path).cameras["/cam"]
    whole(camera, 0)
    camera.close()
    os.truncate(file, os.path.getsize(file) // 2)
    with pytest.raises(data.FormatError, match=file.name):
        whole(camera, 0)
    with pytest.raises(data.FormatError, match=file.name):
        whole(pickle.loads(pickle.dumps(camera)), 0)
    file.unlink()
    with pytest.raises(data.FormatError, match=f"{file.name}: is missing"):
        whole(camera, 0)


def test_a_bag_that_was_replaced(tmp_path):
    path = write(tmp_path / "bag", lambda store: messages_of(store, pixels(5)), "ros1")
    camera = data.open(path).cameras["/cam"]
    whole(camera, 0)
    content = pickle.dumps(camera)
    path.unlink()
    made = [(*each[:2], each[2] + 7, each[3])
            for each in messages_of(data_files.typestore(True), pixels(5))]  # fmt: skip
    write(tmp_path / "bag", lambda store: made, "ros1")
    with pytest.raises(data.FormatError, match="message 0: is not where it was: the bag has"):
        whole(pickle.loads(content), 0)


# ---- packets of videos --------------------------------------------------------------------------


def packets_of(frames, codec="libx264", size=(32, 48), group=6, **options):
    """Encode frames; return the packets in the order of decoding: number, key and bytes."""
    av = pytest.importorskip("av")
    context = av.CodecContext.create(codec, "w")
    context.height, context.width = size
    context.pix_fmt = "yuv420p"
    context.time_base = fractions.Fraction(1, 30)
    context.gop_size = group
    context.options = {"tune": "zerolatency", "preset": "ultrafast", "crf": "20", **options}
    made = []
    for i, frame in enumerate([*frames, None]):
        image_in = None
        if frame is not None:
            image_in = av.VideoFrame.from_ndarray(frame, format="rgb24").reformat(format="yuv420p")
            image_in.pts = i
        made += [
            (packet.pts, packet.is_keyframe, bytes(packet)) for packet in context.encode(image_in)
        ]
    return made


def ffmpeg_message(data_bytes, is_key, encoding, size, big=False):
    order = ">" if big else "<"
    body = bytearray(struct.pack(f"{order}II", 1_700_000_000, 7))

    def text(value):
        body.extend(b"\0" * (-len(body) % 4))
        body.extend(struct.pack(f"{order}I", len(value) + 1) + value.encode() + b"\0")

    text("camera")
    body.extend(b"\0" * (-len(body) % 4))
    body.extend(struct.pack(f"{order}ii", size[1], size[0]))
    text(encoding)
    body.extend(b"\0" * (-len(body) % 8))
    body.extend(struct.pack(f"{order}QBB", 0, int(is_key), 0))
    body.extend(b"\0" * (-len(body) % 4))
    body.extend(struct.pack(f"{order}I", len(data_bytes)) + data_bytes)
    return bytes([0, 0 if big else 1, 0, 0]) + bytes(body)


DEFINITION = (
    "std_msgs/Header header\nint32 width\nint32 height\nstring encoding\nuint64 pts\nuint8 flags\n"
    "bool is_bigendian\nuint8[] data\n"
    + "=" * 80 + "\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n"
    + "=" * 80 + "\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
)  # fmt: skip


def video_bag(path, messages):
    name = "ffmpeg_image_transport_msgs/msg/FFMPEGPacket"
    return mcap_of(path, name, messages, DEFINITION.encode())


def smooth(count, size=(32, 48)):
    y, x = np.mgrid[: size[0], : size[1]]
    frames = [
        np.stack([(x * 4 + 7 * i) % 256, (y * 6 + 3 * i) % 256, (x + y + 11 * i) % 256], -1)
        for i in range(count)
    ]
    return np.stack(frames).astype(np.uint8)


def decoded_by_av(packets, codec):
    """All frames in one sequence, by PyAV's own conversion."""
    import av

    context = av.CodecContext.create(codec, "r")
    frames = []
    for packet in [*[av.Packet(content) for _, _, content in packets], None]:
        frames += context.decode(packet)
    return frames


@pytest.mark.parametrize("encoding, encoder, decoder", [
    ("libx264", "libx264", "h264"), ("hevc;yuv420p;bgr8;bgr8", "libx265", "hevc"),
])  # fmt: skip
def test_packets(tmp_path, encoding, encoder, decoder):
    options = {"x265-params": "log-level=none:keyint=6:bframes=0"} if encoder == "libx265" else {}
    packets = packets_of(smooth(20), encoder, **options)
    contents = [
        ffmpeg_message(content, key, encoding, (32, 48), big=i % 2 == 1)
        for i, (_, key, content) in enumerate(packets)
    ]
    path = video_bag(tmp_path / "x.mcap", contents)
    camera = data.open(path).cameras["/cam"]
    assert camera.shape == (32, 48, 3) and camera.lengths.tolist() == [20]
    assert camera.stamps.tolist() == [1_700_000_000 * 10**9 + 7] * 20
    found = whole(camera, 0)
    by_av = np.stack(
        [frame.to_ndarray(format="rgb24") for frame in decoded_by_av(packets, decoder)]
    )
    assert np.abs(found.astype(int) - by_av).mean() < 2
    near = np.array([[np.abs(a.astype(int) - b).mean() for b in by_av] for a in found])
    assert near.argmin(1).tolist() == list(range(20))
    require_equal(camera, [found])
    require_equal(pickle.loads(pickle.dumps(camera)), [found])
    assert "libavcodec" in camera.arithmetic()


def test_packets_from_the_middle_of_a_group(tmp_path):
    packets = packets_of(smooth(20))[3:]
    contents = [ffmpeg_message(content, key, "libx264", (32, 48)) for _, key, content in packets]
    camera = data.open(video_bag(tmp_path / "x.mcap", contents)).cameras["/cam"]
    read(camera, 0, range(3, 17))
    with pytest.raises(data.FormatError, match="message 1: has no keyframe before it: .*message 3"):
        read(camera, 0, [1])


def test_a_damaged_packet(tmp_path):
    packets = packets_of(smooth(20))
    contents = [ffmpeg_message(content, key, "libx264", (32, 48)) for _, key, content in packets]
    contents[8] = contents[8][:-20]
    camera = data.open(video_bag(tmp_path / "x.mcap", contents)).cameras["/cam"]
    read(camera, 0, [7])
    with pytest.raises(data.FormatError, match="/cam, message 8: is truncated"):
        read(camera, 0, [9])
    read(camera, 0, [12, 19])
    contents = [ffmpeg_message(b"x" * 9, True, "theora", (32, 48))]
    camera = data.open(video_bag(tmp_path / "y.mcap", contents)).cameras["/cam"]
    with pytest.raises(data.FormatError, match="has the encoding 'theora', expected one of"):
        _ = camera.shape


def test_the_index_of_images_is_json(tmp_path):
    path = write(tmp_path / "bag", lambda store: messages_of(store, pixels(3)))
    camera = data.open(path).cameras["/cam"]
    json.dumps([camera.place(0), dict(camera.arithmetic())])
