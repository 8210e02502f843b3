"""Bags of a robot with two joints, commands and cameras, for tests of conversions."""

from __future__ import annotations

import io
import math

import numpy as np

JOINTS = ("shoulder", "elbow")
SECOND = 1_000_000_000
BEGIN = 1_700_000_000 * SECOND


def state_at(t, seed=0):
    """Return the positions of the joints at times in seconds, linear in pieces."""
    t = np.asarray(t, float)
    return np.stack([0.1 * t + seed, -0.2 * t + 0.5 * seed], -1)


def picture(number, size=96, seed=0):
    """Return an RGB picture [size,size,3] that shows the digits of its number as brightness."""
    image = np.full((size, size, 3), 20 + 5 * seed, np.uint8)
    image[:, : size // 2] += 20 * (number // 10 % 10)
    image[:, size // 2 :] += 20 * (number % 10)
    return image


def number_of(image, size=96, seed=0):
    """Return the number of a picture, also after lossy compression."""
    left, right = image[:, : size // 2 - 2], image[:, size // 2 + 2 :]
    tens, ones = (round((float(half.mean()) - 20 - 5 * seed) / 20) for half in (left, right))
    return 10 * tens + ones


def jpeg(image, format="jpeg"):
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(image).save(out, format, **({"quality": 95} if format == "jpeg" else {}))
    return out.getvalue()


def write_bag(
    path,
    *,
    seconds=3.0,
    seed=0,
    size=96,
    fps=30,
    cameras=("front",),
    compressed=("wrist",),
    camera_begins=0.0,
    markers=(),
    gap=None,
    storage="mcap",
    encoding="rgb8",
    ros1=False,
    more=(),
):
    """Write a bag: joints at 100 Hz, commands at 50 Hz, an odometry, cameras at ``fps``.

    ``gap``: (begin, end) in seconds without any message. ``markers``: times of /episode_marker.
    ``more``: (t, topic, typename, message) as for rosbags.
    """
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
    types = store.types

    def header(t):
        ns = BEGIN + round(t * SECOND)
        stamp = types["builtin_interfaces/msg/Time"](ns // SECOND, ns % SECOND)
        extra = (0,) if ros1 else ()
        return types["std_msgs/msg/Header"](*extra, stamp=stamp, frame_id="base")

    def joints(t):
        at = state_at(t, seed)
        none = np.zeros(0)
        kind = types["sensor_msgs/msg/JointState"]
        return kind(header(t), list(JOINTS), at, np.full(2, 0.1), none)

    def commands(t):
        kind = types["sensor_msgs/msg/JointState"]
        none = np.zeros(0)
        return kind(header(t), list(JOINTS), state_at(t + 0.5, seed), none, none)

    def raw(k, t, which):
        image = picture(k, size, which)
        step = size * 3
        if encoding == "bgr8":
            image = image[..., ::-1]
        elif encoding in ("rgba8", "bgra8"):
            alpha = np.full((size, size, 1), 255, np.uint8)
            image = image if encoding == "rgba8" else image[..., ::-1]
            image, step = np.concatenate([image, alpha], -1), size * 4
        elif encoding in ("mono8", "8UC1"):
            image, step = image[..., 0], size
        elif encoding == "mono16":
            image, step = (image[..., 0].astype("<u2") * 257).view(np.uint8), size * 2
        data = np.frombuffer(np.ascontiguousarray(image).tobytes(), np.uint8)
        kind = types["sensor_msgs/msg/Image"]
        return kind(header(t), size, size, encoding, 0, step, data)

    def packed(k, t, which):
        form = "png" if encoding == "png" else "jpeg"
        data = np.frombuffer(jpeg(picture(k, size, which), form), np.uint8)
        kind = types["sensor_msgs/msg/CompressedImage"]
        return kind(header(t), form, data)

    def marker(t):
        return types["std_msgs/msg/String"]("begin")

    def odometry(t):
        kind = types["geometry_msgs/msg/PointStamped"]
        return kind(header(t), types["geometry_msgs/msg/Point"](math.sin(t), math.cos(t), 0.0))

    told = []

    def add(topic, typename, times, made):
        for t in times:
            if gap is None or not gap[0] < t < gap[1]:
                told.append((t, topic, typename, made(t)))

    add("/joint_states", "sensor_msgs/msg/JointState", np.arange(0, seconds, 0.01), joints)
    add("/commands", "sensor_msgs/msg/JointState", np.arange(0, seconds, 0.02), commands)
    add("/odom", "geometry_msgs/msg/PointStamped", np.arange(0, seconds, 0.05), odometry)
    frames = np.arange(math.ceil(camera_begins * fps), math.floor(seconds * fps)) / fps
    for which, name in enumerate(cameras):
        kind = "sensor_msgs/msg/Image"
        add(f"/{name}/image_raw", kind, frames, lambda t, w=which: raw(round(t * fps), t, w))
    for which, name in enumerate(compressed, len(cameras)):
        kind = "sensor_msgs/msg/CompressedImage"
        add(f"/{name}/compressed", kind, frames, lambda t, w=which: packed(round(t * fps), t, w))
    add("/episode_marker", "std_msgs/msg/String", markers, marker)
    told += list(more)
    told.sort(key=lambda each: each[0])
    if ros1:
        from rosbags.rosbag1 import Writer as Writer1

        with Writer1(path) as bag:
            known = {}
            for t, topic, typename, message in told:
                if topic not in known:
                    known[topic] = bag.add_connection(topic, typename, typestore=store)
                data = store.serialize_ros1(message, typename)
                bag.write(known[topic], BEGIN + round(t * SECOND), data)
        return path
    from rosbags.rosbag2 import StoragePlugin, Writer

    plugin = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
    with Writer(path, version=9, storage_plugin=plugin) as bag:
        known = {}
        for t, topic, typename, message in told:
            if topic not in known:
                known[topic] = bag.add_connection(topic, typename, typestore=store)
            data = store.serialize_cdr(message, typename)
            bag.write(known[topic], BEGIN + round(t * SECOND), data)
    return path
