import datetime
from typing import Any, Union

import numpy as np
import numpy.typing as npt
import torch
from typing_extensions import assert_type

import robocache as rbc

Array = npt.NDArray[np.float32]


def resampling(values: Array, times: npt.NDArray[np.float64]) -> None:
    assert_type(rbc.resample(values, times, [0.5], method="cubic", max_gap=0.1), Array)
    out, mask = rbc.resample(values, times, times, return_valid=True, lengths=[3], std=times)
    assert_type(out, Array)
    poses = rbc.resample(values, times, times, method=[(0, 3, "linear"), (3, 4, "slerp")])
    assert_type(rbc.resample(torch.zeros(3, 1), times, times, out=poses), Array)

    groups = [(0, 3, "linear"), (3, 4, "slerp")]  # whose names are str in a variable
    rbc.resample(values, times, times, method=groups)
    doubles, mask = rbc.resample(values, times, times, dtype="float64", return_valid=True)
    assert_type(doubles, npt.NDArray[Any])
    assert_type(rbc.resample(torch.zeros(3, 1), times, times, dtype="float64"), torch.Tensor)

    rbc.resample(values, times, times, method="spline")  # type: ignore
    rbc.resample(values, times, times, outside="wrap")  # type: ignore
    rbc.resample(values, times, times, smoothing=3)  # type: ignore
    rbc.resample(3.0, times, times)  # type: ignore


def as_they_come(values: Array, seconds: npt.NDArray[np.float64], flag: bool) -> None:
    times: npt.NDArray[np.datetime64] = np.zeros(3, "M8[ns]")
    dates = [datetime.datetime(2024, 5, 1)]
    limit = datetime.timedelta(seconds=0.1)
    assert_type(rbc.resample(values, times, dates, max_gap=limit), Array)
    assert_type(rbc.resample(values, times, times, max_gap=np.timedelta64(1, "ms")), Array)
    assert_type(rbc.resample([[0.0], [1.0]], [0.0, 1.0], [0.5]), npt.NDArray[Any])
    assert_type(
        rbc.resample(values, times, times, return_valid=flag), Union[Array, tuple[Array, Any]]
    )
    options: dict[str, Any] = {"max_gap": 0.1}
    rbc.resample(values, seconds, seconds, **options)
    assert_type(rbc.Stream([[0.0], [1.0]], [0.0, 1.0]), rbc.Stream[npt.NDArray[Any]])

    rbc.resample(values, times, times, max_gap="50ms")  # type: ignore
