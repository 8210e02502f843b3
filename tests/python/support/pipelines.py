"""Pipelines, and recordings with delays, for tests."""

from __future__ import annotations

import copy

import numpy as np

import robocache as rbc

SECOND = 10**9


def channel(name, unit="rad", kind="number", origin=None, scale=1, offset=0):
    return {
        "name": name,
        "unit": unit,
        "kind": kind,
        "from": name if origin is None else origin,
        "scale": scale,
        "offset": offset,
    }


def stream(source, channels, **changed):
    return {
        "source": source,
        "channels": channels,
        "stamp": "header",
        "latency": 0.002,
        "method": "linear",
        "max_gap": 0.1,
        "max_age": 0.15,
        "fill": 0.5,
        "filter": None,
        "capacity": 128,
        "late_bound": 2,
        **changed,
    }


def topic(name, type_, field="", select="name"):
    return {"topic": name, "type": type_, "field": field, "select": select}


def window(name, offsets, transforms=(), outside="hold"):
    return {
        "stream": name,
        "offsets": list(offsets),
        "outside": outside,
        "transforms": list(transforms),
    }


def subtract(reference, begin, count):
    return {
        "kind": "subtract",
        "begin": begin,
        "count": count,
        "reference": {"window": reference, "index": -1},
        "reference_begin": begin,
        "rotation": None,
        "reference_rotation": None,
        "out_rotation": None,
    }


def normalization(width, mode="mean_std", style="lerobot", **changed):
    rng = np.random.default_rng(width)
    low = -rng.random(width) - 1
    return {
        "style": style,
        "mode": mode,
        "rows": "valid",
        "mask": None,
        "clip": None,
        "epsilon": None,
        "statistics": {
            "count": [1000] * width,
            "mean": rng.normal(size=width).round(3).tolist(),
            "std": (rng.random(width) + 0.1).tolist(),
            "min": low.tolist(),
            "max": (low + 3).tolist(),
            "quantiles": {"0.01": (low + 0.1).tolist(), "0.99": (low + 2.9).tolist()},
        },
        **changed,
    }


JOINTS = ("shoulder", "elbow", "wrist")
WHOLE = {
    "robocache_pipeline": 1,
    "clock": {
        "rate": 20,
        "unit": "ns",
        "lag": 0.01,
        "availability": "arrival",
        "dtype": "float32",
    },
    "streams": {
        "arm": stream(
            topic("/joint_states", "sensor_msgs/msg/JointState", "position"),
            [channel(name, scale=0.5, offset=0.25) for name in JOINTS],
        ),
        "imu": stream(
            topic("/imu", "sensor_msgs/msg/Imu"),
            [
                *(channel(f"orientation.{axis}", "1", "quaternion") for axis in "xyzw"),
                channel("gyro z", "rad/s", origin="angular_velocity.z"),
            ],
        ),
        "command": stream(
            topic("/command", "sensor_msgs/msg/JointState", "position", "index"),
            [channel(name, origin=i) for i, name in enumerate(JOINTS)],
            method="previous",
        ),
    },
    "images": {
        "wrist": {
            "source": {"topic": "/camera", "type": "sensor_msgs/msg/Image"},
            "size": [480, 640],
            "channels": 3,
            "operations": [
                {"kind": "crop", "box": [0, 80, 480, 480]},
                {
                    "kind": "resize",
                    "rule": "pillow",
                    "filter": "bilinear",
                    "fit": "pad",
                    "size": [224, 224],
                },
                {
                    "kind": "color",
                    "brightness": 1.1,
                    "contrast": None,
                    "saturation": None,
                    "order": ["brightness", "contrast", "saturation"],
                },
                {"kind": "pad", "anchor": "center", "value": [0, 0, 0]},
                {"kind": "table", "form": "mean_std", "mean": [0.5, 0.4, 0.3], "std": [0.2] * 3},
                {"kind": "layout", "layout": "chw", "dtype": "float32"},
            ],
        }
    },
    "windows": {
        "state": window("arm", [-2, -1, 0]),
        "imu": window("imu", [0], outside="fill"),
        "action": window("command", range(4), [subtract("state", 0, 2)]),
    },
    "normalization": {
        "state": normalization(3),
        "imu": "none",
        "action": normalization(3, "quantiles"),
    },
    "actions": {
        "window": "action",
        "channels": ["wrist", "shoulder", "elbow"],
        "limits": [[-1.0, 1.0], None, [None, 0.5]],
        "smooth": None,
        "latency": 0.03,
    },
    "provenance": {"made by": "a test"},
}


def document(images=False, **clock):
    """A copy of a pipeline with all parts; images cannot run."""
    made = copy.deepcopy(WHOLE)
    made["clock"].update(clock)
    if not images:
        made["images"] = {}
    return made


def values_at(pointer, of):
    """The value at a JSON pointer."""
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        of = of[int(step)] if isinstance(of, list) else of[step]
    return of


# ---- recordings ---------------------------------------------------------------------------------


def messages(seed=0, seconds=4.0, shuffled=True):
    """Messages of a small robot as (topic, type, arrival, message), and their typestore.

    Joints change their order, samples have random delays, some are late, and one is lost.
    """
    import data_files
    import keyed_bags

    store = keyed_bags.store_of("mcap")
    rng = np.random.default_rng(seed)
    start = keyed_bags.START
    told = []
    for name, rate, extra in (("/joint_states", 100, 0.0), ("/command", 30, 0.0), ("/imu", 200, 0)):
        for i in range(round(seconds * rate)):
            stamp = start + round(i * SECOND / rate) + int(rng.integers(0, SECOND // (5 * rate)))
            arrival = stamp + int(rng.exponential(0.004) * SECOND) + round(extra * SECOND)
            angles = np.sin(i / rate + np.arange(3)) * 2
            if rng.random() < 0.02:
                continue
            if name == "/imu":
                half = i / rate / 2
                message = _imu(data_files, store, stamp, [0, 0, np.sin(half), np.cos(half)], angles)
                told.append((name, "sensor_msgs/msg/Imu", arrival, message))
                continue
            order = rng.permutation(3) if shuffled and name == "/joint_states" else np.arange(3)
            names = [JOINTS[k] for k in order]
            made = keyed_bags.joints(store, stamp, names, angles[order], topic=name)
            told.append((name, made[1], arrival, made[3]))
    return sorted(told, key=lambda each: each[2]), store


def _imu(data_files, store, stamp, quaternion, rates):
    make = data_files.make
    vector = "geometry_msgs/msg/Vector3"
    nine = np.zeros(9)
    return make(
        store,
        "sensor_msgs/msg/Imu",
        header=data_files.header(store, stamp, "base"),
        orientation=make(
            store, "geometry_msgs/msg/Quaternion", **dict(zip("xyzw", map(float, quaternion)))
        ),
        orientation_covariance=nine,
        angular_velocity=make(store, vector, **dict(zip("xyz", map(float, rates)))),
        angular_velocity_covariance=nine,
        linear_acceleration=make(store, vector, x=0.0, y=0.0, z=9.81),
        linear_acceleration_covariance=nine,
    )


def bag(folder, seed=0, **options):
    """A bag of these messages, its messages, and their typestore."""
    import keyed_bags

    told, store = messages(seed, **options)
    return keyed_bags.write(folder, "mcap", told, store), told, store


def fitted(folder, **clock):
    """A pipeline with the statistics of a bag, and the bag's path."""
    path, told, store = bag(folder)
    pipeline = rbc.Pipeline(document(**clock), draft=True)
    return pipeline.fit(pipeline.open(path)), path, told, store
