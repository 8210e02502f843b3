// Groups points by a hash table of their voxels, in one launch: its blocks wait for each other
// between the steps. With few points, one launch per step would take longer than the step.
#pragma once

#include <cooperative_groups.h>
#include <utility>

#include "points/group_points.h"
#include "points/points.cuh"
#include "points/sparse_rows.cuh"
#include "points/voxel_table.cuh"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace grouping {

// ---- The arguments of the steps.

// All except the source of the points.
struct TableSteps {
  VoxelTable table;
  PointGroups groups;
  SparseRows rows;
  ChunkList chunks;
  int64_t clouds;
  int64_t* dropped;
  int64_t dropped_stride;
  FastDivmod points_of_block;  // a multiple of kPoints
  FastDivmod groups_of_block;
};

template <class Number>
struct TableArguments {
  PointSource<Number> source;
  TableSteps steps;
};

// A thread's point.
struct TablePoint {
  uint32_t number;
  int32_t key;  // -1: in no voxel, or no point
  uint32_t slot;
  int32_t place;  // among the points of its voxel, in order of arrival
};

__device__ __forceinline__ int64_t threadOfTable() {
  return static_cast<int64_t>(blockIdx.x) * kTableThreads + threadIdx.x;
}
__device__ __forceinline__ int64_t threadsOfTable() {
  return static_cast<int64_t>(gridDim.x) * kTableThreads;
}

// ---- The first steps: the table is cleared, and the points are inserted.

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
  for (int64_t* count : a.rows.lost.counts) {
    if (count != nullptr) *count = 0;
  }
}

// Loads the keys of the block's points into shared memory.
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

// The finalizer of MurmurHash3 (Appleby, public domain): spreads keys that are consecutive or
// evenly spaced.
__device__ __forceinline__ uint32_t spread(uint32_t key) {
  key = (key ^ key >> 16) * 0x85ebca6bu;
  key = (key ^ key >> 13) * 0xc2b2ae35u;
  return key ^ key >> 16;
}

// Reserves a slot for the voxel if it has none, and adds points to it; returns the number that it
// had. There are more slots than voxels.
__device__ __forceinline__ uint32_t addToVoxel(const VoxelTable& table, TablePoint* point,
                                               uint32_t count) {
  const auto key = static_cast<uint32_t>(point->key);
  const uint64_t own = VoxelSlot::pack(key, point->number, count).word;
  bool marks = table.bits != nullptr;
  uint32_t slot = __umulhi(spread(key), table.num_slots);
  while (true) {
    auto* word = reinterpret_cast<unsigned long long*>(&table.slots[slot].word);
    const VoxelSlot found = {atomicCAS(word, VoxelSlot::kNone, own)};
    if (marks) {  // while the atomic is in flight
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

// Called by all threads of a warp together: neighbours in one voxel, as in the sweep of a scanner,
// are added at once.
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

// ---- The last step, if requested: the points of a voxel are put in order.

// Sorts the points of a voxel with few points, by counting those before each.
__device__ __forceinline__ void sortFew(const TableSteps& a, const TablePoint& point, int32_t begin,
                                        int32_t size) {
  if (size == 0 || size > kCrowded) return;
  const int32_t* came = a.table.as_they_came + begin;
  const auto number = static_cast<int32_t>(point.number);
  int32_t before = 0;
  for (int32_t i = 0; i < size; ++i) before += __ldcg(&came[i]) < number ? 1 : 0;
  a.groups.order[begin + before] = number;
}

// Sorts the points of crowded voxels, with a bit for each of all points.
__device__ __forceinline__ void sortCrowded(const TableSteps& a, TableShared& shared) {
  constexpr int kWords = kMaxTablePoints / 32 / kTableThreads;  // per thread
  const uint32_t count = __ldcg(a.table.num_crowded);
  uint32_t* const words = shared.bits + threadIdx.x * kWords;
  for (uint32_t v = blockIdx.x; v < count; v += gridDim.x) {
    const int2 voxel = __ldcg(reinterpret_cast<const int2*>(&a.table.crowded[v]));
    *reinterpret_cast<uint4*>(words) = make_uint4(0, 0, 0, 0);
    __syncthreads();
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < voxel.y; i += kTableThreads) {
      const int32_t number = __ldcg(&a.table.as_they_came[voxel.x + i]);
      atomicOr(&shared.bits[number / 32], 1u << number % 32);
    }
    __syncthreads();
    TableCounts own = {0, 0};
#pragma unroll
    for (int w = 0; w < kWords; ++w) own.bits += static_cast<uint32_t>(__popc(words[w]));
    TableCounts sum;
    int32_t* order = a.groups.order + voxel.x + sumBefore(own, shared, &sum).bits;
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      const auto first = static_cast<int32_t>((threadIdx.x * kWords + w) * 32);
      for (uint32_t bits = words[w]; bits != 0; bits &= bits - 1)
        *order++ = first + __ffs(bits) - 1;
    }
  }
}

struct TableVoxel {
  int32_t size;
  uint32_t owner;
};

// The voxel in a slot, as all blocks have left it.
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

// Number of keys before the end.
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

// The bits of a thread's group in a turn of the block.
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

// Counts the block's voxels and the bits of its groups, and publishes the counts; returns the
// counts before an owner.
__device__ __forceinline__ Tally countBlock(const TableSteps& a, const TablePoint& point, bool owns,
                                            int32_t size, GroupTurn groups, TableShared& shared) {
  TableCounts own = {0, groups.bits};
  if (owns) {
    const uint32_t chunks = a.chunks.chunksOf(size);
    own.tally = Tally::pack(static_cast<uint32_t>(size), 1, chunks, chunks > 1 ? 1 : 0).all;
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

// Leaves in shared memory the sums over the blocks before each one; returns the sum of all.
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

// The row in the requested order.
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

// Writes a voxel, by the thread of its owner. `before`: the tally of all voxels before.
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

// Writes the sums of the whole call, once.
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

  letNextLaunchBegin();  // and waits
  DropCounter drops(source);
  clearTable(a);
  auto cleared = grid.barrier_arrive();
  // The dropped points of a single cloud are added at the end, those of several clouds at once.
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
