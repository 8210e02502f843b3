"""Compare the conversion of bags with two cameras with a plain script on rosbags and lerobot.

    python benchmarks/bags_to_lerobot.py generate bags --bags 100
    python benchmarks/bags_to_lerobot.py robocache bags out
    python benchmarks/bags_to_lerobot.py lerobot bags out2

A bag has about 20 MB: joints at 100 Hz, commands at 50 Hz, and two cameras with JPEG pictures of
320 x 240 pixels at 30 Hz, for 17 seconds. ``lerobot`` reads messages with rosbags, interpolates
with NumPy, decodes with Pillow, and adds the rows to a LeRobotDataset with four threads for its
pictures. ``--without-encoding`` encodes only the first bag and copies its video for all others, to
measure the rest. Each command prints the elapsed time, the CPU time, which other programs affect
less, and the largest memory of the process.
"""

from __future__ import annotations

import argparse
import io
import json
import pathlib
import resource
import shutil
import time
from collections.abc import Callable
from typing import Any

import numpy as np

JOINTS, HEIGHT, WIDTH, SECONDS = 7, 240, 320, 17
CAMERAS = ("front", "wrist")
STATE, ACTION = "/joint_states", "/commands"
BEGIN = 1_700_000_000 * 10**9


# ---- bags ---------------------------------------------------------------------------------------


def picture(t: float, seed: int, noise: np.ndarray) -> np.ndarray:
    """Return a JPEG picture of moving gradients, a square, and some noise."""
    from PIL import Image

    y, x = np.mgrid[:HEIGHT, :WIDTH]
    waves = (x * 0.5 + 60 * np.sin(t + seed), y * 0.7 + 40 * t, x + y + seed * 30)
    image = (np.stack(waves, -1) % 200).astype(np.uint8)
    row, column = int(120 + 80 * np.cos(t)), int(160 + 100 * np.sin(t))
    image[max(0, row - 20) : row + 20, max(0, column - 20) : column + 20] = (220, 40, 40)
    image += noise[int(t * 30) % len(noise)]
    out = io.BytesIO()
    Image.fromarray(image).save(out, "jpeg", quality=85)
    return np.frombuffer(out.getvalue(), np.uint8)


def generate(folder: pathlib.Path, bags: int) -> None:
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    types = store.types
    joints, images = "sensor_msgs/msg/JointState", "sensor_msgs/msg/CompressedImage"
    kinds = {STATE: joints, ACTION: joints, **{f"/{c}/compressed": images for c in CAMERAS}}
    rates = {STATE: 100, ACTION: 50, **{f"/{c}/compressed": 30 for c in CAMERAS}}
    noise = np.random.default_rng(0).integers(0, 40, (16, HEIGHT, WIDTH, 3)).astype(np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(bags):
        path = folder / f"run_{k:03d}"
        with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
            topics = {n: bag.add_connection(n, kind, typestore=store) for n, kind in kinds.items()}
            rows = [(i / rate, n) for n, rate in rates.items() for i in range(SECONDS * rate)]
            for t, name in sorted(rows):
                ns = BEGIN + round(t * 1e9)
                stamp = types["builtin_interfaces/msg/Time"](ns // 10**9, ns % 10**9)
                header = types["std_msgs/msg/Header"](stamp, "base")
                if kinds[name] == images:
                    content = picture(t + k, CAMERAS.index(name.split("/")[1]), noise)
                    message = types[images](header, "jpeg", content)
                else:
                    at = np.sin(t * np.arange(1, JOINTS + 1) / 7 + k)
                    names = [f"j{i}" for i in range(JOINTS)]
                    message = types[joints](header, names, at, np.cos(at), np.zeros(JOINTS))
                bag.write(topics[name], ns, store.serialize_cdr(message, kinds[name]))


# ---- the two conversions ------------------------------------------------------------------------


def by_robocache(bags: pathlib.Path, out: pathlib.Path, rate: int, encodes: bool) -> int:
    from robocache import data
    from robocache.data._write import video

    if not encodes:
        add, close, model = video.Writer.add, video.Writer.close, out.with_suffix(".model.mp4")

        def add_one(self: Any, image: Any) -> None:
            if self.container is not None or not model.exists():
                add(self, image)

        def close_one(self: Any) -> None:
            if self.container is None:
                shutil.copyfile(model, self.path)
                return
            close(self)
            if not model.exists():
                shutil.copyfile(self.path, model)

        video.Writer.add, video.Writer.close = add_one, close_one  # type: ignore[method-assign]
    made = data.convert(
        bags,
        out,
        rate=rate,
        tracks={"observation.state": f"{STATE}:position", "action": f"{ACTION}:position"},
        images={camera: f"/{camera}/compressed" for camera in CAMERAS},
        tasks="pick",
        progress=False,
    )
    return made.rows


def by_lerobot(bags: pathlib.Path, out: pathlib.Path, rate: int, encodes: bool) -> int:
    import lerobot.datasets.lerobot_dataset as lerobot
    from PIL import Image

    if not encodes:
        encode, model = lerobot.encode_video_frames, out.with_suffix(".model.mp4")

        def encode_one(images: Any, path: Any, *arguments: Any, **options: Any) -> None:
            if not model.exists():
                encode(images, model, *arguments, **options)
            pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(model, path)

        lerobot.encode_video_frames = encode_one
    numbers = {"dtype": "float32", "shape": (JOINTS,), "names": [f"j{i}" for i in range(JOINTS)]}
    features: dict[str, Any] = {"observation.state": numbers, "action": numbers}
    for camera in CAMERAS:
        features[f"observation.images.{camera}"] = {
            "dtype": "video",
            "shape": (HEIGHT, WIDTH, 3),
            "names": ["height", "width", "channels"],
        }
    made = lerobot.LeRobotDataset.create(
        "test/plain", fps=rate, features=features, root=out, image_writer_threads=4
    )
    for bag in sorted(bags.iterdir()):
        at, values, frames = read_with_rosbags(bag, rate)
        for i in range(len(at)):
            row = {
                "observation.state": values[STATE][i],
                "action": values[ACTION][i],
                "task": "pick",
            }
            for camera in CAMERAS:
                content = frames[f"/{camera}/compressed"][i]
                row[f"observation.images.{camera}"] = np.asarray(Image.open(io.BytesIO(content)))
            made.add_frame(row)
        made.save_episode()
    made.finalize()
    return int(made.meta.total_frames)


def read_with_rosbags(bag: pathlib.Path, rate: int) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return the times of rows, interpolated joints [n,J], and the nearest picture of each row."""
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_typestore

    read: dict[str, list[tuple[float, Any]]] = {}
    with AnyReader([bag], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
        for connection, _, raw in reader.messages():
            message: Any = reader.deserialize(raw, connection.msgtype)
            stamp = message.header.stamp
            is_picture = connection.topic.endswith("compressed")
            content = bytes(message.data) if is_picture else message.position
            read.setdefault(connection.topic, []).append(
                (stamp.sec + 1e-9 * stamp.nanosec, content)
            )
    times = {name: np.array([t for t, _ in rows]) for name, rows in read.items()}
    begin, end = max(t[0] for t in times.values()), min(t[-1] for t in times.values())
    at = begin + np.arange(int((end - begin) * rate + 1e-6) + 1) / rate
    values, frames = {}, {}
    for name, rows in read.items():
        if name.endswith("compressed"):
            near = np.abs(times[name][None] - at[:, None]).argmin(axis=1)
            frames[name] = [rows[i][1] for i in near.tolist()]
        else:
            joints = np.stack([each for _, each in rows]).T
            values[name] = np.stack([np.interp(at, times[name], j) for j in joints], -1)
            values[name] = values[name].astype(np.float32)
    return at, values, frames


def cpu_time() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=("generate", "robocache", "lerobot"))
    parser.add_argument("bags", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path, nargs="?")
    parser.add_argument("--bags", dest="count", type=int, default=100, help="bags to generate")
    parser.add_argument("--rate", type=int, default=30)
    parser.add_argument("--without-encoding", action="store_true")
    told = parser.parse_args()
    if told.command == "generate":
        generate(told.bags, told.count)
        return
    if told.out is None:
        parser.error("out: say where to write the data set")
    convert: Callable[..., int] = by_robocache if told.command == "robocache" else by_lerobot
    begin, used = time.perf_counter(), cpu_time()
    rows = convert(told.bags, told.out, told.rate, not told.without_encoding)
    facts = {
        "rows": rows,
        "seconds": round(time.perf_counter() - begin, 2),
        "cpu_seconds": round(cpu_time() - used, 2),
        "peak_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
