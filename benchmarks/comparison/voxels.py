"""Peers that voxelize, on CUDA and on the CPU, and a check that their results agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import ours, with_numpy_voxels, with_pcl
from .cases import Case
from .timing import Peer, Work, attempt, bind

# Share of the voxels that must be common; with another precision a library may assign a point on a
# border to another voxel.
_LEAST_COMMON = 0.999


def _torch_works(case: Case, data: tuple[Any, ...]) -> dict[str, tuple[Work, bool]]:
    """Return works by name, and whether a graph can capture them: the others wait for a number from
    the device.
    """
    from . import with_torch_voxels as peers

    points, features, _ = data
    works: dict[str, dict[str, tuple[Any, bool]]] = {
        "occupancy": {
            "torch index_put_": (peers.occupancy, True),
            "torch scatter_": (peers.occupancy_scatter, True),
        },
        "count": {
            "torch bincount": (peers.count_bincount, False),
            "torch index_put_": (peers.count_index_put, True),
            "torch scatter_add_": (peers.count_scatter, True),
        },
        "mean": {"torch index_add_": (peers.mean, True)},
        "sparse mean": {
            "torch unique + index_add_": (peers.sparse_index_add, False),
            "torch unique + scatter_reduce_": (peers.sparse_scatter_reduce, False),
        },
    }
    arguments = (case, points, features) if "mean" in case.result else (case, points)
    return {
        name: (bind(function, *arguments), capturable)
        for name, (function, capturable) in works[case.result].items()
    }


def _empty(case: Case, torch: Any) -> Any:
    dtype = {"occupancy": torch.bool, "count": torch.int32, "mean": torch.float32}[case.result]
    batch = (case.clouds,) if case.clouds > 1 else ()
    behind = (case.features,) if case.result == "mean" else ()
    return torch.empty((*batch, *case.shape, *behind), dtype=dtype, device="cuda")


def cuda_peers(
    case: Case, graph: Callable[[str, Work, int], Peer], calls_per_graph: int
) -> list[Peer]:
    import torch

    data = case.data(torch, "cuda")
    options = {} if case.sparse else {"out": _empty(case, torch)}
    peers = [
        Peer("robocache", ours.voxelize(case, *data)),
        graph("robocache, graph", ours.voxelize(case, *data, **options), calls_per_graph),
    ]
    for name, (work, capturable) in _torch_works(case, data).items():
        peers.append(Peer(name, work))
        if capturable:
            peers.append(graph(f"{name}, graph", work, 1))
    if case.result in ("occupancy", "count") and case.clouds == 1:
        peers.append(attempt("plain atomics (CuPy)", bind(_plain, case, data[0])))
    if case.sparse and case.clouds == 1 and case.features == 0:
        name = "spconv PointToVoxel, 5 points"
        peers.append(attempt(name, bind(_spconv, name, case, data[0])))
    return peers


_PLAIN = r"""
extern "C" __global__ void plain(const float* points, long long count, float ox, float oy,
                                 float oz, float size, int nx, int ny, int nz, void* out) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float x = (points[3 * i] - ox) / size;
  const float y = (points[3 * i + 1] - oy) / size;
  const float z = (points[3 * i + 2] - oz) / size;
  if (!(x >= 0 && x < nx && y >= 0 && y < ny && z >= 0 && z < nz)) return;
  const long long voxel = ((long long)(int)x * ny + (int)y) * nz + (int)z;
  STORE;
}
"""
_STORES = {
    "occupancy": "static_cast<bool*>(out)[voxel] = true",
    "count": "atomicAdd(&static_cast<int*>(out)[voxel], 1)",
}


def _plain(case: Case, points: Any) -> Peer:
    """Clear, then one store or one atomic addition per point."""
    import cupy
    import torch

    kernel = cupy.RawKernel(_PLAIN.replace("STORE", _STORES[case.result]), "plain")
    out = _empty(case, torch)
    arguments = (
        cupy.asarray(points),
        np.int64(case.total),
        *map(np.float32, case.origin),
        np.float32(case.voxel_size),
        *map(np.int32, case.shape),
        cupy.asarray(out),
    )

    def work() -> Any:
        out.zero_()
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            kernel(((case.total + 255) // 256,), (256,), arguments)
        return out

    return Peer("plain atomics (CuPy)", work)


def _spconv(name: str, case: Case, points: Any) -> Peer:
    """Group the first points of each voxel: cheaper than the mean of all points. It may lack memory
    for all voxels.
    """
    import torch
    from spconv.pytorch.utils import PointToVoxel

    high = [o + n * case.voxel_size for o, n in zip(case.origin, case.shape)]
    size = [case.voxel_size] * 3
    generator = PointToVoxel(
        size, [*case.origin, *high], case.columns, case.total, 5, torch.device("cuda")
    )

    def result() -> tuple[Any]:
        xyz = generator(points)[1].flip(1)
        return (torch.cat([torch.zeros_like(xyz[:, :1]), xyz], 1),)

    return Peer(name, bind(generator, points), result)


def cpu_peers(case: Case, torch: Any) -> list[Peer]:
    import robocache

    one_thread = robocache.Context("cpu", threads=1)
    data = case.data()
    points, features, _ = data
    peers = [
        Peer("robocache", ours.voxelize(case, *data)),
        Peer("robocache, 1 thread", ours.voxelize(case, *data, backend=one_thread)),
    ]
    name, work = {
        "occupancy": ("NumPy indexing", bind(with_numpy_voxels.occupancy, case, points)),
        "count": ("np.bincount", bind(with_numpy_voxels.count, case, points)),
        "mean": ("np.bincount", bind(with_numpy_voxels.mean, case, points, features)),
        "sparse mean": (
            "np.unique + bincount",
            bind(with_numpy_voxels.sparse, case, points, features),
        ),
    }[case.result]
    peers.append(Peer(name, work))
    if case.sparse and case.clouds == 1 and case.features == 0:
        for name, make in _XYZ.items():
            peers.append(attempt(name, bind(make, name, case, points)))
    if torch is not None:
        works = _torch_works(case, case.data(torch))
        peers += [Peer(name, work) for name, (work, _) in works.items()]
    return peers


def _open3d(name: str, case: Case, points: Any) -> Peer:
    """Reduce only x, y, z of a cloud, which is converted before the call."""
    import open3d

    vectors = open3d.utility.Vector3dVector(points[:, :3].astype("float64"))
    work = bind(open3d.geometry.PointCloud(vectors).voxel_down_sample, case.voxel_size)
    return Peer(name, work, lambda: _voxels_of(case, work().points))


def _pcl(name: str, case: Case, points: Any) -> Peer:
    """Reduce only x, y, z, like Open3D."""
    grid = with_pcl.VoxelGrid(points, case.voxel_size)

    def result() -> tuple[Any]:
        grid.seconds()
        return _voxels_of(case, grid.centroids())

    return Peer(name, grid.seconds, result, own_seconds=grid.seconds)


_XYZ = {"Open3D voxel_down_sample, xyz": _open3d, "PCL VoxelGrid, xyz": _pcl}


def _voxels_of(case: Case, centroids: Any) -> tuple[Any]:
    return (with_numpy_voxels.coords_of(case, np.asarray(centroids)),)


# ---- results -------------------------------------------------------------------------------------


def require_same(actual: Any, expected: Any, case: Case) -> None:
    """Compare grids; or coords and means in lexicographic order, or only coords in any order."""
    if not case.sparse:
        return _require_close(case, _on_host(actual), _on_host(expected))
    count = int(expected[2])
    coords, means = (_on_host(array)[:count] for array in expected[:2])
    if len(actual) > 1:
        count = int(actual[2]) if len(actual) > 2 else len(actual[0])
        np.testing.assert_array_equal(_on_host(actual[0])[:count], coords)
        return _require_close(case, _on_host(actual[1])[:count], means)
    shape = (case.clouds, *case.shape)
    keys, others = (
        np.ravel_multi_index(tuple(array.astype("int64").T), shape)
        for array in (coords, _on_host(actual[0]))
    )
    common = np.intersect1d(keys, others).size
    if common < _LEAST_COMMON * max(keys.size, others.size):
        raise AssertionError(f"{common} voxels of {keys.size} and {others.size} are the same")


def _require_close(case: Case, actual: Any, expected: Any) -> None:
    # Sums of up to several thousand numbers in f32, in any order; counts are exact.
    largest = max(map(abs, (*case.origin, 4.0)))
    atol = 2e-5 * largest if expected.dtype.kind == "f" else 0
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


def _on_host(array: Any) -> Any:
    return array.cpu().numpy() if hasattr(array, "cpu") else np.asarray(array)
