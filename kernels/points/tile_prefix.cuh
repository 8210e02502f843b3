// Counts the points, or voxels, before a tile, in one pass: each tile publishes its own count, and
// adds the published counts of the tiles before (Merrill and Garland, "Single-pass parallel prefix
// scan with decoupled look-back", 2016). As in CUB, blocks with lower numbers are assumed to begin
// earlier.
#pragma once

#include <cstdint>
#include <cuda/atomic>

namespace rbc::cuda {

using TileState = uint64_t;  // 0: not known yet; else points, and flags above them
inline constexpr TileState kOfTile = TileState{1} << 62;
inline constexpr TileState kUpToTile = TileState{1} << 63;  // includes the tiles before
inline constexpr TileState kPointsOf = kOfTile - 1;

inline __device__ ::cuda::atomic_ref<TileState, ::cuda::thread_scope_device> asAtomic(
    TileState& state) {
  return ::cuda::atomic_ref<TileState, ::cuda::thread_scope_device>(state);
}

inline constexpr auto kRelaxed = ::cuda::std::memory_order_relaxed;

// Publishes the points of a tile of an image. A state is one word, so no other memory must be
// ordered.
inline __device__ void publishPoints(TileState* states, int64_t tile, int points) {
  const TileState kind = tile == 0 ? kUpToTile : kOfTile;
  asAtomic(states[tile]).store(kind | static_cast<TileState>(points), kRelaxed);
}

// By a warp: the points of the tiles before a published one.
inline __device__ int64_t pointsBefore(TileState* states, int64_t tile, int points) {
  if (tile == 0) return 0;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  TileState before = 0;
  for (int64_t last = tile - 1;; last -= 32) {
    TileState state = kUpToTile;  // before the first tile
    do {
      if (last >= lane) state = asAtomic(states[last - lane]).load(kRelaxed);
    } while (__any_sync(~0u, state == 0));
    const unsigned ends = __ballot_sync(~0u, (state & kUpToTile) != 0);
    TileState sum = ends == 0 || lane < __ffs(ends) ? state & kPointsOf : 0;
    for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(~0u, sum, mask);
    before += sum;
    if (ends != 0) break;
  }
  if (lane == 0) {
    asAtomic(states[tile]).store(kUpToTile | (before + static_cast<TileState>(points)), kRelaxed);
  }
  return static_cast<int64_t>(before);
}

// By a block: the same for a few hundred tiles, without waiting for the sums of others. `shared`:
// one word per warp.
template <int kThreads>
__device__ int32_t sumOfTilesBefore(TileState* states, int64_t tile, uint32_t* shared) {
  uint32_t before = 0;
  for (int64_t i = threadIdx.x; i < tile; i += kThreads) {
    TileState state;
    do {
      state = asAtomic(states[i]).load(kRelaxed);
    } while (state == 0);
    before += static_cast<uint32_t>(state & kPointsOf);
  }
  before = __reduce_add_sync(~0u, before);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = before;
  __syncthreads();
  uint32_t sum = 0;
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w) sum += shared[w];
  return static_cast<int32_t>(sum);
}

}  // namespace rbc::cuda
