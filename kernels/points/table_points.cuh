// Points grouped by a hash table of their voxels, in one launch: its blocks wait for each other between
// the steps. With few points a launch of each step would take longer than the step.
#pragma once

#include <cooperative_groups.h>

#include <utility>

#include "points/table_counts.cuh"
#include "points/table_insert.cuh"
#include "points/table_sort.cuh"
#include "points/table_steps.cuh"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace grouping {

struct TableVoxel {
  int32_t size;
  uint32_t owner;
};

// As all blocks have left it.
__device__ __forceinline__ TableVoxel loadVoxel(const VoxelTable& table, uint32_t slot) {
  const VoxelSlot found = {
      __ldcg(reinterpret_cast<const unsigned long long*>(&table.slots[slot].word))};
  return {static_cast<int32_t>(found.count()),
          table.firsts != nullptr ? __ldcg(&table.firsts[slot]) : found.owner()};
}

__device__ __forceinline__ KeyBits loadBits(const KeyBits* at) {
  const uint4 low = __ldcg(reinterpret_cast<const uint4*>(at));
  const uint4 high = __ldcg(reinterpret_cast<const uint4*>(at) + 1);
  return {low.x, {low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}

// Those of keys below the end.
__device__ __forceinline__ uint32_t countBits(const KeyBits& bits, int end) {
  uint32_t count = 0;
#pragma unroll
  for (int w = 0; w < kWordsOfGroup; ++w) {
    const int in_word = end - 32 * w;
    const uint32_t below = in_word >= 32 ? ~0u : in_word > 0 ? (1u << in_word) - 1 : 0;
    count += static_cast<uint32_t>(__popc(bits.word[w] & below));
  }
  return count;
}

// The bits of the group that is a thread's in a turn of the block.
struct GroupTurn {
  int64_t group;
  int64_t end;
  uint32_t bits;

  __device__ GroupTurn(const TableSteps& a, int64_t turn) : bits(0) {
    const auto groups = static_cast<int64_t>(a.groups_of_block.divisor);
    const int64_t begin = blockIdx.x * groups;
    end = min(begin + groups, a.table.groups);
    group = begin + turn * kTableThreads + threadIdx.x;
    if (group < end) bits = countBits(loadBits(&a.table.bits[group]), kKeysOfGroup);
  }
  __device__ bool isLast() const { return group - threadIdx.x + kTableThreads >= end; }
  __device__ void putBefore(const TableSteps& a, uint32_t before) const {
    if (group < end) a.table.bits[group].before = before;
  }
};

// Counts the block's voxels and the bits of its groups, and tells the other blocks; what is before an owner's.
__device__ __forceinline__ Tally countBlock(const TableSteps& a, const TablePoint& point, bool owns,
                                            int32_t size, GroupTurn groups, TableShared& shared) {
  TableCounts own = {0, groups.bits};
  if (owns) {
    const uint32_t chunks = a.chunks.chunksOf(size);
    own.tally = Tally::of(static_cast<uint32_t>(size), 1, chunks, chunks > 1 ? 1 : 0).all;
  }
  TableCounts sum;
  const TableCounts counts = sumBefore(own, shared, &sum);
  const Tally before = {counts.tally};
  if (owns) {
    a.table.begins[point.number] = before.points();
    if (a.table.numbers != nullptr) a.table.numbers[point.number] = before.voxels();
  }
  groups.putBefore(a, counts.bits);
  for (int64_t turn = 1; !groups.isLast(); ++turn) {
    groups = GroupTurn(a, turn);
    TableCounts more;
    groups.putBefore(a, sum.bits + sumBefore({0, groups.bits}, shared, &more).bits);
    sum.bits += more.bits;
  }
  if (threadIdx.x == 0) a.table.of_blocks[blockIdx.x] = make_ulonglong2(sum.tally, sum.bits);
  return before;
}

// Leaves in shared memory what the blocks before each one have; the sum of all.
__device__ __forceinline__ Tally addUpBlocks(const TableSteps& a, TableShared& shared) {
  const unsigned block = threadIdx.x;
  TableCounts own = {0, 0};
  if (block < gridDim.x) {
    const ulonglong2 counts = __ldcg(&a.table.of_blocks[block]);
    own = {counts.x, static_cast<uint32_t>(counts.y)};
  }
  TableCounts sum;
  const TableCounts before = sumBefore(own, shared, &sum);
  if (block < gridDim.x) shared.before[block] = before;
  __syncthreads();
  return {sum.tally};
}

__device__ __forceinline__ Tally beforeBlockOf(const TableSteps& a, const TableShared& shared,
                                               uint32_t point) {
  return {shared.before[a.points_of_block(static_cast<int32_t>(point))].tally};
}

// In the order that is wanted.
__device__ __forceinline__ int32_t rowOf(const TableSteps& a, const TableShared& shared,
                                         uint32_t owner, int32_t key) {
  const VoxelTable& table = a.table;
  if (table.bits == nullptr) {
    return static_cast<int32_t>(beforeBlockOf(a, shared, owner).voxels() +
                                __ldcg(&table.numbers[owner]));
  }
  const int32_t group = key / kKeysOfGroup;
  const KeyBits bits = loadBits(&table.bits[group]);
  return static_cast<int32_t>(shared.before[a.groups_of_block(group)].bits + bits.before +
                              countBits(bits, key % kKeysOfGroup));
}

// A voxel, by the thread of its owner. `before`: those of all voxels before.
__device__ __forceinline__ void writeOwned(const TableSteps& a, const TablePoint& point,
                                           const Tally& before, int32_t size, int32_t row,
                                           LostRows* lost) {
  const PointGroups& g = a.groups;
  const auto voxel = static_cast<int32_t>(before.voxels());
  const auto begin = static_cast<int32_t>(before.points());
  g.spans[voxel] = make_int2(begin, size);
  if (g.voxel_keys != nullptr) g.voxel_keys[voxel] = point.key;
  if (g.rows != nullptr) g.rows[voxel] = row;
  if (g.voxels != nullptr) g.voxels[row] = voxel;
  if (a.chunks.chunksOf(size) > 0)
    a.chunks.put(before.chunks(), before.large(), voxel, begin, size);
  if (a.rows.coords.data != nullptr) writeVoxel(a.rows, row, point.key, size, lost);
  if (a.table.crowded != nullptr && size > kCrowded) {
    a.table.crowded[atomicAdd(a.table.num_crowded, 1u)] = {begin, size};
  }
}

// Of the whole call, once.
__device__ __forceinline__ void writeSums(const TableSteps& a, const Tally& sum) {
  if (threadOfTable() != 0) return;
  *a.groups.num = static_cast<int32_t>(sum.voxels());
  if (a.chunks.counters != nullptr) {
    a.chunks.counters[0] = sum.chunks();
    a.chunks.counters[1] = sum.large();
  }
  if (a.rows.coords.data != nullptr) {
    *static_cast<int64_t*>(a.rows.num_voxels.data) = min(int64_t{sum.voxels()}, a.rows.capacity);
  }
}

template <class Loader>
__global__ void __launch_bounds__(kTableThreads, 1)
    groupByTable(const __grid_constant__ TableArguments<typename Loader::Number> arguments) {
  __shared__ TableShared shared;
  const auto& source = arguments.source;
  const TableSteps& a = arguments.steps;
  const auto grid = cooperative_groups::this_grid();

  letNextLaunchBegin();  // and wait
  DropCounter drops(source);
  clearTable(a);
  auto cleared = grid.barrier_arrive();
  // One cloud's drops are added at the end; those of several as they are found.
  if constexpr (Loader::kOneCloud) loadKeysOfBlock<Loader>(source, a, shared, &drops);
  grid.barrier_wait(std::move(cleared));
  if constexpr (!Loader::kOneCloud) loadKeysOfBlock<Loader>(source, a, shared, &drops);
  __syncthreads();

  const auto points = static_cast<unsigned>(a.points_of_block.divisor);
  TablePoint point = {blockIdx.x * points + threadIdx.x, -1, 0, 0};
  const bool has_point = threadIdx.x < points && point.number < a.groups.points;
  if (has_point) point.key = shared.keys[threadIdx.x];
  insertPoint(a.table, &point);
  drops.finish();
  grid.sync();

  const GroupTurn groups(a, 0);
  TableVoxel voxel = {};
  const bool has_voxel = point.key >= 0;
  if (has_voxel) voxel = loadVoxel(a.table, point.slot);
  const bool owns = has_voxel && voxel.owner == point.number;
  const Tally before = countBlock(a, point, owns, voxel.size, groups, shared);
  grid.sync();

  const Tally sum = addUpBlocks(a, shared);
  const bool writes_points = has_point && a.rows.point_to_voxel.data != nullptr;
  int32_t begin = 0;
  int32_t row = -1;
  LostRows lost;
  if (has_voxel) {
    const uint32_t in_block = owns ? before.points() : __ldcg(&a.table.begins[voxel.owner]);
    begin = static_cast<int32_t>(beforeBlockOf(a, shared, voxel.owner).points() + in_block);
    int32_t* const order = a.table.as_they_came != nullptr ? a.table.as_they_came : a.groups.order;
    order[begin + point.place] = static_cast<int32_t>(point.number);
    const bool has_row = a.rows.coords.data != nullptr && (owns || writes_points);
    if (has_row) row = rowOf(a, shared, voxel.owner, point.key);
    if (owns) {
      const Tally before_all = {shared.before[blockIdx.x].tally + before.all};
      writeOwned(a, point, before_all, voxel.size, row, &lost);
    }
  }
  if (writes_points) writePoint(a.rows, point.number, row);
  writeSums(a, sum);
  if (a.rows.coords.data != nullptr) {
    for (int64_t i = sum.voxels() + threadOfTable(); i < a.rows.capacity; i += threadsOfTable()) {
      writeNoVoxel(a.rows, i);
    }
    lost.finish(a.rows);
  }
  if (a.table.crowded == nullptr) return;
  grid.sync();

  sortFew(a, point, begin, voxel.size);
  sortCrowded(a, shared);
}

}  // namespace grouping
}  // namespace rbc::cuda
