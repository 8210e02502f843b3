// Reduces features over the points of each voxel.
//
// Voxels with few points are processed by a few lanes each, with a few features per lane. Larger
// ones are divided into chunks, one warp each, whose lanes take turns with the points. A voxel with
// one chunk is finished there. The chunks of a large one combine their parts by atomics, which are
// exact, so that the order does not matter; the last chunk writes the result. Sums take two passes:
// the second needs the largest magnitude.

#include "points/reduce_voxels.h"

#include <algorithm>
#include <type_traits>

#include "ceil_div.h"
#include "points/reduce_kernels.cuh"
#include "points/voxel_table.cuh"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/suits_vecs.h"
#include "visit_dtype.h"

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

// Blocks that must fit on a multiprocessor, which bounds the registers: as many as fit with hardly
// any spills. By default the compiler spills to fit one more.
template <class In, int kCount>
constexpr int kResidentBlocks = sizeof(In) == 8 ? (kCount > 1 ? 5 : 8)
                                : kCount > 1    ? 9
                                                : 10;
// The most of these that process chunks.
constexpr int kChunkBlocks = 4;
// The most that fill voxels without points: they write at the memory's bandwidth.
constexpr int kEmptyBlocks = 2;
// Points of a voxel that lanes process one after the other: with few points this takes most of the
// time.
constexpr int64_t kFewOfAll = int64_t{1} << 18;
constexpr int kFewPoints = 32;
constexpr int kFewPointsOfFew = 8;
// Fits in a field of Tally.
static_assert(grouping::kMaxTablePoints / (kFewPointsOfFew + 1) +
                  grouping::kMaxTablePoints / kChunkPoints <
              1 << (grouping::Tally::kLarge - grouping::Tally::kChunks));

// kCount features per lane.
template <class In, class Out, int kCount>
__global__ void __launch_bounds__(kThreads, kResidentBlocks<In, kCount>)
    reduceVoxels(const __grid_constant__ ReduceArguments a) {
  waitForLaunchesAhead();
  if (blockIdx.x < a.chunk_blocks) {
    reduceChunks<In, Out, kCount>(a);
  } else if (blockIdx.x - a.chunk_blocks < a.empty_blocks) {
    fillEmpty(a);
  } else {
    reduceFew<In, Out, kCount>(a, int64_t{blockIdx.x} - a.chunk_blocks - a.empty_blocks);
  }
}

struct ListArguments {
  PointGroups groups;
  ChunkList list;
};

__global__ void __launch_bounds__(kThreads) listVoxels(const __grid_constant__ ListArguments a) {
  waitForLaunchesAhead();
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t v = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; v < *a.groups.num;
       v += threads) {
    const int2 span = a.groups.span(v);
    a.list.add(static_cast<int32_t>(v), span.x, span.y);
  }
}

int lanesLog2(int64_t count) {
  int log2 = 0;
  while (log2 < 5 && (1 << log2) < count) ++log2;
  return log2;
}

// The kernel, and features per lane. Pairs are for rows such as x, y, z, r, g, b: only f32, since
// each kernel takes long to compile.
struct ReduceKernel {
  void (*kernel)(ReduceArguments);
  int features;
};
template <class In, class Out>
ReduceKernel kernelFor(const ReduceArguments& a) {
  if (rowsSuitVecs(a, sizeof(In), sizeof(Out), 4)) return {reduceVoxels<In, Out, 4>, 4};
  if constexpr (std::is_same_v<In, float> && std::is_same_v<Out, float>) {
    if (rowsSuitVecs(a, sizeof(In), sizeof(Out), 2)) return {reduceVoxels<In, Out, 2>, 2};
  }
  return {reduceVoxels<In, Out, 1>, 1};
}

template <class In, class Out>
cudaError_t launchAll(ReduceArguments* a, const LaunchDevice& device, cudaStream_t cuda_stream) {
  const ReduceKernel kernel = kernelFor<In, Out>(*a);
  a->few_lanes_log2 = lanesLog2(a->features.count / kernel.features);
  a->chunk_lanes_log2 = std::min(a->few_lanes_log2, lanesLog2(kWarp / kernel.features));
  const int64_t rows = std::max(a->groups.most, a->target.dense ? 0 : a->target.capacity);
  // Each row needs its lanes: a grid has at most 2^31 - 1 blocks.
  const int64_t first_blocks = int64_t{a->chunk_blocks} + a->empty_blocks;
  const int64_t most_blocks = INT32_MAX - first_blocks;
  while (a->few_lanes_log2 > 0 && rows > most_blocks * kThreads >> a->few_lanes_log2) {
    --a->few_lanes_log2;
  }
  const int64_t few_blocks = ceilDiv(rows << a->few_lanes_log2, kThreads);
  return launchBlocks(kernel.kernel, a, first_blocks + few_blocks, kThreads, device, cuda_stream);
}

}  // namespace

VoxelReduction::VoxelReduction(const PointClouds& points, const Features& features, Reduction mode,
                               ScratchLayout* cutter)
    : points_(points), features_(features), mode_(mode) {
  if (features.count == 0) return;
  const int64_t total = points.total();
  most_large_ = total / (kChunkPoints + 1);
  chunks_.few = total <= kFewOfAll ? kFewPointsOfFew : kFewPoints;
  most_chunks_ = total / (chunks_.few + 1) + total / kChunkPoints;
  constexpr int64_t kCounters = 3;
  cutter->take(&chunks_.counters, kCounters);
  const size_t before = cutter->used() - kCounters * sizeof *chunks_.counters;
  cutter->take(&keys_, most_large_ * features.count);
  Fixed128* sums;
  cutter->take(&sums, mode <= Reduction::kMean ? most_large_ * features.count : 0);
  sums_ = sums;
  chunks_.clear = chunks_.counters;
  chunks_.clear_words = static_cast<int64_t>((cutter->used() - before) / sizeof *chunks_.clear);
  cutter->take(&chunks_.chunks, most_chunks_);
  cutter->take(&chunks_.arrived, most_large_);
}

cudaError_t VoxelReduction::clear(cudaStream_t cuda_stream) const {
  if (chunks_.clear == nullptr) return cudaSuccess;
  return cudaMemsetAsync(chunks_.clear, 0,
                         static_cast<size_t>(chunks_.clear_words) * sizeof *chunks_.clear,
                         cuda_stream);
}

cudaError_t VoxelReduction::listChunks(const PointGroups& groups, const LaunchDevice& device,
                                       cudaStream_t cuda_stream) const {
  if (most_chunks_ == 0) return cudaSuccess;
  ListArguments arguments = {groups, chunks_};
  const int64_t blocks = blocksFor(groups.most, kThreads, int64_t{32} * device.multiprocessors);
  return launchBlocks(listVoxels, &arguments, blocks, kThreads, device, cuda_stream);
}

cudaError_t VoxelReduction::launch(const PointGroups& groups, const VoxelTarget& target,
                                   const LaunchDevice& device, cudaStream_t cuda_stream) const {
  if (features_.count == 0 || (groups.most == 0 && target.dense)) return cudaSuccess;
  const int64_t chunk_blocks = std::min<int64_t>(ceilDiv(most_chunks_, kWarpsPerBlock),
                                                 int64_t{kChunkBlocks} * device.multiprocessors);
  const int64_t empty_blocks =
      target.empty.voxels > 0 ? int64_t{kEmptyBlocks} * device.multiprocessors : 0;
  ReduceArguments arguments = {groups,
                               featureRowsOf(features_, points_),
                               target,
                               mode_,
                               0,
                               0,
                               static_cast<unsigned>(chunk_blocks),
                               static_cast<unsigned>(empty_blocks),
                               chunks_,
                               keys_,
                               sums_};
  return visitFloat(features_.dtype, [&](auto in) {
    using In = typename decltype(in)::type;
    return visitFloat(target.dtype, [&](auto out) {
      using Out = typename decltype(out)::type;
      return launchAll<In, Out>(&arguments, device, cuda_stream);
    });
  });
}

cudaError_t loadReduceVoxels() { return loadKernelsBeside(reduceVoxels<float, float, 1>); }

}  // namespace rbc::cuda
