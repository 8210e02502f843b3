"""Cases of rbcWindows.

A stream is a dict of the fields of rbcWindowsStream, with `dtype` for its output, `method` as in
the reference of resample, and transforms as dicts. Numbers are such that everything except poses
and interpolation is exact.
"""

import numpy as np
from streams import STREAM_CHOICES, put_stream
from vectors import DTYPES, Case, dyadic, exact_bytes, rounded

import reference
import rotation_reference

FLAGS = {"check_times": 1, "anchor_times": 1 << 16}
STREAM_FLAGS = {"scale_divides": 1 << 17}
OUTSIDE = ["hold", "fill", "extrapolate", "neutral"]
KINDS = ["copy", "subtract", "se3_relative", "se3_world", "se3_step"]
CHOICES = {**STREAM_CHOICES, "outside": OUTSIDE}
_FIELDS = ("begin", "count", "kind", "inverse", "stream", "offset", "reference_begin")
_ROTATIONS = ("rotation", "reference_rotation", "out_rotation")
_GRIDS = ("shift", "scale", "bias", "clip_min", "clip_max", "neutral")


# ---- places of rows ------------------------------------------------------------------------------


class _Call:
    """The rules of windows.h, sample by sample."""

    def __init__(self, streams, episodes, anchors, anchor_stream_index, anchor_times):
        self.streams, self.episodes, self.anchors = streams, episodes, anchors
        self.leader, self.by_times = anchor_stream_index, anchor_times

    def rows(self, n, b):
        begin, end = self.streams[n]["episode_offsets"][self.episodes[b] :][:2]
        return slice(int(begin), int(end))

    def time(self, b):
        """Return the time of the anchor, on the common clock; None if it has none."""
        if self.by_times:
            return None if np.isnan(self.anchors[b]) else self.anchors[b]
        stream = self.streams[self.leader]
        if "times" not in stream:
            return None
        times = stream["times"][self.rows(self.leader, b)]
        if len(times) == 0:
            return None
        row = min(max(int(self.anchors[b]), 0), len(times) - 1)
        return times[row] + times.dtype.type(stream.get("clock_offset", 0))

    def fetch(self, n, b, hold=False):
        """Return for each offset: values or None, whether valid, whether past the end."""
        stream, rows = self.streams[n], self.rows(n, b)
        if "method" in stream:
            return self._interpolated(stream, rows, self.time(b), hold)
        anchor = self._row(stream, rows, n, b)
        found = []
        for offset in stream["offsets"]:
            if anchor is None or rows.stop == rows.start:
                found.append((None, False, False))
                continue
            row = anchor + int(offset)
            inside = 0 <= row < rows.stop - rows.start
            at = rows.start + min(max(row, 0), rows.stop - rows.start - 1)
            fills = stream.get("outside") == "fill" and not hold and not inside
            if fills or ("sample_mask" in stream and not stream["sample_mask"][at]):
                found.append((None, False, False))
            else:
                values = stream["values"][at] if "values" in stream else np.array([at])
                found.append((values, inside, row >= rows.stop - rows.start))
        return found

    def _row(self, stream, rows, n, b):
        leader = self.streams[self.leader]
        own = n == self.leader or "times" not in stream or "times" not in leader
        if own and not self.by_times:
            return int(self.anchors[b])
        time = self.time(b)
        if time is None:
            return None
        times = stream["times"][rows]
        time = time - times.dtype.type(stream.get("clock_offset", 0))
        return int(np.sum(times <= time)) - 1

    def _interpolated(self, stream, rows, time, hold):
        count = len(stream["offsets"])
        if time is None:
            return [(None, False, False)] * count
        queries = time + stream["offsets"]
        options = {k: stream[k] for k in ("max_gap", "tolerance") if k in stream}
        options["outside"] = "fill" if stream.get("outside") == "fill" and not hold else "hold"
        out, mask = reference.resample(
            stream["values"][rows],
            stream["times"][rows],
            queries,
            method=stream["method"],
            clock_offset=stream.get("clock_offset", 0),
            fill_value=np.nan,
            floats=True,
            **options,
        )
        late = queries - stream.get("clock_offset", 0) > stream["times"][rows][-1:].max(initial=0)
        return [
            (o, m, not m and past)
            for o, m, past in zip(out[0] if out.ndim == 3 else out, np.ravel(mask), late)
        ]


# ---- transforms ----------------------------------------------------------------------------------


def _pose(row, begin, rotation):
    """Return position and matrix in longdouble, or None."""
    if row is None:
        return None
    count = rotation_reference.CHANNELS[rotation]
    numbers = np.asarray(row[begin : begin + 3 + count]).astype(np.longdouble)
    matrix = rotation_reference.read(rotation, numbers[3:])
    return None if matrix is None else (numbers[:3], matrix)


def _taken(kind, base, pose):
    (pr, r), (p, m) = base, pose
    return (r.T @ (p - pr), r.T @ m) if kind == "se3_relative" else (p - pr, m @ r.T)


def _joined(kind, base, pose):
    (pr, r), (p, m) = base, pose
    return (r @ p + pr, r @ m) if kind == "se3_relative" else (p + pr, m @ r)


def _transformed(call, n, b, transform, found):
    """Return for each offset the channels of a transform, or None."""
    begin, kind = transform["begin"], transform["kind"]
    part = slice(begin, begin + transform["count"])
    base = call.fetch(transform["stream"], b, hold=True)[transform["offset"]][0]
    inverse, other = transform.get("inverse", False), transform.get("reference_begin", begin)
    if kind == "subtract":
        for values, _, _ in found:
            if values is None or base is None:
                yield None
                continue
            x = values[part].astype(np.float64)
            reference_ = base[other : other + transform["count"]].astype(np.float64)
            yield x + reference_ if inverse else x - reference_
        return
    base = _pose(base, other, transform["reference_rotation"])
    held = call.fetch(n, b, hold=True)
    for o, (values, _, _) in enumerate(found):
        pose = _pose(values, begin, transform["rotation"])
        if kind == "se3_step" and not inverse and o > 0:
            base = _pose(held[o - 1][0], begin, transform["rotation"])
        result = None
        if base is not None and pose is not None:
            result = (_joined if inverse else _taken)(kind, base, pose)
        if kind == "se3_step" and inverse:
            base = result
        if result is None:
            yield None
        else:
            rotation = rotation_reference.write(transform["out_rotation"], result[1])
            yield np.concatenate([result[0], rotation])


def _channels(call, n, b, found):
    """Return for each offset the channels of transforms, and copied ones; NaN is invalid."""
    stream = call.streams[n]
    parts, end = [], 0
    width = stream["values"].shape[1] if "values" in stream else 1

    def copied(until):
        return [np.full(until - end, np.nan) if v is None else v[end:until] for v, _, _ in found]

    for transform in sorted(stream.get("transforms", ()), key=lambda t: t["begin"]):
        parts.append(copied(transform["begin"]))
        none = np.full(_out_count(transform), np.nan)
        made = _transformed(call, n, b, transform, found)
        parts.append([none if part is None else part for part in made])
        end = transform["begin"] + transform["count"]
    parts.append(copied(width))
    return [np.concatenate(part) for part in zip(*parts)]


def _out_count(transform):
    if transform["kind"] == "subtract":
        return transform["count"]
    return 3 + rotation_reference.CHANNELS[transform["out_rotation"]]


def _answers(call, n):
    """Return exact values [B,O,D'] in longdouble, valid [B,O], and the mask of filled values."""
    stream = call.streams[n]
    transforms = stream.get("transforms", ())
    width = stream["values"].shape[1] if "values" in stream else 1
    width += sum(_out_count(t) - t["count"] for t in transforms)
    shape = (len(call.episodes), len(stream["offsets"]))
    exact = np.zeros((*shape, width), np.longdouble)
    valid, filled = np.zeros(shape, bool), np.zeros((*shape, width), bool)
    for b in range(len(call.episodes)):
        found = call.fetch(n, b)
        for o, x in enumerate(_channels(call, n, b, found)):
            filled[b, o] = np.isnan(x.astype(np.float64))
            valid[b, o] = found[o][1] and not filled[b, o].any()
            exact[b, o] = _finished(stream, o, x, found[o][2])
    exact[filled] = stream.get("fill_value", 0.0)
    return exact, valid, filled


def _finished(stream, o, x, past):
    grid = {name: stream[name] for name in _GRIDS if name in stream}
    grid = {name: g[o] if g.ndim == 2 else g for name, g in grid.items()}
    if any(name in grid for name in ("shift", "scale", "bias")):
        x = x - grid.get("shift", 0.0)
        if stream.get("scale_divides"):
            x = _quotient(stream, x, grid["scale"], grid["bias"])
        else:
            x = x * grid.get("scale", 1.0)
            x = x + grid["bias"] if "bias" in grid else x
    x = np.where(x < grid["clip_min"], grid["clip_min"], x) if "clip_min" in grid else x
    x = np.where(x > grid["clip_max"], grid["clip_max"], x) if "clip_max" in grid else x
    if stream.get("outside") == "neutral" and past:
        chosen = stream.get("neutral_channels", np.ones(len(x), bool)).astype(bool)
        x = np.where(chosen, grid.get("neutral", np.zeros(len(x))), x)
    return x


def _quotient(stream, x, divisor, bias):
    """Return x / divisor + bias, each step rounded in the dtype of the arithmetic."""
    kind = np.float64 if stream["values"].dtype == np.float64 else np.float32
    assert (np.isnan(x) | (x == x.astype(kind))).all()  # the difference is exact
    with np.errstate(over="ignore"):
        return x.astype(kind) / divisor.astype(kind) + bias.astype(kind)


# ---- cases ---------------------------------------------------------------------------------------


def windows(name, streams, episodes, anchors, anchor_stream_index=0, anchor_times=False):
    case = Case(f"windows/{name}", "windows")
    call = _Call(streams, episodes, anchors, anchor_stream_index, anchor_times)
    case.set(anchor_stream_index=anchor_stream_index, flags=FLAGS["anchor_times"] * anchor_times)
    case.input(episodes=np.array(episodes), anchors=np.array(anchors))
    for n, stream in enumerate(streams):
        case.lines.append("stream")
        _put(case, stream)
        exact, valid, filled = _answers(call, n)
        case.output(out=_settled(stream, exact, filled), valid=valid)
    return case


def _settled(stream, exact, filled):
    """Return the values in the output's dtype; certain bit for bit."""
    if "values" not in stream:
        return exact[..., 0].astype(np.int64)
    dtype = DTYPES[stream.get("dtype", "f32")]
    if dtype.kind in "iub":
        return exact.astype(dtype)
    out = rounded(exact.astype(np.float64), dtype)
    is_pose = any(t["kind"].startswith("se3") for t in stream.get("transforms", ()))
    if is_pose or "method" in stream:
        # Filled values and zeros are exact; so are positions, which are dyadic.
        bound = np.where(exact == rounded(exact, np.float16), 0, 2.0**-44)
        if stream["values"].dtype != np.float64:
            bound = np.where(bound > 0, 2.0**-24 * np.maximum(1, np.abs(exact)), 0)
        bound[filled] = 0
        for apart in (exact - bound, exact + bound):
            assert exact_bytes(rounded(apart.astype(np.float64), dtype)) == exact_bytes(out)
    return out


def _put(case, stream):
    case.set(mode=int("method" in stream), outside=OUTSIDE.index(stream.get("outside", "hold")))
    if stream.get("scale_divides"):
        case.set(flags=STREAM_FLAGS["scale_divides"])
    shared = ("method", "fill_value", "max_gap", "tolerance", "sample_mask")
    put_stream(case, {"method": "linear", **{k: stream[k] for k in shared if k in stream}})
    if "clock_offset" in stream:
        ticks = stream["times"].dtype == np.int64
        case.set(**{"clock_offset_ticks" if ticks else "clock_offset": stream["clock_offset"]})
    names = ("values", "episode_offsets", "times", "offsets", *_GRIDS, "neutral_channels")
    case.input(**{name: stream.get(name) for name in names})
    for transform in stream.get("transforms", ()):
        given = {"reference_begin": transform["begin"], "inverse": False, **transform}
        given["kind"], given["inverse"] = KINDS.index(given["kind"]), int(given["inverse"])
        rotations = [rotation_reference.NAMES.get(given.get(name), 0) for name in _ROTATIONS]
        case.lines.append(
            " ".join(map(str, ["transform", *(given[f] for f in _FIELDS), *rotations]))
        )


def _poses(random, rows, rotation, dtype="f64"):
    """Return positions with few bits, and rotations that are not small."""
    quaternions = random.randint(-8, 9, (rows, 4)) + np.array([0.5, 0.25, 0, 0])
    written = rotation_reference.convert(quaternions, "quat_xyzw", rotation)
    poses = np.concatenate([dyadic(random, (rows, 3), "f32", 4), written], axis=1)
    return poses.astype(np.float64).astype(DTYPES[dtype])


def _pose_transform(kind, rotation, out, reference_rotation=None, **options):
    return {
        "begin": 0,
        "count": 3 + rotation_reference.CHANNELS[rotation],
        "kind": kind,
        "rotation": rotation,
        "reference_rotation": reference_rotation or rotation,
        "out_rotation": out,
        "reference_begin": 0,
        **options,
    }


def cases():
    random = np.random.RandomState(8)
    ends = np.array([0, 5, 5, 6, 9])  # the second episode is empty, the third of one row
    samples = np.array([0, 0, 2, 3, 1, 3, 0])
    anchors = np.array([0, 4, 0, 1, 0, 5, -3])

    yield windows(
        "states and actions, held, between f32 and bf16",
        [
            {
                "values": dyadic(random, (9, 3), "f32"),
                "episode_offsets": ends,
                "offsets": np.array([-1, 0]),
            },
            {
                "values": dyadic(random, (9, 2), "bf16"),
                "episode_offsets": ends.astype(np.int32),
                "offsets": np.arange(4, dtype=np.int32),
                "dtype": "f16",
            },
        ],
        samples,
        anchors,
    )
    few = dyadic(random, (9, 3), "f32", 6)
    # Of the last one, the reciprocal is not a number of float32.
    scale, own = np.array([0.3, 1 / 3, 7.7, 1e-8, 1e-39]), np.random.RandomState(9)
    yield windows(
        "actions relative to now, by steps, clipped, neutral past the end, to bf16",
        [
            {
                "values": few,
                "episode_offsets": ends,
                "offsets": np.array([0, 1, 2, 7]),
                "outside": "neutral",
                "fill_value": np.nan,
                "transforms": [
                    {"begin": 0, "count": 2, "kind": "subtract", "stream": 0, "offset": 0}
                ],
                "shift": dyadic(random, (4, 3), "f32", 4),
                "scale": np.array([2.0, 0.5, 0.0]),
                "bias": np.array([0, -1, 0.25], np.float32),
                "clip_min": np.float32([-3, -1, -np.inf]),
                "clip_max": np.float32([3, 1, np.inf]),
                "neutral": dyadic(random, (3,), "f32", 4),
                "neutral_channels": np.array([True, False, True]),
                "dtype": "bf16",
            }
        ],
        samples.astype(np.int32),
        anchors,
    )
    yield windows(
        "back from relative, of a stream that is coarser; rows missing; numbers of rows",
        [
            {
                "values": dyadic(random, (6, 4), "f16"),
                "episode_offsets": np.array([0, 3, 6]),
                "times": np.array([0, 2, 4, 0, 1, 1], np.float32),
                "offsets": np.array([0, -1]),
                "sample_mask": np.array([1, 0, 1, 1, 1, 0], np.uint8),
                "fill_value": -2.0,
                "dtype": "f64",
            },
            {
                "values": few[:8],
                "episode_offsets": np.array([0, 5, 8]),
                "times": np.array([-1, 0, 1.5, 2, 3, 0.5, 0.75, 1], np.float32),
                "clock_offset": 0.5,
                "offsets": np.array([1, 0, -1, 1]),
                "outside": "fill",
                "fill_value": 0.5,
                "transforms": [
                    {
                        "begin": 1,
                        "count": 2,
                        "kind": "subtract",
                        "inverse": True,
                        "stream": 0,
                        "offset": 0,
                        "reference_begin": 2,
                    }
                ],
            },
            {
                "episode_offsets": np.array([1, 4, 9]),
                "offsets": np.array([0, 3]),
                "outside": "fill",
                "fill_value": -1.0,
            },
        ],
        np.array([0, 0, 1, 1]),
        np.array([0, 2, 2, 0]),
    )
    for dtype in ("f32", "f64"):
        yield windows(
            f"{dtype} divided by a std, by a range, and by a step",
            [
                {
                    "values": dyadic(own, (9, 5), dtype, 6),
                    "episode_offsets": ends,
                    "offsets": np.array([-1, 0, 2]),
                    "outside": "fill",
                    "fill_value": -7.0,
                    "scale_divides": True,
                    "shift": dyadic(own, (5,), dtype, 4),
                    "scale": scale.astype(DTYPES[dtype]),
                    "bias": np.array([0, -1, -1, 0.25, -1], DTYPES[dtype]),
                    "clip_max": np.array([np.inf, np.inf, 0.5, np.inf, np.inf]),
                    "dtype": dtype,
                }
            ],
            samples,
            anchors,
        )
    for dtype in ("i16", "i64", "bool"):
        numbers = random.randint(0, 2, (9, 2)) * (1 if dtype == "bool" else 12345)
        yield windows(
            f"{dtype} as they are",
            [
                {
                    "values": numbers.astype(DTYPES[dtype]),
                    "episode_offsets": ends,
                    "offsets": np.array([-2, 0, 1]),
                    "outside": "fill",
                    "fill_value": 1.0,
                    "dtype": dtype,
                }
            ],
            samples,
            anchors,
        )
    yield windows(
        "anchors that are times, and interpolation between samples",
        [
            {
                "values": dyadic(random, (9, 3), "f32", 4),
                "episode_offsets": ends,
                "times": np.array([0, 1, 2, 4, 5, 0, 0, 2, 4], np.float64),
                "clock_offset": 0.25,
                "method": [(0, 2, "linear"), (2, 1, "previous")],
                "max_gap": 3.0,
                "offsets": np.array([-1.0, 0, 0.5, 1.75]),
            },
            {
                "values": dyadic(random, (9, 1), "f32", 4),
                "episode_offsets": ends,
                "times": np.array([0, 1, 2, 4, 5, 0, 0, 2, 4], np.float64),
                "offsets": np.array([0, 1]),
            },
        ],
        np.array([0, 0, 3, 3, 0]),
        np.array([0.5, 4.25, 1.75, -3, np.nan]),
        anchor_times=True,
    )
    yield windows(
        "interpolation around rows of another stream, in ticks, filled, to f16",
        [
            {
                "values": dyadic(random, (4, 1), "f32"),
                "episode_offsets": np.array([0, 2, 4]),
                "times": np.array([0, 64, 0, 32]),
                "clock_offset": 8,
                "offsets": np.array([0]),
            },
            {
                "values": dyadic(random, (7, 2), "f32", 4),
                "episode_offsets": np.array([0, 5, 7]),
                "times": np.array([0, 16, 32, 64, 96, 0, 64]),
                "method": "nearest",
                "tolerance": 8.0,
                "outside": "fill",
                "fill_value": -1.0,
                "offsets": np.array([-8, 0, 16, 100]),
                "dtype": "f16",
            },
        ],
        np.array([0, 0, 1]),
        np.array([0, 1, 1]),
    )

    names = ["quat_xyzw", "rotvec", "rot6d_rows", "matrix", "euler_xyz", "euler_ZYX", "quat_wxyz"]
    for i, kind in enumerate(KINDS[2:] * 2):
        rotation, out = names[i], names[(i + 2) % len(names)]
        poses = _poses(random, 9, rotation, "f32" if i % 2 else "f64")
        if rotation.startswith("quat"):
            poses[3, 3:] = 0  # invalid rotation
        transform = _pose_transform(
            kind, rotation, out, "rotvec", stream=1, offset=0, inverse=i > 2
        )
        # Repeated rows make no step, and nearly zero steps have no unique narrower form.
        rows = np.array([1, 2, 0, 1]) if kind == "se3_step" else np.array([1, 4, 0, -1])
        yield windows(
            f"{'from' if i > 2 else 'to'} {kind}, {rotation} to {out}",
            [
                {
                    "values": poses,
                    "episode_offsets": ends,
                    "offsets": np.array([-1, 0, 1]),
                    "fill_value": 9.0,
                    "transforms": [transform],
                    "dtype": "bf16" if i % 2 else "f32",
                },
                {
                    "values": _poses(random, 9, "rotvec", "f32" if i % 2 else "f64"),
                    "episode_offsets": ends,
                    "offsets": np.array([0]),
                    "dtype": "bf16",
                },
            ],
            np.array([0, 0, 1, 3]),
            rows,
        )
    yield windows(
        "nothing",
        [
            {
                "values": np.zeros((9, 2), np.float32),
                "episode_offsets": ends,
                "offsets": np.array([0]),
            }
        ],
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
    )
