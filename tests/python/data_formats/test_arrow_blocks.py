"""Blocks of flight logs, PLY and JSON exports that Arrow parses give what Python gives."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from robocache import data
from robocache.data._formats.clouds import ply
from robocache.data._formats.logs import dataflash_text, json_exports

ODD = ["nan", "a, b", "nan(1)", "-nan", "inf", "-Infinity", "1e400", "-0", "-0.0", "0x10", "1_000",
       "1,5", "", " ", "+5", " 7 ", "007", "1.", ".5", "1e3", "-", "1d5", "\u0661", "\ufffd", '"1"',
       "9223372036854775807", "9223372036854775808", "18446744073709551615", "9007199254740993",
       "300", "-1", "1\r", "\x0b1", "1\x00"]  # fmt: skip


def described(path):
    """Describe what a file gives, or the error, so that NaNs and signs are compared, too."""
    try:
        opened = data.open(path, damaged="keep")
        if isinstance(opened, data.Recording):
            opened.load()
    except data.FormatError as error:
        return str(error)
    if isinstance(opened, data.PointCloud):
        return {name: (str(v.dtype), v.tobytes()) for name, v in opened.fields.items()}
    found = {}
    for name, stream in opened.streams.items():
        values = np.where(np.isnan(stream.values), np.nan, stream.values)
        found[name] = (stream.names, stream.dtypes, str(stream.values.dtype), values.tobytes(),
                       stream.times().tobytes())  # fmt: skip
    return found, list(map(repr, opened.left_out)), list(map(repr, opened.problems))


def compared(path, monkeypatch, module, name, instead):
    """Open a file with both parsers; return how many blocks Arrow parsed."""
    own, calls = getattr(module, name), []

    def call(*given):
        calls.append(own(*given))
        return calls[-1]

    monkeypatch.setattr(module, name, call)
    found = described(path)
    monkeypatch.setattr(module, name, instead)
    again = described(path)
    monkeypatch.setattr(module, name, own)
    assert str(found) == str(again)
    return sum(each is not None for each in calls)


def log(numbers, odd=()):
    """Return a text log of two types of messages, one of them with instances."""
    lines = ["FMT, 128, 89, FMT, BBnNZ, Type,Length,Name,Format,Columns",
             "FMT, 150, 40, IMU, QBfhMZ, TimeUS,I,GyrX,Count,Mode,Text",
             "FMT, 151, 40, POS, QLLd, TimeUS,Lat,Lng,Alt",
             "FMT, 152, 40, MSG, QZ, TimeUS,Message"]  # fmt: skip
    for i in range(300):
        lines += [
            f"IMU, {i * 100}, {i % 2}, {numbers.gauss(0, 1)}, {i - 150}, {i % 7}, a text",
            f"POS, {i * 100}, {numbers.uniform(-90, 90)}, {i}, {numbers.gauss(0, 9):.3f}",
            f"MSG, {i}, hello",
        ]
    for cell in odd:
        at = numbers.randrange(500, len(lines))
        cells = lines[at].split(",")
        cells[numbers.randrange(1, len(cells))] = cell
        lines[at] = ",".join(cells)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("odd", [None, *ODD], ids=range(len(ODD) + 1))
def test_flight_logs(tmp_path, monkeypatch, odd):
    monkeypatch.setattr(dataflash_text, "BLOCK", 4096)
    numbers = random.Random(str(odd))
    path = tmp_path / "x.log"
    path.write_text(log(numbers, [] if odd is None else [odd] * 6), newline="")
    count = compared(path, monkeypatch, dataflash_text, "columns_of", lambda *given: None)
    assert count >= 3


def cloud(numbers, odd=()):
    kinds = ["float", "double", "uchar", "short"]
    head = ["ply", "format ascii 1.0", "element vertex 400",
            *(f"property {kind} {name}" for kind, name in zip(kinds, "xyzc")),
            "end_header"]  # fmt: skip
    rows = [
        [repr(numbers.gauss(0, 9)), repr(numbers.gauss(0, 1e9)), str(i % 256), str(i - 200)]
        for i in range(400)
    ]
    for cell in odd:
        rows[numbers.randrange(400)][numbers.randrange(4)] = cell
    gap = numbers.choice([" ", "  ", "\t", " \t "])
    return "\n".join([*head, *map(gap.join, rows)]) + "\n"


@pytest.mark.parametrize("odd", [None, *ODD], ids=range(len(ODD) + 1))
def test_point_clouds(tmp_path, monkeypatch, odd):
    monkeypatch.setattr(ply, "_ROWS", 50)
    numbers = random.Random(str(odd))
    path = tmp_path / "x.ply"
    for _ in range(4):  # each time in another column
        path.write_text(cloud(numbers, [] if odd is None else [odd]), newline="")
        count = compared(path, monkeypatch, ply, "_by_arrow", lambda *given: None)
        assert count == 8 if odd is None else count >= 0


def export(numbers, odd=()):
    objects = [{"sensor": "Metadata", "device": "phone, {a}, {b}"}]
    for i in range(250):
        sensor = ("Accelerometer", "Gyroscope", "Light")[i % 3]
        made = {"sensor": sensor, "time": str(1700000000000000000 + i * 10**7)}
        made.update(x=repr(numbers.gauss(0, 1)), n=str(i), f=numbers.gauss(0, 1), whole=i)
        objects.append(made)
    for cell in odd:
        each = objects[numbers.randrange(100, 250)]
        each[numbers.choice(["x", "n", "f", "time"])] = cell
    return json.dumps(objects, separators=numbers.choice([(",", ":"), (", ", ": ")]))


MORE = [".0", 5, 5.0, -0.0, None, True, [1], {"a": 1}, "}, {", 2**63, 2**53 + 1]


@pytest.mark.parametrize("odd", [None, *ODD, *MORE], ids=range(len(ODD) + len(MORE) + 1))
def test_exports_of_sensors(tmp_path, monkeypatch, odd):
    monkeypatch.setattr(json_exports, "_BLOCK", 4096)
    numbers = random.Random(str(odd))
    path = tmp_path / "x.json"
    path.write_text(export(numbers, [] if odd is None else [odd] * 2))
    monkeypatch.setattr(json_exports._Sensors, "take", json_exports._Sensors.take)
    count = compared(
        path, monkeypatch, json_exports._Sensors, "take", lambda self, block, table: False
    )
    assert count > 3 or isinstance(odd, (list, dict)) or odd == "}, {"
