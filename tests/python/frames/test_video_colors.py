"""Colors of frames: the formula, the same bytes with and without SIMD, the filter of chroma."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from robocache.data._frames import video_rgb
from robocache.data._frames.video import VideoFrames

av = pytest.importorskip("av")

WEIGHTS = {"BT.601": (0.299, 0.114), "BT.709": (0.2126, 0.0722), "BT.2020": (0.2627, 0.0593)}
MATRICES = {"BT.601": 6, "BT.709": 1, "BT.2020": 9, None: 2}  # None: the file names none
SIZE = (66, 130)


def write(path, matrix, full, pixels="yuv420p", size=SIZE):
    """A video that loses nothing, with any bytes as its planes; returns the planes."""
    rng = np.random.default_rng(3)
    height, width = size
    planes = []
    with av.open(str(path), "w") as file:
        stream = file.add_stream("ffv1", 30)
        stream.height, stream.width, stream.pix_fmt = height, width, pixels
        context = stream.codec_context
        context.colorspace = MATRICES[matrix]
        context.color_range = {None: 0, False: 1, True: 2}[full]
        for i in range(2):
            frame = av.VideoFrame(width, height, pixels)
            frame.colorspace, frame.color_range = context.colorspace, context.color_range
            planes.append([])
            for plane in frame.planes:
                rows = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size).copy()
                if pixels.endswith("le"):
                    own = rng.integers(0, 1024, (len(rows), plane.line_size // 2), np.uint16)
                    rows[:] = own.view(np.uint8)
                else:
                    low, high = (0, 256) if full else (16, 236)
                    rows[:] = rng.integers(low, high, rows.shape, np.uint8)
                plane.update(rows.tobytes())
                planes[-1].append(rows[:, : plane.width])
            frame.pts = i
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return planes


def read(path):
    frames = VideoFrames("front", str(path), [(str(path), 0.0)], np.array([2]), 30)
    out = np.empty((2, *frames.shape), np.uint8)
    frames.read(0, np.arange(2), out)
    return out


def formula(planes, matrix, full):
    """RGB in float64: each chroma sample stands for four pixels."""
    kr, kb = WEIGHTS[matrix]
    y, u, v = (plane.astype(np.float64) for plane in planes)
    u, v = (np.repeat(np.repeat(plane, 2, 0), 2, 1)[: len(y), : y.shape[1]] for plane in (u, v))
    if full:
        u, v = (u - 128) / 255, (v - 128) / 255
        y = y / 255
    else:
        y, u, v = (y - 16) / 219, (u - 128) / 224, (v - 128) / 224
    red = y + 2 * (1 - kr) * v
    blue = y + 2 * (1 - kb) * u
    green = (y - kr * red - kb * blue) / (1 - kr - kb)
    return np.clip(np.stack([red, green, blue], -1) * 255, 0, 255)


@pytest.mark.parametrize("full", [None, False, True])
@pytest.mark.parametrize("matrix", MATRICES)
def test_the_matrix_and_the_range_of_the_file(tmp_path, matrix, full):
    path = tmp_path / "a.mkv"
    planes = write(path, matrix, full)
    for own, image in zip(planes, read(path)):
        expected = formula(own, matrix or "BT.601", bool(full))
        # libswscale computes with few bits, and cuts off: PyAV's own frames are as far away
        assert np.abs(image - expected).max() <= (2.0 if full else 3.6), (matrix, full)
        for other in WEIGHTS.keys() - {matrix or "BT.601"}:
            assert np.abs(image - formula(own, other, bool(full))).max() > 10


CHILD = """
import ctypes, hashlib, sys
import av
import numpy as np
[library] = {line.split()[-1] for line in open("/proc/self/maps") if "libavutil" in line}
util = ctypes.CDLL(library)
util.av_force_cpu_flags(0)
assert util.av_get_cpu_flags() == 0
from robocache.data._frames.video import VideoFrames
for path in sys.argv[1:]:
    frames = VideoFrames("front", path, [(path, 0.0)], np.array([2]), 30)
    out = np.empty((2, *frames.shape), np.uint8)
    frames.read(0, np.arange(2), out)
    print(hashlib.sha256(out.tobytes()).hexdigest())
"""


def test_the_short_way_gives_the_same_bytes(tmp_path, monkeypatch):
    for size in ((66, 130), (66, 131), (480, 640)):
        path = tmp_path / "a.mkv"
        write(path, "BT.709", False, size=size)
        short = read(path)
        monkeypatch.setattr(video_rgb, "_short_way_is_exact", lambda *_: False)
        assert (read(path) == short).all(), size
        monkeypatch.undo()


@pytest.mark.skipif(sys.platform != "linux", reason="finds libavutil in /proc")
def test_processors_without_simd_give_the_same_bytes(tmp_path):
    cases = [
        ("yuv420p", False, SIZE),
        ("yuv420p", True, SIZE),
        ("yuv420p", False, (65, 129)),
        ("yuv420p", False, (480, 640)),
        ("yuv422p", False, SIZE),
        ("yuv444p", False, SIZE),
        ("yuv420p10le", False, SIZE),
        ("gray", True, SIZE),
    ]
    paths = []
    for i, (pixels, full, size) in enumerate(cases):
        paths.append(str(tmp_path / f"{i}.mkv"))
        write(paths[-1], "BT.709", full, pixels, size)
    made = subprocess.run(
        [sys.executable, "-c", CHILD, *paths], capture_output=True, text=True, check=True
    )
    own = [hashlib.sha256(read(path).tobytes()).hexdigest() for path in paths]
    assert made.stdout.split() == own


def test_chroma_is_repeated_as_in_pyav(tmp_path):
    """So frames differ from LeRobot's frames only by rounding."""
    path = tmp_path / "a.mkv"
    write(path, "BT.601", False, size=(480, 640))
    with av.open(str(path)) as file:
        plain = next(file.decode(video=0)).to_ndarray(format="rgb24")
    difference = np.abs(plain.astype(int) - read(path)[0])
    assert difference.max() <= 3
