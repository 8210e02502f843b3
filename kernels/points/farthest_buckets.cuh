// Buckets of points near each other: a point that is taken changes nothing for a bucket whose points are
// all nearer to those before than its box is to the point. No step of squaredDistance() rounds a smaller
// number to a larger one, so no bit is another.
#pragma once

#include "farthest_problem.h"

#include "points/farthest_blocks.cuh"
#include "points/spatial_order.cuh"

namespace rbc::cuda {
namespace farthest {

// The points of a block: they go to blocks in turns of kThreads.
template <int kThreads>
struct Share {
  uint32_t rank;
  uint32_t cluster;

  // A point's index in the cloud, by its number among the block's; both ascend together.
  __device__ uint32_t indexOf(uint32_t at) const {
    return (at / kThreads * cluster + rank) * kThreads + at % kThreads;
  }
};

// Of a lane.
template <class Number>
struct Bucket {
  Box<Number> box;
  Candidate<Number> best;
  // Points at this distance and more change nothing. Less than any where the bucket has no point; NaN before
  // a point was taken, when distances may be infinite.
  Number reach;

  __device__ void begin() {
    const bool any = box.low[0] < kNowhere<Number>;
    best = kNoCandidate<Number>;
    reach = any ? static_cast<Number>(NAN) : Number(-1);
  }

  // Of a bucket that has a point.
  __device__ void lower(const Candidate<Number>& farthest) {
    best = farthest;
    reach = Order<Number>::distance(farthest.key);
  }

  // By lanes: whose buckets a point that is taken reaches.
  __device__ unsigned reachedOfWarp(const Number (&taken)[3]) const {
    Number apart[3];
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      apart[axis] =
          largest(largest(box.low[axis] - taken[axis], taken[axis] + box.high[axis]), Number(0));
    }
    return __ballot_sync(~0u, !(squaredDistance(apart[0], apart[1], apart[2]) >= reach));
  }
};

template <int kCount>
__device__ void sortAscending(uint32_t (&x)[kCount]) {
#pragma unroll
  for (int i = 1; i < kCount; ++i) {
#pragma unroll
    for (int k = 0; k < kCount - i; ++k) {
      const uint32_t one = x[k], two = x[k + 1];
      x[k] = min(one, two), x[k + 1] = max(one, two);
    }
  }
}

}  // namespace farthest
}  // namespace rbc::cuda
