"""Small logs of flight controllers and phones, and JSON lines, written from formulas."""

from __future__ import annotations

import json
import struct

import numpy as np

# ---- PX4 ULog ----

MAGIC = b"ULog\x01\x12\x35\x01"
SYNC = b"\x2f\x73\x13\x20\x25\x0c\xbb\x12"


def ulog_message(kind, content):
    return struct.pack("<HB", len(content), ord(kind)) + content


class ULogBytes:
    """The bytes of a ULog file."""

    def __init__(self, formats, flags=bytes(8), offsets=(0, 0, 0)):
        self.data = bytearray(MAGIC + struct.pack("<Q", 1000))
        self.add("B", bytes(8) + flags + struct.pack("<3Q", *offsets))
        self.text("I", "char[4] sys_name", b"TEST")
        for text in formats:
            self.add("F", text.encode())
        self.text("P", "float MC_ROLL_P", struct.pack("<f", 6.5))

    def add(self, kind, content):
        self.data += ulog_message(kind, content)

    def text(self, kind, key, value):
        self.add(kind, bytes([len(key)]) + key.encode() + value)

    def subscribe(self, number, topic, instance=0):
        self.add("A", struct.pack("<BH", instance, number) + topic.encode())

    def row(self, number, content):
        self.add("D", struct.pack("<H", number) + content)

    def log(self, text, at):
        self.add("L", b"6" + struct.pack("<Q", at) + text.encode())

    def sync(self):
        self.add("S", SYNC)

    def dropout(self, ms):
        self.add("O", struct.pack("<H", ms))


def turn(i):
    """A unit quaternion, w first."""
    return np.cos(i / 20), 0.0, np.sin(i / 20), 0.0


def ulog(rows=20):
    made = ULogBytes(
        [
            "vehicle_attitude:uint64_t timestamp;float[4] q;uint8_t reset;uint8_t[3] _padding0;",
            "sensor_accel:uint64_t timestamp;uint32_t device_id;float x;float y;char[3] name;",
        ]
    )
    made.subscribe(0, "vehicle_attitude")
    made.subscribe(1, "sensor_accel")
    made.subscribe(2, "sensor_accel", 1)
    for i in range(rows):
        at = 1000 + 10_000 * i
        made.row(0, struct.pack("<Q4fB", at, *turn(i), i % 3))
        for number in (1, 2):
            made.row(number, struct.pack("<QIff3s", at + number, 7, i / 7, number, b"abc"))
        if i % 5 == 0:
            made.sync()
    made.log("armed", 5000)
    made.dropout(20)
    return bytes(made.data)


# ---- ArduPilot ----

LETTERS = {
    **dict(zip("bBhHiIqQfdM", "bBhHiIqQfdB")),
    **dict(zip("cCeEL", "hHiIi")),
    **{"g": "e", "n": "4s", "N": "16s", "Z": "64s", "a": "32h"},
}


def dataflash_message(number, letters, *values):
    made = [value.encode() if isinstance(value, str) else value for value in values]
    return (
        b"\xa3\x95" + bytes([number]) + struct.pack("<" + "".join(map(LETTERS.get, letters)), *made)
    )


class DataFlashBytes:
    """The bytes of an ArduPilot log."""

    def __init__(self):
        self.data = bytearray()
        self.types = {}
        self.define(128, "FMT", "BBnNZ", "Type,Length,Name,Format,Columns")

    def define(self, number, name, letters, columns):
        self.types[name] = number, letters
        size = 3 + struct.calcsize("<" + "".join(map(LETTERS.get, letters)))
        self.data += dataflash_message(128, "BBnNZ", number, size, name, letters, columns)

    def add(self, name, *values):
        number, letters = self.types[name]
        array = letters.find("a")
        if array >= 0:
            values = (*values[:array], *values[array], *values[array + 1 :])
        self.data += dataflash_message(number, letters, *values)


UNITS = {"-": "", "s": "s", "d": "deg", "h": "degheading", "m": "m", "#": "instance", "o": "m/s/s"}
FACTORS = {"-": 0.0, "F": 1e-6, "C": 1e-3, "B": 1e-2, "0": 1.0}
TYPES = (
    (1, "UNIT", "QbZ", "TimeUS,Id,Label", "s--", "F--"),
    (2, "MULT", "Qbd", "TimeUS,Id,Mult", "s--", "F--"),
    (3, "FMTU", "QBNN", "TimeUS,FmtType,UnitIds,MultIds", "s---", "F---"),
    (4, "PARM", "QNf", "TimeUS,Name,Value", "s--", "F--"),
    (5, "MSG", "QZ", "TimeUS,Message", "s-", "F-"),
    (6, "ATT", "QccC", "TimeUS,Roll,Pitch,Yaw", "sddh", "FBBB"),
    (7, "IMU", "QBfffI", "TimeUS,I,AccX,AccY,AccZ,EG", "s#ooo-", "F-000-"),
    (8, "AHR2", "QLLffff", "TimeUS,Lat,Lng,Q1,Q2,Q3,Q4", "s------", "F------"),
)


def dataflash(rows=20):
    made = DataFlashBytes()
    for number, name, letters, columns, _, _ in TYPES:
        made.define(number, name, letters, columns)
    for letter, label in UNITS.items():
        made.add("UNIT", 0, ord(letter), label)
    for letter, factor in FACTORS.items():
        made.add("MULT", 0, ord(letter), factor)
    for number, _, _, _, units, factors in TYPES:
        made.add("FMTU", 0, number, units, factors)
    made.add("PARM", 10, "ARMING_CHECK", 1.0)
    made.add("MSG", 20, "made up")
    for i in range(rows):
        at = 1000 + 10_000 * i
        made.add("ATT", at, 10 * i - 50, 5 * i, (35_000 + 100 * i) % 36_000)
        for instance in (0, 1):
            made.add("IMU", at + instance, instance, i / 7, -i, 9.8, i)
        made.add("AHR2", at, 473_000_000 + i, 85_000_000 - i, *turn(i))
    return bytes(made.data)


def dataflash_text(rows=20):
    lines = [
        f"FMT, {number}, 50, {name}, {letters}, {columns}"
        for number, name, letters, columns, _, _ in TYPES
    ]
    lines += [f"UNIT, 0, {ord(letter)}, {label}" for letter, label in UNITS.items()]
    lines += [f"MULT, 0, {ord(letter)}, {factor}" for letter, factor in FACTORS.items()]
    lines += [f"FMTU, 0, {number}, {units}, {factors}" for number, *_, units, factors in TYPES]
    lines.append("MSG, 20, made up, with a comma")
    for i in range(rows):
        at = 1000 + 10_000 * i
        lines.append(f"ATT, {at}, {(10 * i - 50) / 100}, {i / 20}, {(350 + i) % 360}")
        lines += [f"IMU, {at + k}, {k}, {i / 7}, {-i}, 9.8, {i}" for k in (0, 1)]
        quaternion = ", ".join(map(repr, map(float, turn(i))))
        lines.append(f"AHR2, {at}, {47.3 + i / 1e7}, {8.5 - i / 1e7}, {quaternion}")
    return ("\n".join(lines) + "\n").encode()


# ---- JSON and phones ----


def json_lines(rows=20):
    lines = []
    for i in range(rows):
        pose = {"x": i / 7, "q": [i, 2 * i], "name": "arm"}
        lines.append({"topic": "/arm", "time_s": i / 10, "pose": pose, "on": i % 2 == 0})
        lines.append({"topic": "/base", "time_s": i / 10, "v": i, **({"w": 2.5} if i % 2 else {})})
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def sensor_logger_json(rows=20):
    objects = [{"sensor": "Metadata", "version": "3"}]
    for i in range(rows):
        at = str(1_700_000_000_000_000_000 + 10_000_000 * i)
        objects.append({"sensor": "Accelerometer", "time": at, "z": str(i / 7), "y": "0.5"})
    return json.dumps(objects).encode()


def gopro_json(rows=20):
    samples = [
        {"value": [i / 7, 1.5, -i], "cts": 5.0 * i, "date": f"2023-11-14T22:13:{20 + i}.000Z"}
        for i in range(rows)
    ]
    turns = [{"value": list(turn(i)), "cts": 5.0 * i} for i in range(rows)]
    streams = {
        "ACCL": {"samples": samples, "name": "Accelerometer (z,x,y)", "units": "m/s2"},
        "CORI": {"samples": turns, "name": "CameraOrientation"},
    }
    video = {"1": {"streams": streams, "device name": "Hero"}, "frames/second": 25}
    return json.dumps(video).encode()


def sensor_logger(folder, rows=20):
    folder.mkdir()
    first = 1_700_000_000_000_000_000
    for name, columns, row in (
        ("Accelerometer", "z,y,x", lambda i: (i / 7, 0.5, -i / 3)),
        ("Orientation", "qz,qy,qx,qw", lambda i: turn(i)[::-1]),
    ):
        lines = [f"time,seconds_elapsed,{columns}"]
        for i in range(rows):
            values = ",".join(map(repr, map(float, (i / 100, *row(i)))))
            lines.append(f"{first + 10_000_000 * i},{values}")
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (folder / "Metadata.csv").write_text("version,device name\n3,made up\n")
    return folder


def _file(name, write):
    def make(folder):
        (folder / name).write_bytes(write())
        return folder / name

    return make


FORMATS = {
    "ulog": _file("x.ulg", ulog),
    "dataflash": _file("x.bin", dataflash),
    "dataflash-text": _file("x.log", dataflash_text),
    "json-lines": _file("x.jsonl", json_lines),
    "sensor-logger": lambda folder: sensor_logger(folder / "x"),
    "sensor-logger-json": _file("x.json", sensor_logger_json),
    "gopro-json": _file("x.json", gopro_json),
}
