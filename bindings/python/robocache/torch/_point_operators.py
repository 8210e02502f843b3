"""The operators ``torch.ops.robocache`` for clouds: unproject, farthest_points and take_rows.

Points have gradients with respect to float depth, and rows with respect to values.
"""

from __future__ import annotations

from typing import Any

import torch

from .._operations import farthest_points as _farthest_points
from .._operations import unproject as _unproject
from ._gradient import sum_dtype
from ._operators import refuse_gradients, register
from ._options import decode

_plain_farthest: Any = (
    _farthest_points.farthest_points
)  # typed as Any: its overloads take no **options


# ---- unproject ----------------------------------------------------------------------------------


def _unproject_kernel(
    depth: Any, intrinsics: Any, pose: Any, colors: Any, text: str
) -> tuple[Any, ...]:
    cloud = _unproject.unproject(depth, intrinsics, pose, colors=colors, **decode(text))
    return cloud.points, cloud.num_points, cloud.pixels, cloud.num_points_over_capacity


def _unproject_fake(
    depth: Any, intrinsics: Any, pose: Any, colors: Any, text: str
) -> tuple[Any, ...]:
    options = decode(text)
    if not 2 <= depth.dim() <= 3:
        raise ValueError(f"depth: rank is {depth.dim()}, expected 2 or 3")
    *batch, height, width = depth.shape
    stride = options.get("pixel_stride", 1)
    capacity = options.get("max_points")
    if capacity is None:
        capacity = ((height + stride - 1) // stride) * ((width + stride - 1) // stride)
    columns = 3 if colors is None else 3 + colors.shape[-1]
    dtype = getattr(torch, options.get("dtype", "float32"))
    return (
        depth.new_empty((*batch, capacity, columns), dtype=dtype),
        depth.new_empty(batch, dtype=torch.int64),
        depth.new_empty((*batch, capacity), dtype=torch.int64),
        depth.new_empty(batch, dtype=torch.int64),
    )


def _unproject_setup(
    ctx: Any, depth: Any, intrinsics: Any, pose: Any, colors: Any, text: str
) -> None:
    refuse_gradients(intrinsics=intrinsics, pose=pose, colors=colors)
    ctx.save_for_backward(depth, intrinsics, pose, colors)
    ctx.text = text


def _unproject_gradient(ctx: Any, gradient: Any, *_: Any) -> tuple[Any, ...]:
    """Return the gradient of depth: a point moves along the ray of its pixel."""
    depth, intrinsics, pose, colors = ctx.saved_tensors
    options = decode(ctx.text)
    _, _, pixels, _ = OPERATORS["unproject"](depth, intrinsics, pose, colors, ctx.text)
    number = sum_dtype(gradient.dtype)
    fx, fy, cx, cy = intrinsics.to(number).unsqueeze(-2).unbind(-1)
    center = options.get("pixel_offset", 0)
    width = depth.shape[-1]
    at = pixels.clamp(min=0)
    along_x = ((at % width).to(number) + center - cx) / fx
    along_y = (at.div(width, rounding_mode="floor").to(number) + center - cy) / fy
    rays = torch.stack([along_x, along_y, torch.ones_like(along_x)], -1)
    if pose is not None:
        rays = rays @ pose[..., :3, :3].to(number).mT
    moved = (gradient[..., :3].to(number) * rays).sum(-1) / (options.get("depth_scale") or 1)
    total = moved.new_zeros((*depth.shape[:-2], depth.shape[-2] * width))
    # Each pixel has at most one point.
    total = total.scatter_add(-1, at, torch.where(pixels < 0, 0, moved))
    return (total.reshape(depth.shape).to(depth.dtype),)


# ---- farthest points ----------------------------------------------------------------------------


def _farthest_kernel(
    points: Any, start_indices: Any, lengths: Any, batch_offsets: Any, text: str
) -> tuple[Any, Any]:
    options = dict(decode(text))
    if start_indices is not None:
        options["start_index"] = start_indices
    results = _plain_farthest(points, lengths=lengths, batch_offsets=batch_offsets, **options)
    if options.get("return_distances"):
        return results  # type: ignore[no-any-return]
    return results, points.new_empty(0, dtype=torch.float32)


def _farthest_fake(
    points: Any, start_indices: Any, lengths: Any, batch_offsets: Any, text: str
) -> tuple[Any, Any]:
    options = decode(text)
    batch = points.shape[:-2] if batch_offsets is None else (batch_offsets.shape[0] - 1,)
    shape = (*batch, options["k"])
    with_distances = options.get("return_distances")
    dtype = torch.float64 if with_distances and points.dtype == torch.float64 else torch.float32
    return (
        points.new_empty(shape, dtype=torch.int64),
        points.new_empty(shape if with_distances else 0, dtype=dtype),
    )


def _farthest_setup(ctx: Any, points: Any, *operands: Any) -> None:
    refuse_gradients(points=points)


# ---- rows by index ------------------------------------------------------------------------------


def _take_kernel(values: Any, indices: Any, text: str) -> Any:
    return _farthest_points.take_rows(values, indices, **decode(text))


def _take_fake(values: Any, indices: Any, text: str) -> Any:
    if not 2 <= values.dim() <= 3:
        raise ValueError(f"values: rank is {values.dim()}, expected 2 or 3")
    return values.new_empty((*indices.shape, values.shape[-1]))


def _take_setup(ctx: Any, values: Any, indices: Any, text: str) -> None:
    ctx.save_for_backward(indices)
    ctx.shape, ctx.dtype = values.shape, values.dtype


def _take_gradient(ctx: Any, gradient: Any) -> tuple[Any, ...]:
    """Return, for each row, the sum of the gradients of its copies, in a fixed order."""
    (indices,) = ctx.saved_tensors
    *batch, rows, channels = ctx.shape
    count = batch[0] * rows if batch else rows
    at = indices.to(torch.int64)
    known = (at >= 0) & (at < rows)
    if batch:
        at = at + torch.arange(batch[0], device=at.device)[:, None] * rows
    at = torch.where(known, at, count).flatten()  # the fill value has a separate row
    parts = gradient.to(sum_dtype(gradient.dtype)).reshape(-1, channels)
    total = parts.new_zeros((count + 1, channels))
    if total.is_cuda:
        total = total.index_put((at,), parts, accumulate=True)
    else:
        total = total.index_add(0, at, parts)
    return (total[:count].reshape(ctx.shape).to(ctx.dtype),)


OPERATORS = {
    "unproject": register(
        "unproject",
        "Tensor depth, Tensor intrinsics, Tensor? pose, Tensor? colors, str options",
        "(Tensor, Tensor, Tensor, Tensor)",
        *(_unproject_kernel, _unproject_fake, _unproject_setup, _unproject_gradient),
    ),
    "farthest_points": register(
        "farthest_points",
        "Tensor points, Tensor? start_indices, Tensor? lengths, Tensor? batch_offsets, str options",
        "(Tensor, Tensor)",
        *(_farthest_kernel, _farthest_fake, _farthest_setup),
    ),
    "take_rows": register(
        "take_rows",
        "Tensor values, Tensor indices, str options",
        "Tensor",
        *(_take_kernel, _take_fake, _take_setup, _take_gradient),
    ),
}
