"""Arguments of torch's operators: what is given as tensors, and when an operator is needed."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

from .._arguments.arrays import SEQUENCES, framework_of
from .._arguments.call import array_of, queries
from .._arguments.missing import require_missing
from .._library.errors import REFUSALS, blamed

_OWN = frozenset([torch.Tensor, torch.nn.Parameter])
_NARROW = (torch.int8, torch.int16, torch.int32, torch.uint8)  # what times are not
is_compiling: Any = torch.compiler.is_compiling
try:  # what is no public interface is tried before it is relied on
    _transformed: Any = torch._C._are_functorch_transforms_active
    _num_modes: Any = torch._C._len_torch_dispatch_stack
    _transformed(), _num_modes()
except AttributeError:  # then an operator is always called, which is right and slower
    _transformed = _num_modes = lambda: True


def seen(*tensors: Any) -> bool:
    """Whether something of torch has to see an operator: a gradient, a trace, a transformation.

    Else the plain call does, at a third of the cost.
    """
    if is_compiling() or _num_modes() or _transformed():
        return True
    graded = torch.is_grad_enabled()
    return any([type(each) not in _OWN or (graded and each.requires_grad) for each in tensors])


def require_tensor(given: Any, name: str) -> None:
    if not isinstance(given, torch.Tensor):
        raise TypeError(f"{name}: is a {type(given).__name__}, expected a torch.Tensor")
    if given.layout is not torch.strided:
        raise TypeError(
            f"{name}: has layout {given.layout}, expected a dense one; pass .to_dense()"
        )


def require_no_output(options: dict[str, Any]) -> None:
    if "out" in options:
        raise TypeError("out: is not taken here, where the result may have a gradient")


def array(given: Any, name: str) -> Any:
    """An array as a tensor that autograd can save; a copy of what it would not see being written.

    Under torch.compile it is checked by what the graph is made of, and not here.
    """
    if is_compiling():
        if hasattr(given, "__dlpack__"):
            tensor = torch.as_tensor(given)
            return tensor.to(torch.int64) if tensor.dtype in _NARROW else tensor
        raise TypeError(f"{name}: is a {type(given).__name__}, expected an array")
    framework_of(given, name).examine(given, name)
    if isinstance(given, torch.Tensor):
        return given
    framework_of(given, name).device(given, name)  # which torch takes to be right
    try:
        if not getattr(getattr(given, "flags", None), "writeable", True):
            given = given.copy()  # what torch would not take from DLPack
        return from_dlpack(given).clone()
    except REFUSALS as error:
        raise blamed(error, name) from error


def query_array(given: Any, times: torch.Tensor, values: torch.Tensor) -> Any:
    """Query times, which in a list get the dtype of the times."""
    if is_compiling():
        return _numbers(given, "query_times", times.dtype, values)
    own = framework_of(values, "values")
    return array(queries(own, given, times, values), "query_times")


def for_each(values: Any, times: Any, query_times: Any, batch_offsets: Any) -> Any:
    """Values of one recording, [S,D] at [S], for each of B rows of queries, in the same memory."""
    one = batch_offsets is None and values.dim() == 2 and times.dim() == 1
    if not one or query_times.dim() != 2:
        return values
    return values.expand(query_times.shape[0], *values.shape)


def indices(given: Any, name: str, beside: torch.Tensor) -> Any:
    """Lengths or batch_offsets, or None."""
    if given is None:
        return None
    if is_compiling():
        return _numbers(given, name, torch.int64, beside)
    return array(array_of(framework_of(beside, name), given, name, beside), name)


def sample_mask(given: Any, missing: Any, name: str, values: torch.Tensor) -> Any:
    """Which samples are there, as a tensor of bool, or None: all of them."""
    mask = None
    if given is not None:
        if is_compiling() and not isinstance(given, torch.Tensor):
            mask = torch.tensor(given, device=values.device) != 0
        elif is_compiling():
            mask = given
        else:
            mask = array(array_of(framework_of(values, name), given, name, values, "bool"), name)
    require_missing(missing)
    if missing is None or not values.is_floating_point():
        return mask
    there = ~values.detach().isnan().any(-1)
    return there if mask is None else there & (mask != 0)


def scale(given: Any, name: str, beside: torch.Tensor) -> Any:
    """A mean or a std, or None: in float64 what is divided by in that."""
    if given is None or isinstance(given, torch.Tensor):
        return given if given is None else array(given, name)
    if is_compiling():
        return _numbers(given, name, torch.float64, beside)
    if type(given) in SEQUENCES:
        return framework_of(beside, name).sequence(given, name, "float64", beside)
    numbers = array(given, name)
    is_numpy = framework_of(given, name).is_numpy
    return numbers.double() if name == "std" and is_numpy else numbers


def _numbers(given: Any, name: str, dtype: torch.dtype, beside: torch.Tensor) -> Any:
    """An array as it is, or a list as a constant of the graph."""
    if not isinstance(given, (list, tuple, range)):
        return array(given, name)
    if dtype.is_floating_point:
        return torch.tensor(list(given), dtype=dtype, device=beside.device)
    numbers = torch.tensor(list(given), device=beside.device)
    if numbers.is_floating_point() and numbers.numel() > 0:
        raise TypeError(f"{name}: is a {type(given).__name__} of floats, expected int64")
    return numbers.to(dtype)
