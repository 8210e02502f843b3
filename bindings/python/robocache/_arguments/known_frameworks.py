"""Array libraries with code of their own: faster than DLPack, or with other rules."""

from __future__ import annotations

import importlib
from math import prod
from types import SimpleNamespace
from typing import Any

from .. import _core
from .._library.context import CPU, Context
from .._library.memory import LEAST_ELEMENTS, LEAST_TENSOR, WarmTensors, takes_warm
from .._printable import kind_of
from .frameworks import Framework


class _NumPy(Framework):
    is_numpy = True  # on the CPU, with nothing to examine, so callers skip these methods
    converts = False

    def __init__(self) -> None:
        super().__init__("numpy")
        import numpy

        self._numpy = numpy
        self._takes_warm = takes_warm(numpy)
        self._dtype: Any = numpy.ndarray.dtype.__get__  # a subclass may report another dtype

    def device(self, array: Any, name: str) -> int:
        return CPU

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str | None, context: Context) -> Any:
        kind: Any = dtype
        if dtype is None:
            kind = self._dtype(like)
        elif dtype == "bfloat16":
            import ml_dtypes

            kind = ml_dtypes.bfloat16
        if prod(shape) >= LEAST_ELEMENTS and self._takes_warm:
            return _core.warm_array(self._numpy.empty, shape, kind)
        return self._numpy.empty(shape, kind)

    def zeros(self, like: Any, shape: tuple[int, ...], dtype: str, context: Context) -> Any:
        return self._numpy.zeros(shape, dtype)

    def broadcast(self, array: Any, batch: int) -> Any:
        return self._numpy.broadcast_to(array, (batch, *array.shape))


class _Torch(Framework):
    converts = False

    def __init__(self) -> None:
        super().__init__("torch")
        import torch
        from torch.autograd import forward_ad

        self._torch = torch
        self._tensor = torch.Tensor
        # The level of the innermost dual_level(), or -1.
        known = hasattr(forward_ad, "_current_level")
        self._forward: Any = forward_ad if known else SimpleNamespace(_current_level=-1)
        graph = torch.autograd.graph
        self._increment: Any = getattr(graph, "increment_version", self._write_nothing)
        # The functions with which compiled code allocates on the current device, at a third of
        # the cost of new_empty. They are not public, so they are tried before they are used.
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
        self._warm = WarmTensors.create(torch)

    # These repeat the condition: one more function call per argument is 10 % of an operation.
    def device(self, array: Any, name: str) -> int:
        if array.requires_grad or array.is_neg() or self._forward._current_level >= 0:
            self._refuse(array, name)
        return int(array.get_device()) if array.is_cuda else CPU

    def examine(self, array: Any, name: str) -> None:
        if array.requires_grad or array.is_neg() or self._forward._current_level >= 0:
            self._refuse(array, name)

    examine_output = examine  # a tensor can be written to

    def device_with_times(self, array: Any, name: str, times: Any, query_times: Any) -> int:
        if (
            array.requires_grad
            or times.requires_grad
            or query_times.requires_grad
            or array.is_neg()
            or times.is_neg()
            or query_times.is_neg()
            or self._forward._current_level >= 0
        ):
            self._refuse(array, name)
            self._refuse(times, "times")
            self._refuse(query_times, "query_times")
        return int(array.get_device()) if array.is_cuda else CPU

    def _refuse(self, array: Any, name: str) -> None:
        if array.requires_grad and self._torch.is_grad_enabled():
            more = ""
            if name == "values":
                more = ", or use robocache.torch.Stream or robocache.torch.resample"
            raise ValueError(
                f"{name}: requires grad, which is not carried through; "
                f"pass {name}.detach() or call under torch.no_grad(){more}"
            )
        if array.is_neg():  # DLPack does not report it
            raise ValueError(
                f"{name}: has its negative bit set, so its memory holds the negated numbers; "
                f"call resolve_neg() on it"
            )
        level = self._forward._current_level
        if level >= 0 and self._forward.unpack_dual(array).tangent is not None:
            raise ValueError(
                f"{name}: has a tangent of forward mode, which is not carried through; "
                f"pass the primal of torch.autograd.forward_ad.unpack_dual({name})"
            )

    def _write_nothing(self, array: Any) -> None:
        """Do as increment_version, before torch 2.1."""
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
            if device_id == CPU and self._warm is not None and prod(shape) >= LEAST_TENSOR // 8:
                tensor = self._warm.empty(shape, kind)
                if tensor is not None:
                    return tensor
            make = self._empty_cpu if device_id == CPU else self._empty_cuda
            if make is not None and (
                device_id == CPU or (like.is_cuda and device_id == self._current_device())
            ):
                rank = len(shape)  # the frequent ranks without a call of _compact
                if rank == 3:
                    channels = shape[2] or 1
                    return make(shape, ((shape[1] or 1) * channels, channels, 1), kind)
                if rank == 2:
                    return make(shape, (shape[1] or 1, 1), kind)
                return make(shape, (1,) * rank if rank < 2 else _compact(shape), kind)
        return like.new_empty(shape, dtype=kind)

    def zeros(self, like: Any, shape: tuple[int, ...], dtype: str, context: Context) -> Any:
        return like.new_zeros(shape, dtype=getattr(self._torch, dtype))

    def broadcast(self, array: Any, batch: int) -> Any:
        return array.expand(batch, *array.shape)

    def sequence(self, items: Any, name: str, dtype: str, like: Any) -> Any:
        if like.is_cuda and self._torch.cuda.is_current_stream_capturing():
            raise ValueError(
                f"{name}: is {kind_of(items)}, which cannot be copied to the GPU while a "
                f"graph is captured; convert it to a tensor on {like.device} before"
            )
        array = self._torch.from_numpy(super().sequence(items, name, dtype, like))
        return array.to(like.device) if like.is_cuda else array


def _compact(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a new tensor, as in torch also if an extent is 0."""
    strides = (1,) * len(shape)
    for i in range(1, len(shape)):
        strides = ((shape[-i] or 1) * strides[-i], *strides[-i:])
    return strides


class _CuPy(Framework):
    converts = False

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

    def broadcast(self, array: Any, batch: int) -> Any:
        with array.device:
            return self._cupy.broadcast_to(array, (batch, *array.shape))

    def sequence(self, items: Any, name: str, dtype: str, like: Any) -> Any:
        with like.device:
            return self._cupy.asarray(super().sequence(items, name, dtype, like))


class _Jax(Framework):
    def __init__(self) -> None:
        super().__init__("jax")
        import jax

        self._jax = jax

    def device(self, array: Any, name: str) -> int:
        self.examine(array, name)
        return super().device(array, name)

    def examine(self, array: Any, name: str) -> None:
        if isinstance(array, self._jax.core.Tracer):
            raise TypeError(
                f"{name}: is traced by JAX (jit, vmap, grad), so it has no numbers yet; "
                f"call RoboCache outside of the traced function, or in it by jax.pure_callback"
            )

    def broadcast(self, array: Any, batch: int) -> Any:
        return self._jax.numpy.broadcast_to(array, (batch, *array.shape))  # a copy, without strides

    def sequence(self, items: Any, name: str, dtype: str, like: Any) -> Any:
        array = super().sequence(items, name, dtype, like)
        (device,) = like.devices()
        if device.platform == "cpu":
            return array
        with self._64_bits(True):
            return self._jax.device_put(array, device)

    @property
    def _64_bits(self) -> Any:
        """Return a context manager that keeps arrays of 64 bits."""
        if hasattr(self._jax, "enable_x64"):
            return self._jax.enable_x64
        return importlib.import_module("jax.experimental").enable_x64  # before JAX 0.8


NAMED = {"numpy": _NumPy, "torch": _Torch, "cupy": _CuPy, "jax": _Jax}
