// Integration into a truncated signed distance field on CUDA.
//
// Two launches follow the rays, a thread each: the first one marks the voxels that they observe,
// and the second one adds up what those observe; the sums are integers, so their order does not
// matter. In between, the marked voxels are numbered and their sums cleared, and in the end these
// are averaged: what no ray reaches costs a bit a voxel.

#include <algorithm>

#include "points/clear_counts.h"
#include "points/tsdf_number.cuh"
#include "points/tsdf_sums.cuh"
#include "runtime/cuda_state.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"

namespace rbc::cuda {
namespace tsdf {
namespace {

struct AverageArguments {
  TsdfProblem problem;
  ObservedVoxels observed;
};

template <class Place>
__global__ void __launch_bounds__(kThreads) average(const __grid_constant__ AverageArguments a) {
  waitForLaunchesAhead();
  const ObservedVoxels& observed = a.observed;
  const auto* places = static_cast<const Place*>(observed.places);
  const auto count = static_cast<int64_t>(*observed.count);
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = threadIndex(); i < count; i += threads) {
    const Place place = __ldcg(places + i);
    const ulonglong2 sums = __ldcg(reinterpret_cast<const ulonglong2*>(observed.sums + i));
    if (sums.y == 0) continue;
    integrateAt(a.problem,
                observed.grid.coordsOf(static_cast<int64_t>(place / kBrickVoxels),
                                       static_cast<int>(place % kBrickVoxels)),
                {sums.x, sums.y});
  }
}

// ---- launches -----------------------------------------------------------------------------------

// A warp reads the marks of several groups where there are more of them than run at once.
template <class Place>
cudaError_t launchNumbers(const TsdfProblem& p, const ObservedVoxels& observed,
                          const LaunchDevice& device, cudaStream_t cuda_stream) {
  const int64_t resident = int64_t{64} * device.multiprocessors;
  const auto groups = static_cast<int>(std::clamp<int64_t>(observed.groups / resident, 1, kWarp));
  NumberArguments arguments = {observed, p.dropped, p.points.clouds, groups};
  return launchBlocks(numberVoxels<Place>, &arguments,
                      ceilDiv(observed.groups, int64_t{kWarps} * groups), kThreads, device,
                      cuda_stream);
}

template <class Place>
cudaError_t launchAverage(const TsdfProblem& p, const ObservedVoxels& observed,
                          const LaunchDevice& device, cudaStream_t cuda_stream) {
  AverageArguments arguments = {p, observed};
  return launchBlocks(average<Place>, &arguments,
                      blocksFor(observed.capacity, kThreads, int64_t{16} * device.multiprocessors),
                      kThreads, device, cuda_stream);
}

template <class Storage>
cudaError_t launchAll(const TsdfProblem& p, const ObservedVoxels& observed,
                      const LaunchDevice& device, cudaStream_t cuda_stream) {
  using Number = Compute<Storage>;
  RayArguments<Number> rays = {p,
                               fieldAs<Number>(p),
                               observed,
                               FastDivmod(p.points.rows),
                               p.points.total(),
                               static_cast<int64_t*>(p.dropped.data),
                               p.dropped.stride[0]};
  const int64_t blocks = ceilDiv(rays.total, kThreads);
  const bool wide = observed.long_places;
  cudaError_t error =
      launchBlocks(markVoxels<Storage>, &rays, blocks, kThreads, device, cuda_stream);
  if (error != cudaSuccess) return error;
  error = wide ? launchNumbers<uint64_t>(p, observed, device, cuda_stream)
               : launchNumbers<uint32_t>(p, observed, device, cuda_stream);
  if (error != cudaSuccess) return error;
  error = launchBlocks(observe<Storage>, &rays, blocks, kThreads, device, cuda_stream);
  if (error != cudaSuccess) return error;
  return wide ? launchAverage<uint64_t>(p, observed, device, cuda_stream)
              : launchAverage<uint32_t>(p, observed, device, cuda_stream);
}

size_t scratchBytes(const TsdfProblem& p, const LaunchDevice&) {
  return p.points.total() > 0 ? ObservedVoxels(p, nullptr).bytes : 0;
}

cudaError_t launch(const TsdfProblem& p, void* scratch, const LaunchDevice& device,
                   cudaStream_t cuda_stream) {
  if (p.points.total() == 0) return clearCounts(p.dropped, p.points.clouds, device, cuda_stream);
  const ObservedVoxels observed(p, scratch);
  const cudaError_t error = cudaMemsetAsync(scratch, 0, observed.cleared, cuda_stream);
  if (error != cudaSuccess) return error;
  return visitFloat(p.points.dtype, [&](auto tag) {
    return launchAll<typename decltype(tag)::type>(p, observed, device, cuda_stream);
  });
}

}  // namespace
}  // namespace tsdf

extern const Operation<TsdfProblem> kVoxelizeTsdf = {bytesOn<TsdfProblem, tsdf::scratchBytes>,
                                                     launchOn<TsdfProblem, tsdf::launch>};
cudaError_t loadTsdf() { return loadKernelsBeside(tsdf::average<uint32_t>); }

}  // namespace rbc::cuda
