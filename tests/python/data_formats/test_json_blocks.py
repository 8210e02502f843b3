"""JSON lines of several MB: blocks that Arrow parses give what Python's json gives."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from robocache import data
from robocache.data._formats.logs import json_blocks, json_lines

ROWS = 14_000


def line(i):
    """Return an object of several kinds of values, with about 90 bytes."""
    return {
        "time": 1.7e9 + i / 100,
        "pose": {"x": i / 7, "yaw": -i / 3, "frame": "map"},
        "joints": [i / 11, i % 5, None if i % 9 == 0 else 0.5],
        "count": i,
        "on": i % 3 == 0,
        "date": f"2023-11-{1 + i % 28:02d}",
    }


def described(path, damaged="keep"):
    recording = data.open(path, damaged=damaged).load()
    streams = {}
    for name, stream in recording.streams.items():
        values = np.ascontiguousarray(stream.values)
        streams[name] = (
            stream.names,
            stream.dtypes,
            values.dtype,
            values.tobytes(),
            stream.times().tobytes(),
        )
    return streams, list(map(repr, recording.left_out)), list(map(repr, recording.problems))


def compared(path, monkeypatch):
    """Open a file with both parsers; return how many blocks Arrow parsed."""
    parsed = []
    own = json_blocks.Parser.table

    def table(self, block):
        parsed.append(own(self, block))
        return parsed[-1]

    monkeypatch.setattr(json_lines.Parser, "table", table)
    found = described(path)
    monkeypatch.setattr(json_lines.Parser, "table", lambda self, block: None)
    again = described(path)
    for own, other in zip(found, again):
        assert str(own) == str(other) if isinstance(own, list) else own.keys() == other.keys()
    for name, parts in found[0].items():
        assert all(own == other for own, other in zip(parts, again[0][name])), name
    return sum(each is not None for each in parsed)


def written(path, lines):
    path.write_bytes(b"\n".join(lines) + b"\n")
    assert path.stat().st_size > 1.25 * json_lines._BLOCK
    return path


def test_values_of_every_kind(tmp_path, monkeypatch):
    lines = [json.dumps(line(i)).encode() for i in range(2 * ROWS)]
    assert compared(written(tmp_path / "x.jsonl", lines), monkeypatch) >= 2


@pytest.fixture
def smaller_blocks(monkeypatch):
    """A quarter of a block; return the rows of more than one."""
    monkeypatch.setattr(json_lines, "_BLOCK", json_lines._BLOCK // 4)
    return ROWS // 4


@pytest.mark.parametrize("key", ["topic", "type"])
def test_topics(tmp_path, monkeypatch, smaller_blocks, key):
    labels, rows = ["imu", "gps", "base/odom"], 2 * smaller_blocks
    lines = [json.dumps({key: labels[i % 3], **line(i)}).encode() for i in range(rows)]
    assert compared(written(tmp_path / "x.jsonl", lines), monkeypatch) >= 2
    assert len(data.open(tmp_path / "x.jsonl").names) >= 3


ODD = [
    b'{"time": 1, "count": -0}',
    b'{"time": 1, "count": -0, "pose": {"x": -0, "yaw": -0.0}}',
    b'{"time": 1, "pose": {"x": 9007199254740993}}',
    b'{"time": 1, "count": 9223372036854775808}',
    b'{"time": 1, "count": 1e3}',
    b'{"time": 1, "count": 18446744073709551616, "pose": {"x": 1e400}}',
    b'{"time": 1, "pose": {"x": NaN, "yaw": -Infinity}}',
    b'{"time": 1, "pose": {"x": Inf, "yaw": 1}}',
    b'{"time": 1, "pose": {"x": -NaN, "yaw": 1}}',
    b'{"time": 1, "pose": {"x": "1.5"}}',
    b'{"time": 1, "pose": null, "joints": null}',
    b'{"time": 1, "joints": [1, 2]}',
    b'{"time": 1, "joints": [1, 2, [3]]}',
    b'{"time": 1, "joints": []}',
    b'{"time": 1, "on": 1}',
    b'{"time": 1, "new": 1}',
    b'{"time": 1, "time": 2}',
    b'{"time": 1}{"time": 2}',
    b'{"time":',
    b'1}',
    b'{"time": 1, "count": 0x10}',
    b'{"time": 1, "count": 01}',
    b'{"time": 1, "date": "\\ud800"}',
    b'{"time": 1, "date": "\xff"}',
    b'{"time": 1, "date": "\xc3\xa9", "pose": {"frame": "2023-11-01"}}',
    b'{"time": 1, "pose.x": 5, "pose": {"x": 6}}',
    b'{"time": 1, "topic": "imu"}',
    b'{"time": 1, "pose": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"time": 1, "pose": ' + b'{"x":' * 40 + b"1" + b"}" * 40 + b"}",
    b"[1]",
    b"",
    b" ",
    b' {"time": 1, "count": 7} ',
    b"\x0b",
    b"\xef\xbb\xbf{}",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_odd_lines(tmp_path, monkeypatch, smaller_blocks, seed):
    """Lines that the parsers might read differently, in later blocks."""
    numbers, rows = random.Random(seed), smaller_blocks
    lines = [json.dumps(line(i)).encode() for i in range(rows)]
    for odd in numbers.sample(ODD, 1 + seed):
        lines[numbers.randrange(rows * 4 // 5, rows)] = odd
    compared(written(tmp_path / "x.jsonl", lines), monkeypatch)


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_a_block_with_an_odd_line(tmp_path, monkeypatch, odd):
    """The odd line is in a small last block."""
    monkeypatch.setattr(json_lines, "_BLOCK", 1 << 12)
    lines = [json.dumps(line(i)).encode() for i in range(60)]
    lines[45] = odd
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\r\n".join(lines) + b"\r\n")
    compared(path, monkeypatch)


def test_objects_over_two_lines(tmp_path, monkeypatch):
    """Arrow reads them; each line is damage, since it is not an object."""
    monkeypatch.setattr(json_lines, "_BLOCK", 1 << 12)
    lines = [json.dumps(line(i)).encode() for i in range(60)]
    lines[45:47] = [b'{"time": 1, "count":', b'5}{"time": 2}']
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    compared(path, monkeypatch)
    assert len(data.open(path, damaged="keep").problems) == 2
