// The points of a cloud in buckets (the leaves of a k-d tree, with their boxes), with each point's
// squared distance to the nearest point taken so far.
//
// A new point changes no bucket whose box is at least as far from it as the bucket's largest
// distance so far. Rounding is monotonic, so the box's distance, computed like a point's, is at
// most the distance of any point in it. Nothing is approximate.
#pragma once

#include <cstdint>

#include "farthest_problem.h"
#include "scratch_layout.h"

namespace rbc::cpu {

// The group size of points and buckets: a multiple of all vectors.
inline constexpr int64_t kGroup = 16;
// A box with more points is split in two.
inline constexpr int64_t kBucketPoints = 64;

// Integers in the order of numbers that are at least 0, or -1.
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

  // Points, bucket by bucket; buckets begin at whole groups, and padding has a distance of -1.
  // Within a bucket indices ascend.
  Number* position[3];
  Number* distance;
  int32_t* index;
  // Buckets.
  Number* low[3];
  Number* high[3];
  Bits* farthest;  // the largest distance in it
  int32_t* begin;  // its first group: places may need more than 32 bits
  int32_t* end;    // one past the last group
  int64_t count;
  // Only used while buckets are built.
  CloudPoint<Number>* points;
  CloudPoint<Number>* spare;

  static int64_t mostBuckets(int64_t points) { return points / kGroup + 1; }
  static int64_t roomForPoints(int64_t points) { return points + mostBuckets(points) * kGroup; }
  static int64_t roomForBuckets(int64_t points) {
    return (mostBuckets(points) + kGroup - 1) / kGroup * kGroup;
  }

  // For clouds of at most `most` points.
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

  // Builds the buckets from `points`, which has points_count of them; at least one.
  void build(int64_t points_count);

  // The places of a bucket's points.
  int64_t beginPlace(int64_t bucket) const { return begin[bucket] * kGroup; }
  int64_t endPlace(int64_t bucket) const { return end[bucket] * kGroup; }

  // The place of the farthest point; among equals, of the one with the lowest index.
  int64_t farthestPlace() const;
};

}  // namespace rbc::cpu
