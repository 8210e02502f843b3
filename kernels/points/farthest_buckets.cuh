// Buckets of points near each other: a point that is taken changes nothing for a bucket whose points are
// all nearer to those before than its box is to the point. No step of squaredDistance() rounds a smaller
// number to a larger one, so no bit is another.
#pragma once

#include "farthest_problem.h"

#include "points/farthest_blocks.cuh"
#include "points/spatial_order.cuh"

namespace rbc::cuda {
namespace farthest {

// The points of a block: neighbours in the cloud, since clouds are often in some spatial order.
struct Share {
  uint32_t first;  // by index in the cloud
  uint32_t count;
};

// Points at a bucket's reach and more from its box change nothing. It is the distance of its farthest point;
// less than any where the bucket has no point; NaN before a point was taken, when distances may be infinite.
template <class Number>
__device__ Number reachAtFirst(const Box<Number>& box) {
  return box.low[0] < kNowhere<Number> ? static_cast<Number>(NAN) : Number(-1);
}

// Squared, from a box to a point.
template <class Number>
__device__ Number squaredDistance(const Number (&taken)[3], const Box<Number>& box) {
  Number apart[3];
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    apart[axis] = taken[axis] - largest(box.low[axis], least(taken[axis], -box.high[axis]));
  }
  return rbc::squaredDistance(apart[0], apart[1], apart[2]);
}

template <class Number>
__device__ bool isReachedBy(const Number (&taken)[3], const Box<Number>& box, Number reach) {
  return !(squaredDistance(taken, box) >= reach);
}

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
