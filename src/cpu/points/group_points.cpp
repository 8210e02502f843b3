// Groups the points of clouds by voxel, bucket by bucket: sorted, or ranked by a bitmap.

#include "points/group_points.h"

#include <algorithm>
#include <cstddef>

#include "scratch_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "points/group_points.cpp"
#include "runtime/simd_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

// Plain C++: the levels have an instruction that counts bits; the portable level has none. Loops
// are in functions, since lambdas are not compiled for the level.

template <class Key>
void markVoxels(const PointEntry<Key>* entries, int64_t begin, int64_t end, Key first_key,
                RankMemory* memory) {
  for (int64_t i = begin; i < end; ++i) {
    const auto at = static_cast<uint32_t>(entries[i].key - first_key);
    memory->bits[at >> 6] |= uint64_t{1} << (at & 63);
  }
}

// Replaces keys by groups, and counts their points.
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

// Groups a bucket of keys first_key .. first_key + 2^bits - 1, whose points are in order. `points`
// gets the points of each group in that order; a group ends where `ends` says. The first entries
// get the keys of the groups, in ascending order. Returns the number of groups.
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
  // Replaces counts by the places of the groups' next points; these end up as the groups' ends.
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
namespace {

// A word of a bitmap costs about as much as a point.
constexpr int64_t kVoxelsPerPoint = 256;

}  // namespace

int PointGroups::bitsOfRanks(const KeySpace& space, int64_t least_buckets) {
  const int bits = PointSort::bitsInBucket(space, least_buckets);
  const bool pays = space.voxels() / kVoxelsPerPoint <= space.points.total();
  return pays && bits <= kMaxRankBits ? bits : 0;
}

size_t PointGroups::bytes() const {
  ScratchLayout parts(nullptr);
  parts.take<std::byte>(static_cast<int64_t>(sort_.bytes()));
  parts.take<int64_t>(sort_.buckets() + 1);
  return parts.used();
}

void PointGroups::group(CpuState& state, void* scratch, const Output<1>& dropped) {
  ScratchLayout parts(scratch);
  auto* sort_scratch = parts.take<std::byte>(static_cast<int64_t>(sort_.bytes()));
  before_ = parts.take<int64_t>(sort_.buckets() + 1);
  sort_.sort(state, sort_scratch, dropped);

  before_[0] = 0;
  state.pool.parallelFor(sort_.buckets(), sort_.threads(),
                         [&](int64_t bucket, ThreadMemory& memory) {
                           before_[bucket + 1] = sort_.count(bucket) == 0 ? 0
                                                 : ranks_ > 0 ? listRanked(state, bucket, memory)
                                                              : listSorted(state.pool, bucket);
                         });
  for (int64_t b = 0; b < sort_.buckets(); ++b) before_[b + 1] += before_[b];
}

// These return the number of groups.

int64_t PointGroups::listSorted(const ThreadPool& pool, int64_t bucket) const {
  const int64_t count = sort_.count(bucket);
  return sort_.visit(bucket, [&](auto* entries, std::byte* free) {
    const Lists lists = listsIn(free, count);
    int64_t groups = 0;
    pool.inPieces(count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto key = entries[i].key;
        lists.points[i] = entries[i].point;
        groups += i == 0 || key != entries[groups - 1].key ? 1 : 0;
        entries[groups - 1].key = key;
        lists.ends[groups - 1] = static_cast<int32_t>(i + 1);
      }
    });
    return groups;
  });
}

int64_t PointGroups::listRanked(const CpuState& state, int64_t bucket, ThreadMemory& memory) const {
  const int64_t count = sort_.count(bucket);
  return sort_.visit(bucket, [&](auto* entries, std::byte* free) {
    using Key = decltype(entries->key);
    const Lists lists = listsIn(free, count);
    return RBC_AT_LEVEL(state.simd, listRanks<Key>)(
        state.pool, entries, count, static_cast<Key>(sort_.firstKey(bucket)), ranks_,
        memory.as<RankMemory>(), lists.points, lists.ends);
  });
}

}  // namespace rbc::cpu
#endif  // HWY_ONCE
