"""The operators ``torch.ops.robocache`` for torch.compile, torch.export and torch.func.

An operator takes tensors, and other options as a string (see ``_options``). Its kernels are the
plain calls. It also has a fake kernel, which returns shapes and dtypes; a formula for its gradient,
or a function that refuses gradients; and a rule for vmap.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import torch
from torch._functorch.utils import enable_single_level_autograd_function

from .._arguments.clouds import REDUCTIONS
from .._operations import (
    fuse as _fuse,
)
from .._operations import (
    resample as _resample,
)
from .._operations import (
    voxelize as _voxelize,
)
from .._operations import (
    voxelize_sparse as _voxelize_sparse,
)
from .._operations.stream import FLOAT_OF_BITS, Stream
from . import _vmap as vmap
from ._gradient import UNCHECKED, Weights, require_linear
from ._options import decode, encode

_plain_resample: Any = _resample.resample  # typed as Any: its overloads take no **options
_plain_fuse: Any = _fuse.fuse
_plain_voxelize: Any = _voxelize.voxelize

if not hasattr(torch.library, "register_fake"):
    raise ImportError(f"robocache.torch needs torch 2.4 or later, found {torch.__version__}")
_Library: Any = torch.library.Library  # not typed
_LIBRARY = _Library("robocache", "DEF")
_BITS_OF_FLOAT = {getattr(torch, name): bits for bits, name in FLOAT_OF_BITS.items()}
_FLOAT32 = struct.Struct("f")
_VOXELS = (
    *("coords", "points_per_voxel", "features", "grouped", "point_to_voxel", "num_voxels"),
    *("num_points_outside", "num_voxels_over_capacity"),
    *("num_points_over_capacity", "num_points_over_group"),
)


# ---- resample and its gradient ------------------------------------------------------------------


def _resample_kernel(
    values: Any,
    times: Any,
    query_times: Any,
    lengths: Any = None,
    query_lengths: Any = None,
    batch_offsets: Any = None,
    mean: Any = None,
    std: Any = None,
    sample_mask: Any = None,
    arrivals: Any = None,
    text: str = "",
) -> tuple[Any, Any]:
    options = decode(text)
    out = _plain_resample(
        values,
        times,
        query_times,
        lengths=lengths,
        query_lengths=query_lengths,
        batch_offsets=batch_offsets,
        mean=mean,
        std=std,
        sample_mask=sample_mask,
        arrivals=arrivals,
        **options,
    )
    return out if options.get("return_valid") else (out, _nothing(values))


def _resample_fake(*operands: Any) -> tuple[Any, Any]:
    values, _, query_times, _, _, batch_offsets, _, _, _, _, text = vmap.with_defaults(operands)
    options = decode(text)
    shape = _rows(values, query_times, batch_offsets)
    out = values.new_empty((*shape, values.shape[-1]), dtype=_dtype(options, values.dtype))
    return out, _bools(values, shape, options)


def _resample_setup(ctx: Any, *operands: Any) -> None:
    operands = vmap.with_defaults(operands)
    values, times, query_times, lengths, query_lengths, batch_offsets, *more = operands
    mean, std, mask, arrivals, text = more
    refuse_gradients(times=times, query_times=query_times, mean=mean, std=std, arrivals=arrivals)
    options = decode(text)
    require_linear(options.get("method", "linear"))
    arrays = (times, query_times, lengths, query_lengths, batch_offsets, std, mask, arrivals)
    ctx.save_for_backward(*arrays)
    ctx.shape, ctx.dtype = values.shape, values.dtype
    ctx.options = encode({**options, **UNCHECKED}, "resample")  # the context may be deleted before


def _resample_gradient(ctx: Any, gradient: Any, _: Any) -> tuple[Any, ...]:
    arrays = ctx.saved_tensors
    return (OPS.resample_backward(gradient, *arrays, ctx.shape, ctx.dtype, ctx.options),)


def _backward_kernel(gradient: Any, times: Any, query_times: Any, *more: Any) -> Any:
    # more: lengths, query_lengths, batch_offsets, std, sample_mask, arrivals, shape, dtype, options
    lengths, query_lengths, batch_offsets, std, mask, arrivals, shape, dtype, text = more
    arrays = {"times": times, "query_times": query_times, "lengths": lengths, "arrivals": arrivals}
    arrays.update(query_lengths=query_lengths, batch_offsets=batch_offsets, sample_mask=mask)
    return Weights(arrays, std, decode(text)).transposed(gradient, shape, dtype)


def _backward_fake(gradient: Any, *more: Any) -> Any:
    shape, dtype, _ = more[-3:]
    return gradient.new_empty(shape, dtype=dtype)


def _backward_setup(ctx: Any, *operands: Any) -> None:
    gradient, *arrays, _, _, text = operands
    ctx.save_for_backward(*arrays)
    # Only the product with W, without a mean and fill values.
    changes = {"fill_value": 0.0, "dtype": gradient.dtype, "return_valid": False, **UNCHECKED}
    options = {**decode(text), **changes}
    if options.get("causal"):
        options["outside"] = "fill"  # a row that is not valid has no gradient
    ctx.options = options


def _backward_gradient(ctx: Any, values: Any) -> tuple[Any, ...]:
    *arrays, std, mask, arrivals = ctx.saved_tensors
    if not ctx.options.get("clock_offset"):
        text = encode(ctx.options, "resample")
        gradient, _ = OPS.resample(values, *arrays, None, std, mask, arrivals, text)
        return (gradient,)
    # Only fusion has offsets of clocks, which do not shift arrivals.
    times, queries, lengths, query_lengths, batch_offsets = arrays
    shared = ("dtype", "lag", "return_valid", *UNCHECKED)
    rule = encode({n: o for n, o in ctx.options.items() if n not in shared}, "Stream")
    text = encode({n: o for n, o in ctx.options.items() if n in shared}, "fuse")
    lists = [[each] for each in (lengths, batch_offsets, None, std, mask, arrivals)]
    gradient, _ = OPS.fuse([values], [times], queries, *lists, query_lengths, [rule], text)
    return (gradient,)


# ---- fuse ---------------------------------------------------------------------------------------


def _fuse_kernel(values: Any, times: Any, query_times: Any, *more: Any) -> tuple[Any, Any]:
    # more: lists of lengths, batch_offsets, means, stds, masks, arrivals; query_lengths, rules,
    # options
    *lists, query_lengths, rules, text = more
    streams = []
    for each, own, lengths, batch_offsets, mean, std, present, arrivals, rule in zip(
        values, times, *lists, rules
    ):
        arrays = {"lengths": lengths, "batch_offsets": batch_offsets, "mean": mean, "std": std}
        arrays["sample_mask"], arrays["arrivals"] = present, arrivals
        streams.append(Stream(each, own, **arrays, **decode(rule)))
    options = decode(text)
    out = _plain_fuse(streams, query_times, query_lengths=query_lengths, **options)
    return out if options.get("return_valid") else (out, _nothing(values[0]))


def _fuse_fake(
    values: Any, times: Any, query_times: Any, lengths: Any, batch_offsets: Any, *more: Any
) -> tuple[Any, Any]:
    options = decode(more[-1])
    shape = _rows(values[0], query_times, batch_offsets[0])
    bits = 0
    for each in values:
        bits |= _BITS_OF_FLOAT.get(each.dtype, 0)
    dtype = _dtype(options, getattr(torch, FLOAT_OF_BITS.get(bits, "float32")))
    channels = sum([each.shape[-1] for each in values])
    out = values[0].new_empty((*shape, channels), dtype=dtype)
    return out, _bools(values[0], (*shape, len(values)), options)


def _fuse_setup(ctx: Any, *operands: Any) -> None:
    values, times, query_times, lengths, batch_offsets, means, stds, masks, *shared = operands
    arrivals, query_lengths, rules, text = shared
    refuse_gradients(query_times=query_times)
    for n, rule in enumerate(rules):
        within = f"streams[{n}]."
        refuse_gradients(within, times=times[n], mean=means[n], std=stds[n], arrivals=arrivals[n])
        if values[n].requires_grad:
            require_linear(decode(rule).get("method", "linear"), within)
    ctx.save_for_backward(
        *(query_times, query_lengths),
        *(*times, *lengths, *batch_offsets, *stds, *masks, *arrivals),
    )
    ctx.values = [(each.shape, each.dtype) for each in values]
    ctx.rules, ctx.lag = rules, decode(text).get("lag", 0)


def _fuse_gradient(ctx: Any, gradient: Any, _: Any) -> tuple[Any, ...]:
    count = len(ctx.values)
    gradients: list[Any] = [None] * count
    query_times, query_lengths, *lists = ctx.saved_tensors
    begin = 0
    for n, (shape, dtype) in enumerate(ctx.values):
        end = begin + shape[-1]
        if ctx.wanted[n]:
            options = dict(decode(ctx.rules[n]))
            times, lengths, batch_offsets, std, mask, arrivals = lists[n::count]
            queries = query_times
            if arrivals is None:
                queries = _looked_up(query_times, options.pop("clock_offset", 0))
            elif ctx.lag:
                options["lag"] = ctx.lag
            gradients[n] = OPS.resample_backward(
                gradient[..., begin:end],
                *(times, queries, lengths, query_lengths, batch_offsets, std, mask, arrivals),
                *(shape, dtype, encode(options, "resample")),
            )
        begin = end
    return tuple(gradients)


def _looked_up(query_times: Any, clock_offset: Any) -> Any:
    """Return the query times on a stream's own clock: q - offset, saturated for int64."""
    if not clock_offset:
        return query_times
    if query_times.is_floating_point():
        if query_times.dtype == torch.float32:
            (clock_offset,) = _FLOAT32.unpack(_FLOAT32.pack(clock_offset))
        return query_times - clock_offset
    limits = torch.iinfo(query_times.dtype)
    if clock_offset > 0:
        return query_times.clamp(min=limits.min + clock_offset) - clock_offset
    return query_times.clamp(max=limits.max + clock_offset) - clock_offset


# ---- point clouds -------------------------------------------------------------------------------


def _voxelize_kernel(
    points: Any, features: Any, lengths: Any, batch_offsets: Any, text: str
) -> tuple[Any, Any]:
    options = decode(text)
    out = _plain_voxelize(points, features, lengths=lengths, batch_offsets=batch_offsets, **options)
    return (
        out
        if options.get("return_num_points_outside")
        else (out, points.new_empty(0, dtype=torch.int64))
    )


def _voxelize_fake(
    points: Any, features: Any, lengths: Any, batch_offsets: Any, text: str
) -> tuple[Any, Any]:
    options = decode(text)
    reduction = options.get("reduction", "occupancy")
    reduced = points if features is None else features
    batch, channels = _batch(points, batch_offsets), ()
    dtype = torch.bool if reduction == "occupancy" else torch.int32
    if reduction in REDUCTIONS:
        dtype, channels = reduced.dtype, reduced.shape[-1:]
    shape = (*batch, *options["shape"], *channels)
    outside = batch if options.get("return_num_points_outside") else (0,)
    return (
        points.new_empty(shape, dtype=_dtype(options, dtype)),
        points.new_empty(outside, dtype=torch.int64),
    )


def _sparse_kernel(
    points: Any, features: Any, lengths: Any, batch_offsets: Any, text: str
) -> tuple[Any, ...]:
    voxels = _voxelize_sparse.voxelize_sparse(
        points, features, lengths=lengths, batch_offsets=batch_offsets, **decode(text)
    )
    arrays = [getattr(voxels, name) for name in _VOXELS]
    return tuple([points.new_empty(0) if array is None else array for array in arrays])


def _sparse_fake(
    points: Any, features: Any, lengths: Any, batch_offsets: Any, text: str
) -> tuple[Any, ...]:
    options = decode(text)
    reduced = points if features is None else features
    rows, channels = points.shape[:-1], reduced.shape[-1]
    dtype = _dtype(options, reduced.dtype)
    capacity, most = options.get("max_voxels"), options.get("max_points")
    if capacity is None:
        capacity = torch.sym_max(1, math.prod(rows))
    no_features = options.get("reduction", "mean") is None

    def empty(shape: Any, dtype: Any = torch.int64) -> Any:
        return points.new_empty(shape, dtype=dtype)

    nothing = points.new_empty(0), points.new_empty(0), points.new_empty(0)
    return (
        empty((capacity, 4), torch.int32),
        empty((capacity,), torch.int32),
        nothing[0] if no_features else empty((capacity, channels), dtype),
        nothing[1] if most is None else empty((capacity, most, channels), dtype),
        empty(rows) if options.get("return_point_to_voxel", True) else nothing[2],
        empty(()),
        empty(_batch(points, batch_offsets)),
        empty(()),
        empty(()),
        empty(()),
    )


def _points_setup(ctx: Any, points: Any, features: Any, *operands: Any) -> None:
    refuse_gradients(points=points, features=features)


# ---- shapes, dtypes and refusals ----------------------------------------------------------------


def _batch(rows: Any, batch_offsets: Any) -> tuple[Any, ...]:
    return tuple(rows.shape[:-2]) if batch_offsets is None else (batch_offsets.shape[0] - 1,)


def _rows(values: Any, query_times: Any, batch_offsets: Any) -> tuple[Any, ...]:
    if not 2 <= values.dim() <= 3:
        raise ValueError(f"values: rank is {values.dim()}, expected 2 or 3")
    if not 1 <= query_times.dim() <= 2:
        raise ValueError(f"query_times: rank is {query_times.dim()}, expected 1 or 2")
    return (*_batch(values, batch_offsets), query_times.shape[-1])


def _dtype(options: dict[str, Any], default: torch.dtype) -> torch.dtype:
    name = options.get("dtype")
    return default if name is None else getattr(torch, name)


def _bools(like: Any, shape: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return (
        like.new_empty(shape, dtype=torch.bool) if options.get("return_valid") else _nothing(like)
    )


def _nothing(like: Any) -> Any:
    """Return an empty tensor instead of a mask: an operator always has the same results."""
    return torch.empty(0, dtype=torch.bool, device=like.device)


def refuse_gradients(within: str = "", **arrays: Any) -> None:
    for name, array in arrays.items():
        if array is not None and array.requires_grad:
            raise ValueError(
                f"{within}{name}: requires grad, which is not carried through; pass {name}.detach()"
            )


# ---- registration -------------------------------------------------------------------------------


def register(
    name: str,
    arguments: str,
    results: str,
    kernel: Any,
    fake: Any,
    setup: Any,
    gradient: Any = None,
) -> Any:
    _LIBRARY.define(f"{name}({arguments}) -> {results}", tags=(torch.Tag.pt2_compliant_tag,))
    for device in ("CPU", "CUDA"):
        _LIBRARY.impl(name, kernel, device)
    torch.library.register_fake(f"robocache::{name}", fake, lib=_LIBRARY)
    operator = getattr(torch.ops.robocache, name).default
    over = _autograd(operator, kernel, setup, gradient, results.endswith("[]"))
    _LIBRARY.impl(name, over, "Autograd", with_keyset=True)
    if hasattr(torch.library, "register_vmap"):  # from torch 2.5
        rule = getattr(vmap, name)

        def over_batch(info: Any, in_dims: Any, *operands: Any) -> Any:
            return rule(operator, info.batch_size, in_dims, operands)

        torch.library.register_vmap(f"robocache::{name}", over_batch, lib=_LIBRARY)
    return operator


def _autograd(operator: Any, plain: Any, setup: Any, gradient: Any, listed: bool) -> Any:
    """Return the kernel of autograd. ``setup`` saves what ``gradient`` needs.

    The first argument has gradients: a tensor or a list of tensors. Results may be ``listed``.
    torch.library.register_autograd cannot be used, because its functions cannot be called within
    transformations of torch.func. Functions of a single level can.
    """

    single_level: Any = torch.autograd.function._SingleLevelFunction

    class Function(single_level):
        @staticmethod
        def forward(ctx: Any, keyset: Any, operands: tuple[Any, ...], *tensors: Any) -> Any:
            setup(ctx, *operands)  # may raise an error
            ctx.set_materialize_grads(False)
            results = below(keyset, operands)
            return tuple(results) if listed else results

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            ctx.wanted = ctx.needs_input_grad[2:]
            if all(each is None for each in gradients):
                return (None,) * len(ctx.needs_input_grad)
            return None, None, *gradient(ctx, *gradients)

    def below(keyset: Any, operands: tuple[Any, ...]) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return operator.redispatch(keyset & torch._C._after_autograd_keyset, *operands)

    def kernel(keyset: Any, *operands: Any) -> Any:
        if is_grad_enabled() and any_requires_grad(*operands):
            tensors = operands[0] if isinstance(operands[0], (list, tuple)) else operands[:1]
            with enable_single_level_autograd_function():
                results = Function.apply(keyset, operands, *tensors)
            return list(results) if listed else results
        keys = keyset.raw_repr()
        if keys not in direct:
            direct[keys] = _leads_to_kernel(keyset)
        return plain(*operands) if direct[keys] else below(keyset, operands)

    direct: dict[int, bool] = {}  # by the raw value of a set of keys
    is_grad_enabled = torch.is_grad_enabled
    # Torch's own function does not examine lists that contain None.
    any_requires_grad = _any_requires_grad if listed else torch._C._any_requires_grad

    return kernel


def _any_requires_grad(*operands: Any) -> bool:
    for each in operands:
        tensors = each if isinstance(each, (list, tuple)) else (each,)
        if any([isinstance(tensor, torch.Tensor) and tensor.requires_grad for tensor in tensors]):
            return True
    return False


def _leads_to_kernel(keyset: Any) -> bool:
    """Whether torch's dispatcher would only call the plain kernel, which it does in 4 us."""
    Key = torch._C.DispatchKey
    keys = keyset & torch._C._after_autograd_keyset
    for without_effect in (Key.ADInplaceOrView, Key.BackendSelect):
        keys = keys.remove(without_effect)
    return keys.highestPriorityTypeId() in (Key.CPU, Key.CUDA)


class OPS:
    """The operators."""

    resample = register(
        "resample",
        "Tensor values, Tensor times, Tensor query_times, Tensor? lengths=None, "
        "Tensor? query_lengths=None, Tensor? batch_offsets=None, Tensor? mean=None, "
        "Tensor? std=None, "
        "Tensor? sample_mask=None, Tensor? arrivals=None, str options=''",
        "(Tensor, Tensor)",
        *(_resample_kernel, _resample_fake, _resample_setup, _resample_gradient),
    )
    resample_backward = register(
        "resample_backward",
        "Tensor gradient, Tensor times, Tensor query_times, Tensor? lengths, "
        "Tensor? query_lengths, Tensor? batch_offsets, Tensor? std, Tensor? sample_mask, "
        "Tensor? arrivals, "
        "SymInt[] shape, ScalarType dtype, str options",
        "Tensor",
        *(_backward_kernel, _backward_fake, _backward_setup, _backward_gradient),
    )
    fuse = register(
        "fuse",
        "Tensor[] values, Tensor[] times, Tensor query_times, Tensor?[] lengths, "
        "Tensor?[] batch_offsets, Tensor?[] mean, Tensor?[] std, Tensor?[] sample_mask, "
        "Tensor?[] arrivals, "
        "Tensor? query_lengths, str[] streams, str options",
        "(Tensor, Tensor)",
        *(_fuse_kernel, _fuse_fake, _fuse_setup, _fuse_gradient),
    )
    voxelize = register(
        "voxelize",
        "Tensor points, Tensor? features, Tensor? lengths, Tensor? batch_offsets, str options",
        "(Tensor, Tensor)",
        *(_voxelize_kernel, _voxelize_fake, _points_setup),
    )
    voxelize_sparse = register(
        "voxelize_sparse",
        "Tensor points, Tensor? features, Tensor? lengths, Tensor? batch_offsets, str options",
        "(" + ", ".join(["Tensor"] * len(_VOXELS)) + ")",
        *(_sparse_kernel, _sparse_fake, _points_setup),
    )
