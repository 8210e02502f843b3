// Sums numbers of a block's threads by channel.
#pragma once

#include <cstdint>

#include "statistics/select.h"

namespace rbc::cuda {
namespace statistics {

inline constexpr int kMaxFields = 12;  // at a time

// Thread t has the channel t % width and the phase t / width of `phases`; others are idle.
struct Lanes {
  int width;
  int phases;

  __device__ __forceinline__ int channel() const { return static_cast<int>(threadIdx.x) % width; }
  __device__ __forceinline__ int phase() const { return static_cast<int>(threadIdx.x) / width; }
};

using FieldMemory = int64_t[kMaxFields][kThreads];

// Phase 0 gets the sums. All threads of the block take part.
template <int kFields>
__device__ __forceinline__ void sumChannels(int64_t (&field)[kFields], FieldMemory& memory,
                                            Lanes lanes) {
  static_assert(kFields <= kMaxFields);
  const int t = static_cast<int>(threadIdx.x);
  const int phase = lanes.phase();
#pragma unroll
  for (int f = 0; f < kFields; ++f) memory[f][t] = field[f];
  __syncthreads();
  int left = lanes.phases;
  while (left > 1) {
    const int half = (left + 1) / 2;
    if (phase + half < left) {
#pragma unroll
      for (int f = 0; f < kFields; ++f) memory[f][t] += memory[f][t + half * lanes.width];
    }
    left = half;
    __syncthreads();
  }
#pragma unroll
  for (int f = 0; f < kFields; ++f) field[f] = memory[f][t];
  __syncthreads();
}

// The same for the minimum and the maximum.
__device__ __forceinline__ void rangeOfChannels(uint64_t* least, uint64_t* greatest,
                                                FieldMemory& memory, Lanes lanes) {
  const int t = static_cast<int>(threadIdx.x);
  const int phase = lanes.phase();
  auto* lows = reinterpret_cast<uint64_t*>(memory[0]);
  auto* highs = reinterpret_cast<uint64_t*>(memory[1]);
  lows[t] = *least;
  highs[t] = *greatest;
  __syncthreads();
  int left = lanes.phases;
  while (left > 1) {
    const int half = (left + 1) / 2;
    if (phase + half < left) {
      const int other = t + half * lanes.width;
      if (lows[other] < lows[t]) lows[t] = lows[other];
      if (highs[other] > highs[t]) highs[t] = highs[other];
    }
    left = half;
    __syncthreads();
  }
  *least = lows[t];
  *greatest = highs[t];
  __syncthreads();
}

}  // namespace statistics
}  // namespace rbc::cuda
