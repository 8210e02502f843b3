"""Who voxelizes beside RoboCache, on CUDA and on the CPU, and whether the answers agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import ours, with_numpy_voxels, with_pcl
from .data import Data
from .timing import Peer, Work, bind, skipped
from .voxel_cases import VoxelCase

# Of the voxels of one answer; a library that computes in another precision puts a point on a
# border elsewhere.
_LEAST_COMMON = 0.999


def _torch_works(case: VoxelCase, data: Data) -> dict[str, tuple[Work, bool]]:
    """By name; and whether a graph can hold it: the others wait for a number from the device."""
    from . import with_torch_voxels as peers

    points, features, _ = data.arrays
    dense = {
        "occupancy": {
            "torch index_put_": (peers.occupancy, True),
            "torch scatter_": (peers.occupancy_scatter, True),
        },
        "count": {
            "torch bincount": (peers.count_bincount, False),
            "torch index_put_": (peers.count_index_put, True),
            "torch scatter_add_": (peers.count_scatter, True),
        },
    }
    if case.result in dense:
        return {
            name: (bind(function, case, points), capturable)
            for name, (function, capturable) in dense[case.result].items()
        }
    if case.result == "mean":
        return {"torch index_add_": (bind(peers.mean, case, points, features), True)}
    return {
        "torch unique + index_add_": (bind(peers.sparse_index_add, case, points, features), False),
        "torch unique + scatter_reduce_": (
            bind(peers.sparse_scatter_reduce, case, points, features),
            False,
        ),
    }


def _empty(case: VoxelCase, torch: Any) -> Any:
    dtype = {"occupancy": torch.bool, "count": torch.int32, "mean": torch.float32}[case.result]
    batch = (case.clouds,) if case.clouds > 1 else ()
    behind = (case.features,) if case.result == "mean" else ()
    return torch.empty((*batch, *case.shape, *behind), dtype=dtype, device="cuda")


def cuda_peers(
    case: VoxelCase, data: Data, graph: Callable[[str, Work, int], Peer], calls_per_graph: int
) -> list[Peer]:
    import torch

    options = {} if case.sparse else {"out": _empty(case, torch)}
    peers = [
        Peer("robocache", ours.voxelize(case, *data.arrays)),
        graph("robocache, graph", ours.voxelize(case, *data.arrays, **options), calls_per_graph),
    ]
    for name, (work, capturable) in _torch_works(case, data).items():
        peers.append(Peer(name, work))
        if capturable:
            peers.append(graph(f"{name}, graph", work, 1))
    if case.result in ("occupancy", "count") and case.clouds == 1:
        peers.append(_plain(case, data))
    if case.sparse and case.clouds == 1 and case.features == 0:
        peers.append(_spconv(case, data))
    return peers


_PLAIN = r"""
extern "C" __global__ void plain(const float* points, long long count, float ox, float oy,
                                 float oz, float inverse, int nx, int ny, int nz, void* out) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float x = (points[3 * i] - ox) * inverse;
  const float y = (points[3 * i + 1] - oy) * inverse;
  const float z = (points[3 * i + 2] - oz) * inverse;
  if (!(x >= 0 && x < nx && y >= 0 && y < ny && z >= 0 && z < nz)) return;
  const long long voxel = ((long long)(int)x * ny + (int)y) * nz + (int)z;
  STORE;
}
"""
_STORES = {
    "occupancy": "static_cast<bool*>(out)[voxel] = true",
    "count": "atomicAdd(&static_cast<int*>(out)[voxel], 1)",
}


def _plain(case: VoxelCase, data: Data) -> Peer:
    """Clears, then one store or one atomic addition for each point."""
    name = "plain atomics (CuPy)"
    try:
        import cupy
    except Exception as error:  # noqa: BLE001 - its wheel may be there without what it needs
        return skipped(name, error)
    import torch

    kernel = cupy.RawKernel(_PLAIN.replace("STORE", _STORES[case.result]), "plain")
    out = _empty(case, torch)
    points = cupy.asarray(data.arrays[0])
    arguments = (
        points,
        np.int64(case.total),
        *map(np.float32, case.origin),
        np.float32(1 / case.voxel_size),
        *map(np.int32, case.shape),
        cupy.asarray(out),
    )

    def work() -> Any:
        out.zero_()
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            kernel(((case.total + 255) // 256,), (256,), arguments)
        return out

    return Peer(name, work)


def _spconv(case: VoxelCase, data: Data) -> Peer:
    """Groups the first points of each voxel: less than the mean of all of them."""
    name = "spconv PointToVoxel, 5 points"
    try:
        from spconv.pytorch.utils import PointToVoxel
    except Exception as error:  # noqa: BLE001 - its wheel may be there without what it needs
        return skipped(name, error)
    import torch

    points = data.arrays[0]
    low = case.origin
    high = [o + n * case.voxel_size for o, n in zip(low, case.shape)]
    try:
        generator = PointToVoxel(
            [case.voxel_size] * 3, [*low, *high], case.columns, case.total, 5, torch.device("cuda")
        )
    except Exception as error:  # noqa: BLE001 - it may have no room for so many voxels
        return skipped(name, error)

    def result() -> tuple[Any]:
        xyz = generator(points)[1].flip(1)
        return (torch.cat([torch.zeros_like(xyz[:, :1]), xyz], 1),)

    return Peer(name, bind(generator, points), result)


def cpu_peers(case: VoxelCase, data: Data, torch: Any) -> list[Peer]:
    import robocache

    one_thread = robocache.Context("cpu", threads=1)
    points, features, _ = data.arrays
    peers = [
        Peer("robocache", ours.voxelize(case, *data.arrays)),
        Peer("robocache, 1 thread", ours.voxelize(case, *data.arrays, backend=one_thread)),
    ]
    if case.sparse:
        work = bind(with_numpy_voxels.sparse, case, points, features)
        peers.append(Peer("np.unique + bincount", work))
        if case.clouds == 1 and case.features == 0:
            peers += [_open3d(case, points), _pcl(case, points)]
    elif case.result == "mean":
        peers.append(Peer("np.bincount", bind(with_numpy_voxels.mean, case, points, features)))
    elif case.result == "count":
        peers.append(Peer("np.bincount", bind(with_numpy_voxels.count, case, points)))
    else:
        peers.append(Peer("NumPy indexing", bind(with_numpy_voxels.occupancy, case, points)))
    if torch is not None:
        tensors = tuple(a if a is None else torch.from_numpy(a) for a in data.arrays)
        torch_data = data._replace(arrays=tensors)
        peers += [Peer(name, work) for name, (work, _) in _torch_works(case, torch_data).items()]
    return peers


def _open3d(case: VoxelCase, points: Any) -> Peer:
    """Reduces x, y, z alone, of a cloud that is its own ahead of the call."""
    name = "Open3D voxel_down_sample, xyz"
    try:
        import open3d
    except Exception as error:  # noqa: BLE001 - its wheel may be there without what it needs
        return skipped(name, error)
    vectors = open3d.utility.Vector3dVector(points[:, :3].astype("float64"))
    work = bind(open3d.geometry.PointCloud(vectors).voxel_down_sample, case.voxel_size)
    return Peer(name, work, lambda: _voxels_of(case, work().points))


def _pcl(case: VoxelCase, points: Any) -> Peer:
    """Likewise."""
    name = "PCL VoxelGrid, xyz"
    try:
        grid = with_pcl.VoxelGrid(points, case.voxel_size)
    except FileNotFoundError as error:
        return skipped(name, error)

    def result() -> tuple[Any]:
        grid.seconds()
        return _voxels_of(case, grid.centroids())

    peer = Peer(name, grid.seconds, result)
    peer.own_seconds = grid.seconds
    return peer


def _voxels_of(case: VoxelCase, centroids: Any) -> tuple[Any]:
    return (with_numpy_voxels.coords_of(case, np.asarray(centroids)),)


# ---- answers -------------------------------------------------------------------------------------


def require_same(actual: Any, expected: Any, case: VoxelCase) -> None:
    """Grids; or coords and means in lexicographic order, or coords alone in any."""
    if not case.sparse:
        _require_close(case, _on_host(actual), _on_host(expected))
        return
    coords, means = _trimmed(expected)
    if len(actual) > 1:
        actual_coords, actual_means = _trimmed(actual)
        np.testing.assert_array_equal(actual_coords, coords)
        _require_close(case, actual_means, means)
        return
    keys = _keys(case, coords)
    others = _keys(case, _on_host(actual[0]))
    common = np.intersect1d(keys, others).size
    if common < _LEAST_COMMON * max(keys.size, others.size):
        raise AssertionError(f"{common} voxels of {keys.size} and {others.size} are the same")


def _require_close(case: VoxelCase, actual: Any, expected: Any) -> None:
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected)
    else:
        # Sums of up to some thousand numbers in f32, in any order.
        largest = max(map(abs, (*case.origin, 4.0)))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-5 * largest)


def _trimmed(answer: tuple[Any, ...]) -> tuple[Any, Any]:
    coords, means = _on_host(answer[0]), _on_host(answer[1])
    count = int(answer[2]) if len(answer) > 2 else len(coords)
    return coords[:count], means[:count]


def _on_host(array: Any) -> Any:
    return array.cpu().numpy() if hasattr(array, "cpu") else np.asarray(array)


def _keys(case: VoxelCase, coords: Any) -> Any:
    shape = (case.clouds, *case.shape)
    return np.ravel_multi_index(tuple(coords.astype("int64").T), shape)
