"""Small files of each format, which the tests of readers write themselves."""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
import zlib
from contextlib import closing

import numpy as np

# ---- ROS ----------------------------------------------------------------------------------------

CUSTOM = {
    "test_msgs/msg/Part": "uint8 kind\nfloat64 size\n",
    "test_msgs/msg/Mixed": (
        "std_msgs/Header header\nbool on\nfloat64[3] force\nstring label\nint16 count\n"
        "float32[] samples\ntest_msgs/Part[] parts\nuint64 ticks\ntest_msgs/Part last\nint8 end\n"
    ),
}


def typestore(ros1=False):
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
    types = {}
    for name, text in CUSTOM.items():
        types.update(get_types_from_msg(text, name))
    store.register(types)
    return store


def make(store, name, /, **fields):
    """Return a message of a type with the given fields; the others are zero."""
    from rosbags.interfaces import Nodetype

    def default(kind, what):
        if kind == Nodetype.BASE:
            return "" if what[0] == "string" else 0.0 if "float" in what[0] else 0
        if kind == Nodetype.NAME:
            return make(store, what)
        inner, count = what
        count = count if kind == Nodetype.ARRAY else 0
        if inner[0] == Nodetype.BASE and inner[1][0] != "string":
            return np.zeros(count, inner[1][0].replace("byte", "uint8").replace("char", "uint8"))
        return [default(*inner) for _ in range(count)]

    told = {field: default(kind, what) for field, (kind, what) in store.fielddefs[name][1]}
    for field, value in fields.items():
        assert field in told, field
        told[field] = value
    return store.types[name](**told)


def header(store, stamp, frame="base"):
    time = make(store, "builtin_interfaces/msg/Time", sec=stamp // 10**9, nanosec=stamp % 10**9)
    return make(store, "std_msgs/msg/Header", stamp=time, frame_id=frame)


def messages(store, count=300, seed=0):
    """(topic, type, log time in ns, message), in the order of the log."""
    rng = np.random.default_rng(seed)
    start = 1_700_000_000 * 10**9
    told = []
    for i in range(count):
        at = start + i * 10_000_000 + int(rng.integers(0, 2_000_000))
        stamp = at - 3_000_000
        imu = make(
            store,
            "sensor_msgs/msg/Imu",
            header=header(store, stamp, "imu"),
            orientation_covariance=rng.normal(size=9),
            angular_velocity=make(
                store, "geometry_msgs/msg/Vector3", x=rng.normal(), y=rng.normal(), z=rng.normal()
            ),
        )
        told.append(("/imu", "sensor_msgs/msg/Imu", at, imu))
        if i % 3 == 0:
            joints = make(
                store,
                "sensor_msgs/msg/JointState",
                header=header(store, stamp, "arm"),
                name=["a", "elbow"],
                position=rng.normal(size=2),
                velocity=rng.normal(size=2),
            )
            told.append(("/joint states", "sensor_msgs/msg/JointState", at + 1000, joints))
        if i % 5 == 0:
            mixed = make(
                store,
                "test_msgs/msg/Mixed",
                header=header(store, stamp, "x"),
                on=bool(i % 2),
                force=rng.normal(size=3),
                label="l" * (i % 4),
                count=int(rng.integers(-100, 100)),
                samples=rng.normal(size=4).astype(np.float32),
                parts=[make(store, "test_msgs/msg/Part", kind=i % 250, size=rng.normal())],
                ticks=int(rng.integers(0, 2**40)),
                last=make(store, "test_msgs/msg/Part", kind=3, size=rng.normal()),
                end=-i % 100,
            )
            told.append(("/mixed", "test_msgs/msg/Mixed", at + 2000, mixed))
        if i % 10 == 0:
            scan = make(
                store, "sensor_msgs/msg/LaserScan",
                header=header(store, stamp), ranges=rng.normal(size=5 + i % 3).astype(np.float32),
                range_max=float(np.float32(rng.normal())),
            )  # fmt: skip
            told.append(("/scan", "sensor_msgs/msg/LaserScan", at + 3000, scan))
            told.append(("/text", "std_msgs/msg/String", at + 4000,
                         make(store, "std_msgs/msg/String", data=f"line {i}")))  # fmt: skip
    return sorted(told, key=lambda message: message[2])


def write_ros1(path, told, store, chunk=4000, compression=None):
    from rosbags.rosbag1 import Writer

    bag = Writer(path)
    bag.chunk_threshold = chunk
    if compression:
        bag.set_compression(Writer.CompressionFormat[compression])
    _write_messages(bag, told, store, store.serialize_ros1)
    return path


def write_ros2(path, told, store, storage="mcap", compressed=False):
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

    plugin = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
    bag = Writer(path, version=9, storage_plugin=plugin)
    if compressed:
        bag.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    _write_messages(bag, told, store, store.serialize_cdr)
    return path


def _write_messages(bag, told, store, serialize):
    with bag:
        connections = {}
        for topic, name, at, message in told:
            if (topic, name) not in connections:
                connections[topic, name] = bag.add_connection(topic, name, typestore=store)
            bag.write(connections[topic, name], at, serialize(message, name))


def write_ros2_log(path, told, store, kept):
    """Write a bag whose recorder died before it wrote metadata: messages are in SQLite's log."""
    made = path.with_name(f"{path.name}.made")
    write_ros2(made, told, store, "sqlite3")
    path.mkdir()
    (bag,) = made.glob("*.db3")
    with closing(sqlite3.connect(bag)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA wal_autocheckpoint=0")
        database.execute("DELETE FROM messages WHERE id > ?", [kept])
        database.commit()
        for name in (bag.name, f"{bag.name}-wal"):
            shutil.copy(made / name, path)
    shutil.rmtree(made)
    return path


class McapBytes:
    """MCAP by its specification, record by record: also files that no writer would write."""

    MAGIC = b"\x89MCAP0\r\n"

    def __init__(self):
        self.data = self.MAGIC + self.record(1, self.text("ros2") + self.text("test"))
        self.channels = {}
        self.counts = {}
        self.chunks = []

    @staticmethod
    def text(given):
        given = given if isinstance(given, bytes) else given.encode()
        return struct.pack("<I", len(given)) + given

    @staticmethod
    def record(op, content):
        return struct.pack("<BQ", op, len(content)) + content

    def declared(self, topic, name, definition, serialization="cdr", kind="ros2msg"):
        """The records of a schema and a channel; the channel's number."""
        number = self.channels.setdefault((topic, name), len(self.channels) + 1)
        t = self.text
        schema = struct.pack("<H", number) + t(name) + t(kind) + t(definition)
        has_schema = bool(name or kind)
        channel = struct.pack("<HH", number, number if has_schema else 0)
        channel += t(topic) + t(serialization) + t(b"")
        schemas = self.record(3, schema) if has_schema else b""
        return number, schemas + self.record(4, channel)

    def message(self, number, at, content):
        self.counts[number] = self.counts.get(number, 0) + 1
        return self.record(5, struct.pack("<HIQQ", number, 0, at, at) + bytes(content))

    def chunk(self, content, ids, compression="", checksum=True, size=None, begin=0):
        packed = content
        if compression == "lz4":
            import lz4.frame

            packed = lz4.frame.compress(content)
        crc = zlib.crc32(content) if checksum is True else int(checksum)
        size = len(content) if size is None else size
        start = struct.pack("<QQQI", begin, 2**62, size, crc) + self.text(compression)
        place = len(self.data)
        self.data += self.record(6, start + struct.pack("<Q", len(packed)) + packed)
        length = len(self.data) - place
        self.chunks.append((place, length, compression, len(packed), size, ids, begin))

    def finished(self, summary=True, declarations=b""):
        """Return the bytes, with or without the index of the chunks."""
        data = self.data + self.record(15, struct.pack("<I", 0))
        begin = len(data)
        if summary:
            data += declarations
            for at, length, compression, packed, size, ids, *begins in self.chunks:
                time = begins[0] if begins else 0
                offsets = b"".join(struct.pack("<HQ", number, 0) for number in ids)
                index = struct.pack("<QQQQ", time, 2**62, at, length) + self.text(offsets)
                index += struct.pack("<Q", 0) + self.text(compression)
                data += self.record(8, index + struct.pack("<QQ", packed, size))
            counts = b"".join(struct.pack("<HQ", *item) for item in self.counts.items())
            told = struct.pack("<QHIIIIQQ", sum(self.counts.values()), len(self.channels),
                               len(self.channels), 0, 0, len(self.chunks), 0, 0)  # fmt: skip
            data += self.record(11, told + self.text(counts))
        footer = struct.pack("<QQI", begin if summary else 0, 0, 0)
        return data + self.record(2, footer) + self.MAGIC


# ---- LeRobot ------------------------------------------------------------------------------------


def lerobot_columns(lengths, seed=0):
    rng = np.random.default_rng(seed)
    rows = int(np.sum(lengths))
    frames = np.concatenate([np.arange(n) for n in lengths])
    return {
        "observation.state": rng.normal(size=(rows, 3)).astype(np.float32),
        "action": rng.normal(size=(rows, 2)).astype(np.float32),
        "next.done": rng.random(rows) < 0.1,
        "timestamp": (frames / 10).astype(np.float32),
        "frame_index": frames,
        "episode_index": np.repeat(np.arange(len(lengths)), lengths),
        "index": np.arange(rows),
        "task_index": np.repeat(np.arange(len(lengths)) % 2, lengths),
    }


def lerobot_info(columns, lengths, version):
    features = {
        name: {"dtype": str(c.dtype), "shape": list(c.shape[1:]) or [1], "names": None}
        for name, c in columns.items()
    }
    features["action"]["names"] = {"motors": ["left", "right"]}
    features["observation.images.top"] = {"dtype": "video", "shape": [4, 4, 3], "names": None}
    features["note"] = {"dtype": "string", "shape": [1], "names": None}
    v3 = version == "v3.0"
    return {
        "codebase_version": version,
        "fps": 10,
        "chunks_size": 2,
        "total_episodes": len(lengths),
        "total_frames": int(np.sum(lengths)),
        "robot_type": "test",
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
        if v3
        else "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
        if v3
        else "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
        "features": features,
    }


def arrow_table(columns, rows=slice(None)):
    import pyarrow as pa

    made = {}
    for name, column in columns.items():
        column = column[rows]
        flat = pa.array(column.reshape(-1))
        wide = column.ndim == 2
        made[name] = pa.FixedSizeListArray.from_arrays(flat, column.shape[1]) if wide else flat
    return pa.table(made)


def write_lerobot(folder, lengths=(5, 3, 4), version="v2.1", columns=None):
    """A data set, and its columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = lerobot_columns(lengths) if columns is None else columns
    info = lerobot_info(columns, lengths, version)
    (folder / "meta").mkdir(parents=True)
    (folder / "meta/info.json").write_text(json.dumps(info))
    cuts = np.concatenate([[0], np.cumsum(lengths)])
    tasks = [f"task {e % 2}" for e in range(len(lengths))]
    if version != "v3.0":
        words = [json.dumps({"task_index": n, "task": f"task {n}"}) for n in (0, 1)]
        (folder / "meta/tasks.jsonl").write_text("\n".join(words) + "\n")
        lines = [
            json.dumps({"episode_index": e, "tasks": [task], "length": int(length)})
            for e, (task, length) in enumerate(zip(tasks, lengths))
        ]
        (folder / "meta/episodes.jsonl").write_text("\n".join(lines) + "\n")
        for e in range(len(lengths)):
            path = folder / f"data/chunk-{e // 2:03d}/episode_{e:06d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(arrow_table(columns, slice(cuts[e], cuts[e + 1])), path)
        return columns
    words = {"task_index": [0, 1], "__index_level_0__": ["task 0", "task 1"]}
    pq.write_table(pa.table(words), folder / "meta/tasks.parquet")
    files = np.arange(len(lengths)) // 2  # two episodes a file
    (folder / "data/chunk-000").mkdir(parents=True)
    for file in np.unique(files).tolist():
        own = np.flatnonzero(files == file)
        rows = slice(cuts[own[0]], cuts[own[-1] + 1])
        path = folder / f"data/chunk-000/file-{file:03d}.parquet"
        pq.write_table(arrow_table(columns, rows), path)
    video = "videos/observation.images.top"
    table = {
        "episode_index": np.arange(len(lengths)),
        "tasks": pa.array([[task] for task in tasks]),
        "length": np.array(lengths),
        "data/chunk_index": np.zeros(len(lengths), np.int64),
        "data/file_index": files,
        "dataset_from_index": cuts[:-1],
        "dataset_to_index": cuts[1:],
        f"{video}/chunk_index": np.zeros(len(lengths), np.int64),
        f"{video}/file_index": np.zeros(len(lengths), np.int64),
        f"{video}/from_timestamp": cuts[:-1] / 10,
    }
    (folder / "meta/episodes/chunk-000").mkdir(parents=True)
    pq.write_table(pa.table(table), folder / "meta/episodes/chunk-000/file-000.parquet")
    return columns


# ---- HDF5, Zarr ---------------------------------------------------------------------------------


def write_robomimic(path, lengths=(4, 6, 3), numbers=(0, 10, 2), total=None):
    import h5py

    rng = np.random.default_rng(1)
    demos = {}
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["total"] = int(np.sum(lengths)) if total is None else total
        data.attrs["env_args"] = '{"env_name": "test"}'
        for number, length in zip(numbers, lengths):
            group = data.create_group(f"demo_{number}")
            group.attrs["num_samples"] = length
            demos[number] = {
                "actions": rng.normal(size=(length, 2)).astype(np.float32),
                "obs/eef_quat": rng.normal(size=(length, 4)),
                "obs/grip": rng.integers(0, 2, length),
            }
            for name, array in demos[number].items():
                group[name] = array
            group["obs/image"] = np.zeros((length, 4, 4, 3), np.uint8)
            group["initial"] = np.zeros((1, 3))
            group["words"] = "text"
    return demos


def write_aloha(path, length=5, seed=2):
    import h5py

    rng = np.random.default_rng(seed)
    arrays = {
        "action": rng.normal(size=(length, 14)),
        "observations/qpos": rng.normal(size=(length, 14)),
        "observations/qvel": rng.normal(size=(length, 14)),
    }
    with h5py.File(path, "w") as file:
        file.attrs["sim"] = True
        for name, array in arrays.items():
            file[name] = array
        file["observations/images/top"] = np.zeros((length, 4, 4, 3), np.uint8)
    return arrays


def write_maniskill(path, lengths=(5, 3), seed=4, **arrays):
    """Write trajectories as ManiSkill's RecordEpisode does, and the file next to them.

    Return the arrays of each. ``arrays`` are more of them, as functions of the number of actions.
    """
    import h5py

    rng = np.random.default_rng(seed)
    path.parent.mkdir(exist_ok=True)
    made, episodes = [], []
    with h5py.File(path, "w") as file:
        for e, steps in enumerate(lengths):
            turns = rng.normal(size=(steps + 1, 4))
            turns /= np.linalg.norm(turns, axis=1, keepdims=True)
            pose = np.concatenate([rng.normal(size=(steps + 1, 3)), turns], axis=1)
            rest = rng.normal(size=(steps + 1, 6))
            own = {
                "actions": rng.normal(size=(steps, 8)).astype("f4"),
                "terminated": np.arange(steps) == steps - 1,
                "truncated": np.zeros(steps, bool),
                "success": np.arange(steps) == steps - 1,
                "rewards": rng.normal(size=steps).astype("f4"),
                "obs/agent/qpos": rng.normal(size=(steps + 1, 9)).astype("f4"),
                "obs/extra/tcp_pose": pose.astype("f4"),
                "obs/sensor_data/base_camera/rgb": np.zeros((steps + 1, 4, 4, 3), "u1"),
                "obs/sensor_data/base_camera/segmentation": np.zeros((steps + 1, 4, 4, 1), "i2"),
                "env_states/actors/cube": np.concatenate([pose, rest], axis=1).astype("f4"),
                "env_states/articulations/panda": np.concatenate(
                    [pose, rest, rng.normal(size=(steps + 1, 18))], axis=1
                ).astype("f4"),
                **{name.replace("__", "/"): of(steps) for name, of in arrays.items()},
            }
            group = file.create_group(f"traj_{e}", track_order=True)
            for name, array in own.items():
                group[name] = array
            made.append(own)
            episodes.append({
                "episode_id": e, "episode_seed": e, "control_mode": "pd_joint_delta_pos",
                "elapsed_steps": steps, "success": True, "reset_kwargs": {"seed": e},
            })  # fmt: skip
    settings = {"obs_mode": "state_dict", "sim_config": {"control_freq": 20}}
    whole = {
        "env_info": {"env_id": "PickCube-v1", "max_episode_steps": 50, "env_kwargs": settings},
        "commit_info": None,
        "source_type": "motionplanning",
        "episodes": episodes,
    }
    path.with_suffix(".json").write_text(json.dumps(whole, indent=2))
    return made


def write_replay_buffer(path, ends=(4, 9, 11), **arrays):
    import zarr

    rng = np.random.default_rng(3)
    arrays = arrays or {
        "state": rng.normal(size=(ends[-1], 2)).astype(np.float32),
        "keypoint": rng.normal(size=(ends[-1], 3, 2)),
        "img": np.zeros((ends[-1], 4, 4, 3), np.uint8),
    }
    group = zarr.open_group(str(path), mode="w")
    for name, array in {**{f"data/{n}": a for n, a in arrays.items()},
                        "meta/episode_ends": np.array(ends)}.items():  # fmt: skip
        create = getattr(group, "create_array", None) or group.create_dataset  # zarr 2
        made = create(name, shape=array.shape, dtype=array.dtype, chunks=(3, *array.shape[1:]))
        made[...] = array
    return arrays
