"""A small sample of every format, which fuzz_readers.py damages, each by a writer of a folder."""

from __future__ import annotations

import shutil

import numpy as np

import data_files
import keyed_bags
import log_files
import text_sources
from robocache import data


def _bag(folder, ros1, storage="mcap", compressed=False, compression=None):
    store = data_files.typestore(ros1)
    messages = data_files.messages(store, 12)
    if ros1:
        return data_files.write_ros1(folder / "x.bag", messages, store, compression=compression)
    return data_files.write_ros2(folder / "x", messages, store, storage, compressed)


def _bag_of_keys(folder, kind):
    """Topics that are split: transforms, joints and sensors of several frames."""
    store, told = keyed_bags.store_of(kind), []
    for i, at in enumerate(keyed_bags.times(12)):
        order = slice(None, None, -1 if i % 2 else 1)
        each = [("map", "arm", i), ("odom", "base_link", 2), ("map", "c", 3)][i % 3 :][order]
        told.append(keyed_bags.tf(store, at, *each))
        told.append(keyed_bags.joints(store, at, ["a", "joint2"][order], [i, 2][order], [1, 2]))
        told.append(keyed_bags.sensor(store, at, ("left", "l")[i % 2], i))
    return keyed_bags.write(folder, kind, told, store)


def _bag_with_log(folder):
    store = data_files.typestore()
    return data_files.write_ros2_log(folder / "x", data_files.messages(store, 12), store, 4)


def _mcap_without_summary(folder):
    made = data_files.McapBytes()
    number, declarations = made.declared("/a", "test_msgs/msg/A", "float64 x\nuint32[] n")
    content = b"\0\1\0\0" + np.float64(0.5).tobytes() + np.array([2, 3, 4], "<u4").tobytes()
    messages = b"".join(made.message(number, 10**9 + i * 10**7, content) for i in range(20))
    made.chunk(declarations + messages, [number], "lz4")
    made.data += declarations + messages
    (folder / "x.mcap").write_bytes(made.finished(summary=False))
    return folder / "x.mcap"


def _mcap_of(serialization):
    """Messages in JSON or protobuf."""

    def make(folder):
        made = data_files.McapBytes()
        schema, kind, name = b"", "", ""
        if serialization == "protobuf":
            from google.protobuf import descriptor_pb2, struct_pb2

            files = descriptor_pb2.FileDescriptorSet()
            struct_pb2.DESCRIPTOR.CopyToProto(files.file.add())
            schema, kind, name = files.SerializeToString(), "protobuf", "google.protobuf.ListValue"
        number, declarations = made.declared("/a", name, schema, serialization, kind)
        messages = b""
        for i in range(20):
            if serialization == "protobuf":
                content = struct_pb2.ListValue(
                    values=[{"number_value": i / 7}, {"bool_value": True}, {"string_value": "a"}]
                ).SerializeToString()
            else:
                content = (
                    f'{{"timestamp": {{"sec": 1, "nsec": {i}}}, "x": {i / 7}, "a": [{i}, 2.5], '
                    f'"on": true, "inner": {{"name": "b", "none": null}}}}'
                ).encode()
            messages += made.message(number, 10**9 + i * 10**7, content)
        made.chunk(declarations + messages, [number])
        (folder / "x.mcap").write_bytes(made.finished(declarations=declarations))
        return folder / "x.mcap"

    return make


def _packed_bag(mode, storage):
    """A bag whose messages or files are compressed."""

    def make(folder):
        from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

        store = data_files.typestore()
        plugin = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
        bag = Writer(folder / "x", version=9, storage_plugin=plugin)
        bag.set_compression(CompressionMode[mode], CompressionFormat.ZSTD)
        with bag:
            connections = {}
            for topic, name, at, message in data_files.messages(store, 12):
                if topic not in connections:
                    connections[topic] = bag.add_connection(topic, name, typestore=store)
                bag.write(connections[topic], at, store.serialize_cdr(message, name))
        return folder / "x"

    return make


def _npz(folder):
    import recordings_with_faults as recordings

    return recordings.save(folder / "x.npz", recordings.stream(samples=20))


def _csv(folder):
    rows = "\n".join(f"{0.1 * i:.3f},{i},{i * i / 7}" for i in range(30))
    (folder / "x.csv").write_text("time [s],a,b\n" + rows + "\n")
    return folder / "x.csv"


def _lerobot_saved(folder):
    """A set with statistics, which data.checks compares."""
    data_files.write_lerobot(folder / "made", (6, 4))
    data.open(folder / "made").save(folder / "x", "lerobot")
    shutil.rmtree(folder / "made")
    return folder / "x"


def _parquet(folder):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"timestamp": np.arange(40) / 10, "x": np.arange(40.0), "n": np.arange(40)})
    pq.write_table(table, folder / "x.parquet")
    return folder / "x.parquet"


def _npy(folder):
    (folder / "arrays").mkdir()
    np.save(folder / "arrays/action.npy", np.arange(60.0).reshape(20, 3))
    np.save(folder / "arrays/times.npy", np.arange(20) / 10)
    return folder / "arrays"


def _pcd(folder):
    points = "\n".join(f"{i} {i / 2} {-i}" for i in range(20))
    (folder / "x.pcd").write_text(
        "# .PCD v0.7\nVERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 20\n"
        f"HEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS 20\nDATA ascii\n{points}\n"
    )
    return folder / "x.pcd"


def _pcd_binary(folder, packed=False):
    points = np.arange(60, dtype="<f4")
    body = points.tobytes()
    if packed:  # LZF: runs of at most 32 bytes as they stand
        runs = [body[i : i + 32] for i in range(0, len(body), 32)]
        content = b"".join(bytes([len(run) - 1]) + run for run in runs)
        body = np.array([len(content), len(body)], "<u4").tobytes() + content
    kind = "binary_compressed" if packed else "binary"
    (folder / "x.pcd").write_bytes(
        b"VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 20\n"
        b"HEIGHT 1\nPOINTS 20\nDATA " + kind.encode() + b"\n" + body
    )
    return folder / "x.pcd"


def _ply(encoding):
    """Vertices behind an element with lists, and faces."""

    def make(folder):
        order = ">" if "big" in encoding else "<"
        head = (
            f"ply\nformat {encoding} 1.0\ncomment made\nelement face 3\n"
            "property list uchar int vertex_indices\nelement vertex 20\nproperty float x\n"
            "property float y\nproperty double z\nproperty uchar red\n"
            "property list uchar short seen\nproperty int label\nend_header\n"
        )
        body = b""
        if encoding == "ascii":
            for i in range(3):
                body += f"{i + 1} {' '.join(map(str, range(i + 1)))}\n".encode()
            for i in range(20):
                body += f"{i / 7} {-i} {i * i} {i} {i % 3} {'5 ' * (i % 3)}{i * 1000}\n".encode()
        else:
            for i in range(3):
                body += np.array([i + 1], "u1").tobytes()
                body += np.arange(i + 1, dtype=f"{order}i4").tobytes()
            for i in range(20):
                body += np.array([i / 7, -i], f"{order}f4").tobytes()
                body += np.array([i * i], f"{order}f8").tobytes() + bytes([i, i % 3])
                body += np.full(i % 3, 5, f"{order}i2").tobytes()
                body += np.array([i * 1000], f"{order}i4").tobytes()
        (folder / "x.ply").write_bytes(head.encode() + body)
        return folder / "x.ply"

    return make


def _npz_of_numpy(pack):
    def make(folder):
        rows = np.arange(20)
        pack(
            folder / "x.npz",
            action=np.arange(60.0).reshape(20, 3),
            state=np.asfortranarray(np.arange(40, dtype=">f4").reshape(20, 2)),
            timestamp=rows / 10,
            episode_ends=np.array([8, 20]),
            task=np.array("lift"),
        )
        return folder / "x.npz"

    return make


def _npz_of_streams(folder):
    np.savez(
        folder / "x.npz", imu=np.arange(40.0).reshape(20, 2), imu_time_ns=np.arange(20) * 10**7,
        grip=np.arange(5), infos=np.array([{"a": 1}], object), rgb=np.zeros((5, 4, 4, 3), "u1"),
        grip_time_ns=np.arange(5) * 10**8,
    )  # fmt: skip
    return folder / "x.npz"


def _netcdf(folder):
    """Chunked and packed variables, labels, and a group with its own clock, as NetCDF-4 has them.

    h5py writes them, so that no other package is needed.
    """
    import h5py

    with h5py.File(folder / "x.nc", "w", track_order=True) as file:
        file.attrs["_NCProperties"] = np.bytes_(b"version=2,netcdf=4.9.2,hdf5=1.14.2")

        def add(name, values, *dims, units=None, **options):
            made = file.create_dataset(name, data=values, track_order=True, **options)
            if not dims:
                made.make_scale(name.rpartition("/")[2])
                made.attrs["_Netcdf4Dimid"] = np.int32(len(file))
            for axis, dim in enumerate(dims):
                made.dims[axis].attach_scale(file[dim])
            if units is not None:
                made.attrs["units"] = np.bytes_(units.encode())
            return made

        rows = np.arange(20)
        add("time", rows * 10, units="milliseconds since 2024-01-01 00:00:00", maxshape=(None,))
        add("part", np.array([*"xyzw"], object), dtype=h5py.string_dtype())
        of_time = {"chunks": (8,), "maxshape": (None,)}
        turn = np.eye(20, 4, dtype="f4")
        add("q", turn, "time", "part", compression="gzip", chunks=(8, 4), maxshape=(None, 4))
        add("x", rows * 1.0, "time", **of_time)
        add("yaw", rows / 9, "time", units="degrees", **of_time)
        packed = add("t", (rows - 6).astype("i2"), "time", fillvalue=np.int16(-100), **of_time)
        packed.attrs["_FillValue"] = np.array([-100], "i2")
        packed.attrs["scale_factor"], packed.attrs["add_offset"] = 0.5, 3.0
        add("imu/stamp", np.arange(5) / 10, units="seconds since 2024-01-01")
        add("imu/a", np.arange(5, dtype="f4"), "imu/stamp")
    return folder / "x.nc"


def _maniskill(folder):
    data_files.write_maniskill(folder / "x" / "trajectory.h5")
    return folder / "x"


def _robosuite(folder):
    """Demonstrations as they are collected: states and actions, without observations."""
    import h5py

    with h5py.File(folder / "x.hdf5", "w") as file:
        for e, rows in enumerate((6, 4)):
            demo = file.create_group(f"data/demo_{e + 1}")
            demo.attrs["model_file"] = "<mujoco/>"
            demo["states"] = np.arange(rows * 5.0).reshape(rows, 5)
            demo["actions"] = np.arange(rows * 2.0).reshape(rows, 2)
        file["data"].attrs["env"] = "Lift"
    return folder / "x.hdf5"


def _sweep(folder):
    (np.arange(80, dtype="<f4") / 80).tofile(folder / "x.bin")
    return folder / "x.bin"


def _tables(folder):
    (folder / "x").mkdir()
    for name in ("imu", "gps"):
        rows = "\n".join(f"{1000 * i}\t{i / 7}\tgood" for i in range(20))
        (folder / "x" / f"{name}.tsv").write_text(f"time_us\tvalue\tstate\n{rows}\n")
    return folder / "x"


def _csv_of_texts(folder):
    """Dates, a pair of columns, quotes, and a column that says which thing a row is of."""
    (folder / "x").mkdir()
    dates = "\n".join(f"2023-11-14 22:13:{i:02}.5+01:00,{i / 7},good" for i in range(20))
    (folder / "x" / "dates.csv").write_text(f"when,v,state\n,m,-\n{dates}\n")
    rows = "\n".join(f'{170 + i // 2},{i * 1000},"{i % 2}",{i}' for i in range(40))
    (folder / "x" / "pairs.csv").write_text(f"sec, nanosec,id,v\n{rows}\n")
    clock = "\n".join(f"23:59:{40 + i:02},{i}" for i in range(19))
    (folder / "x" / "day.csv").write_text(f"time,v\n{clock}\n00:00:01,20\n")
    return folder / "x"


def _parquet_of_times(folder):
    """A struct of a stamp and texts, times of day, and the index of pandas."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (folder / "x").mkdir()
    count = 30
    stamps = [{"stamp": {"sec": 170 + i // 2, "nanosec": 5}, "frame_id": "a"} for i in range(count)]
    things = pa.table({"header": stamps, "id": [i % 2 for i in range(count)], "v": range(count)})
    pq.write_table(things, folder / "x" / "things.parquet", row_group_size=11)
    day = pa.array([i * 1000 for i in range(count)], pa.time64("us"))
    pq.write_table(pa.table({"time": day, "v": range(count)}), folder / "x" / "day.parquet")
    lengths = pa.array([i * 1000 for i in range(count)], pa.duration("ns"))
    index = pa.table({"v": range(count), "__index_level_0__": lengths})
    metadata = {b"pandas": b'{"index_columns": ["__index_level_0__"]}'}
    pq.write_table(index.replace_schema_metadata(metadata), folder / "x" / "index.parquet")
    return folder / "x"


def _zarr_zip(folder):
    data_files.write_replay_buffer(folder / "made.zarr")
    shutil.make_archive(str(folder / "x.zarr"), "zip", folder / "made.zarr")
    shutil.rmtree(folder / "made.zarr")
    return folder / "x.zarr.zip"


def _zarr_2(folder):
    import zarr

    group = zarr.open_group(str(folder / "x.zarr"), mode="w", zarr_format=2)
    for name, array in {
        "data/action": np.arange(22.0).reshape(11, 2),
        "meta/episode_ends": np.array([4, 9, 11]),
    }.items():
        made = group.create_array(
            name, shape=array.shape, dtype=array.dtype, chunks=(3,) * array.ndim
        )
        made[...] = array
    return folder / "x.zarr"


def _in_folder(write, name, *arguments):
    def make(folder):
        write(folder / name, *arguments)
        return folder / name

    return make


FORMATS = {
    "ros1": lambda folder: _bag(folder, True),
    "ros1-keys": lambda folder: _bag_of_keys(folder, "ros1"),
    "ros1-bz2": lambda folder: _bag(folder, True, compression="BZ2"),
    "ros1-lz4": lambda folder: _bag(folder, True, compression="LZ4"),
    "mcap": lambda folder: _bag(folder, False),
    "mcap-keys": lambda folder: _bag_of_keys(folder, "mcap"),
    "mcap-zstd": lambda folder: _bag(folder, False, compressed=True),
    "mcap-without-summary": _mcap_without_summary,
    "mcap-json": _mcap_of("json"),
    "mcap-protobuf": _mcap_of("protobuf"),
    "mcap-packed-messages": _packed_bag("MESSAGE", "mcap"),
    "mcap-packed-file": _packed_bag("FILE", "mcap"),
    "sqlite3-packed-messages": _packed_bag("MESSAGE", "sqlite3"),
    "sqlite3-packed-file": _packed_bag("FILE", "sqlite3"),
    "sqlite3": lambda folder: _bag(folder, False, "sqlite3"),
    "sqlite3-with-log": _bag_with_log,
    "lerobot-2.1": _in_folder(lambda path: data_files.write_lerobot(path), "x"),
    "lerobot-3.0": _in_folder(lambda path: data_files.write_lerobot(path, version="v3.0"), "x"),
    "robomimic": _in_folder(data_files.write_robomimic, "x.hdf5"),
    "netcdf": _netcdf,
    "maniskill": _maniskill,
    "robosuite": _robosuite,
    "aloha": _in_folder(data_files.write_aloha, "x.hdf5"),
    "zarr": _in_folder(data_files.write_replay_buffer, "x.zarr"),
    "zarr-2": _zarr_2,
    "zarr-zip": _zarr_zip,
    "csv": _csv,
    "tables": _tables,
    "lerobot-saved": _lerobot_saved,
    "csv-texts": _csv_of_texts,
    "parquet": _parquet,
    "parquet-times": _parquet_of_times,
    "npy": _npy,
    "npz": _npz,
    "npz-episodes": _npz_of_numpy(np.savez),
    "npz-packed": _npz_of_numpy(np.savez_compressed),
    "npz-streams": _npz_of_streams,
    "pcd": _pcd,
    "pcd-binary": _pcd_binary,
    "pcd-compressed": lambda folder: _pcd_binary(folder, packed=True),
    "sweep": _sweep,
    **text_sources.FORMATS,
    **log_files.FORMATS,
    "ply": _ply("ascii"),
    "ply-little": _ply("binary_little_endian"),
    "ply-big": _ply("binary_big_endian"),
}


# Files whose times have no unit.
PLAIN = ("x.csv", "x.parquet", "arrays")
