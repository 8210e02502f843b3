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

template <class Number>
__device__ Number leastOfWarp(Number x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const Number other = __shfl_xor_sync(~0u, x, step);
    x = other < x ? other : x;
  }
  return x;
}

// What a box's sides are of points that are not there.
template <class Number>
inline constexpr Number kNowhere = static_cast<Number>(INFINITY);

template <class Number>
struct SpatialMemory {
  Number low[3][32];   // by warp
  Number high[3][32];  // negative
  uint32_t sums[32];
};

// `points` are kThreads * kPoints positions, by axis; one whose x is NaN is none. `cells` has room for
// kCells, `order` for all points: which of them comes where. To be called by all threads.
template <class Number, int kThreads, int kPoints>
__device__ void orderInSpace(const Number (*points)[kThreads * kPoints], uint32_t* cells,
                             uint16_t* order, SpatialMemory<Number>* memory) {
  constexpr int kWarps = kThreads / 32;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  for (int i = thread; i < kCells; i += kThreads) cells[i] = 0;

    // The box around all of them.
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    Number low = kNowhere<Number>, high = kNowhere<Number>;
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
      const Number x = points[axis][k * kThreads + thread];
      low = x < low ? x : low;
      high = -x < high ? -x : high;
    }
    low = leastOfWarp(low);
    high = leastOfWarp(high);
    if (lane == 0) memory->low[axis][thread / 32] = low, memory->high[axis][thread / 32] = high;
  }
  __syncthreads();
  Number begin[3], scale[3];
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    begin[axis] = leastOfWarp(lane < kWarps ? memory->low[axis][lane] : kNowhere<Number>);
    const Number high = leastOfWarp(lane < kWarps ? memory->high[axis][lane] : kNowhere<Number>);
    scale[axis] = Number(1 << kCellBits) / (-high - begin[axis]);
  }

  // Points are counted by cell, then have their places.
  const auto cellOf = [&](int at) {
    uint32_t cell = 0;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      // A side without length gives NaN or infinity, and these 0 or the last one.
      const int along = static_cast<int>((points[axis][at] - begin[axis]) * scale[axis]);
      cell |= spread(static_cast<uint32_t>(min(max(along, 0), (1 << kCellBits) - 1))) << axis;
    }
    return cell;
  };
  uint32_t rank[kPoints];
#pragma unroll
  for (int k = 0; k < kPoints; ++k) rank[k] = atomicAdd(&cells[cellOf(k * kThreads + thread)], 1u);
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
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    const int at = k * kThreads + thread;
    order[cells[cellOf(at)] + rank[k]] = static_cast<uint16_t>(at);
  }
  __syncthreads();
}

}  // namespace farthest
}  // namespace rbc::cuda
