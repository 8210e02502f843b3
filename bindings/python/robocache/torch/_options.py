"""Conversion of the options of a call to a string, which graphs of torch can store, and back.

Tensors are arguments of torch's operators. All other arguments are written into one string, such
as ``method=0:3:linear,3:4:slerp;max_gap=0.05``. So the schemas of operators do not list options,
and only the plain call interprets them.
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


def with_flags(options: dict[str, Any], **flags: bool) -> dict[str, Any]:
    """Return the options, with those of the flags that are True."""
    return {**options, **{name: flag for name, flag in flags.items() if flag}}


def encode(options: dict[str, Any], operation: str) -> str:
    """Return options as a string for ``decode``. torch.compile traces this: keep it simple."""
    parts = []
    for name, value in options.items():
        if name not in _KINDS:
            raise TypeError(f"{operation}() got an unexpected keyword argument {name!r}")
        text = "None" if value is None else _KINDS[name][0](value, name)
        parts.append(f"{name}={text}")
    return ";".join(parts)


def decode(text: str) -> dict[str, Any]:
    """Return options as the plain call takes them. The dict is shared and must not be changed."""
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


# ---- writing and reading of each kind of option --------------------------------------------------


def _name(value: Any, name: str) -> str:
    if not isinstance(value, str) or ";" in value:
        raise ValueError(f"{name}: is {value!r}, expected a name")
    return value


def _write_method(method: Any, name: str) -> str:
    if isinstance(method, str):
        code_of(METHODS, method, name)  # raises if it is unknown
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


def _write_number(value: Any, name: str) -> str:
    if isinstance(value, str):
        raise TypeError(f"{name}: is {value!r}, expected a number")
    if not isinstance(value, float):
        try:
            return f"{operator.index(value)}"  # ticks must not be rounded to a float
        except TypeError:
            pass
    return f"{number(value, name)}"  # the form of repr() that torch.compile traces


def _read_number(text: str) -> float:
    return float(text) if set(text) - set("-0123456789") else int(text)


def _write_numbers(value: Any, name: str) -> str:
    try:
        return ",".join([_write_number(each, name) for each in value])
    except TypeError:  # a single number
        return _write_number(value, name)


def _read_numbers(text: str) -> Any:
    numbers = tuple(map(_read_number, text.split(",")))
    return numbers if len(numbers) > 1 else numbers[0]


def _write_flag(value: Any, name: str) -> str:
    return "True" if value else "False"


def _write_dtype(value: Any, name: str) -> str:
    text = f"{value}"  # of torch, or a name
    text = text[len("torch.") :] if text.startswith("torch.") else text
    return text if text in _FLOATS else dtype_name(value)


_FLOATS = ("float16", "bfloat16", "float32", "float64")


def _write_backend(value: Any, name: str) -> str:
    if not isinstance(value, Context):
        return _name(value, name)
    if is_compiling():
        raise ValueError(
            "backend: is a Context, which a graph cannot store; expected None or a string"
        )
    _contexts[id(value)] = value
    return f"{_OF_CONTEXT}{id(value)}"


def _context_of(key: int) -> Context:
    context = _contexts.get(key)
    if context is None:
        raise ValueError("backend: is a deleted Context; keep it until the backward pass is done")
    return context


_FIELDS = ("kind", "begin", "count", "reference_begin", "rotation", "reference_rotation")
_TRANSFORM = (*_FIELDS, "out_rotation", "inverse")


def _write_transforms(value: Any, name: str) -> str:
    parts = []
    for each in value:
        stream, offset = each.reference
        fields = [f"{getattr(each, field)}" for field in _TRANSFORM]
        parts.append(":".join([f"{stream}", f"{offset}", *fields]))
    return ",".join(parts)


def _read_transforms(text: str) -> Any:
    transforms = []
    for part in text.split(",") if text else []:
        stream, offset, kind, begin, count, first, *rotations, inverse = part.split(":")
        make: Any = Transform  # its Literal types would not accept these strings
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
    "divides": _FLAG,
    "anchor_stream": _NUMBER,
    "anchor_times": _FLAG,
    "fill_value": _NUMBER,
    "max_gap": _NUMBER,
    "tolerance": _NUMBER,
    "clock_offset": _NUMBER,
    "causal": _FLAG,
    "max_age": _NUMBER,
    "lag": _NUMBER,
    "return_valid": _FLAG,
    "check_times": _FLAG,
    "origin": _NUMBERS,
    "voxel_size": _NUMBERS,
    "shape": _NUMBERS,
    "reduction": _NAME,
    "order": _NAME,
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
    "size": _NUMBERS,
    "crop_size": _NUMBERS,
    "rule": _NAME,
    "filter": _NAME,
    "fit": _NAME,
    "pad_anchor": _NAME,
    "pad_value": _NUMBERS,
    "color_first": _FLAG,
    "layout": _NAME,
    "dtype": (_write_dtype, str),
    "backend": (_write_backend, str),
}
