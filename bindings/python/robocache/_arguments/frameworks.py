"""Array libraries: their devices and streams, and how to make their arrays."""

from __future__ import annotations

import importlib
import operator
from typing import Any

from .. import _core
from .._library.context import CPU, Context, choose
from .._library.dtypes import DTYPES, NAME_OF_PAIR, refuse_dtype
from .._library.errors import REFUSALS, blamed, shown
from .._printable import kind_of

# Libraries whose arrays are read-only; DLPack does not always report that.
_IMMUTABLE = {"jax": "JAX", "tensorflow": "TensorFlow"}


def facts_of(
    array: Any, name: str, context: Context | None = None
) -> tuple[int, int, int, int, tuple[int, ...]]:
    """Return the facts that the extension reads: device type and id, dtype code and bits, shape."""
    handle = (context or choose("cpu", 0))._handle
    facts: tuple[int, int, int, int, tuple[int, ...]]
    facts = _core.Tensor_describe(_core.new_Tensor(array, name, handle))
    return facts


class Framework:
    """An array library. This class uses only DLPack and serves all libraries without a subclass."""

    is_numpy = False
    converts = True  # whether ``finish`` must convert what ``empty`` makes

    def __init__(self, module: str) -> None:
        self._module = module

    def device(self, array: Any, name: str) -> int:
        """Return the id of the CUDA device that the array is on, or CPU."""
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
        """Refuse an array whose memory does not hold its numbers, or that would lose a gradient."""

    def device_with_times(self, array: Any, name: str, times: Any, query_times: Any) -> int:
        """Return ``device``, and ``examine`` times of the class of ``array``, in one call."""
        return self.device(array, name)

    def examine_output(self, array: Any, name: str) -> None:
        """Do as ``examine``, for an array that will be written to."""
        self.examine(array, name)
        if self._module in _IMMUTABLE:
            raise TypeError(
                f"{name}: is an array of {_IMMUTABLE[self._module]}, which cannot be written to; "
                f"omit {name} to get a new array, or pass an array of NumPy or torch"
            )

    def written(self, array: Any) -> None:
        """Notify the library that one of its arrays was written to."""

    def stream(self, array: Any, device_id: int) -> int | None:
        """Return the library's current stream; None if unknown, and results are waited for."""
        stream: int | None = _core.current_stream(array, device_id)
        return stream

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str | None, context: Context) -> Any:
        """Return a new array to write to, on the device of ``like``; by default with its dtype."""
        if dtype is None:
            pair = facts_of(like, "values", context)[2:4]
            if pair not in NAME_OF_PAIR:
                refuse_dtype(like, "values")
        else:
            pair = DTYPES[dtype]
        return OwnedTensor(context, pair, shape)

    def zeros(self, like: Any, shape: tuple[int, ...], dtype: str, context: Context) -> Any:
        """Return a new array of zeros; see ``empty``."""
        import numpy as np

        array = self.empty(like, shape, dtype, context)
        _core.rbc_tensor_copy(context._handle, np.zeros(shape, dtype), array)
        return array

    def broadcast(self, array: Any, batch: int) -> Any:
        """Return ``array`` repeated ``batch`` times by a stride of 0; unchanged if unsupported."""
        return array

    def finish(self, array: Any, name: str = "values") -> Any:
        """Return the library's own array for an array of ``empty``; ``name`` is for errors."""
        for module in (f"{self._module}.dlpack", self._module):
            try:
                convert = getattr(importlib.import_module(module), "from_dlpack", None)
            except ImportError:
                continue
            if convert is not None:
                return convert(array)
        raise TypeError(
            f"{name}: {self._module} has no from_dlpack, which the result needs; "
            f"pass out, or arrays of another library"
        )

    def sequence(self, items: Any, name: str, dtype: str, like: Any) -> Any:
        """Return a list of numbers as an array of ``dtype`` on the device of ``like``."""
        if type(self) is Framework and self.device(like, "values") != CPU:
            raise TypeError(f"{name}: is {kind_of(items)}, expected an array on the GPU")
        import numpy as np

        try:
            array = np.asarray(items)
        except REFUSALS as error:  # rows of different lengths
            raise blamed(error, name) from error
        kinds = {"f": "iuf", "b": "b"}.get(dtype[0], "iu")
        if array.size > 0 and array.dtype.kind not in kinds:
            like_times = ", like times" if name == "query_times" else ""
            raise TypeError(
                f"{name}: is {kind_of(items)} of {array.dtype}, expected {dtype}{like_times}"
            )
        if array.size > 0 and array.dtype.kind in "iu" and np.dtype(dtype).kind in "iu":
            limits = np.iinfo(dtype)
            for number in (int(array.min()), int(array.max())):
                if not limits.min <= number <= limits.max:
                    expected = f"expected {limits.min} to {limits.max}"
                    raise ValueError(f"{name}: has {number}, {expected}")
        return array.astype(dtype, copy=False)


class OwnedTensor:
    """Memory of a context, which ``from_dlpack`` takes over."""

    def __init__(self, context: Context, dtype: tuple[int, int], shape: tuple[int, ...]) -> None:
        self._context = context
        self._handle = _core.rbc_owned_tensor_create(context._handle, dtype, shape, None)

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
            raise BufferError("a result cannot be copied or moved to another device by DLPack")
        if stream != -1 and (stream or 1) != (self._context._stream or 1):
            self._context.synchronize()  # there is no event to wait for
        if max_version is not None and max_version[0] >= 1:
            return _core.rbc_owned_tensor_export_dlpack_versioned(self._handle)
        return _core.rbc_owned_tensor_export_dlpack(self._handle)
