// Groups points by ranks: the number of a voxel is the count of set bits before it.
#pragma once

#include "points/group_points.h"
#include "points/points.cuh"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace grouping {

// ---- A block's points with equal keys, for example on a wall that a scanner passes over: their
// additions to memory are combined in shared memory. For random points this costs little.

class SharedKeys {
 public:
  // Enters a thread's points; those with a key below 0 are ignored. Called by all threads of the
  // block; it synchronizes them. Among points whose keys share a place any may become its owner;
  // points whose key differs from the owner's are handled separately.
  __device__ __forceinline__ void enter(const int32_t (&keys)[kPoints]) {
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
      keys_[pointOf(k)] = keys[k];
      sums_[pointOf(k)] = 0;
      if (keys[k] >= 0) atomicExch(&owners_[placeOf(keys[k])], pointOf(k));
    }
    __syncthreads();
  }

  // The shared sum of points with this key; null: another key has the place, and this point is
  // handled separately.
  __device__ __forceinline__ uint32_t* sumOf(int32_t key) {
    const int place = placeOf(key);
    return keys_[owners_[place]] == key ? &sums_[place] : nullptr;
  }

  // Whether the thread's k-th point, with that key, is the one that adds the sum.
  __device__ __forceinline__ bool owns(int32_t key, int k) const {
    return owners_[placeOf(key)] == pointOf(k);
  }

 private:
  static constexpr int kPlacesLog2 = 10;
  static constexpr int kPlaces = 1 << kPlacesLog2;
  static_assert(kPlaces == kThreads * kPoints);

  static __device__ __forceinline__ int placeOf(int32_t key) {
    return static_cast<int>(static_cast<uint32_t>(key) * 2654435761u >> (32 - kPlacesLog2));
  }
  static __device__ __forceinline__ int pointOf(int k) {
    return static_cast<int>(threadIdx.x) + k * kThreads;
  }

  int32_t keys_[kPlaces];   // by point
  uint32_t sums_[kPlaces];  // by place
  int owners_[kPlaces];     // by place: one of the points whose keys have that place
};

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
  uint32_t* counts;
  int32_t* slots;
};

// The places of a thread's points among the points of their voxels; 0 for points without a voxel.
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

// Replaces the keys in `ranks` by the voxels' numbers.
static __global__ void __launch_bounds__(kThreads)
    rankPoints(const __grid_constant__ RankArguments a) {
  __shared__ SharedKeys shared;
  waitForLaunchesAhead();
  const PointGroups& g = a.groups;
  const int64_t first = firstOfThread();
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

}  // namespace grouping

}  // namespace rbc::cuda
