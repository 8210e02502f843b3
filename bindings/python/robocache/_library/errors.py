"""Errors: the class RoboCacheError, and helpers for messages."""

from __future__ import annotations

import enum
import re
from typing import Any

from .. import _core
from .._printable import kind_of

# Errors of objects that cannot be described or converted. Other errors are bugs of the object.
REFUSALS = (TypeError, ValueError, AttributeError, BufferError, RuntimeError)


def blamed(error: BaseException, name: str) -> TypeError | ValueError:
    """Return one of ``REFUSALS`` as a one-line error that begins with the argument's name."""
    kind = TypeError if isinstance(error, (TypeError, AttributeError)) else ValueError
    line = str(error).strip().partition("\n")[0]
    return kind(f"{name}: {line or 'cannot be read as an array'}")


# Names of the C interface in messages, and the names of the arguments in Python.
_ARGUMENT = {
    "anchor_stream_index": "anchor_stream",
    "clip_max": "high",
    "clip_min": "low",
    "clock_offset_ticks": "clock_offset",
    "cuda_stream": "stream",
    "groups": "method",
    "levels": "quantiles",
    "num_channels": "channels",
    "reference_offset_index": "reference",
    "reference_stream_index": "reference",
    "scale": "std",
    "shift": "mean",
    "start_indices": "start_index",
    "voxel_features": "features",
}
_FIELD = re.compile(
    r"(?<![\w.])((?:streams\[\d+\]\.)?(?:transforms\[\d+\]\.)?)(?:params\.|outputs\.)?"
    rf"({'|'.join(_ARGUMENT)})(?=:|\[\d+\])"
)
_FRAMES = re.compile(r"(?<![\w.])(frames\[\d+\])\.values\b")
_OUTPUT = re.compile(r"(?<![\w.])outputs\[(\d+)\]\.(out|valid)\b")
# In Python, the accumulator and its rule are arguments of the stream.
_OF_STREAM = re.compile(r"(?<![\w.])outputs(?=\[\d+\](?:\.accumulat|, expected another))")


# in_python makes no function, because CPython 3.12 and 3.13 corrupt the heap if they get no memory
# for one.
def _argument(field: re.Match[str]) -> str:
    return field[1] + _ARGUMENT[field[2]]


def _output(field: re.Match[str]) -> str:
    return f"out[{field[1]}]{'[1]' if field[2] == 'valid' else ''}"


def in_python(message: str) -> str:
    """Return a message with Python's argument names instead of C's names."""
    message = _FIELD.sub(_argument, message)
    message = _OF_STREAM.sub("streams", message)
    message = _FRAMES.sub(r"\1", message)
    return _OUTPUT.sub(_output, message)


def with_python_names(
    error: TypeError | ValueError, *, is_new: bool = False
) -> TypeError | ValueError:
    """Return an error with Python's argument names instead of C's names.

    If ``out`` is new, made with the argument ``dtype``, errors about its dtype name that argument.
    """
    if type(error) not in (TypeError, ValueError):
        return error
    line = in_python(str(error))
    if is_new and line.startswith("out: dtype is "):
        line = line.replace("out: dtype is", "dtype: is", 1)
    return error if line == str(error) else type(error)(line)


def shown(value: Any) -> str:
    """Return the repr of a value, or its type if repr fails."""
    try:
        return repr(value)
    except Exception:
        return kind_of(value)


class Status(enum.IntEnum):
    """Status of a call: the ``RBC_STATUS_...`` constants of the C interface."""

    SUCCESS = _core.STATUS_SUCCESS
    INVALID_ARGUMENT = _core.STATUS_INVALID_ARGUMENT
    UNSUPPORTED = _core.STATUS_UNSUPPORTED
    DEVICE_MISMATCH = _core.STATUS_DEVICE_MISMATCH
    DTYPE_MISMATCH = _core.STATUS_DTYPE_MISMATCH
    SHAPE_MISMATCH = _core.STATUS_SHAPE_MISMATCH
    OUT_OF_MEMORY = _core.STATUS_OUT_OF_MEMORY
    WORKSPACE_TOO_SMALL = _core.STATUS_WORKSPACE_TOO_SMALL
    CUDA_ERROR = _core.STATUS_CUDA_ERROR
    NOT_AVAILABLE = _core.STATUS_NOT_AVAILABLE
    INTERNAL = _core.STATUS_INTERNAL
    CANCELLED = _core.STATUS_CANCELLED
    BUFFER_TOO_SMALL = _core.STATUS_BUFFER_TOO_SMALL
    NOT_FOUND = _core.STATUS_NOT_FOUND
    IO_ERROR = _core.STATUS_IO_ERROR
    DAMAGED = _core.STATUS_DAMAGED
    BUSY = _core.STATUS_BUSY


class RoboCacheError(RuntimeError):
    """Raised for errors other than wrong arguments and lack of memory, such as CUDA errors.

    ``status`` says which error it is. Wrong arguments raise :class:`ValueError` (values, shapes,
    devices) or :class:`TypeError` (dtypes, and objects that are not arrays).
    """

    status: Status

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = Status(status)

    def __reduce__(self) -> tuple[type[RoboCacheError], tuple[str, int]]:
        return type(self), (str(self), int(self.status))
