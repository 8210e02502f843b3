// Sparse voxelization: points grouped by voxel, and each voxel's row written.

#include "runtime/cuda_state.h"

#include <algorithm>
#include <cub/device/device_scan.cuh>

#include "points/clear_counts.h"
#include "points/feature_rows.cuh"
#include "points/reduce_voxels.h"
#include "runtime/cuda_error.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "runtime/suits_vecs.h"

namespace rbc::cuda {
namespace {

constexpr int kThreads = 256;

// What the rows of voxels take of scratch beyond their groups.
struct SparseParts {
  PointGrouping grouping;
  VoxelReduction reduction;
  // In the order of first points: [points + 1], cleared; [points + 1]; [most]; [most].
  bool by_first_point;
  uint8_t* is_first = nullptr;
  int32_t* firsts_before = nullptr;
  int32_t* rows = nullptr;
  int32_t* voxels = nullptr;
  char* temporary = nullptr;
  size_t temporary_bytes = 0;

  SparseParts(const SparseProblem& p, ScratchLayout* cutter)
      : grouping(p.points, p.grid, p.dropped,
                 {p.order == VoxelOrder::kFirstPoint || p.grouped.data != nullptr,
                  p.point_to_voxel.data != nullptr},
                 cutter),
        reduction(p.points, p.reduced.data != nullptr ? p.features : Features{}, p.reduce, cutter),
        by_first_point(p.order == VoxelOrder::kFirstPoint) {
    if (!by_first_point) return;
    const int64_t points = p.points.total();
    cutter->take(&is_first, points);
    cutter->take(&firsts_before, points);
    cutter->take(&rows, grouping.groups().most);
    cutter->take(&voxels, grouping.groups().most);
    checkCuda(scan(nullptr, &temporary_bytes, points, nullptr), "the size of a scan");
    cutter->take(&temporary, static_cast<int64_t>(temporary_bytes));
  }

  cudaError_t scan(void* memory, size_t* bytes, int64_t points, cudaStream_t cuda_stream) const {
    return cub::DeviceScan::ExclusiveSum(memory, *bytes, is_first, firsts_before,
                                         static_cast<int>(points), cuda_stream);
  }
};

struct RowArguments {
  PointGroups groups;
  uint8_t* is_first;
  const int32_t* firsts_before;
  int32_t* rows;    // of the voxels; null: in their own order
  int32_t* voxels;  // of the rows; likewise
};

__device__ int64_t threadOfGrid() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}
__device__ int64_t threadsOfGrid() { return static_cast<int64_t>(gridDim.x) * kThreads; }

__global__ void __launch_bounds__(kThreads) markFirsts(const __grid_constant__ RowArguments a) {
  waitForLaunchesAhead();
  for (int64_t v = threadOfGrid(); v < *a.groups.num; v += threadsOfGrid()) {
    a.is_first[a.groups.order[a.groups.starts[v]]] = 1;
  }
}

__global__ void __launch_bounds__(kThreads) findRows(const __grid_constant__ RowArguments a) {
  waitForLaunchesAhead();
  for (int64_t v = threadOfGrid(); v < *a.groups.num; v += threadsOfGrid()) {
    const int32_t row = a.firsts_before[a.groups.order[a.groups.starts[v]]];
    a.rows[v] = row;
    a.voxels[row] = static_cast<int32_t>(v);
  }
}

struct EmitArguments {
  SparseProblem problem;
  PointGroups groups;
  const int32_t* voxels;
  VoxelCoordsOf places;
  bool whole_coords;  // a row of coords is a word
};

// The sum over a warp, by its first lane.
__device__ void addOverWarp(int64_t* at, int64_t value) {
  for (int mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(~0u, value, mask);
  if (threadIdx.x % 32 == 0 && value != 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
  }
}

// A row a thread: of a voxel, of none, or beyond the capacity and only counted.
__global__ void __launch_bounds__(kThreads, 3) emitRows(const __grid_constant__ EmitArguments a) {
  waitForLaunchesAhead();
  const SparseProblem& p = a.problem;
  const PointGroups& g = a.groups;
  const int64_t num = *g.num;
  if (threadOfGrid() == 0) *static_cast<int64_t*>(p.num_voxels.data) = min(num, p.capacity);
  const int64_t end = max(num, p.capacity);
  int64_t lost_voxels = 0;
  int64_t lost_points = 0;
  int64_t clipped_points = 0;
#pragma unroll 4
  for (int64_t row = threadOfGrid(); row < end; row += threadsOfGrid()) {
    int32_t at[4] = {-1, -1, -1, -1};
    int32_t n = 0;
    if (row < num) {
      const int64_t voxel = a.voxels != nullptr ? a.voxels[row] : row;
      const VoxelCoords place = a.places(g.key(voxel));
      at[0] = static_cast<int32_t>(place.cloud);
      at[1] = static_cast<int32_t>(place.x);
      at[2] = static_cast<int32_t>(place.y);
      at[3] = static_cast<int32_t>(place.z);
      n = __ldg(&g.starts[voxel + 1]) - __ldg(&g.starts[voxel]);
    }
    if (row >= p.capacity) {
      ++lost_voxels;
      lost_points += n;
      continue;
    }
    if (n > p.max_points) {
      clipped_points += n - p.max_points;
      n = static_cast<int32_t>(p.max_points);
    }
    auto* coords = static_cast<int32_t*>(p.coords.data) + row * p.coords.stride[0];
    if (a.whole_coords) {
      *reinterpret_cast<int4*>(coords) = make_int4(at[0], at[1], at[2], at[3]);
    } else {
      for (int i = 0; i < 4; ++i) coords[i * p.coords.stride[1]] = at[i];
    }
    if (p.counts.data != nullptr) {
      static_cast<int32_t*>(p.counts.data)[row * p.counts.stride[0]] = n;
    }
  }
  if (p.overflow.data == nullptr) return;
  auto* overflow = static_cast<int64_t*>(p.overflow.data);
  addOverWarp(overflow, lost_voxels);
  addOverWarp(overflow + p.overflow.stride[0], lost_points);
  addOverWarp(overflow + 2 * p.overflow.stride[0], clipped_points);
}

struct GroupedArguments {
  EmitArguments emit;
  FeatureRows features;
};

template <class In, class Out>
__global__ void __launch_bounds__(kThreads)
    writeGrouped(const __grid_constant__ GroupedArguments a) {
  waitForLaunchesAhead();
  const SparseProblem& p = a.emit.problem;
  const PointGroups& g = a.emit.groups;
  const int64_t columns = p.features.count;
  const int64_t row_elements = p.max_points * columns;
  const int64_t num = *g.num;
  for (int64_t i = threadOfGrid(); i < p.capacity * row_elements; i += threadsOfGrid()) {
    const int64_t row = i / row_elements;
    const int64_t within = i - row * row_elements;
    const int64_t point = within / columns;
    const int64_t column = within - point * columns;
    Out element = {};
    if (row < num) {
      const int64_t voxel = a.emit.voxels != nullptr ? a.emit.voxels[row] : row;
      const int32_t begin = g.starts[voxel];
      if (point < g.starts[voxel + 1] - begin) {
        const In* features = a.features.row<In>(g.order[begin + point]);
        element = narrow<Out>(widen(features[column * a.features.stride[2]]));
      }
    }
    static_cast<Out*>(p.grouped.data)[row * p.grouped.stride[0] + point * p.grouped.stride[1] +
                                      column * p.grouped.stride[2]] = element;
  }
}

struct PointArguments {
  PointGroups groups;
  const int32_t* rows;
  int64_t capacity;
  Output<2> out;
  FastDivmod per_cloud;
  int64_t rows_of_cloud;
  bool padded;
};

// A point's row in the list, if its voxel has one: by points, or by their places in the order.
template <class Index>
__global__ void __launch_bounds__(kThreads) writePoints(const __grid_constant__ PointArguments a) {
  waitForLaunchesAhead();
  const PointGroups& g = a.groups;
  const int32_t in_voxels = g.starts[*g.num];
  for (int64_t i = threadOfGrid(); i < g.points; i += threadsOfGrid()) {
    int64_t point = i;
    int32_t row = -1;
    if (g.most > 0 && g.ranks != nullptr) row = g.ranks[i];
    if (g.most > 0 && g.heads != nullptr) {
      point = g.order[i];
      if (i < in_voxels) row = g.heads[i] - 1;
    }
    if (row >= 0 && a.rows != nullptr) row = a.rows[row];
    if (row >= a.capacity) row = -1;
    const int64_t cloud = a.padded ? a.per_cloud(point) : 0;
    static_cast<Index*>(
        a.out.data)[cloud * a.out.stride[0] + (point - cloud * a.rows_of_cloud) * a.out.stride[1]] =
        row;
  }
}

int64_t rowBlocks(int64_t items, const LaunchDevice& device) {
  return blocksFor(items, kThreads, int64_t{32} * device.multiprocessors);
}

cudaError_t launchRows(const SparseParts& parts, int64_t points, const RowArguments& given,
                       const LaunchDevice& device, cudaStream_t cuda_stream) {
  if (points == 0) return cudaSuccess;
  RowArguments arguments = given;
  const int64_t blocks = rowBlocks(arguments.groups.most, device);
  cudaError_t error = cudaMemsetAsync(parts.is_first, 0, static_cast<size_t>(points), cuda_stream);
  if (error != cudaSuccess) return error;
  error = launchBlocks(markFirsts, &arguments, blocks, kThreads, device, cuda_stream);
  if (error != cudaSuccess) return error;
  size_t bytes = parts.temporary_bytes;
  error = parts.scan(parts.temporary, &bytes, points, cuda_stream);
  if (error != cudaSuccess) return error;
  return launchBlocks(findRows, &arguments, blocks, kThreads, device, cuda_stream);
}

cudaError_t launchReduced(const SparseProblem& p, const SparseParts& parts,
                          const LaunchDevice& device, cudaStream_t cuda_stream) {
  if (p.reduced.data == nullptr || p.features.count == 0) return cudaSuccess;
  const VoxelTarget target = {p.reduced.data,      p.reduced.dtype, {p.reduced.stride[0], 0, 0, 0},
                              p.reduced.stride[1], false,           VoxelCoordsOf(p.grid),
                              parts.rows,          p.capacity};
  return parts.reduction.launch(parts.grouping.groups(), target, device, cuda_stream);
}

cudaError_t launchGrouped(const SparseProblem& p, const EmitArguments& emit,
                          const LaunchDevice& device, cudaStream_t cuda_stream) {
  if (p.grouped.data == nullptr || p.features.count == 0) return cudaSuccess;
  GroupedArguments arguments = {emit, featureRowsOf(p.features, p.points)};
  const int64_t blocks = rowBlocks(p.capacity * p.max_points * p.features.count, device);
  return visitFloat(p.features.dtype, [&](auto in) {
    return visitFloat(p.grouped.dtype, [&](auto out) {
      return launchBlocks(writeGrouped<typename decltype(in)::type, typename decltype(out)::type>,
                          &arguments, blocks, kThreads, device, cuda_stream);
    });
  });
}

cudaError_t launchPoints(const SparseProblem& p, const PointGroups& groups, const int32_t* rows,
                         const LaunchDevice& device, cudaStream_t cuda_stream) {
  if (p.point_to_voxel.data == nullptr || p.points.total() == 0) return cudaSuccess;
  PointArguments arguments = {groups,
                              rows,
                              p.capacity,
                              p.point_to_voxel,
                              FastDivmod(p.points.rows),
                              p.points.rows,
                              !p.points.packed() && p.points.clouds > 1};
  const auto kernel =
      p.point_to_voxel.dtype == DType::I64 ? writePoints<int64_t> : writePoints<int32_t>;
  return launchBlocks(kernel, &arguments, rowBlocks(p.points.total(), device), kThreads, device,
                      cuda_stream);
}

size_t voxelizeSparseScratchBytes(const SparseProblem& p, const LaunchDevice&) {
  ScratchLayout cutter(nullptr);
  const SparseParts parts(p, &cutter);
  return cutter.used();
}

cudaError_t launchVoxelizeSparse(const SparseProblem& p, void* scratch, const LaunchDevice& device,
                                 cudaStream_t cuda_stream) {
  ScratchLayout cutter(scratch);
  const SparseParts parts(p, &cutter);
  const PointGroups& groups = parts.grouping.groups();
  const bool whole_coords =
      p.coords.stride[1] == 1 && suitsVecs(p.coords.data, {p.coords.stride[0]}, sizeof(int32_t), 4);
  EmitArguments emit = {p, groups, parts.voxels, VoxelCoordsOf(p.grid), whole_coords};
  cudaError_t error = clearCounts(p.dropped, p.points.clouds, device, cuda_stream);
  if (error == cudaSuccess) error = clearCounts(p.overflow, 3, device, cuda_stream);
  if (error == cudaSuccess) error = parts.grouping.launch(device, cuda_stream);
  if (error == cudaSuccess && parts.by_first_point) {
    error = launchRows(parts, p.points.total(),
                       {groups, parts.is_first, parts.firsts_before, parts.rows, parts.voxels},
                       device, cuda_stream);
  }
  if (error == cudaSuccess) {
    error = launchBlocks(emitRows, &emit, rowBlocks(std::max(p.capacity, groups.most), device),
                         kThreads, device, cuda_stream);
  }
  if (error == cudaSuccess) error = launchReduced(p, parts, device, cuda_stream);
  if (error == cudaSuccess) error = launchGrouped(p, emit, device, cuda_stream);
  if (error == cudaSuccess) error = launchPoints(p, groups, parts.rows, device, cuda_stream);
  return error;
}

}  // namespace

extern const Operation<SparseProblem> kVoxelizeSparse = {
    bytesOn<SparseProblem, voxelizeSparseScratchBytes>,
    launchOn<SparseProblem, launchVoxelizeSparse>};
cudaError_t loadVoxelizeSparse() { return loadKernelsBeside(emitRows); }

}  // namespace rbc::cuda
