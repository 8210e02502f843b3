"""Descriptions of unsupported or damaged files, with what to do about them.

A description is a sentence that follows the path of the file in a message.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator

from ..._printable import printable
from .._file_access import is_file, opened, what_is

_HEAD = 4096  # bytes that are examined
_SHOWN = 60  # characters of a line in a message
_LFS = b"version https://git-lfs.github.com/spec/v1"
_HUB = "huggingface.co"

_NOT_YET = "which is not read yet"

# First bytes of files, and a sentence. {name} is the name of the file, {stem} without its suffix.
_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"\x28\xb5\x2f\xfd", "it is compressed (zstd). Unpack it: zstd -d {name}"),
    (b"\x04\x22\x4d\x18", "it is compressed (lz4). Unpack it: lz4 -d {name}"),
    (b"\xfd7zXZ\0", "it is compressed (xz). Unpack it: xz -dk {name}"),
    (b"BZh", "it is compressed (bzip2). Unpack it: bunzip2 -k {name}"),
    (b"7z\xbc\xaf\x27\x1c", "it is an archive (7-Zip). Unpack it: 7z x {name}"),
    (b"Rar!\x1a\x07", "it is an archive (RAR). Unpack it: unrar x {name}"),
    (b"LASF", f"it is a LAS or LAZ point cloud, {_NOT_YET}. Convert it to PCD: pdal translate"),
    (b"ASTM-E57", f"it is an E57 point cloud, {_NOT_YET}. Convert it to PCD"),
    (b"glTF", "it is a 3D model (glTF), not a recording"),
    (
        b"RRF",
        "it is a recording of Rerun (.rrd); RoboCache writes these, but does not read them. Write "
        "it as Parquet with rerun-sdk[catalog]: with rerun.server.Server(datasets={'x': "
        "['{name}']}) as s: c = s.client(); c.get_dataset('x').reader(index='log_time')"
        ".write_parquet('{stem}')",
    ),
    (
        b"#ROSBAG V1",
        "it is a ROS 1 bag of version 1, which is not read. Convert it: rosbag fix",
    ),
    (b"#ROSRECORD", "it is a ROS 1 bag of an early version. Convert it: rosbag fix"),
    (
        b"SQLite format 3\0",
        "it is an SQLite database without the tables topics and messages, so it is not a bag",
    ),
    (b"ARROW1", "it is an Arrow (Feather) file. Write a Parquet file of its table"),
    (b"FEA1", "it is a Feather file of version 1. Write a Parquet file of its table"),
    (b"ORC", "it is an ORC file. Write a Parquet file of its table"),
    (b"Obj\x01", "it is an Avro file. Write a Parquet file of its rows"),
    (b"CDF\x01", "it is a NetCDF file of version 3. Convert it: nccopy -k nc4 {name} {stem}.h5"),
    (b"CDF\x02", "it is a NetCDF file of version 3. Convert it: nccopy -k nc4 {name} {stem}.h5"),
    (
        b"MATLAB 5.0 MAT-file",
        "it is a MATLAB file. Save its arrays: scipy.io.loadmat and numpy.savez",
    ),
    (b"\x7fELF", "it is a program or a library (ELF), not a recording"),
    (b"MZ", "it is a program (for Windows), not a recording"),
    (b"\xcf\xfa\xed\xfe", "it is a program (for macOS), not a recording"),
    (b"#!", "it is a script, not a recording"),
    (b"%PDF-", "it is a PDF document, not a recording"),
    (b"\x89PNG\r\n\x1a\n", "it is a picture (PNG). Open the data set that it belongs to"),
    (b"\xff\xd8\xff", "it is a picture (JPEG). Open the data set that it belongs to"),
    (b"GIF8", "it is a picture (GIF). Open the data set that it belongs to"),
    (b"II*\0", "it is a picture (TIFF). Open the data set that it belongs to"),
    (b"MM\0*", "it is a picture (TIFF). Open the data set that it belongs to"),
    (b"\x76\x2f\x31\x01", "it is a picture (OpenEXR). Open the data set that it belongs to"),
    (b"\x1a\x45\xdf\xa3", "it is a video (Matroska or WebM). Open the data set that it belongs to"),
    (b"\0\0\x01\xba", "it is a video (MPEG). Open the data set that it belongs to"),
    (b"OggS", "it is sound or a video (Ogg). Open the data set that it belongs to"),
    (b"fLaC", "it is sound (FLAC). Open the data set that it belongs to"),
    (b"ID3", "it is sound (MP3). Open the data set that it belongs to"),
    (b"\xd4\xc3\xb2\xa1", "it is a capture of network packets (pcap), which is not read"),
    (b"\x0a\x0d\x0d\x0a", "it is a capture of network packets (pcapng), which is not read"),
    (
        b"\x37\x7f\x06\x82",
        "it is the write-ahead log of an SQLite bag. Open the .db3 file next to it",
    ),
    (
        b"\x37\x7f\x06\x83",
        "it is the write-ahead log of an SQLite bag. Open the .db3 file next to it",
    ),
)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_RIFF = {
    b"AVI ": "a video (AVI)",
    b"WAVE": "sound (WAV)",
    b"WEBP": "a picture (WebP)",
}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)"
_NUMBERS = re.compile(rf"(?:{_NUMBER})\Z", re.I)


def stranger(path: str) -> str | None:
    """Describe a file that no reader supports; None if its first bytes are not known."""
    name = os.path.basename(path)
    with opened(path) as file:
        start = file.read(_HEAD) or b""
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - 4))
        end = file.read(4) or b""
    if not start:
        return "it is empty (0 bytes): the recorder or the copy did not finish"
    if start.startswith(_LFS):
        return lfs_reason(start)
    found = _by_magic(start, end, name) or _by_text(start, name)
    return (
        found.replace("{name}", name).replace("{stem}", os.path.splitext(name)[0])
        if found
        else None
    )


def placeholder(path: str) -> str | None:
    """Return what to do about a Git LFS pointer or an HTML page at a path; None for other files."""
    if "\0" in path or not os.path.isfile(path):
        return None
    try:
        with opened(path) as file:
            start = file.read(512) or b""
    except (OSError, ValueError):
        return None
    if start.startswith(_LFS):
        return lfs_reason(start)
    found = _by_text(start, os.path.basename(path)) if start.lstrip().startswith(b"<") else None
    return found if found is not None and "HTML" in found else None


def lfs_reason(start: bytes) -> str:
    size = re.search(rb"\nsize (\d{1,18})", start)
    size_text = f" ({int(size[1]):,} bytes)" if size else ""
    return (
        f"it is a Git LFS pointer, not the file itself{size_text}. Fetch the file: git lfs pull, "
        "in its repository"
    )


def unknown_file(path: str) -> str:
    """Return why a file that no reader supports cannot be opened."""
    known = stranger(path)
    if known is not None:
        return known
    with opened(path) as file:
        start = file.read(_HEAD) or b""
    guess = _guess(start)
    return f"unknown format. {first_lines(start)}" + (f". {guess}" if guess else "")


def first_text(path: str) -> str:
    """Return the begin of a text; "" for any other file."""
    with opened(path) as file:
        start = file.read(_HEAD) or b""
    return start.decode("utf-8", "replace").removeprefix("\ufeff") if _is_text(start) else ""


def first_lines(start: bytes) -> str:
    """Return the first two lines of a text, or the first bytes of another file, for a message."""
    if not _is_text(start):
        return f"First bytes: {start[:16]!r}"
    lines = [_quoted(line) for line in start.decode("utf-8", "replace").splitlines()[:2]]
    return f"First line{'s' * (len(lines) - 1)}: {' and '.join(lines)}"


def _quoted(line: str) -> str:
    line = line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."
    return f'"{printable(line)}"'


def look_alike(path: str) -> str:
    """Describe a file in a folder in a few words; "" if it is not known."""
    known = stranger(path)
    if known is not None:
        what, _, remedy = known.removeprefix("it is ").partition(". ")
        what = what.partition(",")[0]
        command = re.search(r"(?:Unpack it: |Fetch the file: )([^,]+)", remedy)
        return f"{what}: {command[1]}" if command else what
    with opened(path) as file:
        guess = _guess(file.read(_HEAD) or b"")
    return guess.removeprefix("It ").partition(",")[0].partition(" (")[0]


def _by_magic(start: bytes, end: bytes, name: str) -> str | None:
    if start.startswith(b"PAR1") and end != b"PAR1":
        return (
            "it is a Parquet file without its footer: the writer did not close it, or the copy is "
            "incomplete. Copy it again"
        )
    if start.startswith(b"\x1f\x8b"):
        if name.lower().endswith((".tar.gz", ".tgz")):
            return "it is an archive (tar, gzip). Unpack it: tar -xzf {name}"
        return "it is compressed (gzip). Unpack it: gunzip -k {name}"
    if start[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        if b"data.pkl" in start[:256]:
            return "it was saved by torch.save. Save its tensors: numpy.savez"
        return "it is an archive (zip). Unpack it: unzip {name}"
    if start[257:262] == b"ustar":
        return "it is an archive (tar). Unpack it: tar -xf {name}"
    if start[0] == 0x80 and len(start) > 2 and start[1] in (2, 3, 4, 5) and end.endswith(b"."):
        return (
            "it is a Python pickle, which is not read: loading one runs the code in it. "
            "Save its arrays: numpy.savez"
        )
    if start[4:8] == b"ftyp":
        return "it is a video (MP4) or a picture. Open the data set that it belongs to"
    if start.startswith(b"RIFF") and start[8:12] in _RIFF:
        return f"it is {_RIFF[start[8:12]]}. Open the data set that it belongs to"
    for magic, reason in _BEGINNINGS:
        if start.startswith(magic):
            return reason
    if name.endswith("-shm") and name[: -len("-shm")].endswith(".db3"):
        return "it is the index of the write-ahead log of an SQLite bag. Open the .db3 file"
    return None


def _is_text(start: bytes) -> bool:
    return bool(start) and not re.search(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]", start)


def _by_text(start: bytes, name: str) -> str | None:
    if start.startswith(_UTF16):
        command = "iconv -f UTF-16 -t UTF-8 {name} > {stem}_utf8.csv"
        return f"it is text in UTF-16. Save it as UTF-8: {command}"
    if not _is_text(start):
        return None
    text = start.decode("utf-8", "replace").removeprefix("\ufeff")
    begin = text.lstrip()[:512].lower()
    if begin.startswith(("<!doctype html", "<html")) or "<html" in begin[:256]:
        return (
            "it is an HTML page, not a recording: a login page, an error or a preview was saved "
            "instead of the file. Download the file itself"
        )
    if begin.startswith("<?xml") or begin.startswith("<error>"):
        return "it is an XML file, not a recording: a server may have sent an error instead"
    if "rosbag2_bagfile_information" in text:
        return "it is the metadata of a ROS 2 bag. Open its folder"
    if begin.startswith(("{", "[")):
        return _json_kind(text)
    return None


def _json_kind(text: str) -> str | None:
    lines = [line for line in text.splitlines() if line.strip()]
    if text.lstrip().startswith("[") and len(lines) > 1 and _is_json(lines[0]):
        return (
            f"it is a file of JSON lines that are no objects, {_NOT_YET}. Write a table with a "
            "header: pandas.read_json"
        )
    if re.match(r"\s*(\{\s*(\"|\}|\Z)|\[\s*([\[{\"\]\d-]|\Z))", text):
        return (
            f"it is a JSON file, {_NOT_YET}. If it is part of a data set, open the folder of the "
            "set; if it is a table, convert it to Parquet: pandas.read_json"
        )
    return None


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), (dict, list))
    except (ValueError, RecursionError):
        return False


# ---- texts of numbers ----------------------------------------------------------------------------


def _guess(start: bytes) -> str:
    """Return a sentence about a text of numbers, or ""."""
    if not _is_text(start):
        return ""
    lines = start.decode("utf-8", "replace").removeprefix("\ufeff").splitlines()
    if len(start) == _HEAD:
        lines = lines[:-1]
    comments = ("#", "%", "//")
    rows = [line for line in lines if line.strip() and not line.lstrip().startswith(comments)][:5]
    if not rows:
        return ""
    for separator, called in (
        (",", "commas"),
        (";", "semicolons"),
        ("\t", "tabs"),
        (None, "spaces"),
    ):
        cells = [[cell.strip() for cell in row.split(separator)] for row in rows]
        width = len(cells[0])
        if width < 2 and separator is not None or any(len(row) != width for row in cells):
            continue
        if all(map(_are_numbers, cells)):
            columns = f"{width} numbers per row, separated by {called}"
            columns = columns if width > 1 else "one number per row"
            return (
                f"It looks like a table without a header ({columns}). Add a first line with the "
                "names of the columns, such as time_s,x,y"
            )
    return ""


def _are_numbers(cells: list[str]) -> bool:
    return bool(cells) and all(_NUMBERS.match(cell) for cell in cells)


# ---- paths that do not exist ---------------------------------------------------------------------


def missing(path: str) -> str:
    """Return what to do about a path that does not exist: it may be a URL, or an id of the Hub."""
    if match := re.match(r"hf:/+(?:datasets/)?([\w.-]+/[\w.-]+)", path):
        return _from_hub(match[1])
    if match := re.match(rf"(?:https?:/+)?{_HUB}/+datasets/([\w.-]+/[\w.-]+)", path):
        return _from_hub(match[1])
    if match := re.match(r"(s3|gs|ftps?|https?|az|abfs|sftp|ssh)(?::/+)", path):
        tools = {"s3": "aws s3 cp", "gs": "gcloud storage cp"}
        command = f"{tools[match[1]]} {path} ." if match[1] in tools else f"curl -LO {path}"
        return f"is a URL. Download it first: {command}"
    if re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", path) and not os.path.isdir(
        os.path.dirname(path)
    ):
        return f"does not exist. If it is a data set of the Hugging Face Hub: {_download(path)}"
    return "does not exist"


def _from_hub(name: str) -> str:
    return f"is on the Hugging Face Hub. Download it first: {_download(name)}"


def _download(name: str) -> str:
    folder = name.partition("/")[2]
    return f"hf download {name} --repo-type dataset --local-dir {folder}"


_KINDS = {
    ".h5": "an HDF5 file",
    ".hdf5": "an HDF5 file",
    ".npy": "a .npy file",
    ".npz": "an npz file",
    ".pcd": "a PCD file",
    ".bin": "a LiDAR sweep",
    ".bag": "a ROS 1 bag",
}
_TABLES = (".csv", ".tsv", ".parquet", ".pq")


def faults_in(path: str) -> Iterator[str]:
    """Yield a fault for each file that no reader supports."""
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        suffix = os.path.splitext(entry.name)[1].lower()
        if not is_file(entry) or entry.name.startswith("."):
            continue
        instead = placeholder(entry.path)
        if instead is not None:
            yield f"{entry.name}: {instead}"
        elif suffix in _TABLES:
            from .tables.columns import fault_of

            yield f"{entry.name} {fault_of(entry.path)[0]}"
        elif suffix in _KINDS:
            yield f"{entry.name}: expected {_KINDS[suffix]}, got {what_is(entry.path)}"
