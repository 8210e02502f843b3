"""Arguments of torch's operators: conversion to tensors, and whether an operator is needed."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

from .._arguments.arrays import SEQUENCES, framework_of
from .._arguments.call import array_of, arrivals_like, queries
from .._arguments.missing import require_missing
from .._library.errors import REFUSALS, blamed
from .._printable import kind_of

_OWN = frozenset([torch.Tensor, torch.nn.Parameter])
_NARROW = (torch.int8, torch.int16, torch.int32, torch.uint8)  # converted to int64
is_compiling: Any = torch.compiler.is_compiling
try:  # these functions are not public, so they are tried before they are used
    _transformed: Any = torch._C._are_functorch_transforms_active
    _num_modes: Any = torch._C._len_torch_dispatch_stack
    _transformed(), _num_modes()
except AttributeError:  # always call an operator, which is correct but slower
    _transformed = _num_modes = lambda: True


def seen(*tensors: Any) -> bool:
    """Whether torch must see an operator: for a gradient, a trace or a transformation.

    Otherwise the plain call is sufficient, at a third of the cost.
    """
    if is_compiling() or _num_modes() or _transformed():
        return True
    graded = torch.is_grad_enabled()
    return any([type(each) not in _OWN or (graded and each.requires_grad) for each in tensors])


def require_tensor(value: Any, name: str) -> None:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name}: is {kind_of(value)}, expected a torch.Tensor")
    if value.layout is not torch.strided:
        raise TypeError(
            f"{name}: has layout {value.layout}, expected a dense tensor; pass .to_dense()"
        )


def require_no_output(options: dict[str, Any]) -> None:
    if "out" in options:
        raise TypeError("out: not supported in robocache.torch, where results may have gradients")


def array(value: Any, name: str) -> Any:
    """Return an array as a tensor that autograd can save. Arrays of other libraries are copied.

    Otherwise autograd would not notice later changes. Under torch.compile the operators of the
    graph check the array.
    """
    if is_compiling():
        if hasattr(value, "__dlpack__"):
            tensor = torch.as_tensor(value)
            return tensor.to(torch.int64) if tensor.dtype in _NARROW else tensor
        raise TypeError(f"{name}: is {kind_of(value)}, expected an array")
    framework_of(value, name).examine(value, name)
    if isinstance(value, torch.Tensor):
        return value
    framework_of(value, name).device(value, name)  # torch does not check the device
    try:
        if not getattr(getattr(value, "flags", None), "writeable", True):
            value = value.copy()  # torch does not take read-only arrays from DLPack
        return from_dlpack(value).clone()
    except REFUSALS as error:
        raise blamed(error, name) from error


def query_array(query_times: Any, times: torch.Tensor, values: torch.Tensor) -> Any:
    """Return query times as a tensor; a list gets the dtype of the times."""
    if is_compiling():
        return _numbers(query_times, "query_times", times.dtype, values)
    own = framework_of(values, "values")
    return array(queries(own, query_times, times, values), "query_times")


def for_each(values: Any, times: Any, query_times: Any, batch_offsets: Any) -> Any:
    """Return values [S,D] of one recording, expanded for each of B rows of queries."""
    one = batch_offsets is None and values.dim() == 2 and times.dim() == 1
    if not one or query_times.dim() != 2:
        return values
    return values.expand(query_times.shape[0], *values.shape)


def indices(value: Any, name: str, like: torch.Tensor) -> Any:
    """Return lengths or batch_offsets as a tensor, or None."""
    if value is None:
        return None
    if is_compiling():
        return _numbers(value, name, torch.int64, like)
    return array(array_of(framework_of(like, name), value, name, like), name)


def sample_mask(value: Any, missing: Any, name: str, values: torch.Tensor) -> Any:
    """Return the mask of samples that are not missing as a tensor; None if no sample is missing."""
    mask = None
    if value is not None:
        if is_compiling() and not isinstance(value, torch.Tensor):
            mask = torch.tensor(value, device=values.device) != 0
        elif is_compiling():
            mask = value
        else:
            mask = array(array_of(framework_of(values, name), value, name, values, "bool"), name)
    require_missing(missing)
    if missing is None or not values.is_floating_point():
        return mask
    there = ~values.detach().isnan().any(-1)
    return there if mask is None else there & (mask != 0)


def scale(value: Any, name: str, like: torch.Tensor) -> Any:
    """Return a mean or a std as a tensor, or None. A std of NumPy becomes float64."""
    if value is None or isinstance(value, torch.Tensor):
        return value if value is None else array(value, name)
    if is_compiling():
        return _numbers(value, name, torch.float64, like)
    if type(value) in SEQUENCES:
        return framework_of(like, name).sequence(value, name, "float64", like)
    numbers = array(value, name)
    is_numpy = framework_of(value, name).is_numpy
    return numbers.double() if name == "std" and is_numpy else numbers


def _numbers(value: Any, name: str, dtype: torch.dtype, like: torch.Tensor) -> Any:
    """Return an array as a tensor, or a list as a constant of the graph."""
    if not isinstance(value, (list, tuple, range)):
        return array(value, name)
    if dtype.is_floating_point:
        return torch.tensor(list(value), dtype=dtype, device=like.device)
    numbers = torch.tensor(list(value), device=like.device)
    if numbers.is_floating_point() and numbers.numel() > 0:
        raise TypeError(f"{name}: is {kind_of(value)} of floats, expected int64")
    return numbers.to(dtype)


def arrival_array(value: Any, name: str, times: torch.Tensor, values: torch.Tensor) -> Any:
    """Return arrivals as a tensor; a list gets the dtype of the times; None stays."""
    if value is None:
        return None
    if is_compiling():
        return _numbers(value, name, times.dtype, values)
    if type(value) in SEQUENCES:
        value = arrivals_like(framework_of(values, "values"), value, times, values)
    return array(value, name)
