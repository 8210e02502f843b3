// The points of a cloud in buckets, boxes of a k-d tree's leaves, with each point's squared distance to
// the nearest of those taken so far.
//
// A point that is taken changes no bucket whose box is as far from it as the bucket's farthest point is
// from those before: rounding is monotonic, so the box's distance, computed as a point's is, is no
// more than that of any point in it. Nothing is approximate.
#pragma once

#include <cstdint>

#include "farthest_problem.h"
#include "scratch_layout.h"

namespace rbc::cpu {

// Points and buckets come in groups of so many, which vectors take whole.
inline constexpr int64_t kGroup = 16;
// A box with more points is cut in two.
inline constexpr int64_t kBucketPoints = 64;

// What orders as numbers that are 0 or more do, and as -1.
template <class Number>
struct BitsOf;
template <>
struct BitsOf<float> {
  using type = int32_t;
};
template <>
struct BitsOf<double> {
  using type = int64_t;
};

template <class Number>
struct CloudPoint {
  Number position[3];
  int32_t index;  // in the cloud
};

template <class Number>
struct PointBuckets {
  using Bits = typename BitsOf<Number>::type;

  // Points, bucket by bucket; buckets begin at whole groups, and what fills these up is at -1 from
  // everything. Within a bucket indexes ascend.
  Number* position[3];
  Number* distance;
  int32_t* index;
  // Buckets.
  Number* low[3];
  Number* high[3];
  Bits* farthest;  // the largest distance in it
  int32_t* begin;  // its first group: places may be more than 32 bits hold
  int32_t* end;    // past the last group
  int64_t count;
  // While buckets are made.
  CloudPoint<Number>* points;
  CloudPoint<Number>* spare;

  static int64_t mostBuckets(int64_t points) { return points / kGroup + 1; }
  static int64_t roomForPoints(int64_t points) { return points + mostBuckets(points) * kGroup; }
  static int64_t roomForBuckets(int64_t points) {
    return (mostBuckets(points) + kGroup - 1) / kGroup * kGroup;
  }

  // For clouds of up to so many points.
  static PointBuckets in(ScratchLayout* layout, int64_t most) {
    PointBuckets b;
    for (Number*& axis : b.position) layout->take(&axis, roomForPoints(most));
    layout->take(&b.distance, roomForPoints(most));
    layout->take(&b.index, roomForPoints(most));
    for (Number*& axis : b.low) layout->take(&axis, roomForBuckets(most));
    for (Number*& axis : b.high) layout->take(&axis, roomForBuckets(most));
    layout->take(&b.farthest, roomForBuckets(most));
    layout->take(&b.begin, roomForBuckets(most));
    layout->take(&b.end, roomForBuckets(most));
    layout->take(&b.points, most);
    layout->take(&b.spare, most);
    return b;
  }

  // Of `points`, so many; at least one.
  void build(int64_t points_count);

  // The places of a bucket's points.
  int64_t beginPlace(int64_t bucket) const { return begin[bucket] * kGroup; }
  int64_t endPlace(int64_t bucket) const { return end[bucket] * kGroup; }

  // The farthest point of all, of several the one of the lowest index: its place.
  int64_t farthestPlace() const;
};

}  // namespace rbc::cpu
