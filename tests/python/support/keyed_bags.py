"""Bags whose topics are about several things, and what rosbags reads of them one by one."""

from __future__ import annotations

import numpy as np

import data_files

START = 1_700_000_000 * 10**9
KINDS = ("ros1", "mcap", "sqlite3")
TRAJECTORY = "std_msgs/Header header\nstring[] joint_names\ntest_msgs/Point desired\nfloat64 gain\n"
POINT = "float64[] positions\nfloat64[] velocities\n"


def store_of(kind):
    from rosbags.typesys import get_types_from_msg

    store = data_files.typestore(ros1=kind == "ros1")
    types = get_types_from_msg(POINT, "test_msgs/msg/Point")
    types.update(get_types_from_msg(TRAJECTORY, "test_msgs/msg/Controller"))
    if "tf2_msgs/msg/TFMessage" not in store.fielddefs:
        text = "geometry_msgs/TransformStamped[] transforms"
        types.update(get_types_from_msg(text, "tf2_msgs/msg/TFMessage"))
    store.register(types)
    return store


def write(folder, kind, told, store=None, **options):
    """A bag of (topic, type, log time in ns, message)."""
    store = store or store_of(kind)
    if kind == "ros1":
        return data_files.write_ros1(folder / "x.bag", told, store, **options)
    return data_files.write_ros2(folder / "x", told, store, kind)


def read(path, kind, store):
    """(topic, log time, message) of a bag, as rosbags decodes them."""
    if kind == "ros1":
        from rosbags.rosbag1 import Reader

        decode = store.deserialize_ros1
    else:
        from rosbags.rosbag2 import Reader

        decode = store.deserialize_cdr
    with Reader(path) as bag:
        return [(c.topic, at, decode(raw, c.msgtype)) for c, at, raw in bag.messages()]


def transform(store, at, parent, child, values):
    x, y, z, *q = (float(value) for value in values)
    make = data_files.make
    return make(
        store,
        "geometry_msgs/msg/TransformStamped",
        header=data_files.header(store, at, parent),
        child_frame_id=child,
        transform=make(
            store,
            "geometry_msgs/msg/Transform",
            translation=make(store, "geometry_msgs/msg/Vector3", x=x, y=y, z=z),
            rotation=make(store, "geometry_msgs/msg/Quaternion", **dict(zip("xyzw", q))),
        ),
    )


def transforms(store, *each):
    return data_files.make(store, "tf2_msgs/msg/TFMessage", transforms=list(each))


def tf(store, at, *each, topic="/tf", stamp=None):
    """A message of transforms: (parent, child, x)."""
    stamp = at if stamp is None else stamp
    made = [transform(store, stamp, p, c, [x, 0, 0, 0, 0, 0, 1]) for p, c, x in each]
    return topic, "tf2_msgs/msg/TFMessage", at, transforms(store, *made)


def joints(store, at, names, position, velocity=(), effort=(), frame="", topic="/joint_states"):
    message = data_files.make(
        store,
        "sensor_msgs/msg/JointState",
        header=data_files.header(store, at, frame),
        name=list(names),
        position=np.array(position, float),
        velocity=np.array(velocity, float),
        effort=np.array(effort, float),
    )
    return topic, "sensor_msgs/msg/JointState", at, message


def sensor(store, at, frame, value, topic="/range"):
    """A range, in a frame."""
    message = data_files.make(
        store,
        "sensor_msgs/msg/Range",
        header=data_files.header(store, at, frame),
        range=float(value),
    )
    return topic, "sensor_msgs/msg/Range", at, message


def times(count, step=10_000_000):
    return [START + i * step for i in range(count)]
