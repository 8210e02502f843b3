"""Point clouds in the files of the Point Cloud Library: PCD, as ascii, binary and compressed."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_KINDS = {"F": "f", "I": "i", "U": "u"}


@dataclass(frozen=True)
class PointCloud:
    """N points, column by column; an organized cloud is an image of height x width points."""

    columns: dict[str, np.ndarray]  # [N], or [N, count] where a point has several
    width: int
    height: int

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __len__(self) -> int:
        return self.width * self.height

    def stacked(self, *names: str) -> np.ndarray:
        """Some columns side by side: float32 [N, len(names)]."""
        return np.stack([self.columns[name] for name in names], axis=1).astype(np.float32)

    def colors(self) -> np.ndarray:
        """Red, green and blue of each point: uint8 [N, 3]."""
        packed = self.columns["rgb" if "rgb" in self.columns else "rgba"].view(np.uint32)
        return np.stack([packed >> 16, packed >> 8, packed], axis=1).astype(np.uint8)


def read(path: Path | str) -> PointCloud:
    """Read a PCD file of any of the three kinds of data."""
    content = Path(path).read_bytes()
    header, begin = _header(content, path)
    try:
        width, height = int(header["WIDTH"][0]), int(header["HEIGHT"][0])
        sizes, counts = map(int, header["SIZE"]), map(int, header["COUNT"])
        kinds = [_KINDS[kind] for kind in header["TYPE"]]
        fields = [
            (name, f"<{kind}{size}", count) if count > 1 else (name, f"<{kind}{size}")
            for name, kind, size, count in zip(header["FIELDS"], kinds, sizes, counts)
        ]
        unpack = {"ascii": _ascii, "binary": _binary, "binary_compressed": _compressed}
        columns = unpack[header["DATA"][0]](content[begin:], np.dtype(fields), width * height)
    except (KeyError, IndexError, ValueError, TypeError, struct.error) as error:
        raise ValueError(f"{path}: is no PCD file that can be read: {error}") from error
    return PointCloud(columns, width, height)


def _header(content: bytes, path: Path | str) -> tuple[dict[str, list[str]], int]:
    """The words of each line of the header, and where the data begin."""
    header: dict[str, list[str]] = {}
    begin = 0
    while "DATA" not in header:
        end = content.find(b"\n", begin)
        if end < 0 or end - begin > 4096:
            raise ValueError(f"{path}: is no PCD file: its header does not end")
        words = content[begin:end].decode("latin-1").split()
        if words and not words[0].startswith("#"):
            header[words[0]] = words[1:]
        begin = end + 1
    header.setdefault("COUNT", ["1"] * len(header.get("FIELDS", ())))
    return header, begin


def _ascii(data: bytes, row: np.dtype, points: int) -> dict[str, np.ndarray]:
    rows = [line.split() for line in data.splitlines() if line.strip()]
    if len(rows) != points:
        raise ValueError(f"{len(rows)} points, where its header has {points}")
    columns, begin = {}, 0
    for name in row.names or ():
        base, shape = row[name].base, row[name].shape
        end = begin + (shape[0] if shape else 1)
        words = np.array([words[begin:end] for words in rows])
        # Integers may be beyond what a double holds.
        number = np.float64 if base.kind == "f" else np.int64 if base.kind == "i" else np.uint64
        columns[name] = words.astype(number).astype(base).reshape(points, *shape)
        begin = end
    return columns


def _binary(data: bytes, row: np.dtype, points: int) -> dict[str, np.ndarray]:
    records = np.frombuffer(data, row, points)
    return {name: records[name] for name in row.names or ()}


def _compressed(data: bytes, row: np.dtype, points: int) -> dict[str, np.ndarray]:
    """Each column in one piece, all of them through LZF."""
    packed, unpacked = struct.unpack_from("<II", data)
    plain = _lzf(data[8 : 8 + packed])
    if len(plain) != unpacked or unpacked != points * row.itemsize:
        raise ValueError(f"{len(plain)} bytes, expected {points * row.itemsize}")
    columns, begin = {}, 0
    for name in row.names or ():
        end = begin + points * row[name].itemsize
        column = np.frombuffer(plain[begin:end], row[name].base)
        columns[name] = column.reshape(points, *row[name].shape)
        begin = end
    return columns


def _lzf(packed: bytes) -> bytes:
    """What Marc Lehmann's LibLZF compressed."""
    out = bytearray()
    at, end = 0, len(packed)
    while at < end:
        control = packed[at]
        at += 1
        if control < 32:  # as it is
            out += packed[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        if length == 7:
            length += packed[at]
            at += 1
        back = ((control & 31) << 8 | packed[at]) + 1
        at += 1
        length += 2
        begin = len(out) - back
        if begin < 0:
            raise ValueError("its compressed data refer to what is before them")
        piece = out[begin : begin + length]
        out += (piece * (length // back + 1))[:length]  # it may run into what it makes
    return bytes(out)
