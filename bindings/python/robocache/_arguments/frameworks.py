"""What has to be known of an array library: its devices, its stream, and how it makes arrays."""

from __future__ import annotations

import importlib
import operator
from typing import Any

from .. import _core
from .._library.context import CPU, Context, choose
from .._library.dtypes import DTYPES, NAME_OF_PAIR, refuse_dtype
from .._library.errors import REFUSALS, blamed, shown

# Libraries whose arrays never change, of which DLPack does not always tell.
_IMMUTABLE = {"jax": "JAX", "tensorflow": "TensorFlow"}


def facts_of(
    array: Any, name: str, context: Context | None = None
) -> tuple[int, int, int, int, tuple[int, ...]]:
    """What the extension reads: device type and id, dtype code and bits, shape."""
    handle = (context or choose("cpu", 0))._handle
    facts: tuple[int, int, int, int, tuple[int, ...]]
    facts = _core.Tensor_describe(_core.new_Tensor(array, name, handle))
    return facts


class Framework:
    """An array library. This one is for those that are not named below: it goes by DLPack alone."""

    is_numpy = False
    converts = True  # what ``empty`` makes: by ``finish``

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

    def device_beside(self, array: Any, name: str, times: Any, query_times: Any) -> int:
        """``device``, and ``examine`` of times that are of the class of ``array``, in one go."""
        return self.device(array, name)

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

    def broadcast(self, array: Any, batch: int) -> Any:
        """``array`` for each of a batch, with a stride of 0; itself where that is not known."""
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
        kinds = {"f": "iuf", "b": "b"}.get(dtype[0], "iu")
        if array.size > 0 and array.dtype.kind not in kinds:
            raise TypeError(
                f"{name}: is a {type(items).__name__} of {array.dtype}, expected {dtype}"
            )
        return array.astype(dtype, copy=False)


class OwnedTensor:
    """Memory of a context, to be taken over by ``from_dlpack``."""

    def __init__(self, context: Context, dtype: tuple[int, int], shape: tuple[int, ...]) -> None:
        self._context = context
        self._handle = _core.rbc_owned_tensor_create(context._handle, dtype, shape)

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
            return _core.rbc_owned_tensor_export_dlpack_versioned(self._handle)
        return _core.rbc_owned_tensor_export_dlpack(self._handle)
