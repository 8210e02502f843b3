#include "points/group_points.h"

#include <cstddef>

#include "points/list_ranks.h"
#include "scratch_layout.h"

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

// These return how many groups there are.

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
    return listRanksFor<Key>(state.simd)(state.pool, entries, count,
                                         static_cast<Key>(sort_.firstKey(bucket)), ranks_,
                                         memory.as<RankMemory>(), lists.points, lists.ends);
  });
}

}  // namespace rbc::cpu
