"""Images of torch tensors, and the operator for them; see robocache.torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .._arguments.arrays import SEQUENCES, framework_of
from .._arguments.call import array_of
from .._operations import images as _images
from .._operations.images import ImageSize, size_of
from ._arguments import array, indices, is_compiling, require_no_output, require_tensor, seen
from ._operators import refuse_gradients, register
from ._options import decode, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from .._operations.images import ImagesOptions

_plain: Any = _images.images
_ARRAYS = ("rows", "boxes", "flips", "colors", "color_order", "table")
_OF_BYTES = ("flips", "color_order")


def _kernel(frames: Any, *operands: Any) -> Any:
    *arrays, text = operands
    options = dict(decode(text))
    size = options.pop("size")
    return _plain(list(frames), size, **dict(zip(_ARRAYS, arrays)), **options)


def _fake(frames: Any, rows: Any, *operands: Any) -> Any:
    options = decode(operands[-1])
    first = frames[0]
    if first.dim() != 4:
        raise ValueError(f"frames[0]: rank is {first.dim()}, expected 4")
    height, width = size_of(options["size"], "size")
    batch = sum([each.shape[0] for each in frames]) if rows is None else rows.shape[0]
    default = "bfloat16" if first.device.type == "cuda" else "float32"
    dtype = getattr(torch, options.get("dtype") or default)
    shape = (batch, first.shape[3], height, width)
    if options.get("layout") == "hwc":
        shape = (batch, height, width, first.shape[3])
    return first.new_empty(shape, dtype=dtype)


def _setup(ctx: Any, frames: Any, *operands: Any) -> None:
    refuse_gradients(**dict(zip(_ARRAYS, operands)))


_OPERATOR = register(
    "images",
    "Tensor[] frames, Tensor? rows, Tensor? boxes, Tensor? flips, Tensor? colors, "
    "Tensor? color_order, Tensor? table, str options",
    "Tensor",
    *(_kernel, _fake, _setup),
)


def images(
    frames: torch.Tensor | Sequence[torch.Tensor],
    size: ImageSize,
    **options: Unpack[ImagesOptions],
) -> torch.Tensor:
    """Make images of torch tensors as :func:`robocache.images`, also in graphs.

    The result is the same, bit for bit. It has no gradient: frames are bytes, and ``table`` and
    ``colors`` must not require one.

    Parameters
    ----------
    frames : tensor [n,H,W,C] of uint8, or a list of up to 64 of them
        As for :func:`robocache.images`.
    size
        Height and width of the images, or one int for both.
    rows, boxes, crop_size, rule, filter, fit, pad_anchor, pad_value
    flips, colors, color_order, color_first, table, layout, dtype, backend
        As for :func:`robocache.images`. In a graph, numbers that are not tensors become part of it.

    Returns
    -------
    tensor [B,C,h,w], or [B,h,w,C] with the layout "hwc"
        On the device of ``frames``.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid, or an argument requires a gradient.
    TypeError
        A dtype is not supported, or an argument is not a tensor.
    MemoryError
        Not enough memory.
    RoboCacheError
        The rule does not have the filter, the colours are not supported, the device is not
        available, or a CUDA error occurred.

    Examples
    --------
    >>> import torch
    >>> import robocache as rbc
    >>> frames = torch.zeros(2, 48, 64, 3, dtype=torch.uint8)
    >>> rbc.torch.images(frames, 24, flips=[0, 1]).shape
    torch.Size([2, 3, 24, 24])
    """
    others: dict[str, Any] = {**options}
    arrays: list[Any] = list(frames) if isinstance(frames, (list, tuple)) else [frames]
    for n, each in enumerate(arrays):
        require_tensor(each, f"frames[{n}]" if isinstance(frames, (list, tuple)) else "frames")
    require_no_output(others)
    operands = [others.pop(name, None) for name in _ARRAYS]
    if not arrays or not seen(*arrays, *[o for o in operands if isinstance(o, torch.Tensor)]):
        result: torch.Tensor = _plain(arrays, size, **dict(zip(_ARRAYS, operands)), **others)
        return result
    tensors = [_tensor(o, name, arrays[0]) for o, name in zip(operands, _ARRAYS)]
    result = _OPERATOR(arrays, *tensors, encode({"size": size, **others}, "images"))
    return result


def _tensor(value: Any, name: str, like: torch.Tensor) -> Any:
    """Return an argument as a tensor, or None; a list gets the dtype that the operation takes."""
    if value is None or name in ("rows", "boxes"):
        return indices(value, name, like)
    dtype = "uint8" if name in _OF_BYTES else "float64"
    if is_compiling():
        if isinstance(value, torch.Tensor):
            return value
        return torch.tensor(value, dtype=getattr(torch, dtype), device=like.device)
    if type(value) in SEQUENCES:
        value = array_of(framework_of(like, "frames"), value, name, like, dtype)
    return array(value, name)
