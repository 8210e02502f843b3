#include "points/first_point_groups.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "ceil_div.h"
#include "points/clear_counts.h"

namespace rbc::cpu {
namespace {

constexpr int64_t kChunkPoints = 1 << 12;

}  // namespace

FirstPointGroups::FirstPointGroups(const KeySpace& space)
    : space_(space),
      points_(space.points.total()),
      wide_(space.voxels() > static_cast<int64_t>(kNoKey<uint32_t>)) {
  // A quarter to a half of the slots at most are taken.
  while (int64_t{1} << table_bits_ < 2 * points_) ++table_bits_;
}

FirstPointGroups::Parts FirstPointGroups::partsOf(ScratchLayout* scratch) const {
  Parts parts;
  parts.keys = scratch->take<std::byte>(points_ * keySize());
  parts.table = scratch->take<std::byte>(slotSize() << table_bits_);
  parts.groups = scratch->take<int32_t>(points_);
  parts.ends = scratch->take<int32_t>(points_ + 1);
  parts.points = scratch->take<int32_t>(points_);
  return parts;
}

size_t FirstPointGroups::bytes() const {
  ScratchLayout scratch(nullptr);
  partsOf(&scratch);
  return scratch.used();
}

void FirstPointGroups::group(CpuState& state, void* scratch, const Output<1>& dropped) {
  ScratchLayout layout(scratch);
  parts_ = partsOf(&layout);
  clearCounts(dropped, space_.points.clouds);
  if (wide_) {
    groupBy<uint64_t>(state, dropped);
  } else {
    groupBy<uint32_t>(state, dropped);
  }
}

template <class Key>
void FirstPointGroups::groupBy(CpuState& state, const Output<1>& dropped) {
  const int64_t chunks = ceilDiv(points_, kChunkPoints);
  const int threads = static_cast<int>(std::clamp<int64_t>(chunks / 4, 1, state.pool.threads()));
  state.pool.parallelFor(chunks, threads, [&](int64_t chunk) {
    const int64_t begin = chunk * kChunkPoints;
    const int64_t end = std::min(points_, begin + kChunkPoints);
    findKeys(state.simd, space_, begin, end, keysOf<Key>() + begin, dropped);
  });
  state.pool.parallelFor(1, 1, [&](int64_t) {
    number<Key>(state.pool);
    list(state.pool);
  });
}

// The group of each point, and how many points a group has.
template <class Key>
void FirstPointGroups::number(const ThreadPool& pool) {
  const Key* keys = keysOf<Key>();
  auto* table = reinterpret_cast<Slot<Key>*>(parts_.table);
  const uint64_t last = (uint64_t{1} << table_bits_) - 1;
  std::memset(static_cast<void*>(table), 0xFF, static_cast<size_t>(slotSize() << table_bits_));
  int32_t groups = 0;
  pool.inPieces(points_, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Key key = keys[i];
      if (key == kNoKey<Key>) {
        parts_.groups[i] = -1;
        continue;
      }
      uint64_t at = uint64_t{key} * 0x9e3779b97f4a7c15u >> (64 - table_bits_);
      while (table[at].key != key && table[at].key != kNoKey<Key>) at = (at + 1) & last;
      // Without a branch: whether a voxel is new, nothing foretells.
      const bool is_new = table[at].key != key;
      const int32_t group = is_new ? groups : table[at].group;
      table[at] = {key, group};
      parts_.groups[i] = group;
      parts_.ends[groups] = is_new ? 0 : parts_.ends[groups];
      groups += is_new ? 1 : 0;
      ++parts_.ends[group];
    }
  });
  count_ = groups;
}

// Counts become the ends of the groups in the list.
void FirstPointGroups::list(const ThreadPool& pool) {
  int32_t begin = 0;
  pool.inPieces(count_, [&](int64_t from, int64_t to) {
    for (int64_t g = from; g < to; ++g) {
      const int32_t size = parts_.ends[g];
      parts_.ends[g] = begin;
      begin += size;
    }
  });
  pool.inPieces(points_, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const int32_t group = parts_.groups[i];
      if (group >= 0) parts_.points[parts_.ends[group]++] = static_cast<int32_t>(i);
    }
  });
}

}  // namespace rbc::cpu
