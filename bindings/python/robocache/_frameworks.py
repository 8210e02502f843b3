"""What has to be known of an array library: its devices, its stream, and how it makes arrays."""

from __future__ import annotations

import functools
import importlib
import operator
import weakref
from types import SimpleNamespace
from typing import Any

from . import _core
from ._context import CPU, Context, choose
from ._errors import REFUSALS, blamed, shown

# Name -> (DLPack code, bits)
DTYPES = {
    "float16": (_core.DTYPE_FLOAT, 16),
    "bfloat16": (_core.DTYPE_BFLOAT, 16),
    "float32": (_core.DTYPE_FLOAT, 32),
    "float64": (_core.DTYPE_FLOAT, 64),
    "int8": (_core.DTYPE_INT, 8),
    "int16": (_core.DTYPE_INT, 16),
    "int32": (_core.DTYPE_INT, 32),
    "int64": (_core.DTYPE_INT, 64),
    "uint8": (_core.DTYPE_UINT, 8),
    "uint16": (_core.DTYPE_UINT, 16),
    "uint32": (_core.DTYPE_UINT, 32),
    "uint64": (_core.DTYPE_UINT, 64),
    "bool": (_core.DTYPE_BOOL, 8),
}
NAME_OF_PAIR = {pair: name for name, pair in DTYPES.items()}

# Libraries whose arrays never change, of which DLPack does not always tell.
_IMMUTABLE = {"jax": "JAX", "tensorflow": "TensorFlow"}

SEQUENCES = frozenset([list, tuple, range])  # what stands for a short array


def dtype_name(dtype: Any) -> str:
    """The name of a dtype, which may be a string or any framework's."""
    try:
        return _dtype_name(dtype)
    except REFUSALS:
        raise TypeError(
            f"dtype: is {shown(dtype)}, expected a float, integer or bool dtype, such as 'float32'"
        ) from None


@functools.lru_cache(maxsize=256)
def _dtype_name(dtype: Any) -> str:
    name = dtype if isinstance(dtype, str) else str(dtype)
    if name.startswith("torch."):
        name = name[len("torch.") :]
    if name not in DTYPES:
        try:
            import numpy as np

            name = np.dtype(dtype).name
        except (ImportError, *REFUSALS):
            pass
    if name not in DTYPES:
        raise TypeError
    return name


def facts_of(
    array: Any, name: str, context: Context | None = None
) -> tuple[int, int, int, int, tuple[int, ...]]:
    """What the extension reads: device type and id, dtype code and bits, shape."""
    handle = (context or choose("cpu", 0))._handle
    facts: tuple[int, int, int, int, tuple[int, ...]]
    facts = _core.Tensor_describe(_core.new_Tensor(array, name, handle))
    return facts


def dtype_of(array: Any, name: str) -> str:
    """The name of an array's dtype."""
    if type(array) in LIBRARY_TYPES:
        try:
            return dtype_name(array.dtype)
        except TypeError:
            refuse_dtype(array, name)
    return NAME_OF_PAIR.get(facts_of(array, name)[2:4], "float64")  # refused later


def shape_of(array: Any, name: str, context: Context) -> Any:
    """The shape of an array. A class of the caller's may tell another than it has."""
    if type(array) in LIBRARY_TYPES:
        try:
            return array.shape
        except REFUSALS:  # of a nested tensor of torch
            pass
    return facts_of(array, name, context)[4]


class Framework:
    """An array library. This one is for those that are not named below: it goes by DLPack alone."""

    is_numpy = False

    def __init__(self, module: str) -> None:
        self._module = module

    def device(self, array: Any, name: str) -> int:
        """The id of the CUDA device that the array is on, or CPU."""
        try:
            device = array.__dlpack_device__()
        except REFUSALS as error:
            raise blamed(error, name) from error
        try:
            if not isinstance(device, (tuple, list)):
                raise TypeError
            kind, device_id = map(operator.index, device)
        except REFUSALS:
            raise TypeError(
                f"{name}: its __dlpack_device__ gave {shown(device)}, "
                "expected two ints: type and id"
            ) from None
        return device_id if kind in (_core.DEVICE_CUDA, _core.DEVICE_CUDA_MANAGED) else CPU

    def examine(self, array: Any, name: str) -> None:
        """Refuse what would be read as other numbers than it has, or would lose a gradient."""

    def examine_times(self, times: Any, query_times: Any) -> None:
        """``examine`` of both, in one go."""

    def examine_output(self, array: Any, name: str) -> None:
        """``examine`` of what is to be written to."""
        self.examine(array, name)
        if self._module in _IMMUTABLE:
            raise TypeError(
                f"{name}: is an array of {_IMMUTABLE[self._module]}, which cannot be written to; "
                f"leave {name} out for a new one, or pass an array of NumPy or torch"
            )

    def written(self, array: Any) -> None:
        """Have the library know that an array of its own was written to."""

    def stream(self, array: Any, device_id: int) -> int | None:
        """The library's current stream, or None if it tells none: its results are waited for."""
        stream: int | None = _core.current_stream(array, device_id)
        return stream

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str | None, context: Context) -> Any:
        """A new array on the device of ``like``, with its dtype if none is given, to write to."""
        if dtype is None:
            pair = facts_of(like, "values", context)[2:4]
            if pair not in NAME_OF_PAIR:
                refuse_dtype(like, "values")
        else:
            pair = DTYPES[dtype]
        return OwnedTensor(context, pair, shape)

    def zeros(self, like: Any, shape: tuple[int, ...], dtype: str, context: Context) -> Any:
        """``empty``, filled with zeros."""
        import numpy as np

        array = self.empty(like, shape, dtype, context)
        _core.rbc_tensor_copy(context._handle, np.zeros(shape, dtype), array)
        return array

    def finish(self, array: Any, name: str = "values") -> Any:
        """The library's own array for what ``empty`` made beside the argument of this name."""
        for module in (f"{self._module}.dlpack", self._module):
            try:
                convert = getattr(importlib.import_module(module), "from_dlpack", None)
            except ImportError:
                continue
            if convert is not None:
                return convert(array)
        raise TypeError(
            f"{name}: {self._module} has no from_dlpack to make the result with; "
            f"pass out, or arrays of another library"
        )

    def sequence(self, items: Any, name: str, dtype: str, beside: Any) -> Any:
        """A list of numbers as an array of ``dtype`` on the device of ``beside``."""
        if type(self) is Framework and self.device(beside, "values") != CPU:
            raise TypeError(f"{name}: is a {type(items).__name__}, expected an array on the GPU")
        import numpy as np

        try:
            array = np.asarray(items)
        except REFUSALS as error:  # rows of different lengths
            raise blamed(error, name) from error
        kinds = "iuf" if dtype.startswith("float") else "iu"
        if array.size > 0 and array.dtype.kind not in kinds:
            raise TypeError(
                f"{name}: is a {type(items).__name__} of {array.dtype}, expected {dtype}"
            )
        return array.astype(dtype, copy=False)


class OwnedTensor:
    """Memory of a context, to be taken over by ``from_dlpack``."""

    def __init__(self, context: Context, dtype: tuple[int, int], shape: tuple[int, ...]) -> None:
        self._context = context
        self._handle = _core.rbc_tensor_create(context._handle, dtype, shape)

    def __dlpack_device__(self) -> tuple[int, int]:
        if self._context._device_id == CPU:
            return _core.DEVICE_CPU, 0
        return _core.DEVICE_CUDA, self._context._device_id

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("a result is given out where it is, without a copy")
        if stream != -1 and (stream or 1) != (self._context._stream or 1):
            self._context.synchronize()  # no event can be had from here
        if max_version is not None and max_version[0] >= 1:
            return _core.rbc_tensor_export_dlpack_versioned(self._handle)
        return _core.rbc_tensor_export_dlpack(self._handle)


class _NumPy(Framework):
    is_numpy = True

    def __init__(self) -> None:
        super().__init__("numpy")
        import numpy

        self._numpy = numpy
        self._dtype: Any = numpy.ndarray.dtype.__get__  # a subclass may tell another

    def device(self, array: Any, name: str) -> int:
        return CPU

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str | None, context: Context) -> Any:
        if dtype is None:
            return self._numpy.empty(shape, self._dtype(like))
        if dtype == "bfloat16":
            import ml_dtypes

            return self._numpy.empty(shape, ml_dtypes.bfloat16)
        return self._numpy.empty(shape, dtype)

    def zeros(self, like: Any, shape: tuple[int, ...], dtype: str, context: Context) -> Any:
        return self._numpy.zeros(shape, dtype)

    def finish(self, array: Any, name: str = "values") -> Any:
        return array


class _Torch(Framework):
    def __init__(self) -> None:
        super().__init__("torch")
        import torch
        from torch.autograd import forward_ad

        self._torch = torch
        self._tensor = torch.Tensor
        # Its level is that of the innermost dual_level(), of which -1 is none.
        known = hasattr(forward_ad, "_current_level")
        self._forward: Any = forward_ad if known else SimpleNamespace(_current_level=-1)
        graph = torch.autograd.graph
        self._increment: Any = getattr(graph, "increment_version", self._write_nothing)
        # What the code of torch.compile allocates by, on the current device, at a third of the
        # cost of new_empty. It is no public interface: tried before it is relied on.
        self._empty_cpu: Any = None
        self._empty_cuda: Any = None
        self._current_device: Any = getattr(torch._C, "_cuda_getDevice", None)
        try:
            guards: Any = torch._C._dynamo.guards
            if guards._empty_strided_cpu((2, 0), (1, 1), torch.bool).shape == (2, 0):
                self._empty_cpu = guards._empty_strided_cpu
                if self._current_device is not None:
                    self._empty_cuda = guards._empty_strided_cuda
        except (AttributeError, TypeError, RuntimeError):
            pass

    # The next three spell the condition out: a call more for each argument is a tenth of a call.
    def device(self, array: Any, name: str) -> int:
        if array.requires_grad or array.is_neg() or self._forward._current_level >= 0:
            self._refuse(array, name)
        return int(array.get_device()) if array.is_cuda else CPU

    def examine(self, array: Any, name: str) -> None:
        if array.requires_grad or array.is_neg() or self._forward._current_level >= 0:
            self._refuse(array, name)

    def examine_times(self, times: Any, query_times: Any) -> None:
        if (
            times.requires_grad
            or query_times.requires_grad
            or times.is_neg()
            or query_times.is_neg()
            or self._forward._current_level >= 0
        ):
            self._refuse(times, "times")
            self._refuse(query_times, "query_times")

    def _refuse(self, array: Any, name: str) -> None:
        if array.requires_grad and self._torch.is_grad_enabled():
            more = ", or resample by robocache.torch.resample" if name == "values" else ""
            raise ValueError(
                f"{name}: requires grad, which is not carried through; "
                f"pass {name}.detach() or call under torch.no_grad(){more}"
            )
        if array.is_neg():  # DLPack does not tell of it
            raise ValueError(
                f"{name}: has its negative bit set, expected numbers as they are in memory; "
                f"call resolve_neg() on it"
            )
        level = self._forward._current_level
        if level >= 0 and self._forward.unpack_dual(array).tangent is not None:
            raise ValueError(
                f"{name}: has a tangent of forward mode, which is not carried through; "
                f"pass the primal of torch.autograd.forward_ad.unpack_dual({name})"
            )

    def _write_nothing(self, array: Any) -> None:
        """As increment_version, before torch 2.1."""
        with self._torch.no_grad():
            array[:0].zero_()

    def written(self, array: Any) -> None:
        try:
            self._increment(array)
        except RuntimeError:
            if not array.is_inference():  # which has no version
                raise

    def stream(self, array: Any, device_id: int) -> int | None:
        stream: int | None = _core.current_stream(array, device_id)
        if stream is None:  # before torch 2.10
            stream = self._torch.cuda.current_stream(device_id).cuda_stream
        return stream

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str | None, context: Context) -> Any:
        kind = like.dtype if dtype is None else getattr(self._torch, dtype)
        if type(like) is self._tensor:  # subclasses make their own
            device_id = context._device_id
            if device_id == CPU:
                if self._empty_cpu is not None:
                    return self._empty_cpu(shape, _compact(shape), kind)
            elif (
                self._empty_cuda is not None
                and like.is_cuda
                and device_id == self._current_device()
            ):
                return self._empty_cuda(shape, _compact(shape), kind)
        return like.new_empty(shape, dtype=kind)

    def zeros(self, like: Any, shape: tuple[int, ...], dtype: str, context: Context) -> Any:
        return like.new_zeros(shape, dtype=getattr(self._torch, dtype))

    def finish(self, array: Any, name: str = "values") -> Any:
        return array

    def sequence(self, items: Any, name: str, dtype: str, beside: Any) -> Any:
        array = self._torch.from_numpy(super().sequence(items, name, dtype, beside))
        return array.to(beside.device) if beside.is_cuda else array


def _compact(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a new tensor, as torch has them where an extent is 0."""
    rank = len(shape)
    if rank == 3:  # the frequent ranks by themselves: the loop takes twice as long
        channels = shape[2] or 1
        return (shape[1] or 1) * channels, channels, 1
    if rank == 2:
        return shape[1] or 1, 1
    strides = (1,) * rank
    for i in range(1, rank):
        strides = ((shape[-i] or 1) * strides[-i], *strides[-i:])
    return strides


class _CuPy(Framework):
    def __init__(self) -> None:
        super().__init__("cupy")
        import cupy

        self._cupy = cupy

    def device(self, array: Any, name: str) -> int:
        return int(array.device.id)

    def stream(self, array: Any, device_id: int) -> int | None:
        with self._cupy.cuda.Device(device_id):
            return int(self._cupy.cuda.get_current_stream().ptr)

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str | None, context: Context) -> Any:
        with like.device:
            return self._cupy.empty(shape, like.dtype if dtype is None else dtype)

    def zeros(self, like: Any, shape: tuple[int, ...], dtype: str, context: Context) -> Any:
        with like.device:
            return self._cupy.zeros(shape, dtype)

    def finish(self, array: Any, name: str = "values") -> Any:
        return array

    def sequence(self, items: Any, name: str, dtype: str, beside: Any) -> Any:
        with beside.device:
            return self._cupy.asarray(super().sequence(items, name, dtype, beside))


class _Jax(Framework):
    def __init__(self) -> None:
        super().__init__("jax")
        import jax

        self._jax = jax

    def sequence(self, items: Any, name: str, dtype: str, beside: Any) -> Any:
        array = super().sequence(items, name, dtype, beside)
        (device,) = beside.devices()
        if device.platform == "cpu":
            return array
        with self._64_bits(True):
            return self._jax.device_put(array, device)

    @property
    def _64_bits(self) -> Any:
        """As a context: arrays of 64 bits stay what they are."""
        if hasattr(self._jax, "enable_x64"):
            return self._jax.enable_x64
        return importlib.import_module("jax.experimental").enable_x64  # before JAX 0.8


_UNKNOWN = Framework("")
_NAMED = {"numpy": _NumPy, "torch": _Torch, "cupy": _CuPy, "jax": _Jax}
_by_module: dict[str, Framework] = {}
LIBRARY_TYPES: dict[type, Framework] = {}  # the own classes of the libraries that are named
_by_other_type: weakref.WeakKeyDictionary[type, Framework] = weakref.WeakKeyDictionary()


def framework_of(array: Any, name: str) -> Framework:
    """The library that an argument comes from."""
    kind = type(array)
    framework = LIBRARY_TYPES.get(kind)
    return _remembered(kind, name) if framework is None else framework


def examine(array: Any, name: str) -> Framework:
    """Refuse an argument that would be read as other numbers, or would lose a gradient.

    Returns its library. What is no array is left to the extension, which knows its place among the
    arguments.
    """
    framework = LIBRARY_TYPES.get(type(array))
    if framework is None:
        if not hasattr(type(array), "__dlpack__"):
            return _UNKNOWN
        framework = framework_of(array, name)
    framework.examine(array, name)
    return framework


def examine_output(array: Any, name: str) -> Framework:
    """``examine`` of an argument that is to be written to."""
    framework = examine(array, name)
    framework.examine_output(array, name)
    return framework


def refuse_dtype(array: Any, name: str) -> None:
    try:
        dtype = str(array.dtype).rpartition(".")[2]
    except REFUSALS:
        dtype = "unknown"
    raise TypeError(f"{name}: dtype is {dtype}, expected a float, integer or bool dtype")


def _remembered(kind: type, name: str) -> Framework:
    framework = _by_other_type.get(kind)
    if framework is None:
        framework = _find(kind, name)
        if _root(kind) in _NAMED:
            LIBRARY_TYPES[kind] = framework
        else:
            _by_other_type[kind] = framework  # which may be of a class made for one call
    return framework


def _root(kind: type) -> str:
    root = kind.__module__.partition(".")[0]
    return "jax" if root == "jaxlib" else root


def _find(kind: type, name: str) -> Framework:
    if not hasattr(kind, "__dlpack__"):
        raise TypeError(
            f"{name}: is a {kind.__name__}, "
            "expected an array (NumPy, torch, or any with __dlpack__)"
        )
    roots = [_root(base) for base in kind.__mro__]
    root = next((root for root in roots if root in _NAMED), roots[0])
    if root not in _by_module:
        _by_module[root] = _NAMED[root]() if root in _NAMED else Framework(root)
    return _by_module[root]
