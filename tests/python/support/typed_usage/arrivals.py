from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from typing_extensions import assert_type

import robocache as rbc

Array = npt.NDArray[np.float32]


def samples_that_arrive(values: Array, times: npt.NDArray[np.float64]) -> None:
    out = rbc.resample(values, times, times, arrivals=times, lag=0.1, causal=True, max_age=1.0)
    assert_type(out, Array)
    assert_type(rbc.live_kept(times, times, late_bound=2), npt.NDArray[np.bool_])
    stream = rbc.Stream(values, times, arrivals=[0.1, 0.2], causal=True, max_age=np.timedelta64(1))
    assert_type(rbc.fuse([stream], times, lag=np.timedelta64(5, "ms")), Array)
    live = rbc.Live([rbc.LiveStream(1, causal=True, max_age=0.5)])
    live.push(0, times, values, times)
    assert_type(live.fuse(0.5, lag=0.1), rbc.LiveTick)

    rbc.resample(values, times, times, causal="yes")  # type: ignore
    rbc.resample(values, times, times, max_age="1 s")  # type: ignore
    rbc.live_kept(times)  # type: ignore


def windows_of_tracks(values: Array, times: npt.NDArray[np.float64], tensor: torch.Tensor) -> None:
    track = rbc.Track(values, [0, 3], times=times, arrivals=times)
    spec = rbc.WindowSpec(
        {
            "past": rbc.Window([-0.1, 0.0], track="arm", method="linear", causal=True, max_age=1),
            "action": rbc.Window(range(3), track="arm", label=True),
        },
        lag=0.02,
    )
    cut = rbc.Episodes({"arm": track}).windows(spec)
    assert_type(cut, dict[str, tuple[Any, Any]])
    stream = rbc.WindowStream(values, [0], episode_offsets=[0, 3], times=times, arrivals=times)
    rbc.windows([stream], [0], [0], lag=0.1)
    graded = rbc.torch.WindowStream(
        tensor, [0.0], episode_offsets=[0, 3], times=times, method="linear", arrivals=times,
        causal=True, max_age=1.0,
    )  # fmt: skip
    ((rows, valid),) = rbc.torch.windows([graded], [0], [0], lag=0.1)
    assert_type(rows, torch.Tensor)

    rbc.Track(values, [0, 3], arrivals=object())  # type: ignore
    rbc.Window([0], label="yes")  # type: ignore


def gradients(tensor: torch.Tensor) -> None:
    out, valid = rbc.torch.resample(
        tensor, tensor, tensor, arrivals=tensor, lag=1, causal=True, max_age=2.0, return_valid=True
    )
    assert_type(out, torch.Tensor)
    stream = rbc.torch.Stream(tensor, tensor, arrivals=tensor, causal=True, max_age=1.0)
    assert_type(rbc.torch.fuse([stream], tensor, lag=0.1), torch.Tensor)

    rbc.torch.Stream(tensor, tensor, causal="yes")  # type: ignore


def alignment(recording: rbc.data.Recording) -> None:
    aligned = rbc.data.align(
        recording,
        50,
        available="arrival",
        lag=0.01,
        causal=True,
        max_age={"/imu": 0.1},
        late_bound=2,
        clock_offset={"/imu": -0.02},
        labels=["/command"],
    )
    assert_type(aligned, rbc.Episodes)

    rbc.data.align(recording, 50, available="all")  # type: ignore
    rbc.data.align(recording, 50, max_age="1 s")  # type: ignore
