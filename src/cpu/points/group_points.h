// Groups the points of clouds by voxel.
#pragma once

#include <algorithm>
#include <cstddef>

#include "points/sort_points.h"

namespace rbc::cpu {

// A voxel and its points, as indices in the line of all clouds.
struct PointGroup {
  int64_t key;
  const int32_t* points;
  int64_t count;  // at least 1
};

// For callers of PointGroups::visit() that read no rows of points.
struct NoRows {
  void prefetch(int32_t) const {}
};

// The memory a thread uses to group a bucket by a bitmap: the rank of a voxel's bit is its group.
inline constexpr int kMaxRankBits = 19;
struct RankMemory {
  uint64_t bits[(1 << kMaxRankBits) / 64];
  uint32_t before[(1 << kMaxRankBits) / 64];  // bits in the words before
};

// Groups are in the order of their keys, and the points of a group in the order of points.
class PointGroups {
 public:
  // As in PointSort.
  PointGroups(const KeySpace& space, int64_t least_buckets, int threads)
      : ranks_(bitsOfRanks(space, least_buckets)), sort_(space, least_buckets, ranks_, threads) {}

  size_t bytes() const;

  // Call once, before the functions below.
  void group(CpuState& state, void* scratch, const Output<1>& dropped);

  const PointSort& sort() const { return sort_; }
  // The number of groups in the buckets before this one; before(buckets()) is the number of all.
  int64_t before(int64_t bucket) const { return before_[bucket]; }

  // Calls visit(number, group) for the groups of a bucket, and rows.prefetch(point) some points
  // ahead.
  template <class Rows, class Visitor>
  void visit(const ThreadPool& pool, int64_t bucket, const Rows& rows, Visitor&& visit) const {
    const int64_t count = sort_.count(bucket);
    const int64_t groups = before_[bucket + 1] - before_[bucket];
    sort_.visit(bucket, [&](const auto* entries, std::byte* free) {
      const Lists lists = listsIn(free, count);
      int64_t fetched = 0;
      int64_t begin = 0;
      for (int64_t g = 0; g < groups && !pool.stopsAt(g); ++g) {
        const int64_t end = lists.ends[g];
        for (; fetched < std::min(end + kPointsAhead, count); ++fetched) {
          rows.prefetch(lists.points[fetched]);
        }
        visit(before_[bucket] + g,
              PointGroup{static_cast<int64_t>(entries[g].key), lists.points + begin, end - begin});
        begin = end;
      }
    });
  }

 private:
  // Rows of points that are being prefetched.
  static constexpr int64_t kPointsAhead = 24;

  // A bucket: its points in order, and the end of each group in them. The first entries have the
  // groups' keys.
  struct Lists {
    int32_t* points;
    int32_t* ends;
  };
  static Lists listsIn(std::byte* free, int64_t count) {
    auto* points = reinterpret_cast<int32_t*>(free);
    return {points, points + count};
  }
  static int bitsOfRanks(const KeySpace& space, int64_t least_buckets);
  int64_t listSorted(const ThreadPool& pool, int64_t bucket) const;
  int64_t listRanked(const CpuState& state, int64_t bucket, ThreadMemory& memory) const;

  int ranks_;  // bits of a key within a bucket, for a bitmap of its voxels; 0: buckets are sorted
  PointSort sort_;
  int64_t* before_ = nullptr;
};

}  // namespace rbc::cpu
