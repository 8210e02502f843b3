// The points of a bucket grouped by voxel through a bitmap: the rank of a voxel's bit is its group.
#pragma once

#include "points/sort_points.h"
#include "runtime/simd.h"

namespace rbc::cpu {

// What a thread needs for it.
inline constexpr int kMaxRankBits = 19;
struct RankMemory {
  uint64_t bits[(1 << kMaxRankBits) / 64];
  uint32_t before[(1 << kMaxRankBits) / 64];  // bits in the words before
};

// A bucket of keys first_key .. first_key + 2^bits - 1 with its points in their order. Of `points` each
// group has its own in that order, and ends where `ends` says; the first entries get the keys of
// the groups, which ascend. Returns how many there are.
template <class Key>
using ListRanks = int64_t (*)(const ThreadPool& pool, PointEntry<Key>* entries, int64_t count,
                              Key first_key, int bits, RankMemory* memory, int32_t* points,
                              int32_t* ends);
template <class Key>
ListRanks<Key> listRanksFor(SimdLevel level);

}  // namespace rbc::cpu
