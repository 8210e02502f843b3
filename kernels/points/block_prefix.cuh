// Sums over the threads of a block, and over those before each.
#pragma once

#include <cstdint>

namespace rbc::cuda {

struct BlockPrefix {
  int32_t before;  // over the threads before
  int32_t all;
};

// `shared`: a word for each warp.
template <int kThreads>
__device__ __forceinline__ BlockPrefix prefixOverBlock(int32_t own, int32_t* shared) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  int32_t up_to_lane = own;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int32_t other = __shfl_up_sync(~0u, up_to_lane, distance);
    if (lane >= distance) up_to_lane += other;
  }
  if (lane == 31) shared[warp] = up_to_lane;
  __syncthreads();
  BlockPrefix prefix = {up_to_lane - own, 0};
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w) {
    if (w == warp) prefix.before += prefix.all;
    prefix.all += shared[w];
  }
  return prefix;
}

}  // namespace rbc::cuda
