// The first steps of grouping points by a table: it is cleared, and the points are put into it.
#pragma once

#include "points/table_counts.cuh"
#include "points/table_steps.cuh"

namespace rbc::cuda {
namespace grouping {

template <class T>
__device__ __forceinline__ void fillByGrid(T* items, int64_t count, T value) {
  for (int64_t i = threadOfTable(); i < count; i += threadsOfTable()) items[i] = value;
}

__device__ __forceinline__ void clearTable(const TableSteps& a) {
  const VoxelTable& table = a.table;
  const auto slots = static_cast<int64_t>(table.num_slots);  // a multiple of 8
  fillByGrid(reinterpret_cast<uint4*>(table.slots), slots / 2, make_uint4(~0u, ~0u, ~0u, ~0u));
  if (table.firsts != nullptr) {
    fillByGrid(reinterpret_cast<uint4*>(table.firsts), slots / 4, make_uint4(~0u, ~0u, ~0u, ~0u));
  }
  fillByGrid(reinterpret_cast<uint4*>(table.bits), table.groups * 2, make_uint4(0, 0, 0, 0));
  fillByGrid(a.chunks.clear, a.chunks.clear_words, 0u);
  if (a.dropped != nullptr) {
    for (int64_t i = threadOfTable(); i < a.clouds; i += threadsOfTable()) {
      a.dropped[i * a.dropped_stride] = 0;
    }
  }
  if (threadOfTable() != 0) return;
  if (table.num_crowded != nullptr) *table.num_crowded = 0;
  if (a.rows.overflow.data == nullptr) return;
  for (int i = 0; i < 3; ++i) {
    static_cast<int64_t*>(a.rows.overflow.data)[i * a.rows.overflow.stride[0]] = 0;
  }
}

// The keys of the block's points, into shared memory.
template <class Loader, class Source>
__device__ __forceinline__ void loadKeysOfBlock(const Source& source, const TableSteps& a,
                                                TableShared& shared, DropCounter<Source>* drops) {
  const auto points = static_cast<int64_t>(a.points_of_block.divisor);
  const int64_t at = static_cast<int64_t>(threadIdx.x) * kPoints;
  if (at >= points) return;
  int32_t keys[kPoints];
  loadKeys<Loader>(source, blockIdx.x * points + at, keys, drops);
  *reinterpret_cast<int4*>(&shared.keys[at]) = make_int4(keys[0], keys[1], keys[2], keys[3]);
}

// The finalizer of MurmurHash3 (Appleby, public domain): keys in a row, or at one distance, spread.
__device__ __forceinline__ uint32_t spread(uint32_t key) {
  key = (key ^ key >> 16) * 0x85ebca6bu;
  key = (key ^ key >> 13) * 0xc2b2ae35u;
  return key ^ key >> 16;
}

// Takes a slot for the voxel if it has none, and adds points to it; how many it had. There are more slots than
// voxels.
__device__ __forceinline__ uint32_t addToVoxel(const VoxelTable& table, TablePoint* point,
                                               uint32_t count) {
  const auto key = static_cast<uint32_t>(point->key);
  const uint64_t own = VoxelSlot::of(key, point->number, count).word;
  bool marks = table.bits != nullptr;
  uint32_t slot = __umulhi(spread(key), table.num_slots);
  while (true) {
    auto* word = reinterpret_cast<unsigned long long*>(&table.slots[slot].word);
    const VoxelSlot found = {atomicCAS(word, VoxelSlot::kNone, own)};
    if (marks) {  // while that is under way
      atomicOr(&table.bits[key / kKeysOfGroup].word[key % kKeysOfGroup / 32], 1u << key % 32);
      marks = false;
    }
    point->slot = slot;
    if (found.word == VoxelSlot::kNone) return 0;
    if (found.key() == key) {
      return VoxelSlot{atomicAdd(word, VoxelSlot::points(count))}.count();
    }
    if (++slot == table.num_slots) slot = 0;
  }
}

// Called by all threads of a warp together: neighbours in one voxel, as a sweep has them, count as one.
__device__ __forceinline__ void insertPoint(const VoxelTable& table, TablePoint* point) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int32_t neighbour = __shfl_up_sync(~0u, point->key, 1);
  const unsigned leaders = __ballot_sync(~0u, lane == 0 || neighbour != point->key);
  const int leader = 31 - __clz(static_cast<int>(leaders & (~0u >> (31 - lane))));
  uint32_t before = 0;
  if (point->key >= 0 && lane == leader) {
    const unsigned behind = lane < 31 ? leaders >> (lane + 1) : 0;
    const int count = behind != 0 ? __ffs(static_cast<int>(behind)) : 32 - lane;
    before = addToVoxel(table, point, static_cast<uint32_t>(count));
    if (table.firsts != nullptr) atomicMin(&table.firsts[point->slot], point->number);
  }
  point->slot = __shfl_sync(~0u, point->slot, leader);
  before = __shfl_sync(~0u, before, leader);
  point->place = static_cast<int32_t>(before) + lane - leader;
}

}  // namespace grouping
}  // namespace rbc::cuda
