// Points grouped by ranks: the set bits before a voxel's are its number.
#pragma once

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_scan.cuh>

#include "points/four_points.cuh"
#include "points/group_points.h"
#include "points/shared_keys.cuh"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace grouping {

template <class Number>
struct MarkArguments {
  PointSource<Number> source;
  RankWord* words;
  int32_t* keys;
};

template <class Loader>
__global__ void __launch_bounds__(kThreads, kBlocks)
    markVoxels(const __grid_constant__ MarkArguments<typename Loader::Number> a) {
  __shared__ SharedKeys shared;
  waitForLaunchesAhead();
  DropCounter drops(a.source);
  int32_t keys[kPoints];
  loadKeys<Loader>(a.source, firstOfThread(), keys, &drops);
  storeFour(a.keys, firstOfThread(), a.source.total, keys);
  const auto maskOf = [](int32_t key) { return 1u << key % 32; };
  int32_t halves[kPoints];  // of words
#pragma unroll
  for (int k = 0; k < kPoints; ++k) halves[k] = keys[k] >= 0 ? keys[k] / 32 : -1;
  shared.enter(halves);
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    if (keys[k] < 0) continue;
    uint32_t* const sum = shared.sumOf(halves[k]);
    if (sum != nullptr) {
      atomicOr(sum, maskOf(keys[k]));
    } else {
      atomicOr(halfOf(a.words, halves[k]), maskOf(keys[k]));
    }
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    if (keys[k] >= 0 && shared.owns(halves[k], k)) {
      atomicOr(halfOf(a.words, halves[k]), *shared.sumOf(halves[k]));
    }
  }
  drops.finish();
}

struct RankArguments {
  PointGroups groups;
  int32_t* keys;  // of voxels
  uint32_t* counts;
  int32_t* slots;
};

// The places that a thread's points take among those of their voxels; 0 for points in none.
static __device__ __forceinline__ void takeSlots(SharedKeys* shared, uint32_t* counts,
                                                 const int32_t (&ranks)[kPoints],
                                                 int32_t (&slots)[kPoints]) {
  shared->enter(ranks);
  uint32_t* sums[kPoints];
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    slots[k] = 0;
    sums[k] = nullptr;
    if (ranks[k] < 0) continue;
    sums[k] = shared->sumOf(ranks[k]);
    uint32_t* const count = sums[k] != nullptr ? sums[k] : &counts[ranks[k]];
    slots[k] = static_cast<int32_t>(atomicAdd(count, 1u));
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    if (ranks[k] >= 0 && shared->owns(ranks[k], k)) {
      *sums[k] = atomicAdd(&counts[ranks[k]], *sums[k]);
    }
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    if (sums[k] != nullptr) slots[k] += static_cast<int32_t>(*sums[k]);
  }
}

// Turns the keys in `ranks` into the voxels' numbers.
static __global__ void __launch_bounds__(kThreads)
    rankPoints(const __grid_constant__ RankArguments a) {
  __shared__ SharedKeys shared;
  waitForLaunchesAhead();
  const PointGroups& g = a.groups;
  const int64_t first = firstOfThread();
  if (first == 0) {
    const RankWord last = g.words[g.num_words - 1];
    *g.num = static_cast<int32_t>(last.before) + __popcll(last.bits);
  }
  int32_t keys[kPoints] = {-1, -1, -1, -1};
  if (first < g.points) loadFour(g.ranks, first, g.points, keys, -1);
  int32_t ranks[kPoints];
  int32_t slots[kPoints];
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    ranks[k] = -1;
    if (keys[k] < 0) continue;
    const auto word = load<RankWord>(&g.words[keys[k] / RankWord::kBits]);
    const uint64_t below = (uint64_t{1} << keys[k] % RankWord::kBits) - 1;
    ranks[k] = static_cast<int32_t>(word.before) + __popcll(word.bits & below);
  }
  takeSlots(&shared, a.counts, ranks, slots);
  if (first >= g.points) return;
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
  __device__ uint32_t operator()(const RankWord& word) const {
    return static_cast<uint32_t>(__popcll(word.bits));
  }
};

// Where a scan writes what is before a word: beside the bits that it reads, by 4 bytes, so that neither is
// read or written with the other.
struct BeforeWord {
  RankWord* words;
  __device__ uint32_t& operator()(int32_t i) const { return words[i].before; }
};

inline cudaError_t scanBits(void* temporary, size_t* bytes, RankWord* words, int64_t count,
                            cudaStream_t cuda_stream) {
  const auto before = thrust::make_transform_iterator(thrust::make_counting_iterator(int32_t{0}),
                                                      BeforeWord{words});
  return cub::DeviceScan::ExclusiveSum(
      temporary, *bytes,
      thrust::make_transform_iterator(static_cast<const RankWord*>(words), CountBits{}), before,
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
  return points <= kMaxRanked && voxels > 0 && voxels <= INT32_MAX && voxels / 256 <= points;
}

}  // namespace grouping
}  // namespace rbc::cuda
