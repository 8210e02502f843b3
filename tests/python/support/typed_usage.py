"""Calls as a type checker sees them: tests/snippets/test_types.py reads this, nothing runs it.

Where a comment ignores an error, mypy has to find one.
"""

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


def clouds(points: Array) -> None:
    size, shape = 0.2, (10, 10, 4)
    occupied = rbc.voxelize(points, origin=(0, 0, 0), voxel_size=size, shape=shape)
    assert_type(occupied, npt.NDArray[np.bool_])
    grid: rbc.Grid = {"origin": (0, 0, 0), "voxel_size": size, "shape": shape}
    assert_type(rbc.voxelize(points, reduction="count", **grid), npt.NDArray[np.int32])
    assert_type(rbc.voxelize(points, reduction="mean", **grid), Array)
    counts, outside = rbc.voxelize(
        points, reduction="count", return_num_points_outside=True, **grid
    )
    assert_type((counts, outside), tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]])
    assert_type(rbc.voxelize(torch.zeros(3, 3), reduction="count", **grid), torch.Tensor)
    rbc.voxelize_sparse(points, **grid)
    voxels = rbc.voxelize_sparse(points, origin=points[0], voxel_size=(1, 1, 2), shape=shape)
    assert_type(
        voxels.trimmed(), rbc.SparseVoxels[Array, npt.NDArray[np.int32], npt.NDArray[np.int64]]
    )
    assert_type(voxels.coords, npt.NDArray[np.int32])
    assert_type(voxels.num_voxels, npt.NDArray[np.int64])
    assert_type(voxels.features, Union[Array, Any])
    tsdf, weight, unused = rbc.voxelize_tsdf(
        points,
        [0, 0, 0],
        origin=(0, 0, 0),
        voxel_size=size,
        shape=shape,
        truncation=0.5,
        return_num_points_unused=True,
    )
    assert_type(tsdf, Array)

    rbc.voxelize(points, origin=(0, 0, 0), shape=shape)  # type: ignore
    rbc.voxelize_sparse(points, (0, 0, 0), size, shape)  # type: ignore


def normalization(values: Array, tensor: torch.Tensor) -> None:
    results = rbc.statistics_files.read_lerobot("meta/stats.json")
    assert_type(results, dict[str, rbc.StatisticsResult])
    made = rbc.Normalization.of(results["action"], "quantiles", style="octo", mask=[True, False])
    assert_type(made.apply(values), Array)
    assert_type(made.invert(tensor), torch.Tensor)
    assert_type(made.apply([[1.0, 2.0]]), npt.NDArray[np.float64])
    times: npt.NDArray[np.float64] = np.zeros(3)
    rbc.resample(values, times, times, mean=made.mean, std=made.std)
    rbc.Normalization(shift=[0.0, 1.0], scale=values, bias=-1, low=-1, high=1).to_dict()
    rbc.statistics_files.write_gr00t("stats.json", {"state": results["action"].row(3)})

    rbc.Normalization.of(results["action"], "zscore")  # type: ignore
    rbc.Normalization.of(results["action"], "mean_std", style="act")  # type: ignore
    rbc.Normalization("0", 1)  # type: ignore
    rbc.statistics_files.write_openpi("stats.json", [results["action"]])  # type: ignore
    made.apply(3.0)  # type: ignore


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


def operators(points: torch.Tensor) -> None:
    size, shape = 0.2, (10, 10, 4)
    voxels = rbc.torch.voxelize_sparse(
        points, origin=(0, 0, 0), voxel_size=size, shape=shape, max_voxels=100, reduction=None
    )
    assert_type(voxels, rbc.SparseVoxels[torch.Tensor])
    occupied, dropped = rbc.torch.voxelize(
        points, origin=(0, 0, 0), voxel_size=size, shape=shape, return_num_points_outside=True
    )
    assert_type(occupied, torch.Tensor)

    rbc.torch.voxelize(points, origin=(0, 0, 0), shape=shape)  # type: ignore
    rbc.torch.voxelize_sparse(points, origin=(0, 0, 0), shape=shape)  # type: ignore


def rotations(quaternions: Array) -> None:
    assert_type(rbc.convert_rotations(quaternions, "quat_xyzw", "rot6d_rows"), Array)
    matrices = rbc.convert_rotations(quaternions, "quat_xyzw", "matrix", dtype="float64")
    assert_type(matrices, npt.NDArray[Any])

    rbc.convert_rotations(quaternions, "quat", "matrix")  # type: ignore


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


def contexts() -> None:
    with rbc.Context("cpu", threads=2) as context:
        assert_type(context.info.num_threads, Union[int, None])
        assert_type(rbc.info().contexts["cpu"], rbc.ContextInfo)
    try:
        rbc.Context("cuda:9")
    except rbc.RoboCacheError as error:
        assert_type(error.status, rbc.Status)
    assert_type(rbc.__version__, str)


def files(path: str) -> None:
    assert_type(rbc.data.open_recording(path), rbc.data.Recording)
    assert_type(rbc.data.open_recording(path, unit="us").align(50), rbc.Episodes)
    assert_type(rbc.data.open_episodes(path, damaged="keep"), rbc.Episodes)
    assert_type(rbc.data.open_episodes(path).report(), rbc.Report)
    assert_type(rbc.data.open_clouds(path)[0], rbc.data.PointCloud)
    opened = rbc.data.open(path)
    if isinstance(opened, rbc.data.Recording):
        assert_type(opened.left_out, tuple[rbc.data.LeftOut, ...])
    assert_type(rbc.data.open_recording(path)["arm"], rbc.data.RecordedStream)

    rbc.data.open_recording(path, damaged="ignore")  # type: ignore
    rbc.data.open_episodes(path).voxelize()  # type: ignore
