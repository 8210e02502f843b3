"""Time and memory of opening and loading large recordings of each text and log format.

    python benchmarks/open_formats.py [--megabytes 500] [--folder DIR] [FORMAT...]

Writes a recording of each format, opens it with `robocache.data.open` in a separate process, and
prints its size, the seconds of CPU time to open it and to load all streams, the peak memory as a
multiple of the size, and the seconds in which pandas parses the rows, if it can. The files are in
the page cache: the times do not include a disk.
"""

from __future__ import annotations

import argparse
import json
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

_TESTS = Path(__file__).resolve().parents[1] / "tests" / "python" / "support"
Columns = Callable[[np.ndarray], list[np.ndarray]]
BLOCK = 20_000  # rows that are made at a time


def turn(i: np.ndarray) -> np.ndarray:
    """Return unit quaternions (x y z w) of a rotation about z."""
    zero = np.zeros(len(i))
    return np.stack([zero, zero, np.sin(i / 400), np.cos(i / 400)], 1)


def places(i: np.ndarray) -> np.ndarray:
    return np.stack([np.sin(i / 300), np.cos(i / 500), i * 1e-3 % 7], 1)


def write_rows(
    path: Path, size: int, head: str, row: str, columns: Columns, separator: str = "\n"
) -> None:
    """Write a head and then rows, `row % values`, until the file has a size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    begin = 0
    with path.open("w") as out:
        out.write(head)
        while out.tell() < size:
            made = columns(np.arange(begin, begin + BLOCK))
            out.write(separator.join([row % values for values in zip(*(m.tolist() for m in made))]))
            out.write(separator)
            begin += BLOCK


def split(*arrays: np.ndarray) -> list[np.ndarray]:
    return [column for array in arrays for column in np.atleast_2d(array.T)]


def csv(folder: Path, size: int) -> Path:
    write_rows(
        folder / "x.csv", size, "time_s,a [m],b [m],c [m],qx,qy,qz,qw\n",
        "%.6f" + ",%.6f" * 7, lambda i: split(i / 100, places(i), turn(i)),
    )  # fmt: skip
    return folder / "x.csv"


def headerless(folder: Path, size: int) -> Path:
    write_rows(
        folder / "x.csv", size, "", "%.6f" + ",%.6f" * 5,
        lambda i: split(1.7e9 + i / 100, places(i), turn(i)[:, 2:]),
    )  # fmt: skip
    return folder / "x.csv"


def tum(folder: Path, size: int) -> Path:
    write_rows(
        folder / "x.txt", size, "# ground truth\n", "%.6f" + " %.6f" * 7,
        lambda i: split(1.7e9 + i / 100, places(i), turn(i)),
    )  # fmt: skip
    return folder / "x.txt"


def kitti(folder: Path, size: int) -> Path:
    def matrices(i: np.ndarray) -> list[np.ndarray]:
        x, y, z, w = turn(i).T
        p = places(i)
        return [
            *(1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w), p[:, 0]),
            *(2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w), p[:, 1]),
            *(2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y), p[:, 2]),
        ]

    write_rows(folder / "x" / "poses.txt", size, "", "%.9e" + " %.9e" * 11, matrices)
    rows = sum(chunk.count(b"\n") for chunk in iter_chunks(folder / "x" / "poses.txt"))
    np.savetxt(folder / "x" / "times.txt", np.arange(rows) / 10, fmt="%.6e")
    return folder / "x"


def iter_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(1 << 24):
            yield chunk


def euroc(folder: Path, size: int) -> Path:
    head = "#timestamp [ns],p_RS_R_x [m],p_RS_R_y [m],p_RS_R_z [m],"
    head += "q_RS_w [],q_RS_x [],q_RS_y [],q_RS_z []\n"
    write_rows(
        folder / "x" / "mav0" / "state_groundtruth_estimate0" / "data.csv", size, head,
        "%d" + ",%.6f" * 7,
        lambda i: split(10**18 + i * 5_000_000, places(i), turn(i)[:, [3, 0, 1, 2]]),
    )  # fmt: skip
    return folder / "x"


def rtklib(folder: Path, size: int) -> Path:
    head = "%  GPST          latitude(deg) longitude(deg)  height(m)   Q  ns   sdn(m)\n"
    write_rows(
        folder / "x.pos", size, head, "%d %.3f   %.9f  %.9f  %.4f   1   8   0.0034",
        lambda i: split(
            2200 + i // 6_048_000, i % 6_048_000 / 10, 36 + i * 1e-8, 140 + i * 1e-8, 70 + i * 1e-4
        ),
    )  # fmt: skip
    return folder / "x.pos"


def motive(folder: Path, size: int) -> Path:
    head = (
        "Format Version,1.23,Take Name,Take 1,Capture Frame Rate,100.0,Rotation Type,Quaternion,"
        "Length Units,Meters,Coordinate Space,Global\n\n"
        ",Type,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,"
        "Rigid Body,Marker,Marker,Marker\n"
        ",Name,arm,arm,arm,arm,arm,arm,arm,arm,arm:1,arm:1,arm:1\n"
        ",ID,1,1,1,1,1,1,1,1,2,2,2\n"
        ",,Rotation,Rotation,Rotation,Rotation,Position,Position,Position,Mean Marker Error,"
        "Position,Position,Position\n"
        "Frame,Time (Seconds),X,Y,Z,W,X,Y,Z,,X,Y,Z\n"
    )
    write_rows(
        folder / "x.csv", size, head, "%d,%.6f" + ",%.6f" * 7 + ",0.001" + ",%.6f" * 3,
        lambda i: split(i, i / 100, turn(i), places(i), places(i)),
    )  # fmt: skip
    return folder / "x.csv"


def vicon(folder: Path, size: int) -> Path:
    head = (
        "Objects\n100\n,,Global Angle drone:drone,,,,,,\n"
        "Frame,Sub Frame,RX,RY,RZ,RW,TX,TY,TZ\n,,,,,,mm,mm,mm\n"
    )
    write_rows(
        folder / "x.csv", size, head, "%d,0" + ",%.6f" * 7,
        lambda i: split(1 + i, turn(i), places(i)),
    )  # fmt: skip
    return folder / "x.csv"


def sensor_logger(folder: Path, size: int) -> Path:
    for name, columns, values in (
        ("Accelerometer", "z,y,x", places),
        ("Orientation", "qz,qy,qx,qw", lambda i: turn(i)[:, [2, 1, 0, 3]]),
    ):
        count = columns.count(",") + 1
        write_rows(
            folder / "x" / f"{name}.csv", size // 2, f"time,seconds_elapsed,{columns}\n",
            "%d,%.6f" + ",%.16f" * count,
            lambda i, values=values: split(17 * 10**17 + i * 10**7, i / 100, values(i)),
        )  # fmt: skip
    (folder / "x" / "Metadata.csv").write_text("version,device name\n3,made up\n")
    return folder / "x"


def dataflash_text(folder: Path, size: int) -> Path:
    import log_files

    head = log_files.dataflash_text(0).decode()
    row = (
        "ATT, %d, %.2f, %.2f, %.2f\nIMU, %d, 0, %.6f, %.6f, %.6f, %d\n"
        "IMU, %d, 1, %.6f, %.6f, %.6f, %d\nAHR2, %d, %.7f, %.7f, %.6f, %.6f, %.6f, %.6f"
    )

    def columns(i: np.ndarray) -> list[np.ndarray]:
        at, p, q = 1000 + 10_000 * i, places(i), turn(i)[:, [3, 0, 1, 2]]
        where = np.stack([47.3 + i * 1e-9, 8.5 - i * 1e-9], 1)
        return split(at, p, at, p, i % 9, at + 1, p, i % 9, at, where, q)

    write_rows(folder / "x.log", size, head, row, columns)
    return folder / "x.log"


def json_lines(folder: Path, size: int) -> Path:
    row = (
        '{"topic": "/arm", "time_s": %.3f, "pose": {"x": %.6f, "q": [%.6f, %.6f]}, "on": true}\n'
        '{"topic": "/base", "time_s": %.3f, "v": %.6f}'
    )
    write_rows(
        folder / "x.jsonl", size, "", row,
        lambda i: split(i / 100, places(i), i / 100, places(i)[:, 0]),
    )  # fmt: skip
    return folder / "x.jsonl"


def _json(folder: Path, size: int, head: str, row: str, columns: Columns, end: str) -> Path:
    path = folder / "x.json"
    write_rows(path, size, head, row, columns, ", ")
    with path.open("rb+") as file:
        file.seek(-2, 2)
        file.truncate()
        file.seek(0, 2)
        file.write(end.encode())
    return path


def sensor_logger_json(folder: Path, size: int) -> Path:
    head = '[{"sensor": "Metadata", "version": "3"}, '
    row = '{"sensor": "Accelerometer", "time": "%d", "z": "%.9f", "y": "%.9f", "x": "%.9f"}'
    return _json(folder, size, head, row, lambda i: split(17 * 10**17 + i * 10**7, places(i)), "]")


def gopro_json(folder: Path, size: int) -> Path:
    head = '{"1": {"streams": {"ACCL": {"name": "Accelerometer (z,x,y)", "units": "m/s2", '
    head += '"samples": ['
    row = '{"value": [%.6f, %.6f, %.6f], "cts": %.3f, "date": "2023-11-14T22:13:20.000Z"}'
    end = ']}}, "device name": "Hero"}, "frames/second": 25}'
    return _json(folder, size, head, row, lambda i: split(places(i), 5.0 * i), end)


def ply_text(folder: Path, size: int) -> Path:
    rows = size // 41
    head = f"ply\nformat ascii 1.0\nelement vertex {rows}\nproperty float x\nproperty float y\n"
    head += "property float z\nproperty uchar red\nend_header\n"
    path = folder / "x.ply"
    row = "%.8f %.8f %.8f %d\n"
    with path.open("w") as out:
        out.write(head)
        for begin in range(0, rows, BLOCK):
            i = np.arange(begin, min(begin + BLOCK, rows))
            values = zip(*(m.tolist() for m in split(places(i) * 9 + 20, i % 256)))
            out.write("".join([row % each for each in values]))
    return path


def ply(folder: Path, size: int) -> Path:
    rows = size // 13
    head = f"ply\nformat binary_little_endian 1.0\nelement vertex {rows}\nproperty float x\n"
    head += "property float y\nproperty float z\nproperty uchar red\nend_header\n"
    made = np.zeros(rows, [("p", "<f4", 3), ("red", "u1")])
    made["p"] = np.random.default_rng(0).random((rows, 3), np.float32)
    (folder / "x.ply").write_bytes(head.encode() + made.tobytes())
    return folder / "x.ply"


def npz(folder: Path, size: int) -> Path:
    rows = size // 8 // 15
    i = np.arange(rows)
    values = np.tile(places(i[:1000]), (rows // 1000 + 1, 2))[:rows]
    np.savez(folder / "x.npz", timestamps=i / 100.0, qpos=values, action=values)
    return folder / "x.npz"


def netcdf(folder: Path, size: int) -> Path:
    import xarray

    rows = size // 8 // 8
    i = np.arange(rows)
    values = np.tile(np.hstack([places(i[:1000]), turn(i[:1000])]), (rows // 1000 + 1, 1))[:rows]
    xarray.Dataset(
        {"state": (("time", "channel"), values)},
        coords={"time": i / 100.0, "channel": list("abcdefg")},
    ).to_netcdf(folder / "x.nc", engine="netcdf4")
    return folder / "x.nc"


def _records(
    path: Path,
    size: int,
    head: bytes,
    kind: list[tuple],
    fill: Callable[[np.ndarray, np.ndarray], None],
) -> Path:
    made = np.zeros(BLOCK, kind)
    begin = 0
    with path.open("wb") as out:
        out.write(head)
        while out.tell() < size:
            fill(made, np.arange(begin, begin + BLOCK))
            out.write(made.tobytes())
            begin += BLOCK
    return path


def ulog(folder: Path, size: int) -> Path:
    import log_files

    kind = [
        *(("size", "<u2"), ("kind", "S1"), ("number", "<u2")),
        *(("at", "<u8"), ("q", "<f4", 4), ("reset", "u1")),
    ]

    def fill(made: np.ndarray, i: np.ndarray) -> None:
        made["size"], made["kind"], made["number"] = made.itemsize - 3, b"D", 0
        made["at"], made["q"] = 1000 + 10_000 * i, turn(i)[:, [3, 0, 1, 2]]

    return _records(folder / "x.ulg", size, log_files.ulog(0), kind, fill)


def dataflash(folder: Path, size: int) -> Path:
    import log_files

    number, letters = 7, "QBfffI"
    kind = [
        *(("mark", "S2"), ("number", "u1")),
        *(("at", "<u8"), ("i", "u1"), ("a", "<f4", 3), ("eg", "<u4")),
    ]
    assert np.dtype(kind).itemsize == 3 + struct.calcsize("<" + letters)

    def fill(made: np.ndarray, i: np.ndarray) -> None:
        made["mark"], made["number"] = b"\xa3\x95", number
        made["at"], made["a"] = 1000 + 10_000 * i, places(i)

    return _records(folder / "x.bin", size, log_files.dataflash(0), kind, fill)


def parquet(folder: Path, size: int) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = size // 8 // 8
    i = np.arange(rows)
    values = np.random.default_rng(0).random((7, rows))
    table = {"time_s": i / 100.0, **{name: column for name, column in zip("abcdefg", values)}}
    pq.write_table(pa.table(table), folder / "x.parquet")
    return folder / "x.parquet"


FORMATS = {
    "csv": csv, "headerless": headerless, "tum": tum, "kitti": kitti, "euroc": euroc,
    "rtklib": rtklib, "motive": motive, "vicon": vicon, "sensor-logger": sensor_logger,
    "dataflash-text": dataflash_text, "json-lines": json_lines,
    "sensor-logger-json": sensor_logger_json, "gopro-json": gopro_json, "ply-text": ply_text,
    "ply": ply, "npz": npz, "netcdf": netcdf, "ulog": ulog, "dataflash": dataflash,
    "parquet": parquet,
}  # fmt: skip

_OURS = """
import json, resource, sys, time
from robocache import data
begin = time.process_time()
opened = data.open(sys.argv[1], **({"rate": 100} if sys.argv[2] == "vicon" else {}))
middle = time.process_time()
if hasattr(opened, "points"):
    numbers = opened.points.size
else:
    loaded = opened.load()
    names = loaded.streams if hasattr(loaded, "streams") else loaded.tracks
    numbers = sum(loaded[name].values.size for name in names)
end = time.process_time()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"format": type(opened).__name__, "open": middle - begin, "load": end - middle,
                  "peak": peak, "numbers": int(numbers)}))
"""

_PANDAS = """
import sys, time
import pandas
begin = time.process_time()
pandas.read_csv(sys.argv[1], header=None, sep=sys.argv[2], skiprows=int(sys.argv[3]))
print(time.process_time() - begin)
"""
_TABLES = {
    "csv": (",", 1), "headerless": (",", 0), "tum": (" ", 1), "kitti": (" ", 0), "euroc": (",", 1),
    "motive": (",", 7), "vicon": (",", 5), "sensor-logger": (",", 1),
}  # fmt: skip


def child(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else f"error: {done.stderr.strip().splitlines()[-1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=f"of {', '.join(FORMATS)}")
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--folder", type=Path, help="of the recordings, which are removed again")
    arguments = parser.parse_args()
    sys.path.insert(0, str(_TESTS))
    print("format              MB  open s  load s  peak / size  numbers  pandas s", flush=True)
    for name in arguments.formats or FORMATS:
        folder = Path(tempfile.mkdtemp(dir=arguments.folder))
        try:
            path = FORMATS[name](folder, arguments.megabytes * 10**6)
            files = [each for each in folder.rglob("*") if each.is_file()]
            size = sum(each.stat().st_size for each in files)
            found = child(_OURS, str(path), name)
            if found.startswith("error"):
                print(f"{name:18} {size / 1e6:3.0f}  {found}", flush=True)
                continue
            got = json.loads(found)
            peer = ""
            if name in _TABLES:
                separator, skip = _TABLES[name]
                seconds = [
                    child(_PANDAS, str(each), separator, str(skip))
                    for each in files
                    if each.stat().st_size > 1e5
                ]
                peer = f"{sum(map(float, seconds)):.1f}"
            print(
                f"{name:18} {size / 1e6:3.0f}  {got['open']:6.1f}  {got['load']:6.1f}  "
                f"{got['peak'] / size:11.1f}  {got['numbers'] / 1e6:6.1f}M  {peer}",
                flush=True,
            )
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
