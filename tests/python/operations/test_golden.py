"""The golden vectors, byte for byte, from NumPy and from torch on CUDA."""

import dataclasses
import inspect
import sys
from pathlib import Path

import numpy as np
import pytest

import robocache as rbc

FOLDER = Path(__file__).resolve().parents[2] / "golden"
sys.path.insert(0, str(FOLDER))

pytest.importorskip("ml_dtypes")  # bfloat16

import generate  # noqa: E402
from streams import CAUSAL, METHODS, PERIODS  # noqa: E402
from vectors import DTYPES  # noqa: E402

import rotation_reference  # noqa: E402


@dataclasses.dataclass
class Part:
    """The part of a case before its streams, or one stream."""

    settings: dict = dataclasses.field(default_factory=dict)
    groups: list = dataclasses.field(default_factory=list)
    transforms: list = dataclasses.field(default_factory=list)
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
            whole = part
        elif word == "stream":
            part = Part()
            whole.streams.append(part)
        elif word == "set":
            numbers = list(map(float, fields[1:]))
            part.settings[fields[0]] = numbers if len(numbers) > 1 else numbers[0]
        elif word == "group":
            begin, count, method, *period = map(int, fields)
            name = PERIODS[period[0]] if period else METHODS[method]
            part.groups.append((begin, count, name))
        elif word == "transform":
            part.transforms.append(list(map(int, fields)))
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


def keywords(part, call, to, choices, written=(), flags=None):
    """Return the entries of a part that are parameters of a function or a class of robocache."""
    names = list(inspect.signature(call).parameters)
    found = {name: to(tensor) for name, tensor in part.inputs.items()}
    if "shift" in found:
        found["mean"] = found.pop("shift")
    if "scale" in found:
        found["std"] = to(1 / part.inputs["scale"])  # exact: powers of two
        del found["scale"]
    if "levels" in found:
        found["quantiles"] = part.inputs["levels"]
        del found["levels"]
    for name in written:
        if f"return_{name}" in names:
            found[f"return_{name}"] = True
        elif name in names and name not in found:  # not read as well
            found[name] = to(poisoned(part.outputs[name]))
    settings = dict(part.settings)
    bits = int(settings.pop("flags", 0))
    found.update((flag, bool(bits & bit)) for flag, bit in (flags or {}).items())
    if "crop_min" in settings:
        found["crop"] = settings.pop("crop_min") + settings.pop("crop_max")
    if "start_indices" in found:
        found["start_index"] = found.pop("start_indices")
    for name, value in settings.items():
        if name in ("clock_offset_ticks", "lag_ticks"):
            found[name.removesuffix("_ticks")] = int(value)
        elif name in ("ddof", "start_index", "pixel_stride"):
            found[name] = int(value)
        else:
            found[name] = choices[name][int(value)] if name in choices else value
    if part.groups:
        found["method"] = part.groups
    found.update(part.grid)
    if part.streams:
        found["streams"] = [
            rbc.Stream(**keywords(s, rbc.Stream, to, choices, flags={"causal": CAUSAL}))
            for s in part.streams
        ]
    return {**sizes(part, names), **found}


def sizes(part, names):
    """Return arguments that follow from the shapes of the outputs, which Python creates."""
    found = {}
    if "max_voxels" in names:
        found["max_voxels"] = len(part.outputs["coords"])
        found["dtype"] = part.outputs["voxel_features"].dtype
    if "max_points" in names and "grouped" in part.outputs:
        found["max_points"] = part.outputs["grouped"].shape[1]
    if "max_points" in names and "points" in part.outputs:
        found["max_points"] = max(1, part.outputs["points"].shape[-2])
        found["dtype"] = part.outputs["points"].dtype
    if "k" in names:
        found["k"] = part.outputs["indices"].shape[-1]
    return found


def call(op, part, to):
    """The outputs by name."""
    if op == "windows":
        return call_windows(part, to)
    if op == "images":
        return {"out": call_images(part, to)}
    if op == "image_draws":
        return call_image_draws(part, to)
    function, operation = getattr(rbc, op), generate.OPERATIONS[op]
    kinds = (argument.split(":") for argument in operation.signature.split())
    written = [name for name, kind in kinds if kind == "out" and name in part.outputs]
    inputs = {name: tensor.copy() for name, tensor in part.inputs.items()}  # some are written
    part = dataclasses.replace(part, inputs=inputs)
    answer = function(**keywords(part, function, to, operation.choices, written, operation.flags))
    if dataclasses.is_dataclass(answer):
        return {name: getattr(answer, name.removeprefix("voxel_")) for name in part.outputs}
    return dict(zip(written, answer if isinstance(answer, tuple) else (answer,)))


def call_windows(part, to):
    """In Python a stream has a normalization, and its outputs come from the call."""
    rotations = {value: name for name, value in rotation_reference.NAMES.items()}
    choices, streams, outputs = generate.OPERATIONS["windows"].choices, [], []
    for stream in part.streams:
        given = {name: to(tensor) for name, tensor in stream.inputs.items()}
        affine = ("shift", "scale", "bias", "clip_min", "clip_max")
        affine = [given.pop(name, None) for name in affine]
        if any(each is not None for each in affine):
            divides = bool(stream.settings.get("flags"))
            given["normalization"] = rbc.Normalization(*affine, divides=divides)
        settings = dict(stream.settings)
        settings.pop("flags", None)
        method = choices["method"][int(settings.pop("method", 0))]
        if settings.pop("mode"):
            given["method"] = stream.groups or method
        given["outside"] = choices["outside"][int(settings.pop("outside"))]
        if "clock_offset_ticks" in settings:
            settings["clock_offset"] = int(settings.pop("clock_offset_ticks"))
        given["transforms"] = [transform(numbers, rotations) for numbers in stream.transforms]
        streams.append(rbc.WindowStream(given.pop("values", None), **given, **settings))
        outputs.append([to(poisoned(stream.outputs[name])) for name in ("out", "valid")])
    rbc.windows(
        streams,
        to(part.inputs["episodes"]),
        to(part.inputs["anchors"]),
        anchor_stream=int(part.settings["anchor_stream_index"]),
        anchor_times=bool(part.settings["flags"]),
        out=[tuple(arrays) for arrays in outputs],
    )
    names = ("out", "valid")
    answers = {
        f"streams[{n}].{name}": array
        for n, arrays in enumerate(outputs)
        for name, array in zip(names, arrays)
    }
    for n, stream in enumerate(part.streams):
        part.outputs.update((f"streams[{n}].{name}", stream.outputs[name]) for name in names)
    return answers


def call_images(part, to):
    """In Python the arrays of frames are a list."""
    choices, settings = generate.OPERATIONS["images"].choices, dict(part.settings)
    options = {name: to(tensor) for name, tensor in part.inputs.items()}
    options["color_first"] = bool(settings.pop("flags", 0))
    channels = part.streams[0].inputs["values"].shape[-1]
    options["pad_value"] = settings.pop("pad_value")[:channels]
    options.update({name: choices[name][int(value)] for name, value in settings.items()})
    frames = [to(stream.inputs["values"].copy()) for stream in part.streams]
    return rbc.images(frames, out=to(poisoned(part.outputs["out"])), **options)


def call_image_draws(part, to):
    """In Python what is not drawn is None, and colours have float32."""
    settings = {name: part.settings.get(name) for name in part.settings}
    crop = [None, "fixed", "fraction", "area"][int(settings["crop"])]
    if crop == "fixed":
        crop = (int(settings["crop_height"]), int(settings["crop_width"]))
    elif crop == "fraction":
        crop = settings["crop_fraction"]
    steps = ("brightness", "contrast", "saturation")
    draws = rbc.image_draws(
        to(part.inputs["samples"].copy()),
        (int(settings["frame_height"]), int(settings["frame_width"])),
        **{name: int(settings[name]) for name in ("seed", "epoch", "camera")},
        crop=crop,
        flip=settings["flip_probability"],
        color=rbc.ColorJitter(**{step: settings.get(step) for step in steps}),
    )
    answers = {}
    for name in list(part.outputs):
        array = getattr(draws, name)
        if array is None:
            del part.outputs[name]
        else:
            answers[name] = array
    part.outputs["colors"] = part.outputs["colors"].astype(np.float32)
    return answers


def transform(numbers, rotations):
    begin, count, kind, flags, stream, offset, reference_begin, *of_poses = numbers
    kinds = ["copy", "subtract", "se3_relative", "se3_world", "se3_step"]
    names = ("rotation", "reference_rotation", "out_rotation")
    given = {} if kind < 2 else dict(zip(names, (rotations[value] for value in of_poses)))
    return rbc.Transform(
        kinds[kind],
        begin,
        count,
        reference=(stream, offset),
        reference_begin=reference_begin,
        inverse=bool(flags),
        **given,
    )


# ---- tests ---------------------------------------------------------------------------------------

CASES = {name: case for path in sorted(FOLDER.glob("*.txt")) for name, *case in read(path)}


def test_the_files_are_what_the_generator_writes():
    files = generate.files()
    assert {path.name for path in FOLDER.glob("*.txt")} == set(files)
    for name, text in files.items():
        assert (FOLDER / name).read_text() == text, name


@pytest.mark.parametrize("name", CASES)
def test_numpy(name):
    op, part = CASES[name]
    answers = call(op, part, lambda array: array)
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
    answers = call(op, part, to_cuda)
    for output, expected in part.outputs.items():
        answer = answers[output].cpu()
        if answer.dtype == torch.bfloat16:
            answer = answer.view(torch.int16)
        same(output, answer.numpy(), expected)


def same(output, answer, expected):
    """In Python, masks are bool and numbers of voxels int64; convert them to the case's dtype."""
    if output in ("valid", "point_to_voxel"):
        answer = answer.astype(expected.dtype)
    assert answer.shape == expected.shape
    assert answer.tobytes() == expected.tobytes(), f"{output}: is {answer}, expected {expected}"
