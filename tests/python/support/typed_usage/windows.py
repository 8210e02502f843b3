from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from typing_extensions import assert_type

import robocache as rbc

Array = npt.NDArray[np.float32]


def windows(values: Array, tensor: torch.Tensor, mask: list[bool]) -> None:
    relative = rbc.Transform("se3_relative", 0, 7, reference=("arm", -1), rotation="quat_xyzw")
    stream = rbc.WindowStream(
        values, [-1, 0], episode_offsets=[0, 3], outside="fill", dtype="float16"
    )
    assert_type(stream, rbc.WindowStream[Array])
    numbers = rbc.WindowStream(None, range(3), episode_offsets=np.arange(2))
    for rows, valid in rbc.windows([stream, numbers], [0], values, dtype=np.float64):
        assert_type(rows, npt.NDArray[Any])
        assert_type(valid, npt.NDArray[np.bool_])
    tensors = rbc.WindowStream(tensor, tensor, episode_offsets=tensor, transforms=relative)
    ((out, _),) = rbc.windows([tensors], tensor, tensor, out=[(tensor, None)])
    assert_type(out, torch.Tensor)

    rbc.windows([values], [0], [0])  # type: ignore
    rbc.WindowStream(values, [0])  # type: ignore
    rbc.WindowStream(values, [0], episode_offsets=[0, 1], outside="wrap")  # type: ignore
    rbc.WindowStream(values, [0], episode_offsets=[0, 1], outside="extrapolate")  # type: ignore
    rbc.Transform("divide", 0, 1, reference=(0, 0))  # type: ignore
    rbc.Transform("subtract", 0, 1)  # type: ignore

    track = rbc.Track(values, [0, 3], times=[0.0, 0.1, 0.2], names=["a", "b"])
    episodes = rbc.Episodes({"arm": track, "camera": rbc.Track(None, [0, 9])}, tasks=["lift"])
    assert_type(episodes.to("cpu").select([0])["arm"], rbc.Track)
    spec = rbc.WindowSpec(
        {
            "arm": [0],
            "action": rbc.Window(
                range(50),
                track="arm",
                transforms=rbc.Transform.subtract(mask, reference=("arm", 0)),
            ),
        },
        anchors="whole",
    )
    assert_type(spec.statistics(episodes, rows="valid")["action"], rbc.StatisticsResult)
    assert_type(spec.normalized({"arm": None}), rbc.WindowSpec)

    rbc.Window(range(50), outside="edge")  # type: ignore
    rbc.WindowSpec({"arm": [0]}, anchors="some")  # type: ignore
    rbc.Episodes([track])  # type: ignore

    loader = rbc.torch.WindowLoader(episodes, spec, batch_size=32, weights=[1.0])
    for batch in loader:
        assert_type(batch["arm"], torch.Tensor)
        assert_type(batch.valid["arm"], torch.Tensor)
    loader.load_state_dict(loader.state_dict())
    graded = rbc.torch.WindowStream(tensor, [0], episode_offsets=[0, 1], method="linear")
    ((out, _),) = rbc.torch.windows([graded, tensors], tensor, [0])
    assert_type(out, torch.Tensor)

    rbc.torch.WindowLoader(episodes, batch_size=32)  # type: ignore
    rbc.torch.WindowStream(values, [0], episode_offsets=[0, 1])  # type: ignore
