"""Small recordings and data sets, each with a fault that `robocache inspect` should find."""

from __future__ import annotations

import numpy as np

from robocache import Track, data

MS = 1_000_000
START = 1_700_000_000_000_000_000  # ns


def stream(name="arm", samples=400, period=10 * MS, seed=1, **given) -> data.RecordedStream:
    """Samples without a fault, with header stamps 2 ms before the log times."""
    rng = np.random.default_rng(seed)
    log = START + np.arange(samples) * period
    told = {
        "name": name,
        "kind": "test/Joints",
        "names": ("a", "b", "c"),
        "values": np.cumsum(rng.normal(size=(samples, 3)), axis=0).astype(np.float32),
        "clocks": {"log": log, "header": log - 2 * MS},
        "unit": "ns",
    }
    return data.RecordedStream(**{**told, **given})


def clocks(log, header=None):
    return {"log": log, "header": log - 2 * MS if header is None else header}


def _times(samples=400):
    return START + np.arange(samples) * 10 * MS


def _values(change):
    values = stream().values.copy()
    change(values)
    return stream(values=values)


def _gap():
    keep = np.r_[0:100, 130:400]
    return stream().select(keep)


def _jitter():
    rng = np.random.default_rng(2)
    log = _times() + rng.integers(-6 * MS, 6 * MS, 400)
    return stream(clocks=clocks(np.sort(log)))


def _repeats():
    log = _times()
    log[50] = log[49]
    return stream(clocks=clocks(log))


def _back():
    header = _times() - 2 * MS
    header[50] -= 40 * MS
    return stream(clocks=clocks(_times(), header))


def _drift():
    log = START + np.arange(4000) * 10 * MS
    header = log - 2 * MS + (np.arange(4000) * 10_000).astype(np.int64)  # 1000 ppm
    return stream(samples=4000, clocks=clocks(log, header))


def _quaternion():
    rng = np.random.default_rng(3)
    q = rng.normal(size=(400, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    q[70] *= 1.5
    names = tuple(f"pose.orientation.{axis}" for axis in "xyzw")
    return stream(values=q, names=names)


FAULTS = {
    "gaps": _gap,
    "jitter": _jitter,
    "repeats": _repeats,
    "order": _back,
    "drift": _drift,
    "zero_stamps": lambda: stream(clocks=clocks(_times(), np.zeros(400, np.int64))),
    "constant": lambda: _values(lambda v: v.__setitem__((slice(None), 1), 3.0)),
    "nan": lambda: _values(lambda v: v.__setitem__((7, 2), np.nan)),
    "quaternion": _quaternion,
}


def recording(*streams) -> data.Recording:
    return data.Recording.from_streams(streams or (stream(),))


def save(path, *streams):
    data.save(recording(*streams), path, "npz")
    return path


def episodes(count=5, rows=40, seed=1) -> data.Episodes:
    rng = np.random.default_rng(seed)
    offsets = np.arange(count + 1) * rows
    times = np.tile(np.arange(rows) / 10, count)
    tracks = {
        "observation.state": Track(
            rng.normal(size=(count * rows, 3)).astype("f4"), offsets, times=times, names=list("abc")
        ),
        "action": Track(
            rng.normal(size=(count * rows, 2)).astype("f4"), offsets, times=times, names=list("xy")
        ),
    }
    from robocache import Episodes

    return Episodes(tracks, tasks=["stack"] * count)
