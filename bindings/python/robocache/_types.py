"""The types of arguments that operations share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, Union

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    from ._context import Context


class SupportsDLPack(Protocol):
    """An array of NumPy, torch, CuPy, JAX or any other library with DLPack."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


Array = TypeVar("Array", bound=SupportsDLPack)
Out = TypeVar("Out", bound=SupportsDLPack)
Numbers = Union[SupportsDLPack, Sequence[float]]
Indices = Union[SupportsDLPack, Sequence[int]]
MethodName = Literal["linear", "nearest", "previous", "next", "cubic", "pchip", "slerp", "angle"]
Method = Union[MethodName, Sequence[tuple[int, int, MethodName]]]
Bounds = Literal["hold", "fill", "extrapolate"]
Numbers3 = Union[Sequence[float], SupportsDLPack]
Reduction = Literal["sum", "mean", "max", "min"]

if TYPE_CHECKING:

    class StreamOptions(TypedDict, total=False):
        method: Method
        lengths: Indices | None
        offsets: Indices | None
        bounds: Bounds
        fill_value: float
        max_gap: float | None
        tolerance: float | None
        mean: Numbers | None
        std: Numbers | None

    class CallOptions(TypedDict, total=False):
        query_lengths: Indices | None
        dtype: Any
        check_times: bool | None
        backend: str | Context | None

    class Grid(TypedDict):
        origin: Numbers3
        voxel_size: float | Numbers3
        shape: Sequence[int]

    class CloudOptions(TypedDict, total=False):
        lengths: Indices | None
        offsets: Indices | None
        backend: str | Context | None
