// Integration into a truncated signed distance field on CUDA.
//
// Two launches follow the rays, a thread each: the first one marks the blocks of voxels that they
// come to, and the second one adds up what the voxels observe; the sums are integers, so their order
// does not matter. In between, the sums of the marked blocks are cleared, and in the end these are
// averaged: what no ray reaches costs a byte a block.

#include <algorithm>

#include "points/points.cuh"
#include "runtime/cuda_state.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "scratch_layout.h"
#include "tsdf_problem.h"

namespace rbc::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr int kBlock = kWarp;  // voxels: one for each lane

struct Sums {
  TsdfSums* voxels;
  uint8_t* marks;  // of blocks
  int64_t blocks;
  size_t bytes;
};

Sums sumsIn(void* scratch, const TsdfProblem& p) {
  Sums sums;
  sums.blocks = ceilDiv(p.grid.volume(), kBlock);
  ScratchLayout cutter(scratch);
  cutter.take(&sums.voxels, sums.blocks * kBlock);
  cutter.take(&sums.marks, sums.blocks);
  sums.bytes = cutter.used();
  return sums;
}

// ---- rays ---------------------------------------------------------------------------------------

template <class Number>
struct RayArguments {
  TsdfProblem problem;
  RayField<Number> field;
  Sums sums;
  FastDivmod per_cloud;  // rows of a padded cloud
  int64_t total;         // rows, valid or not
  int64_t* dropped;      // by cloud; may be null
  int64_t dropped_stride;
};

__device__ void addTo(uint64_t* sum, uint64_t term) {
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(term));
}

// Calls visit(ray) for the i-th point's, and drop(cloud) if it has none.
template <class Storage, class Visitor, class Drop>
__device__ __forceinline__ void visitRay(const RayArguments<Compute<Storage>>& a, int64_t i,
                                         Visitor&& visit, Drop&& drop) {
  using Number = Compute<Storage>;
  const PointClouds& c = a.problem.points;
  const int64_t cloud = c.packed() ? cloudAround(c, i) : a.per_cloud(i);
  const int64_t row = c.packed() ? i : i - cloud * c.rows;
  const RowRange range = pointsOf(c, cloud);
  if (row < range.begin || row - range.begin >= range.count) return;
  const Storage* at = static_cast<const Storage*>(c.data) + cloud * c.stride[0] + row * c.stride[1];
  const Number point[] = {widen(at[0]), widen(at[c.stride[2]]), widen(at[2 * c.stride[2]])};
  Number sensor[3];
  sensorOf(a.problem, cloud, sensor);
  TsdfRay<Number> ray;
  if (aim(a.field, point, sensor, &ray)) {
    visit(ray);
  } else {
    drop(cloud);
  }
}

__device__ __forceinline__ int64_t threadIndex() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

template <class Storage>
__global__ void __launch_bounds__(kThreads)
    markBlocks(const __grid_constant__ RayArguments<Compute<Storage>> a) {
  waitForLaunchesAhead();
  const int64_t i = threadIndex();
  if (i >= a.total) return;
  const auto mark = [&](const auto& ray) {
    int64_t last = -1;
    walk(a.field, ray, [&](int64_t voxel, int64_t) {
      const int64_t block = voxel / kBlock;
      if (block != last && a.sums.marks[block] == 0) a.sums.marks[block] = 1;
      last = block;
    });
  };
  visitRay<Storage>(a, i, mark, [](int64_t) {});
}

template <class Storage>
__global__ void __launch_bounds__(kThreads)
    observe(const __grid_constant__ RayArguments<Compute<Storage>> a) {
  waitForLaunchesAhead();
  DropCounter drops(a);
  const auto add = [&](const auto& ray) {
    const auto weight = static_cast<uint64_t>(ray.weight);
    walk(a.field, ray, [&](int64_t voxel, int64_t distance) {
      addTo(&a.sums.voxels[voxel].distance, static_cast<uint64_t>(distance));
      addTo(&a.sums.voxels[voxel].weight, weight);
    });
  };
  const int64_t i = threadIndex();
  if (i < a.total) visitRay<Storage>(a, i, add, [&](int64_t cloud) { drops.add(cloud); });
  drops.finish();
}

// ---- voxels -------------------------------------------------------------------------------------

struct VoxelArguments {
  TsdfProblem problem;
  Sums sums;
  FastDivmod per_line;   // voxels along z
  FastDivmod per_slice;  // lines along y
  int group;             // blocks whose marks a warp reads at once
};

// Calls visit(voxel) for the voxels of the marked blocks, one in each lane.
template <class Visitor>
__device__ __forceinline__ void visitMarked(const VoxelArguments& a, Visitor&& visit) {
  const int lane = threadIdx.x % kWarp;
  const int64_t volume = a.problem.grid.volume();
  const int64_t warps = static_cast<int64_t>(gridDim.x) * (kThreads / kWarp);
  for (int64_t first = threadIndex() / kWarp * a.group; first < a.sums.blocks;
       first += warps * a.group) {
    const bool in_range = lane < a.group && first + lane < a.sums.blocks;
    unsigned marked = __ballot_sync(~0u, in_range && a.sums.marks[first + lane] != 0);
    for (; marked != 0; marked &= marked - 1) {
      const int64_t voxel = (first + __ffs(marked) - 1) * kBlock + lane;
      if (voxel < volume) visit(voxel);
    }
  }
}

__global__ void __launch_bounds__(kThreads) clear(const __grid_constant__ VoxelArguments a) {
  waitForLaunchesAhead();
  const TsdfProblem& p = a.problem;
  visitMarked(a, [&](int64_t voxel) { a.sums.voxels[voxel] = {0, 0}; });
  if (p.dropped.data == nullptr) return;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t b = threadIndex(); b < p.points.clouds; b += threads) {
    static_cast<int64_t*>(p.dropped.data)[b * p.dropped.stride[0]] = 0;
  }
}

__global__ void __launch_bounds__(kThreads) average(const __grid_constant__ VoxelArguments a) {
  waitForLaunchesAhead();
  visitMarked(a, [&](int64_t voxel) {
    const TsdfSums sums = a.sums.voxels[voxel];
    if (sums.weight == 0) return;
    const VoxelGrid& grid = a.problem.grid;
    const int64_t line = a.per_line(voxel);
    const int64_t x = a.per_slice(line);
    integrateAt(a.problem, {0, x, line - x * grid.shape[1], voxel - line * grid.shape[2]}, sums);
  });
}

// ---- launches -----------------------------------------------------------------------------------

template <class Arguments>
cudaError_t launchRays(void (*kernel)(Arguments), Arguments* arguments, const LaunchDevice& device,
                       cudaStream_t cuda_stream) {
  const int64_t blocks = ceilDiv(arguments->total, kThreads);
  if (blocks == 0) return cudaSuccess;
  return launchBlocks(kernel, arguments, blocks, kThreads, device, cuda_stream);
}

cudaError_t launchVoxels(void (*kernel)(VoxelArguments), VoxelArguments* arguments,
                         const LaunchDevice& device, cudaStream_t cuda_stream) {
  const int64_t warps = ceilDiv(arguments->sums.blocks, arguments->group);
  const int64_t blocks = ceilDiv(warps, kThreads / kWarp);
  return launchBlocks(kernel, arguments, blocks, kThreads, device, cuda_stream);
}

// A warp takes several blocks where there are more of them than warps that run at once.
VoxelArguments voxelArgumentsOf(const TsdfProblem& p, const Sums& sums,
                                const LaunchDevice& device) {
  const int64_t resident = int64_t{64} * device.multiprocessors;
  const auto group = static_cast<int>(std::clamp<int64_t>(sums.blocks / resident, 1, kWarp));
  return {p, sums, FastDivmod(p.grid.shape[2]), FastDivmod(p.grid.shape[1]), group};
}

template <class Storage>
cudaError_t launch(const TsdfProblem& p, const Sums& sums, const LaunchDevice& device,
                   cudaStream_t cuda_stream) {
  RayArguments<Compute<Storage>> rays = {p,
                                         fieldAs<Compute<Storage>>(p),
                                         sums,
                                         FastDivmod(p.points.rows),
                                         p.points.total(),
                                         static_cast<int64_t*>(p.dropped.data),
                                         p.dropped.stride[0]};
  VoxelArguments voxels = voxelArgumentsOf(p, sums, device);
  cudaError_t error = launchRays(markBlocks<Storage>, &rays, device, cuda_stream);
  if (error == cudaSuccess) error = launchVoxels(clear, &voxels, device, cuda_stream);
  if (error == cudaSuccess) error = launchRays(observe<Storage>, &rays, device, cuda_stream);
  if (error == cudaSuccess) error = launchVoxels(average, &voxels, device, cuda_stream);
  return error;
}

size_t tsdfScratchBytes(const TsdfProblem& p, const LaunchDevice&) {
  return sumsIn(nullptr, p).bytes;
}

cudaError_t launchTsdf(const TsdfProblem& p, void* scratch, const LaunchDevice& device,
                       cudaStream_t cuda_stream) {
  const Sums sums = sumsIn(scratch, p);
  const cudaError_t error =
      cudaMemsetAsync(sums.marks, 0, static_cast<size_t>(sums.blocks), cuda_stream);
  if (error != cudaSuccess) return error;
  return visitFloat(p.points.dtype, [&](auto tag) {
    return launch<typename decltype(tag)::type>(p, sums, device, cuda_stream);
  });
}

}  // namespace

extern const Operation<TsdfProblem> kVoxelizeTsdf = {bytesOn<TsdfProblem, tsdfScratchBytes>,
                                                     launchOn<TsdfProblem, launchTsdf>};
cudaError_t loadTsdf() { return loadKernelsBeside(average); }

}  // namespace rbc::cuda
