// Sparse voxelization: groups points by voxel, and writes each voxel's row.

#include "runtime/cuda_state.h"

#include <algorithm>
#include <cub/device/device_scan.cuh>

#include "points/clear_counts.h"
#include "points/reduce_voxels.h"
#include "points/sparse_rows.cuh"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "visit_dtype.h"

namespace rbc::cuda {
namespace {

constexpr int kThreads = 256;

// The scratch for the rows of voxels, besides their groups.
struct SparseParts {
  PointGrouping grouping;
  VoxelReduction reduction;
  // If sorted, but requested in the order of first points: [points + 1], cleared; [points + 1];
  // [most]; [most].
  bool by_first_point;
  uint8_t* is_first = nullptr;
  int32_t* firsts_before = nullptr;
  int32_t* rows = nullptr;
  int32_t* voxels = nullptr;
  char* temporary = nullptr;
  size_t temporary_bytes = 0;

  SparseParts(const SparseProblem& p, const LaunchDevice& device, ScratchLayout* cutter)
      : grouping(p.points, p.grid, p.dropped,
                 {p.order, p.grouped.data != nullptr, false, p.grouped.data != nullptr,
                  p.point_to_voxel.data != nullptr},
                 device, cutter),
        reduction(p.points, p.reduced.data != nullptr ? p.features : Features{}, p.reduce, cutter),
        by_first_point(p.order == VoxelOrder::kFirstPoint && !grouping.byTable()) {
    if (!by_first_point) {
      rows = grouping.groups().rows;
      voxels = grouping.groups().voxels;
      return;
    }
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
  int32_t* voxels;  // of the rows; null: in their own order
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
  SparseRows rows;
  PointGroups groups;
  const int32_t* voxels;
  ChunkList chunks;
};

// One row per thread: of a voxel, of none, or beyond the capacity and only counted.
__global__ void __launch_bounds__(kThreads, 6) emitRows(const __grid_constant__ EmitArguments a) {
  waitForLaunchesAhead();
  const PointGroups& g = a.groups;
  const int64_t num = *g.num;
  if (threadOfGrid() == 0) {
    *static_cast<int64_t*>(a.rows.num_voxels.data) = min(num, a.rows.capacity);
  }
  const int64_t end = max(num, a.rows.capacity);
  LostRows lost;
#pragma unroll 1  // more rows at once cost registers: 1.5 % slower with 10 million points
  for (int64_t row = threadOfGrid(); row < end; row += threadsOfGrid()) {
    if (row >= num) {
      writeNoVoxel(a.rows, row);
      continue;
    }
    const auto voxel = static_cast<int32_t>(a.voxels != nullptr ? a.voxels[row] : row);
    const int2 span = g.span(voxel);
    writeVoxel(a.rows, row, g.key(voxel), span.y, &lost);
    a.chunks.add(voxel, span.x, span.y);
  }
  lost.finish(a.rows);
}

struct GroupedArguments {
  Output<3> out;
  int64_t capacity;
  int64_t max_points;
  PointGroups groups;
  const int32_t* voxels;
  FeatureRows features;
};

template <class In, class Out>
__global__ void __launch_bounds__(kThreads)
    writeGrouped(const __grid_constant__ GroupedArguments a) {
  waitForLaunchesAhead();
  const PointGroups& g = a.groups;
  const int64_t columns = a.features.count;
  const int64_t row_elements = a.max_points * columns;
  const int64_t num = *g.num;
  for (int64_t i = threadOfGrid(); i < a.capacity * row_elements; i += threadsOfGrid()) {
    const int64_t row = i / row_elements;
    const int64_t within = i - row * row_elements;
    const int64_t point = within / columns;
    const int64_t column = within - point * columns;
    Out element = {};
    if (row < num) {
      const int64_t voxel = a.voxels != nullptr ? a.voxels[row] : row;
      const int2 span = g.span(voxel);
      if (point < span.y) {
        const In* features = a.features.row<In>(g.order[span.x + point]);
        element = narrow<Out>(widen(features[column * a.features.stride[2]]));
      }
    }
    static_cast<Out*>(
        a.out.data)[row * a.out.stride[0] + point * a.out.stride[1] + column * a.out.stride[2]] =
        element;
  }
}

struct PointArguments {
  SparseRows out;
  PointGroups groups;
  const int32_t* rows;
};

// A point's row in the list, if its voxel has one: by points, or by their places in the order.
__global__ void __launch_bounds__(kThreads) writePoints(const __grid_constant__ PointArguments a) {
  waitForLaunchesAhead();
  const PointGroups& g = a.groups;
  const int32_t in_voxels = g.heads != nullptr ? g.starts[*g.num] : 0;
  for (int64_t i = threadOfGrid(); i < g.points; i += threadsOfGrid()) {
    int64_t point = i;
    int32_t row = -1;
    if (g.most > 0 && g.ranks != nullptr) row = g.ranks[i];
    if (g.most > 0 && g.heads != nullptr) {
      point = g.order[i];
      if (i < in_voxels) row = g.heads[i] - 1;
    }
    if (row >= 0 && a.rows != nullptr) row = a.rows[row];
    writePoint(a.out, point, row);
  }
}

int64_t rowBlocks(int64_t items, const LaunchDevice& device) {
  return blocksFor(items, kThreads, int64_t{32} * device.multiprocessors);
}

cudaError_t launchRows(const SparseParts& parts, int64_t points, const RowArguments& row_arguments,
                       const LaunchDevice& device, cudaStream_t cuda_stream) {
  if (points == 0) return cudaSuccess;
  RowArguments arguments = row_arguments;
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
                              parts.rows,          p.capacity,      {}};
  return parts.reduction.launch(parts.grouping.groups(), target, device, cuda_stream);
}

cudaError_t launchGrouped(const SparseProblem& p, const SparseParts& parts,
                          const LaunchDevice& device, cudaStream_t cuda_stream) {
  if (p.grouped.data == nullptr || p.features.count == 0) return cudaSuccess;
  GroupedArguments arguments = {p.grouped,    p.capacity,
                                p.max_points, parts.grouping.groups(),
                                parts.voxels, featureRowsOf(p.features, p.points)};
  const int64_t blocks = rowBlocks(p.capacity * p.max_points * p.features.count, device);
  return visitFloat(p.features.dtype, [&](auto in) {
    return visitFloat(p.grouped.dtype, [&](auto out) {
      return launchBlocks(writeGrouped<typename decltype(in)::type, typename decltype(out)::type>,
                          &arguments, blocks, kThreads, device, cuda_stream);
    });
  });
}

cudaError_t launchPoints(const SparseProblem& p, const SparseRows& rows, const SparseParts& parts,
                         const LaunchDevice& device, cudaStream_t cuda_stream) {
  if (p.point_to_voxel.data == nullptr || p.points.total() == 0) return cudaSuccess;
  PointArguments arguments = {rows, parts.grouping.groups(), parts.rows};
  return launchBlocks(writePoints, &arguments, rowBlocks(p.points.total(), device), kThreads,
                      device, cuda_stream);
}

// Voxels and their rows, if points are sorted.
cudaError_t launchSorted(const SparseProblem& p, const SparseRows& rows, const SparseParts& parts,
                         const LaunchDevice& device, cudaStream_t cuda_stream) {
  const PointGroups& groups = parts.grouping.groups();
  cudaError_t error = parts.grouping.launchSorted(device, cuda_stream);
  if (error == cudaSuccess && parts.by_first_point) {
    error = launchRows(parts, p.points.total(),
                       {groups, parts.is_first, parts.firsts_before, parts.rows, parts.voxels},
                       device, cuda_stream);
  }
  if (error != cudaSuccess) return error;
  EmitArguments emit = {rows, groups, parts.voxels, parts.reduction.chunks()};
  return launchBlocks(emitRows, &emit, rowBlocks(std::max(p.capacity, groups.most), device),
                      kThreads, device, cuda_stream);
}

cudaError_t launchGroups(const SparseProblem& p, const SparseRows& rows, const SparseParts& parts,
                         const LaunchDevice& device, cudaStream_t cuda_stream) {
  const PointGrouping& grouping = parts.grouping;
  const ChunkList& chunks = parts.reduction.chunks();
  if (grouping.byTable()) return grouping.launchTable(rows, chunks, device, cuda_stream);
  cudaError_t error = clearCounts(p.dropped, p.points.clouds, device, cuda_stream);
  if (error == cudaSuccess) error = clearCounts(rows.lost, device, cuda_stream);
  if (error == cudaSuccess) error = parts.reduction.clear(cuda_stream);
  if (error != cudaSuccess) return error;
  error = grouping.ranked() ? grouping.launchRanked(rows, chunks, device, cuda_stream)
                            : launchSorted(p, rows, parts, device, cuda_stream);
  return error != cudaSuccess ? error : launchPoints(p, rows, parts, device, cuda_stream);
}

size_t voxelizeSparseScratchBytes(const SparseProblem& p, const LaunchDevice& device) {
  ScratchLayout cutter(nullptr);
  const SparseParts parts(p, device, &cutter);
  return cutter.used();
}

cudaError_t launchVoxelizeSparse(const SparseProblem& p, void* scratch, const LaunchDevice& device,
                                 cudaStream_t cuda_stream, LaunchChoice* chosen) {
  ScratchLayout cutter(scratch);
  const SparseParts parts(p, device, &cutter);
  *chosen = parts.grouping.choice();
  const SparseRows rows = sparseRowsOf(p);
  cudaError_t error = launchGroups(p, rows, parts, device, cuda_stream);
  if (error == cudaSuccess) error = launchReduced(p, parts, device, cuda_stream);
  if (error == cudaSuccess) error = launchGrouped(p, parts, device, cuda_stream);
  return error;
}

}  // namespace

extern const Operation<SparseProblem> kVoxelizeSparse = {
    bytesOn<SparseProblem, voxelizeSparseScratchBytes>,
    launchOn<SparseProblem, launchVoxelizeSparse>};
cudaError_t loadVoxelizeSparse(const LaunchDevice&) { return loadKernelsBeside(emitRows); }

}  // namespace rbc::cuda
