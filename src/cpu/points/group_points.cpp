#include "points/group_points.h"

#include "scratch_layout.h"

namespace rbc::cpu {

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
  state.pool.parallelFor(sort_.buckets(), sort_.threads(), [&](int64_t bucket) {
    before_[bucket + 1] = listGroups(state.pool, bucket);
  });
  for (int64_t b = 0; b < sort_.buckets(); ++b) before_[b + 1] += before_[b];
}

// Returns how many there are.
int64_t PointGroups::listGroups(const ThreadPool& pool, int64_t bucket) const {
  const int64_t count = sort_.count(bucket);
  return sort_.visit(bucket, [&](const auto* entries, std::byte* free) {
    const Lists lists = listsIn(free, count);
    int64_t groups = 0;
    pool.inPieces(count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        lists.points[i] = entries[i].point;
        lists.begins[groups] = static_cast<int32_t>(i);
        // Without a branch: what is no group's first point is written over.
        groups += i == 0 || entries[i].key != entries[i - 1].key ? 1 : 0;
      }
    });
    return groups;
  });
}

}  // namespace rbc::cpu
