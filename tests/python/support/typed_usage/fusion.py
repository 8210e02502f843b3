import datetime
from typing import Any, Union

import numpy as np
import numpy.typing as npt
import torch
from typing_extensions import assert_type

import robocache as rbc

Array = npt.NDArray[np.float32]


def fusion(values: torch.Tensor, times: torch.Tensor) -> None:
    stream = rbc.Stream(values, times, method="nearest", clock_offset=0.01)
    assert_type(stream, rbc.Stream[torch.Tensor])
    assert_type(rbc.fuse([stream, stream], times, dtype=torch.float16), torch.Tensor)
    out, mask = rbc.fuse([stream], [0.5, 1], return_valid=True, backend="cpu")
    assert_type(out, torch.Tensor)

    rbc.fuse(stream, times)  # type: ignore


def mixed_fusion(floats: Array, doubles: npt.NDArray[np.float64], flag: bool) -> None:
    switch = np.zeros((3, 1), np.uint8)
    streams: list[rbc.Stream[Any]] = [
        rbc.Stream(floats, doubles),
        rbc.Stream(switch, doubles, method="previous", clock_offset=datetime.timedelta(0)),
    ]
    mixed = rbc.fuse([rbc.Stream(floats, doubles), rbc.Stream(doubles, doubles)], doubles)
    assert_type(mixed, npt.NDArray[Any])
    assert_type(rbc.fuse([rbc.Stream(floats, doubles)], doubles), Array)
    out, mask = rbc.fuse(
        [rbc.Stream(floats, doubles), rbc.Stream(switch, doubles)], doubles, return_valid=True
    )
    assert_type(out, npt.NDArray[Any])
    one = [rbc.Stream(floats, doubles)]
    assert_type(rbc.fuse(one, doubles, return_valid=flag), Union[Array, tuple[Array, Any]])
    assert_type(rbc.report({"arm": one[0]}).streams["arm"].rate, float)
    assert_type(rbc.fuse(one, doubles, dtype="float16"), npt.NDArray[Any])
    clock = rbc.clock(one, 50, span="union")
    rbc.fuse(one, clock)
    bits: npt.NDArray[np.bool_] = np.zeros((3, 2), np.bool_)
    assert_type(rbc.channel_mask(bits, streams), npt.NDArray[np.bool_])

    rbc.clock(one, 50, span="all")  # type: ignore
