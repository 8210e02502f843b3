// The points of a block in an order in which those near each other are near: by the cells of a grid of
// 16 to a side, which follow Morton's curve. The order within a cell is any.
#pragma once

#include <cstdint>

#include "real.h"

namespace rbc::cuda {
namespace farthest {

inline constexpr int kCellBits = 4;  // of an axis
inline constexpr int kCells = 1 << (3 * kCellBits);

// Bits 0 .. 3 of a number at every third place.
inline __device__ uint32_t spread(uint32_t x) {
  return (x & 1) | (x & 2) << 2 | (x & 4) << 4 | (x & 8) << 6;
}

// Of numbers that are not NaN: one instruction each.
inline __device__ float least(float a, float b) { return fminf(a, b); }
inline __device__ double least(double a, double b) { return fmin(a, b); }
inline __device__ float largest(float a, float b) { return fmaxf(a, b); }
inline __device__ double largest(double a, double b) { return fmax(a, b); }

// Of so many neighbouring lanes.
template <int kLanes, class Number>
__device__ Number leastOf(Number x) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) x = least(x, __shfl_xor_sync(~0u, x, step));
  return x;
}

template <int kLanes, class Number>
__device__ Number largestOf(Number x) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) x = largest(x, __shfl_xor_sync(~0u, x, step));
  return x;
}

// What a box's sides are of points that are not there.
template <class Number>
inline constexpr Number kNowhere = static_cast<Number>(INFINITY);

// A box around points. Its upper sides are negative, so that both come from minima.
template <class Number>
struct Box {
  Number low[3];
  Number high[3];

  // Around no point.
  static __device__ Box none() {
    constexpr Number kFar = kNowhere<Number>;
    return {{kFar, kFar, kFar}, {kFar, kFar, kFar}};
  }

  __device__ void add(const Number (&point)[3]) {
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = least(point[axis], low[axis]);
      high[axis] = least(-point[axis], high[axis]);
    }
  }

  // Around those of so many neighbouring lanes.
  template <int kLanes = 32>
  __device__ void join() {
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = leastOf<kLanes>(low[axis]);
      high[axis] = leastOf<kLanes>(high[axis]);
    }
  }

  // That of another lane.
  __device__ Box of(int lane) const {
    Box box;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      box.low[axis] = __shfl_sync(~0u, low[axis], lane);
      box.high[axis] = __shfl_sync(~0u, high[axis], lane);
    }
    return box;
  }
};

template <class Number>
struct SpatialMemory {
  Box<Number> boxes[32];  // by warp
  uint32_t sums[32];
};

// Of `room` points, which pointAt(at, point) gives if they are there; the others come last. `cells` has
// room for kCells, `order` for all points: which of them comes where. To be called by all threads.
template <class Number, int kThreads, class PointAt, class Place>
__device__ void orderInSpace(uint32_t room, PointAt&& pointAt, uint32_t* cells, Place* order,
                             SpatialMemory<Number>* memory) {
  constexpr int kWarps = kThreads / 32;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  for (int i = thread; i < kCells; i += kThreads) cells[i] = 0;

  Box<Number> box = Box<Number>::none();
#pragma unroll 4
  for (uint32_t at = threadIdx.x; at < room; at += kThreads) {
    Number point[3];
    if (pointAt(at, point)) box.add(point);
  }
  box.join();
  if (lane == 0) memory->boxes[thread / 32] = box;
  __syncthreads();
  box = Box<Number>::none();
  if (lane < kWarps) box = memory->boxes[lane];
  box.join();
  Number scale[3];
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    scale[axis] = Number(1 << kCellBits) / (-box.high[axis] - box.low[axis]);
  }

  // Points are counted by cell, then have their places.
  const auto cellOf = [&](uint32_t at) {
    Number point[3];
    if (!pointAt(at, point)) return static_cast<uint32_t>(kCells - 1);
    uint32_t cell = 0;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      // A side without length gives NaN or infinity, and these 0 or the last one.
      const int along = static_cast<int>((point[axis] - box.low[axis]) * scale[axis]);
      cell |= spread(static_cast<uint32_t>(min(max(along, 0), (1 << kCellBits) - 1))) << axis;
    }
    return cell;
  };
#pragma unroll 4
  for (uint32_t at = threadIdx.x; at < room; at += kThreads) atomicAdd(&cells[cellOf(at)], 1u);
  __syncthreads();
  constexpr int kOwn = kCells / kThreads;
  uint32_t own = 0;
  for (int i = 0; i < kOwn; ++i) own += cells[thread * kOwn + i];
  uint32_t before = own;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const uint32_t other = __shfl_up_sync(~0u, before, step);
    if (lane >= step) before += other;
  }
  if (lane == 31) memory->sums[thread / 32] = before;
  before -= own;
  __syncthreads();
  for (int w = 0; w < thread / 32; ++w) before += memory->sums[w];
  for (int i = 0; i < kOwn; ++i) {
    const uint32_t count = cells[thread * kOwn + i];
    cells[thread * kOwn + i] = before;
    before += count;
  }
  __syncthreads();
#pragma unroll 4
  for (uint32_t at = threadIdx.x; at < room; at += kThreads) {
    order[atomicAdd(&cells[cellOf(at)], 1u)] = static_cast<Place>(at);
  }
  __syncthreads();
}

}  // namespace farthest
}  // namespace rbc::cuda
