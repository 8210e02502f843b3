"""The golden vectors, byte for byte, from NumPy and from torch on CUDA."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

import robocache as rbc

FOLDER = Path(__file__).resolve().parents[1] / "golden"
sys.path.insert(0, str(FOLDER))

pytest.importorskip("ml_dtypes")  # bfloat16

import generate  # noqa: E402
from generate import BOUNDS, DTYPES, METHODS, MODES, ORDERS  # noqa: E402

WEIGHTINGS = ["constant", "inverse_square"]


@dataclasses.dataclass
class Part:
    """What stands in a case before its streams, or in a stream."""

    settings: dict = dataclasses.field(default_factory=dict)
    groups: list = dataclasses.field(default_factory=list)
    grid: dict = dataclasses.field(default_factory=dict)
    inputs: dict = dataclasses.field(default_factory=dict)
    outputs: dict = dataclasses.field(default_factory=dict)
    streams: list = dataclasses.field(default_factory=list)


def read(path):
    """[(name, op, Part)] of a file."""
    cases = []
    for line in path.read_text().splitlines():
        word, _, rest = line.partition(" ")
        fields = rest.split()
        if word == "case":
            name, part = rest, Part()
        elif word == "op":
            cases.append((name, rest, part))
            call = part
        elif word == "stream":
            part = Part()
            call.streams.append(part)
        elif word == "set":
            part.settings[fields[0]] = float(fields[1])
        elif word == "group":
            begin, count, method = map(int, fields)
            part.groups.append((begin, count, METHODS[method]))
        elif word == "grid":
            numbers = list(map(float, fields))
            shape = list(map(int, fields[6:]))
            part.grid = {"origin": numbers[:3], "voxel_size": numbers[3:6], "shape": shape}
        elif word in ("in", "out"):
            tensors = part.inputs if word == "in" else part.outputs
            tensors[fields[0]] = tensor(*fields[1:])
    return cases


def tensor(dtype, shape, data):
    extents = [] if shape == "scalar" else list(map(int, shape.split("x")))
    raw = bytearray() if data == "-" else bytearray.fromhex(data)
    return np.frombuffer(raw, DTYPES[dtype]).reshape(extents)


def poisoned(array):
    raw = bytearray(b"\xcd" * array.nbytes)
    return np.frombuffer(raw, array.dtype).reshape(array.shape)


# ---- calls ---------------------------------------------------------------------------------------


def stream_options(part, to):
    """Keywords of rbc.resample and rbc.Stream."""
    settings = part.settings
    numbers = ("fill_value", "max_gap", "tolerance")
    options = {name: settings[name] for name in numbers if name in settings}
    options["method"] = part.groups or METHODS[int(settings.get("method", 0))]
    options["bounds"] = BOUNDS[int(settings.get("bounds", 0))]
    for name in ("lengths", "offsets", "mean"):
        if name in part.inputs:
            options[name] = to(part.inputs[name])
    if "inv_std" in part.inputs:
        options["std"] = to(1 / part.inputs["inv_std"])  # exact: powers of two
    return options


def resample(part, to):
    values, times, query_times = (to(part.inputs[k]) for k in ("values", "times", "query_times"))
    lengths = part.inputs.get("query_lengths")
    out, mask = rbc.resample(
        values,
        times,
        query_times,
        query_lengths=None if lengths is None else to(lengths),
        out=to(poisoned(part.outputs["out"])),
        return_mask=True,
        check_times=bool(part.settings.get("flags", 0)),
        **stream_options(part, to),
    )
    return {"out": out, "mask": mask}


def fuse(part, to):
    streams = []
    for stream in part.streams:
        options = stream_options(stream, to)
        if "clock_offset" in stream.settings:
            options["clock_offset"] = stream.settings["clock_offset"]
        if "clock_offset_ticks" in stream.settings:
            options["clock_offset"] = int(stream.settings["clock_offset_ticks"])
        streams.append(
            rbc.Stream(to(stream.inputs["values"]), to(stream.inputs["times"]), **options)
        )
    lengths = part.inputs.get("query_lengths")
    out, mask = rbc.fuse(
        streams,
        to(part.inputs["query_times"]),
        query_lengths=None if lengths is None else to(lengths),
        out=to(poisoned(part.outputs["out"])),
        return_mask=True,
    )
    return {"out": out, "mask": mask}


def cloud_options(part, to):
    rows = {name: to(part.inputs[name]) for name in ("lengths", "offsets") if name in part.inputs}
    return {**part.grid, **rows}


def features_of(part, to):
    return to(part.inputs["features"]) if "features" in part.inputs else None


def voxelize(part, to):
    out, dropped = rbc.voxelize(
        to(part.inputs["points"]),
        features_of(part, to),
        mode=MODES[int(part.settings["mode"])],
        empty_value=part.settings.get("empty_value", 0.0),
        out=to(poisoned(part.outputs["out"])),
        return_dropped=True,
        **cloud_options(part, to),
    )
    return {"out": out, "dropped": dropped}


def voxelize_sparse(part, to):
    features, grouped = part.outputs["features"], part.outputs.get("grouped")
    voxels = rbc.voxelize_sparse(
        to(part.inputs["points"]),
        features_of(part, to),
        reduce=MODES[int(part.settings["reduce"])],
        order=ORDERS[int(part.settings["order"])],
        max_voxels=len(features),
        max_points=None if grouped is None else grouped.shape[1],
        dtype=features.dtype,
        **cloud_options(part, to),
    )
    return {name: getattr(voxels, name) for name in part.outputs}


def voxelize_tsdf(part, to):
    tsdf, weight, dropped = rbc.voxelize_tsdf(
        to(part.inputs["points"]),
        to(part.inputs["sensors"]),
        truncation=part.settings["truncation"],
        weighting=WEIGHTINGS[int(part.settings["weighting"])],
        carve=bool(part.settings["flags"]),
        max_weight=part.settings.get("max_weight"),
        tsdf=to(part.inputs["tsdf"].copy()),
        weight=to(part.inputs["weight"].copy()),
        return_dropped=True,
        **cloud_options(part, to),
    )
    return {"tsdf": tsdf, "weight": weight, "dropped": dropped}


# ---- tests ---------------------------------------------------------------------------------------

CALLS = {call.__name__: call for call in (resample, fuse, voxelize, voxelize_sparse, voxelize_tsdf)}
CASES = {name: case for path in sorted(FOLDER.glob("*.txt")) for name, *case in read(path)}


def test_the_files_are_what_the_generator_writes():
    files = generate.files()
    assert {path.name for path in FOLDER.glob("*.txt")} == set(files)
    for name, text in files.items():
        assert (FOLDER / name).read_text() == text, name


@pytest.mark.parametrize("name", CASES)
def test_numpy(name):
    op, part = CASES[name]
    answers = CALLS[op](part, lambda array: array)
    for output, expected in part.outputs.items():
        same(output, np.asarray(answers[output]), expected)


@pytest.mark.parametrize("name", CASES)
def test_torch_on_cuda(name):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device that torch can use")
    if rbc.info().cuda_unavailable:
        pytest.skip(f"RoboCache has no CUDA here: {rbc.info().cuda_unavailable}")

    def to_cuda(array):
        if array.dtype == DTYPES["bf16"]:
            return torch.from_numpy(array.view(np.int16)).cuda().view(torch.bfloat16)
        return torch.from_numpy(array).cuda()

    op, part = CASES[name]
    answers = CALLS[op](part, to_cuda)
    for output, expected in part.outputs.items():
        answer = answers[output].cpu()
        if answer.dtype == torch.bfloat16:
            answer = answer.view(torch.int16)
        same(output, answer.numpy(), expected)


def same(output, answer, expected):
    """A mask is bool in Python, and numbers of voxels are int64, whatever the case asks for."""
    if output in ("mask", "point_to_voxel"):
        answer = answer.astype(expected.dtype)
    assert answer.shape == expected.shape
    assert answer.tobytes() == expected.tobytes(), f"{output}: is {answer}, expected {expected}"
