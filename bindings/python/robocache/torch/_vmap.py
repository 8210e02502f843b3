"""The operators under vmap: the mapped dimension becomes the batch, or part of it.

Where that is not possible (packed rows, a mean or a std for each call, lists of voxels), there is
one call for each element.
"""

from __future__ import annotations

from typing import Any

import torch

from ._options import decode


def with_defaults(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return all arguments of resample: torch omits trailing arguments with default values."""
    return operands + (None, None, None, None, None, None, None, "")[len(operands) - 3 :]


def resample(operator: Any, size: int, dims: Any, operands: Any) -> Any:
    dims, operands = (*dims, *[None] * (11 - len(dims))), with_defaults(operands)
    values, times, query_times, lengths, query_lengths, batch_offsets, mean, std, *more = operands
    mask, arrivals, options = more
    batch = _batch_of(values, dims[0])
    rows = _rows(size, batch, lengths, query_lengths)
    if rows is None or batch_offsets is not None or _mapped(dims[6:8]):
        return _one_by_one(operator, size, dims, operands)
    results = operator(
        rows(values, dims[0], 2),
        *[rows(*each, 1) for each in zip((times, query_times), dims[1:3])],
        *[rows(*each, 0) for each in zip((lengths, query_lengths), dims[3:5])],
        *(None, mean, std, rows(mask, dims[8], 1), rows(arrivals, dims[9], 1), options),
    )
    return _unfolded(size, batch, results, decode(options).get("return_valid"))


def resample_backward(operator: Any, size: int, dims: Any, operands: Any) -> Any:
    gradient, times, query_times, lengths, query_lengths, batch_offsets, std, mask, *more = operands
    arrivals, shape, dtype, options = more
    batch = shape[0] if len(shape) == 3 else None
    rows = _rows(size, batch, lengths, query_lengths)
    if rows is None or batch_offsets is not None or _mapped(dims[6:7]):
        return _one_by_one(operator, size, dims, operands)
    result = operator(
        rows(gradient, dims[0], 2),
        *[rows(*each, 1) for each in zip((times, query_times), dims[1:3])],
        *[rows(*each, 0) for each in zip((lengths, query_lengths), dims[3:5])],
        *(None, std, rows(mask, dims[7], 1), rows(arrivals, dims[8], 1)),
        *([size * (1 if batch is None else batch), *shape[-2:]], dtype, options),
    )
    return _unfolded(size, batch, (result,), False)[0][0], 0


def fuse(operator: Any, size: int, dims: Any, operands: Any) -> Any:
    (
        values,
        times,
        query_times,
        lengths,
        batch_offsets,
        mean,
        std,
        masks,
        arrivals,
        query_lengths,
        *options,
    ) = operands
    batch = _batch_of(values[0], dims[0][0])
    rows = _rows(size, batch, *lengths, query_lengths)
    if rows is None or any(each is not None for each in batch_offsets) or _mapped(dims[5:7]):
        return _one_by_one(operator, size, dims, operands)
    results = operator(
        [rows(*each, 2) for each in zip(values, dims[0])],
        [rows(*each, 1) for each in zip(times, dims[1])],
        rows(query_times, dims[2], 1),
        [rows(*each, 0) for each in zip(lengths, dims[3])],
        *(batch_offsets, mean, std, [rows(*each, 1) for each in zip(masks, dims[7])]),
        [rows(*each, 1) for each in zip(arrivals, dims[8])],
        *(rows(query_lengths, dims[9], 0), *options),
    )
    return _unfolded(size, batch, results, decode(options[-1]).get("return_valid"))


def voxelize(operator: Any, size: int, dims: Any, operands: Any) -> Any:
    points, features, lengths, batch_offsets, options = operands
    batch = _batch_of(points, dims[0])
    rows = _rows(size, batch, lengths)
    if rows is None or batch_offsets is not None:
        return _one_by_one(operator, size, dims, operands)
    results = operator(
        rows(points, dims[0], 2),
        rows(features, dims[1], 2),
        *(rows(lengths, dims[2], 0), None, options),
    )
    return _unfolded(size, batch, results, decode(options).get("return_num_points_outside"))


def windows(operator: Any, size: int, dims: Any, operands: Any) -> Any:
    results, dims = _one_by_one(operator, size, dims, operands)
    return list(results), list(dims)


def query_weights(operator: Any, size: int, dims: Any, operands: Any) -> Any:
    return _one_by_one(operator, size, dims, operands)


def voxelize_sparse(operator: Any, size: int, dims: Any, operands: Any) -> Any:
    return _one_by_one(operator, size, dims, operands)  # one list of voxels for each


def images(operator: Any, size: int, dims: Any, operands: Any) -> Any:
    return _one_by_one(operator, size, dims, operands)


def unproject(operator: Any, size: int, dims: Any, operands: Any) -> Any:
    depth, intrinsics, pose, colors, options = operands
    batch = _batch_of(depth, dims[0])
    rows = _rows(size, batch)
    arrays = [rows(*each) for each in zip((depth, intrinsics, pose, colors), dims, (2, 1, 2, 3))]
    return _all_unfolded(size, batch, operator(*arrays, options))


def farthest_points(operator: Any, size: int, dims: Any, operands: Any) -> Any:
    points, start_indices, lengths, batch_offsets, options = operands
    batch = _batch_of(points, dims[0])
    rows = _rows(size, batch, start_indices, lengths)
    if rows is None or batch_offsets is not None:
        return _one_by_one(operator, size, dims, operands)
    counts = [rows(*each, 0) for each in zip((start_indices, lengths), dims[1:3])]
    results = operator(rows(points, dims[0], 2), *counts, None, options)
    return _unfolded(size, batch, results, decode(options).get("return_distances"))


def take_rows(operator: Any, size: int, dims: Any, operands: Any) -> Any:
    values, indices, options = operands
    batch = _batch_of(values, dims[0])
    if batch is None and indices.dim() - (dims[1] is not None) == 2:  # all rows of one array
        return _one_by_one(operator, size, dims, operands)
    rows = _rows(size, batch)
    if dims[1] is None:
        indices, dims = indices.expand(size, *indices.shape), (dims[0], 0)
    result = operator(rows(values, dims[0], 2), rows(indices, dims[1], 1), options)
    return (result if batch is None else result.unflatten(0, (size, batch))), 0


# ---- folding ------------------------------------------------------------------------------------


def _batch_of(values: Any, dim: Any) -> Any:
    """Return the size B of the call's own batch, or None."""
    shape = list(values.shape)
    if dim is not None:
        del shape[dim]
    return shape[0] if len(shape) == 3 else None


def _rows(size: int, batch: Any, *counts: Any) -> Any:
    """Return a function that folds the mapped dimension of an argument; None if impossible.

    Its argument ``row`` is the rank of an argument without any batch.
    """
    if batch is None and any(count is not None for count in counts):
        return None  # a single call raises the error

    def rows(array: Any, dim: Any, row: int) -> Any:
        if array is None:
            return None
        shared = array.dim() - (dim is not None) == row
        if dim is None:
            if shared and row == 1:
                return array  # times shared by all rows
            array = array.expand(size, *array.shape)
        else:
            array = array.movedim(dim, 0)
        if batch is None:
            return array
        if shared and row > 0:
            array = array[:, None].expand(size, batch, *array.shape[1:])
        return array.flatten(0, 1)

    return rows


def _unfolded(size: int, batch: Any, results: Any, has_others: Any) -> Any:
    """Return the results with the mapped dimension in front. Others than the first may be empty."""
    dims = (0, 0 if has_others else None)
    if batch is not None:
        first, *others = results
        results = (
            first.unflatten(0, (size, batch)),
            *[each.unflatten(0, (size, batch)) if has_others else each for each in others],
        )
    return results, dims


def _all_unfolded(size: int, batch: Any, results: Any) -> Any:
    if batch is not None:
        results = tuple([each.unflatten(0, (size, batch)) for each in results])
    return results, (0,) * len(results)


def _mapped(dims: Any) -> bool:
    if isinstance(dims, (list, tuple)):
        return any(map(_mapped, dims))
    return dims is not None


def _one_by_one(operator: Any, size: int, dims: Any, operands: Any) -> Any:
    calls = [operator(*_element(operands, dims, n)) for n in range(size)]
    if isinstance(calls[0], torch.Tensor):
        return torch.stack(calls), 0
    results = tuple([torch.stack(each) for each in zip(*calls)])
    return results, (0,) * len(results)


def _element(operand: Any, dims: Any, n: int) -> Any:
    if isinstance(dims, (list, tuple)):
        return [_element(each, dim, n) for each, dim in zip(operand, dims)]
    return operand if dims is None else operand.select(dims, n)
