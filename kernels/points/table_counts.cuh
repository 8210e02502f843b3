// What the threads and blocks count that group points by a table, added up.
#pragma once

#include <cstdint>

#include "points/voxel_table.cuh"

namespace rbc::cuda {
namespace grouping {

inline constexpr int kTableWarps = kTableThreads / 32;

// What a thread or a block counts: what its voxels have, and how many bits of keys are set.
struct TableCounts {
  uint64_t tally;
  uint32_t bits;

  __device__ TableCounts operator+(const TableCounts& other) const {
    return {tally + other.tally, bits + other.bits};
  }
  __device__ TableCounts operator-(const TableCounts& other) const {
    return {tally - other.tally, bits - other.bits};
  }
};

struct TableShared {
  TableCounts of_warps[kTableWarps];
  union {
    int32_t keys[kTableThreads];
    TableCounts before[kMaxTableBlocks];  // by block: sums of those before
    uint32_t bits[kMaxTablePoints / 32];  // by point
  };
};

// What is counted of voxels, in one number that can be added up.
struct Tally {
  static constexpr int kVoxels = 20;
  static constexpr int kChunks = 40;
  static constexpr int kLarge = 54;

  uint64_t all;

  __device__ static Tally of(uint32_t points, uint32_t voxels, uint32_t chunks, uint32_t large) {
    return {points | uint64_t{voxels} << kVoxels | uint64_t{chunks} << kChunks |
            uint64_t{large} << kLarge};
  }
  __device__ uint32_t points() const { return field(0, kVoxels); }
  __device__ uint32_t voxels() const { return field(kVoxels, kChunks); }
  __device__ uint32_t chunks() const { return field(kChunks, kLarge); }
  __device__ uint32_t large() const { return field(kLarge, 64); }

 private:
  __device__ uint32_t field(int first, int end) const {
    return static_cast<uint32_t>(all >> first & ((uint64_t{1} << (end - first)) - 1));
  }
};

__device__ __forceinline__ TableCounts shuffleUp(const TableCounts& counts, int distance) {
  return {__shfl_up_sync(~0u, counts.tally, distance), __shfl_up_sync(~0u, counts.bits, distance)};
}
__device__ __forceinline__ TableCounts ofLane(const TableCounts& counts, int lane) {
  return {__shfl_sync(~0u, counts.tally, lane), __shfl_sync(~0u, counts.bits, lane)};
}

__device__ __forceinline__ TableCounts upToLane(TableCounts counts) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const TableCounts other = shuffleUp(counts, distance);
    if (lane >= distance) counts = counts + other;
  }
  return counts;
}

// The sum over the threads before. CUB's takes 3,000 cycles with so many threads, this one some 500.
__device__ __forceinline__ TableCounts sumBefore(const TableCounts& own, TableShared& shared,
                                                 TableCounts* sum) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const TableCounts up_to = upToLane(own);
  __syncthreads();  // the last use of this memory
  if (lane == 31) shared.of_warps[warp] = up_to;
  __syncthreads();
  static_assert(kTableWarps == 32);
  const TableCounts up_to_warp = upToLane(shared.of_warps[lane]);
  *sum = ofLane(up_to_warp, 31);
  const TableCounts of_warps = ofLane(up_to_warp, warp > 0 ? warp - 1 : 0);
  const TableCounts before = up_to - own;
  return warp > 0 ? before + of_warps : before;
}

}  // namespace grouping
}  // namespace rbc::cuda
