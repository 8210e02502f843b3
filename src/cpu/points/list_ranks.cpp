#include "points/list_ranks.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "points/list_ranks.cpp"
#include "runtime/simd_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

// Plain C++: the levels have an instruction that counts bits, which the portable one lacks. Loops
// stand in functions, since lambdas are not compiled for the level.

template <class Key>
void markVoxels(const PointEntry<Key>* entries, int64_t begin, int64_t end, Key first_key,
                RankMemory* memory) {
  for (int64_t i = begin; i < end; ++i) {
    const auto at = static_cast<uint32_t>(entries[i].key - first_key);
    memory->bits[at >> 6] |= uint64_t{1} << (at & 63);
  }
}

// Keys become groups, whose points are counted.
template <class Key>
void rankPoints(PointEntry<Key>* entries, int64_t begin, int64_t end, Key first_key,
                const RankMemory* memory, int32_t* counts) {
  for (int64_t i = begin; i < end; ++i) {
    const auto at = static_cast<uint32_t>(entries[i].key - first_key);
    const uint64_t below = memory->bits[at >> 6] & ((uint64_t{1} << (at & 63)) - 1);
    const uint32_t group =
        memory->before[at >> 6] + static_cast<uint32_t>(__builtin_popcountll(below));
    entries[i].key = group;
    ++counts[group];
  }
}

template <class Key>
int64_t listRanks(const ThreadPool& pool, PointEntry<Key>* entries, int64_t count, Key first_key,
                  int bits, RankMemory* memory, int32_t* points, int32_t* ends) {
  const int64_t words = ((int64_t{1} << bits) + 63) / 64;
  std::fill_n(memory->bits, words, uint64_t{0});
  bool complete = pool.inPieces(count, [&](int64_t begin, int64_t end) {
    markVoxels(entries, begin, end, first_key, memory);
  });
  uint32_t groups = 0;
  for (int64_t w = 0; w < words; ++w) {
    memory->before[w] = groups;
    groups += static_cast<uint32_t>(__builtin_popcountll(memory->bits[w]));
  }
  std::fill_n(ends, groups, 0);
  complete = complete && pool.inPieces(count, [&](int64_t begin, int64_t end) {
    rankPoints(entries, begin, end, first_key, memory, ends);
  });
  if (!complete) return 0;
  // Counts become the places of the groups' next points, which end up as their ends.
  int32_t place = 0;
  for (uint32_t g = 0; g < groups; ++g) {
    const int32_t size = ends[g];
    ends[g] = place;
    place += size;
  }
  complete = pool.inPieces(count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) points[ends[entries[i].key]++] = entries[i].point;
  });
  if (!complete) return 0;
  PointEntry<Key>* next = entries;
  for (int64_t w = 0; w < words; ++w) {
    for (uint64_t rest = memory->bits[w]; rest != 0; rest &= rest - 1) {
      (next++)->key = first_key + static_cast<Key>(w * 64 + __builtin_ctzll(rest));
    }
  }
  return groups;
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc::cpu {

template <class Key>
ListRanks<Key> listRanksFor(SimdLevel level) {
  return RBC_AT_LEVEL(level, listRanks<Key>);
}

template ListRanks<uint32_t> listRanksFor(SimdLevel level);
template ListRanks<uint64_t> listRanksFor(SimdLevel level);

}  // namespace rbc::cpu
#endif  // HWY_ONCE
