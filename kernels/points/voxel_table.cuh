// The hash table of voxels: its layout, and its counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "ceil_div.h"
#include "points/select_voxels.h"
#include "scratch_layout.h"
#include "voxel_problem.h"

namespace rbc::cuda {
namespace grouping {

// ---- A hash table of voxels, and the other memory in scratch for grouping points by it.

// A voxel in one word, so that one atomic takes a slot or counts points.
struct VoxelSlot {
  static constexpr int kKeyBits = kSlotKeyBits;
  static constexpr int kPointBits = 18;  // one more than points need: no voxel equals kNone
  static constexpr uint64_t kNone = UINT64_MAX;

  uint64_t word;

  // The owner is the point that took the slot.
  RBC_HD static VoxelSlot pack(uint32_t key, uint32_t owner, uint32_t count) {
    return {key | uint64_t{owner} << kKeyBits | points(count)};
  }
  RBC_HD static uint64_t points(uint32_t count) {
    return uint64_t{count} << (kKeyBits + kPointBits);
  }
  RBC_HD uint32_t key() const { return static_cast<uint32_t>(word) & ((1u << kKeyBits) - 1); }
  RBC_HD uint32_t owner() const {
    return static_cast<uint32_t>(word >> kKeyBits) & ((1u << kPointBits) - 1);
  }
  RBC_HD uint32_t count() const { return static_cast<uint32_t>(word >> (kKeyBits + kPointBits)); }
};
static_assert(kMaxTablePoints < (1 << VoxelSlot::kPointBits) - 1);

// Bits of neighbouring keys: everything needed to look up one is in 32 bytes, which are read
// together.
inline constexpr int kWordsOfGroup = 7;
inline constexpr int kKeysOfGroup = 32 * kWordsOfGroup;
struct alignas(32) KeyBits {
  uint32_t before;  // set bits in the block's groups before
  uint32_t word[kWordsOfGroup];
};

struct CrowdedVoxel {
  int32_t begin;
  int32_t size;
};
inline constexpr int kCrowded = 64;  // a voxel with more points is sorted by a block

// Blocks number voxels by their owners. The owner's thread does the work that is done once per
// voxel.
struct VoxelTable {
  VoxelSlot* slots;
  uint32_t num_slots;
  uint32_t* begins;  // [points]: at an owner, where its points begin, among the points of its block
  ulonglong2* of_blocks;  // [blocks]: sums over a block's voxels, and over its groups
  // If ordered by keys; else null.
  KeyBits* bits;  // [groups]
  int64_t groups;
  // If ordered by first points; else null.
  uint32_t* firsts;   // [num_slots]: these are the owners then
  uint32_t* numbers;  // [points]: at an owner, the voxels before in its block
  // If the points of a voxel must be in order; else null.
  int32_t* as_they_came;  // [points]: the order before it is sorted
  CrowdedVoxel* crowded;  // [points / kCrowded]
  uint32_t* num_crowded;  // [1]

  VoxelTable() = default;
  VoxelTable(int64_t points, int64_t most, int64_t voxels, std::optional<VoxelOrder> order,
             bool sorted, ScratchLayout* cutter) {
    *this = {};
    num_slots = static_cast<uint32_t>(8 * most);  // most voxels find their slot at once
    cutter->take(&slots, num_slots);
    cutter->take(&begins, points);
    cutter->take(&of_blocks, kMaxTableBlocks);
    if (order == VoxelOrder::kLexicographic) {
      groups = ceilDiv(voxels, kKeysOfGroup);
      cutter->take(&bits, groups);
    } else if (order == VoxelOrder::kFirstPoint) {
      cutter->take(&firsts, num_slots);
      cutter->take(&numbers, points);
    }
    if (!sorted) return;
    cutter->take(&as_they_came, points);
    cutter->take(&crowded, points / kCrowded);
    cutter->take(&num_crowded, 1);
  }
};

// ---- The counters of threads and blocks that group points by a table, and their sums.

inline constexpr int kTableWarps = kTableThreads / 32;

// The counters of a thread or a block: totals over its voxels, and the number of set bits of keys.
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
    TableCounts before[kMaxTableBlocks];  // by block: sums over the blocks before
    uint32_t bits[kMaxTablePoints / 32];  // by point
  };
};

// The counters of voxels, packed in one number that can be added.
struct Tally {
  static constexpr int kVoxels = 20;
  static constexpr int kChunks = 40;
  static constexpr int kLarge = 54;

  uint64_t all;

  __device__ static Tally pack(uint32_t points, uint32_t voxels, uint32_t chunks, uint32_t large) {
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

// The sum over the threads before. CUB's takes 3,000 cycles with this many threads, this one about
// 500.
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
