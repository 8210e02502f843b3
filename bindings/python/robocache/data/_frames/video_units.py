"""Facts in a few bytes of containers and codecs: cut files, and where decoding begins."""

from __future__ import annotations

import os
from collections.abc import Iterator

from .._file_access import opened

_EBML, _SEGMENT = 0x1A45DFA3, 0x18538067  # elements of Matroska
_IDR, _SEI = 5, 6  # units of H.264
_RECOVERY = 6  # kind of a SEI message
_BLA, _LAST_IRAP = 16, 23  # units of HEVC at which decoding may begin
_BOXES = {"ftyp", "moov", "mdat", "moof", "mfra", "free", "skip", "wide", "sidx", "styp", "uuid"}
_BOXES |= {"emsg", "meta", "prft", "pdin", "udta"}
_MOST_BOXES = 1 << 20


def is_cut_off(path: str) -> str | None:
    """Return what a truncated MP4 or Matroska file lacks; None if it is whole, or another file."""
    size = os.path.getsize(path)
    if size == 0:
        return "is empty"
    with opened(path) as file:
        head = file.read(64)
        if head[4:8] == b"ftyp":
            names: list[str] = []
            at = 0
            while at < size and len(names) < _MOST_BOXES:
                file.seek(at)
                box = file.read(16)
                length = int.from_bytes(box[:4], "big")
                if length == 1 and len(box) == 16:
                    length = int.from_bytes(box[8:], "big")
                length = size - at if length == 0 else length
                name = box[4:8].decode("latin-1")
                if len(box) == 16 and name not in _BOXES:  # something behind the video
                    break
                if len(box) < 8 or length < 8 or at + length > size:
                    return (
                        f"is truncated: box {name!r} begins at byte {at:,} and has {length:,} "
                        f"bytes, but the file has {size:,}"
                    )
                names.append(name)
                at += length
            if "moov" not in names:
                return f"is truncated: it has the boxes {', '.join(names[:6])}, but no moov"
        elif int.from_bytes(head[:4], "big") == _EBML:
            return _cut_matroska(head, size)
    return None


def _cut_matroska(head: bytes, size: int) -> str | None:
    length, at = _vint(head, 4)
    at += length or 0
    if length is None or int.from_bytes(head[at : at + 4], "big") != _SEGMENT:
        return None
    length, begin = _vint(head, at + 4)
    if length is not None and begin + length > size:
        return f"is truncated: it has {size:,} bytes, but states {begin + length:,}"
    return None


def _vint(data: bytes, at: int) -> tuple[int | None, int]:
    """Return a number of variable length, None if it is not known, and where the next byte is."""
    if at >= len(data) or data[at] == 0:
        return None, at + 1
    count = 9 - data[at].bit_length()
    value = int.from_bytes(data[at : at + count], "big") & ((1 << (7 * count)) - 1)
    return (None if value == (1 << (7 * count)) - 1 else value), at + count


def length_size(codec: str, extradata: bytes | None) -> int:
    """Return how many bytes state the length of a unit; 0 if units begin with 00 00 01."""
    if not extradata or extradata[0] != 1:
        return 0
    at = {"h264": 4, "hevc": 21}.get(codec, len(extradata))
    return (extradata[at] & 3) + 1 if at < len(extradata) else 0


def is_start(codec: str, packet: bytes, prefix: int) -> bool:
    """Whether decoding may begin at a packet that the container marks as a keyframe.

    For H.264 it holds an IDR picture, or a recovery point from which every frame that is shown
    later is right at once; for HEVC a picture that begins a sequence (IRAP); for MPEG-1, 2 and 4 an
    I picture. Decoders of AV1 and VP9 refuse frames whose references are missing.
    """
    if codec == "h264":
        for unit in units(packet, prefix):
            kind = unit[0] & 31
            if kind == _IDR or (kind == _SEI and _recovers_at_once(unit)):
                return True
        return False
    if codec == "hevc":
        return any(_BLA <= unit[0] >> 1 & 63 <= _LAST_IRAP for unit in units(packet, prefix))
    if codec == "mpeg4":  # the kind of the picture follows its start code
        at = packet.find(b"\0\0\1\xb6")
        return 0 <= at < len(packet) - 4 and packet[at + 4] >> 6 == 0
    if codec in ("mpeg1video", "mpeg2video"):
        at = packet.find(b"\0\0\1\0")
        return 0 <= at < len(packet) - 5 and packet[at + 5] >> 3 & 7 == 1
    return True


def units(packet: bytes, prefix: int) -> Iterator[bytes]:
    """Yield the units (NAL) of a packet."""
    at = 0
    if prefix:
        while at + prefix < len(packet):
            length = int.from_bytes(packet[at : at + prefix], "big")
            at += prefix
            if length:
                yield packet[at : at + length]
            at += length
        return
    while (at := packet.find(b"\0\0\1", at)) >= 0:
        at += 3
        end = packet.find(b"\0\0\1", at)
        if at < len(packet):
            yield packet[at : end if end >= 0 else len(packet)]


def _recovers_at_once(unit: bytes) -> bool:
    """Whether a SEI unit of H.264 has a recovery point without frames to wait for."""
    data = unit[1:].replace(b"\0\0\3", b"\0\0")
    at = 0
    while at + 2 < len(data):
        numbers = []
        for _ in range(2):  # kind and size
            number = 0
            while at < len(data) and data[at] == 255:
                number, at = number + 255, at + 1
            if at == len(data):
                return False
            numbers.append(number + data[at])
            at += 1
        if numbers[0] == _RECOVERY:  # an Exp-Golomb number: a first bit of 1 is 0
            return at < len(data) and data[at] >= 128
        at += numbers[1]
    return False
