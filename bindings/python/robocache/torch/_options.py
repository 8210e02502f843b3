"""The options of a call as a text, which is how a graph of torch holds them, and back.

Tensors are arguments of torch's operators. All else that a call of this package takes is written
into one string: ``method=0:3:linear,3:4:slerp;max_gap=0.05``. So no option has a place of its own
in a schema, and the plain call alone knows what each one means.
"""

from __future__ import annotations

import functools
import operator
import weakref
from typing import Any

from .._arguments.options import code_of, number
from .._arguments.resample_params import METHODS
from .._library.context import Context
from .._library.dtypes import dtype_name
from .._windows.transform import Transform
from ._arguments import is_compiling

_contexts: weakref.WeakValueDictionary[int, Context] = weakref.WeakValueDictionary()
_OF_CONTEXT = "context "


def asked(options: dict[str, Any], **flags: bool) -> dict[str, Any]:
    """The options, with the flags that are set."""
    return {**options, **{name: flag for name, flag in flags.items() if flag}}


def encode(options: dict[str, Any], operation: str) -> str:
    """What ``decode`` reads. torch.compile runs it as well, so it is plain Python."""
    parts = []
    for name, value in options.items():
        if name not in _KINDS:
            raise TypeError(f"{operation}() got an unexpected keyword argument {name!r}")
        text = "None" if value is None else _KINDS[name][0](value, name)
        parts.append(f"{name}={text}")
    return ";".join(parts)


def decode(text: str) -> dict[str, Any]:
    """Options as the plain call takes them, in a dict that others read too."""
    options = _decoded(text)
    if "backend" in options:
        backend = options["backend"]
        if backend is not None and backend.startswith(_OF_CONTEXT):
            return {**options, "backend": _context_of(int(backend[len(_OF_CONTEXT) :]))}
    return options


@functools.lru_cache(maxsize=1024)
def _decoded(text: str) -> dict[str, Any]:
    parts = [part.partition("=")[::2] for part in text.split(";")] if text else []
    return {
        name: None if written == "None" else _KINDS[name][1](written) for name, written in parts
    }


# ---- each kind of option: how it is written, and how it is read ----------------------------------


def _name(given: Any, name: str) -> str:
    if not isinstance(given, str) or ";" in given:
        raise ValueError(f"{name}: is {given!r}, expected a name")
    return given


def _write_method(method: Any, name: str) -> str:
    if isinstance(method, str):
        code_of(METHODS, method, name)  # of one name alone
        return method
    groups = []
    for i, (begin, count, each) in enumerate(method):
        code_of(METHODS, each, f"{name}[{i}]")
        groups.append(f"{operator.index(begin)}:{operator.index(count)}:{each}")
    return ",".join(groups)


def _read_method(text: str) -> Any:
    if ":" not in text:
        return text
    groups = [group.split(":") for group in text.split(",")]
    return tuple((int(begin), int(count), name) for begin, count, name in groups)


def _write_number(given: Any, name: str) -> str:
    if isinstance(given, str):
        raise TypeError(f"{name}: is {given!r}, expected a number")
    if not isinstance(given, float):
        try:
            return f"{operator.index(given)}"  # ticks, which no float may round
        except TypeError:
            pass
    return f"{number(given, name)!r}"


def _read_number(text: str) -> float:
    return float(text) if set(text) - set("-0123456789") else int(text)


def _write_numbers(given: Any, name: str) -> str:
    try:
        return ",".join([_write_number(each, name) for each in given])
    except TypeError:  # one of no length
        return _write_number(given, name)


def _read_numbers(text: str) -> Any:
    numbers = tuple(map(_read_number, text.split(",")))
    return numbers if len(numbers) > 1 else numbers[0]


def _write_flag(given: Any, name: str) -> str:
    return "True" if given else "False"


def _write_dtype(given: Any, name: str) -> str:
    text = f"{given}"  # of torch, or a name
    text = text[len("torch.") :] if text.startswith("torch.") else text
    return text if text in _FLOATS else dtype_name(given)


_FLOATS = ("float16", "bfloat16", "float32", "float64")


def _write_backend(given: Any, name: str) -> str:
    if not isinstance(given, Context):
        return _name(given, name)
    if is_compiling():
        raise ValueError("backend: is a Context, which no graph holds; expected None or a string")
    _contexts[id(given)] = given
    return f"{_OF_CONTEXT}{id(given)}"


def _context_of(key: int) -> Context:
    context = _contexts.get(key)
    if context is None:
        raise ValueError("backend: is a Context that is gone; expected one that outlives the call")
    return context


_FIELDS = ("kind", "begin", "count", "reference_begin", "rotation", "reference_rotation")
_TRANSFORM = (*_FIELDS, "out_rotation", "inverse")


def _write_transforms(given: Any, name: str) -> str:
    parts = []
    for each in given:
        stream, offset = each.reference
        fields = [f"{getattr(each, field)}" for field in _TRANSFORM]
        parts.append(":".join([f"{stream}", f"{offset}", *fields]))
    return ",".join(parts)


def _read_transforms(text: str) -> Any:
    transforms = []
    for part in text.split(",") if text else []:
        stream, offset, kind, begin, count, first, *rotations, inverse = part.split(":")
        make: Any = Transform  # whose names are no literals here
        transforms.append(
            make(
                kind,
                int(begin),
                int(count),
                reference=(int(stream), int(offset)),
                reference_begin=int(first),
                **{
                    name: None if each == "None" else each
                    for name, each in zip(_TRANSFORM[4:7], rotations)
                },
                inverse=inverse == "True",
            )
        )
    return tuple(transforms)


_NAME = (_name, str)
_NUMBER = (_write_number, _read_number)
_NUMBERS = (_write_numbers, _read_numbers)
_FLAG = (_write_flag, "True".__eq__)
_KINDS: dict[str, tuple[Any, Any]] = {
    "method": (_write_method, _read_method),
    "outside": _NAME,
    "transforms": (_write_transforms, _read_transforms),
    "output": _FLAG,
    "anchor_stream": _NUMBER,
    "anchor_times": _FLAG,
    "fill_value": _NUMBER,
    "max_gap": _NUMBER,
    "tolerance": _NUMBER,
    "clock_offset": _NUMBER,
    "return_valid": _FLAG,
    "check_times": _FLAG,
    "origin": _NUMBERS,
    "voxel_size": _NUMBERS,
    "shape": _NUMBERS,
    "reduction": _NAME,
    "order": _NAME,
    "fill_value": _NUMBER,
    "max_voxels": _NUMBER,
    "max_points": _NUMBER,
    "deterministic": _FLAG,
    "return_num_points_outside": _FLAG,
    "return_point_to_voxel": _FLAG,
    "return_distances": _FLAG,
    "k": _NUMBER,
    "start_index": _NUMBER,
    "depth_scale": _NUMBER,
    "min_depth": _NUMBER,
    "max_depth": _NUMBER,
    "crop": _NUMBERS,
    "pixel_offset": _NUMBER,
    "pixel_stride": _NUMBER,
    "color_divisor": _NUMBER,
    "dtype": (_write_dtype, str),
    "backend": (_write_backend, str),
}
