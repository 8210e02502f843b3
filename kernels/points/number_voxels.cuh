// Numbers the voxels with points, from their bits, and finds where the points of each begin.
//
// Both are prefix sums, in one pass: a block counts its tile, publishes the count, and adds the
// published counts of the tiles before.
#pragma once

#include <cstdint>

#include "points/group_points.h"
#include "points/points.cuh"
#include "points/sparse_rows.cuh"
#include "points/tile_prefix.cuh"
#include "runtime/pdl.cuh"

namespace rbc::cuda {

// ---- Sums over the threads of a block, and over the threads before each.

struct BlockPrefix {
  int32_t before;  // over the threads before
  int32_t all;
};

// `shared`: one word per warp.
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

namespace grouping {

// ---- the numbers of voxels ----------------------------------------------------------------------

inline constexpr int kWordsOfThread = 4;
inline constexpr int kTileWords = kThreads * kWordsOfThread;

struct NumberArguments {
  PointGroups groups;
  int32_t* keys;      // of voxels
  TileState* states;  // of tiles; cleared
};

// Writes the keys of the voxels of a warp's words, one word per lane, in order; the first word
// begins at `key`. `before`: number of voxels of the lanes before; `all`: of all lanes.
__device__ __forceinline__ void writeKeys(int32_t* keys, int32_t key, const uint4& word, int before,
                                          int all, uint16_t* staged) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int at = before;
  const auto stage = [&](uint32_t bits, int first) {
    for (; bits != 0; bits &= bits - 1) {
      staged[at++] = static_cast<uint16_t>(lane * RankWord::kBits + first + __ffs(bits) - 1);
    }
  };
  stage(word.x, 0);
  stage(word.y, 32);
  __syncwarp();
  for (int k = lane; k < all; k += 32) keys[k] = key + staged[k];
  __syncwarp();
}

// A warp processes 32 consecutive words at a time.
static __global__ void __launch_bounds__(kThreads)
    numberVoxels(const __grid_constant__ NumberArguments a) {
  __shared__ uint16_t staged[kWarps][32 * RankWord::kBits];  // voxels of a warp's words
  __shared__ int32_t of_warps[kWarps];
  __shared__ uint32_t sums[kWarps];
  waitForLaunchesAhead();
  const PointGroups& g = a.groups;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t tile = blockIdx.x;
  const int64_t first = tile * kTileWords + warp * 32 * kWordsOfThread;  // of the warp
  uint4 words[kWordsOfThread];
  int before[kWordsOfThread];  // in the warp's words
  int of_warp = 0;
#pragma unroll
  for (int t = 0; t < kWordsOfThread; ++t) {
    const int64_t i = first + t * 32 + lane;
    words[t] = i < g.num_words ? *reinterpret_cast<const uint4*>(&g.words[i]) : uint4{};
  }
#pragma unroll
  for (int t = 0; t < kWordsOfThread; ++t) {
    const int count = __popc(words[t].x) + __popc(words[t].y);
    int up_to_lane = count;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(~0u, up_to_lane, distance);
      if (lane >= distance) up_to_lane += other;
    }
    before[t] = of_warp + up_to_lane - count;
    of_warp += __shfl_sync(~0u, up_to_lane, 31);
  }
  if (lane == 0) of_warps[warp] = of_warp;
  __syncthreads();
  int32_t before_warp = 0;
  int32_t of_tile = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) before_warp = of_tile;
    of_tile += of_warps[w];
  }
  if (threadIdx.x == 0) publishPoints(a.states, tile, of_tile);
  const int32_t before_tile = sumOfTilesBefore<kThreads>(a.states, tile, sums);
  if (threadIdx.x == 0 && tile + 1 == gridDim.x) *g.num = before_tile + of_tile;
  before_warp += before_tile;
#pragma unroll
  for (int t = 0; t < kWordsOfThread; ++t) {
    const int64_t i = first + t * 32 + lane;
    const int end =
        t + 1 < kWordsOfThread ? __shfl_sync(~0u, before[(t + 1) % kWordsOfThread], 0) : of_warp;
    const int begin = __shfl_sync(~0u, before[t], 0);
    if (i < g.num_words) {
      words[t].z = static_cast<uint32_t>(before_warp + before[t]);
      *reinterpret_cast<uint4*>(&g.words[i]) = words[t];
    }
    writeKeys(a.keys + before_warp + begin,
              static_cast<int32_t>((first + t * 32) * RankWord::kBits), words[t], before[t] - begin,
              end - begin, staged[warp]);
  }
}

// ---- their points and rows ----------------------------------------------------------------------

struct PlaceArguments {
  PointGroups groups;
  const int32_t* counts;  // [most]
  int32_t* starts;
  TileState* states;  // of tiles of voxels; cleared
  SparseRows rows;
  ChunkList chunks;
};

// Rows after the last voxel belong to no voxel.
static __global__ void __launch_bounds__(kThreads)
    placeVoxels(const __grid_constant__ PlaceArguments a) {
  __shared__ int2 spans[kThreads * kPoints];
  __shared__ int32_t of_warps[kWarps];
  __shared__ uint32_t sums[kWarps];
  waitForLaunchesAhead();
  const PointGroups& g = a.groups;
  const int64_t tile = blockIdx.x;
  const int64_t first = tile * kThreads * kPoints;
  const int32_t num = *g.num;
  const bool has_rows = a.rows.coords.data != nullptr;
  if (has_rows && tile == 0 && threadIdx.x == 0) {
    *static_cast<int64_t*>(a.rows.num_voxels.data) = min(int64_t{num}, a.rows.capacity);
  }
  if (first <= num) {  // the end of the last one is also a start
    int32_t counts[kPoints];
    loadFour(a.counts, firstOfThread(), num, counts, 0);
    int32_t own = 0;
#pragma unroll
    for (int k = 0; k < kPoints; ++k) own += counts[k];
    const BlockPrefix prefix = prefixOverBlock<kThreads>(own, of_warps);
    if (threadIdx.x == 0) publishPoints(a.states, tile, prefix.all);
    int32_t begin = sumOfTilesBefore<kThreads>(a.states, tile, sums) + prefix.before;
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
      spans[threadIdx.x * kPoints + k] = make_int2(begin, counts[k]);
      begin += counts[k];
    }
    __syncthreads();
  }
  LostRows lost;
#pragma unroll 1
  for (auto i = static_cast<int32_t>(threadIdx.x); i < kThreads * kPoints; i += kThreads) {
    const int64_t row = first + i;
    if (row <= num) a.starts[row] = spans[i].x;
    if (row < num) {
      if (has_rows) writeVoxel(a.rows, row, g.voxel_keys[row], spans[i].y, &lost);
      a.chunks.add(static_cast<int32_t>(row), spans[i].x, spans[i].y);
    } else if (has_rows && row < a.rows.capacity) {
      writeNoVoxel(a.rows, row);
    }
  }
  if (has_rows) lost.finish(a.rows);
}

}  // namespace grouping

}  // namespace rbc::cuda
