import torch
from typing_extensions import assert_type

import robocache as rbc


def gradients(values: torch.Tensor) -> None:
    times = torch.arange(3.0)
    assert_type(rbc.torch.resample(values, times, [0.5], outside="extrapolate"), torch.Tensor)
    out, mask = rbc.torch.resample(values, times, times, return_valid=True)
    assert_type(mask, torch.Tensor)

    stream = rbc.torch.Stream(values, times, method="nearest", clock_offset=0.01)
    assert_type(rbc.torch.fuse([stream, rbc.Stream(values, times)], [0.5]), torch.Tensor)
    assert_type(rbc.fuse([stream], times), torch.Tensor)
    out, mask = rbc.torch.fuse([stream], times, return_valid=True, dtype="float16")
    assert_type(mask, torch.Tensor)

    rbc.torch.resample(values, times, times, out=values)  # type: ignore
    rbc.torch.fuse([values], times)  # type: ignore
    rbc.torch.Stream([[1.0]], times)  # type: ignore
