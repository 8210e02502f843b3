// Points grouped by ranks: the set bits before a voxel's are its number.
#pragma once

#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_scan.cuh>

#include "points/four_points.cuh"
#include "points/group_points.h"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace grouping {

inline constexpr int kWordBits = 64;

template <class Number>
struct MarkArguments {
  PointSource<Number> source;
  uint32_t* bits;
  int32_t* keys;
};

template <class Loader>
__global__ void __launch_bounds__(kThreads, kBlocks)
    markVoxels(const __grid_constant__ MarkArguments<typename Loader::Number> a) {
  waitForLaunchesAhead();
  DropCounter drops(a.source);
  int32_t keys[kPoints];
  loadKeys<Loader>(a.source, firstOfThread(), keys, &drops);
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    if (keys[k] >= 0) atomicOr(&a.bits[keys[k] / 32], 1u << keys[k] % 32);
  }
  storeFour(a.keys, firstOfThread(), a.source.total, keys);
  drops.finish();
}

struct RankArguments {
  PointGroups groups;
  const uint64_t* words;
  const uint32_t* prefix;
  int32_t* keys;  // of voxels
  uint32_t* counts;
  int32_t* slots;
  int64_t num_words;
};

// Turns the keys in `ranks` into the voxels' numbers.
static __global__ void __launch_bounds__(kThreads)
    rankPoints(const __grid_constant__ RankArguments a) {
  waitForLaunchesAhead();
  const PointGroups& g = a.groups;
  const int64_t first = firstOfThread();
  if (first == 0) {
    const int64_t last = a.num_words - 1;
    *g.num = static_cast<int32_t>(a.prefix[last]) + __popcll(a.words[last]);
  }
  if (first >= g.points) return;
  int32_t keys[kPoints];
  int32_t ranks[kPoints];
  int32_t slots[kPoints];
  loadFour(g.ranks, first, g.points, keys, -1);
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    ranks[k] = -1;
    if (keys[k] < 0) continue;
    const int32_t word = keys[k] / kWordBits;
    const uint64_t before = (uint64_t{1} << keys[k] % kWordBits) - 1;
    ranks[k] = static_cast<int32_t>(a.prefix[word]) + __popcll(a.words[word] & before);
  }
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    slots[k] = ranks[k] >= 0 ? static_cast<int32_t>(atomicAdd(&a.counts[ranks[k]], 1u)) : 0;
  }
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    if (ranks[k] >= 0 && slots[k] == 0) a.keys[ranks[k]] = keys[k];
  }
  storeFour(g.ranks, first, g.points, ranks);
  storeFour(a.slots, first, g.points, slots);
}

static __global__ void __launch_bounds__(kThreads)
    orderPoints(const __grid_constant__ RankArguments a) {
  waitForLaunchesAhead();
  const PointGroups& g = a.groups;
  const int64_t first = firstOfThread();
  if (first >= g.points) return;
  int32_t ranks[kPoints];
  int32_t slots[kPoints];
  loadFour(g.ranks, first, g.points, ranks, -1);
  loadFour(a.slots, first, g.points, slots, -1);
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    if (ranks[k] >= 0) g.order[g.starts[ranks[k]] + slots[k]] = static_cast<int32_t>(first + k);
  }
}

struct CountBits {
  __device__ uint32_t operator()(uint64_t word) const {
    return static_cast<uint32_t>(__popcll(word));
  }
};

inline cudaError_t scanBits(void* temporary, size_t* bytes, const uint64_t* words, uint32_t* prefix,
                            int64_t count, cudaStream_t cuda_stream) {
  return cub::DeviceScan::ExclusiveSum(temporary, *bytes,
                                       thrust::make_transform_iterator(words, CountBits{}), prefix,
                                       static_cast<int>(count), cuda_stream);
}

inline cudaError_t scanCounts(void* temporary, size_t* bytes, const uint32_t* counts,
                              int32_t* starts, int64_t count, cudaStream_t cuda_stream) {
  return cub::DeviceScan::ExclusiveSum(temporary, *bytes, counts, starts, static_cast<int>(count),
                                       cuda_stream);
}

// Where it is the faster way.
inline bool suitsRanks(int64_t points, int64_t voxels) {
  constexpr int64_t kMaxRanked = int64_t{1} << 21;
  return points <= kMaxRanked && voxels <= INT32_MAX && voxels / 256 <= points;
}

}  // namespace grouping
}  // namespace rbc::cuda
