"""Types of the arguments that operations share."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, TypeVar, Union

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ._library.context import Context
    from ._statistics.accumulator import StatisticsAccumulator
    from ._statistics.normalization import Normalization
    from ._windows.transform import Transform


class SupportsDLPack(Protocol):
    """An array of NumPy, torch, CuPy, JAX or any other library with DLPack."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


class SupportsToNumpy(Protocol):
    """A Series, an Index or a DataFrame of pandas or polars, an Array of pyarrow."""

    def to_numpy(self, *args: Any, **kwargs: Any) -> Any: ...


Array = TypeVar("Array", bound=SupportsDLPack)
Array_co = TypeVar("Array_co", bound=SupportsDLPack, covariant=True)
Out = TypeVar("Out", bound=SupportsDLPack)
Numbers = Union[SupportsDLPack, Sequence[float]]
Table = Union[SupportsToNumpy, Sequence[Sequence[Any]]]  # converted to a NumPy array
Times = Union[SupportsDLPack, SupportsToNumpy, Sequence[Any]]
Duration = Union[float, datetime.timedelta, "np.timedelta64"]
Indices = Union[SupportsDLPack, Sequence[int]]
SampleMask = Union[  # NumPy gives only arrays of numbers the type of SupportsDLPack
    SupportsDLPack, SupportsToNumpy, "NDArray[np.bool_]", Sequence[bool], Sequence[Sequence[bool]]
]
Missing = Literal["nan"]
MethodName = Literal[
    "linear",
    "nearest",
    "previous",
    "next",
    "cubic",
    "pchip",
    "slerp",
    "angle",
    "angle_deg",
    "angle_turn",
    "angle_positive",
    "angle_deg_positive",
    "angle_turn_positive",
]
# For groups any string is accepted: a list in a variable has no literals in its type.
Method = Union[MethodName, Sequence[tuple[int, int, str]]]
Outside = Literal["hold", "fill", "extrapolate"]
Numbers3 = Union[Sequence[float], SupportsDLPack]
WindowOutside = Literal["hold", "fill", "neutral"]
Accumulate = Literal["all", "valid", "whole"]
Reduction = Literal["sum", "mean", "max", "min"]
DenseReduction = Literal["occupancy", "count", "sum", "mean", "max", "min"]


class Grid(TypedDict):
    """A grid of voxels, for use as ``**grid`` in the operations on point clouds."""

    origin: Numbers3  #: the corner with the smallest coordinates
    voxel_size: float | Numbers3  #: the edge length of a voxel, for all axes or for each
    shape: Sequence[int]  #: the number of voxels along x, y and z


if TYPE_CHECKING:
    from typing_extensions import Required

    class GridOptions(TypedDict, total=False):
        voxel_size: Required[float | Numbers3]
        origin: Numbers3 | None
        shape: Sequence[int] | None
        point_cloud_range: Sequence[float] | SupportsDLPack | None

    class StreamOptions(TypedDict, total=False):
        arrivals: Times | None
        causal: bool
        max_age: Duration | None
        method: Method
        lengths: Indices | None
        batch_offsets: Indices | None
        sample_mask: SampleMask | None
        missing: Missing | None
        outside: Outside
        fill_value: float
        max_gap: Duration | None
        tolerance: Duration | None
        mean: Numbers | None
        std: Numbers | None

    class WindowOptions(TypedDict, total=False):
        times: Times | None
        arrivals: Times | None
        causal: bool
        max_age: Duration | None
        method: Method | None
        outside: WindowOutside
        fill_value: float
        neutral: Numbers | Sequence[Sequence[float]] | None
        neutral_channels: SampleMask | None
        transforms: Sequence[Transform] | Transform
        normalization: Normalization | None
        max_gap: Duration | None
        tolerance: Duration | None
        sample_mask: SampleMask | None
        missing: Missing | None
        clock_offset: Duration
        accumulator: StatisticsAccumulator | None
        accumulate: Accumulate
        dtype: Any
        output: bool | None

    class UntypedCallOptions(TypedDict, total=False):
        lag: Duration
        query_lengths: Indices | None
        check_times: bool | None
        backend: str | Context | None

    class CallOptions(UntypedCallOptions, total=False):
        dtype: Any

    class CloudOptions(TypedDict, total=False):
        lengths: Indices | None
        batch_offsets: Indices | None
        backend: str | Context | None
