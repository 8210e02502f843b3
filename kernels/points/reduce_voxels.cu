// Features reduced over the points of each voxel.
//
// Voxels with few points are done by some lanes each, a feature a lane. Those with more are cut into
// chunks, a warp each: its lanes take the points in turn. A voxel of one chunk is finished there; the
// chunks of a large one put their parts together by atomics, which are exact, so their order does
// not matter, and the chunk that comes last writes the result. Sums take two passes: the second needs
// the largest magnitude.

#include "points/reduce_voxels.h"

#include <algorithm>
#include <type_traits>

#include "ceil_div.h"
#include "points/reduce_chunks.cuh"
#include "points/reduce_few.cuh"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/suits_vecs.h"

namespace rbc::cuda {
namespace {

using namespace reduction;

// Whether rows of features can be read and written in vectors of `count`.
bool rowsSuitVecs(const ReduceArguments& a, int64_t in_size, int64_t out_size, int count) {
  return a.features.count % count == 0 && a.features.stride[2] == 1 &&
         a.target.feature_stride == 1 &&
         suitsVecs(a.features.data, {a.features.stride[0], a.features.stride[1]}, in_size, count) &&
         suitsVecs(a.target.data, a.target.stride, out_size, count);
}

int lanesLog2(int64_t count) {
  int log2 = 0;
  while (log2 < 5 && (1 << log2) < count) ++log2;
  return log2;
}

// The kernel for few points, and features of a lane. Pairs are for rows such as x, y, z, r, g, b: f32 alone,
// since each kernel takes its time to compile.
struct FewKernel {
  void (*kernel)(ReduceArguments);
  int features;
};
template <class In, class Out>
FewKernel fewKernelFor(const ReduceArguments& a) {
  if (rowsSuitVecs(a, sizeof(In), sizeof(Out), 4)) return {reduceFew<In, Out, 4>, 4};
  if constexpr (std::is_same_v<In, float> && std::is_same_v<Out, float>) {
    if (rowsSuitVecs(a, sizeof(In), sizeof(Out), 2)) return {reduceFew<In, Out, 2>, 2};
  }
  return {reduceFew<In, Out, 1>, 1};
}

template <class In, class Out>
cudaError_t launchAll(ReduceArguments* a, int64_t most_chunks, const LaunchDevice& device,
                      cudaStream_t cuda_stream) {
  const FewKernel few = fewKernelFor<In, Out>(*a);
  a->few_lanes_log2 = lanesLog2(a->features.count / few.features);
  a->lanes_log2 = lanesLog2(a->features.count);
  const int64_t rows = std::max(a->groups.most, a->target.dense ? 0 : a->target.capacity);
  // Each row has to have its lanes: a grid has 2^31 - 1 blocks at most.
  while (a->few_lanes_log2 > 0 && rows > int64_t{INT32_MAX} * kThreads >> a->few_lanes_log2) {
    --a->few_lanes_log2;
  }
  const int64_t few_blocks = ceilDiv(rows << a->few_lanes_log2, kThreads);
  cudaError_t error = launchBlocks(few.kernel, a, few_blocks, kThreads, device, cuda_stream);
  if (error != cudaSuccess || most_chunks == 0) return error;
  const int64_t blocks =
      std::min<int64_t>(ceilDiv(most_chunks, kWarpsPerBlock), int64_t{8} * device.multiprocessors);
  error = launchBlocks(reduceChunks<In, Out, false>, a, blocks, kThreads, device, cuda_stream);
  if (error != cudaSuccess || a->mode > VoxelMode::kMean) return error;
  return launchBlocks(reduceChunks<In, Out, true>, a, blocks, kThreads, device, cuda_stream);
}

}  // namespace

VoxelReduction::VoxelReduction(const PointClouds& points, const Features& features, VoxelMode mode,
                               ScratchLayout* cutter)
    : points_(points), features_(features), mode_(mode) {
  const int64_t total = points.total();
  most_large_ = total / (kChunkPoints + 1);
  most_chunks_ = total / (kFewPoints + 1) + total / kChunkPoints;
  constexpr int64_t kCounters = 2;
  cutter->take(&counters_, kCounters);
  const size_t before = cutter->used() - kCounters * sizeof *counters_;
  cutter->take(&keys_, most_large_ * features.count);
  Fixed128* sums;
  cutter->take(&sums, mode <= VoxelMode::kMean ? most_large_ * features.count : 0);
  sums_ = sums;
  clear_bytes_ = cutter->used() - before;
  Chunk* chunks;
  cutter->take(&chunks, most_chunks_);
  chunks_ = chunks;
  cutter->take(&arrived_, most_large_);
}

cudaError_t VoxelReduction::launch(const PointGroups& groups, const VoxelTarget& target,
                                   const LaunchDevice& device, cudaStream_t cuda_stream) const {
  if (features_.count == 0 || (groups.most == 0 && target.dense)) return cudaSuccess;
  // What large voxels add to is cleared whole: there are few of them.
  const cudaError_t error = cudaMemsetAsync(counters_, 0, clear_bytes_, cuda_stream);
  if (error != cudaSuccess) return error;
  ReduceArguments arguments = {
      groups,    featureRowsOf(features_, points_), target,   mode_, 0,    0,
      counters_, static_cast<Chunk*>(chunks_),      arrived_, keys_, sums_};
  return visitFloat(features_.dtype, [&](auto in) {
    using In = typename decltype(in)::type;
    return visitFloat(target.dtype, [&](auto out) {
      using Out = typename decltype(out)::type;
      return launchAll<In, Out>(&arguments, most_chunks_, device, cuda_stream);
    });
  });
}

cudaError_t loadReduceVoxels() { return loadKernelsBeside(reduceFew<float, float, 1>); }

}  // namespace rbc::cuda
