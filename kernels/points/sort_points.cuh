// Groups points by a stable sort of their keys.
#pragma once

#include <cub/device/device_radix_sort.cuh>
#include <type_traits>

#include "points/group_points.h"
#include "points/points.cuh"
#include "points/tile_prefix.cuh"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace grouping {

// ---- Finds where voxels begin among sorted keys, in one pass: a block counts the voxels that
// begin in its tile and adds the published counts of the tiles before.

// A warp's keys are divided into runs; each lane loads its part of a run as a word.
inline constexpr int kRuns = 4;
inline constexpr int kRun = 32 * kPoints;
inline constexpr int kWarpKeys = kRuns * kRun;
inline constexpr int kTileKeys = kWarps * kWarpKeys;

template <class Key>
struct FindArguments {
  PointGroups groups;
  const Key* keys;  // ascending
  Key none;
  TileState* states;  // of tiles; cleared
};

// The bits of a lane's keys that are the first of a voxel. `*end`: the end of points with a voxel,
// if it is among these keys.
template <class Key>
__device__ __forceinline__ unsigned firstKeys(const FindArguments<Key>& a, int64_t first,
                                              int64_t* end) {
  const int64_t points = a.groups.points;
  if (first >= points) return 0;
  Key keys[kPoints];
  loadFour(a.keys, first, points, keys, a.none);
  Key before = first > 0 ? a.keys[first - 1] : a.none;
  unsigned firsts = 0;
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    const int64_t i = first + k;
    if (i >= points) break;
    const bool has_voxel = keys[k] != a.none;
    if (has_voxel && keys[k] != before) firsts |= 1u << k;
    if (!has_voxel && (i == 0 || before != a.none)) *end = i;
    if (has_voxel && i + 1 == points) *end = points;
    before = keys[k];
  }
  return firsts;
}

template <class Key>
__global__ void __launch_bounds__(kThreads)
    findVoxels(const __grid_constant__ FindArguments<Key> a) {
  __shared__ int32_t firsts_of_tile[kTileKeys];
  __shared__ int of_warps[kWarps];
  __shared__ int64_t before_tile;
  waitForLaunchesAhead();
  const PointGroups& g = a.groups;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t tile = blockIdx.x;
  const int64_t first = tile * kTileKeys + warp * kWarpKeys + lane * kPoints;
  int64_t end = -1;
  unsigned firsts[kRuns];
  uint32_t counts = 0;  // a byte per run, which has at most 128
#pragma unroll
  for (int r = 0; r < kRuns; ++r) {
    firsts[r] = firstKeys(a, first + r * kRun, &end);
    counts |= __popc(firsts[r]) << 8 * r;
  }
  uint32_t up_to_lane = counts;
  for (int distance = 1; distance < 32; distance *= 2) {
    const uint32_t other = __shfl_up_sync(~0u, up_to_lane, distance);
    if (lane >= distance) up_to_lane += other;
  }
  const uint32_t of_runs = __shfl_sync(~0u, up_to_lane, 31);
  if (lane == 0) {
    int of_warp = 0;
#pragma unroll
    for (int r = 0; r < kRuns; ++r) of_warp += of_runs >> 8 * r & 0xff;
    of_warps[warp] = of_warp;
  }
  __syncthreads();
  int place = 0;  // in the tile
  int count = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) place = count;
    count += of_warps[w];
  }
  if (threadIdx.x == 0) publishPoints(a.states, tile, count);
  const uint32_t before_lane = up_to_lane - counts;
  int places[kRuns];
#pragma unroll
  for (int r = 0; r < kRuns; ++r) {
    places[r] = place + static_cast<int>(before_lane >> 8 * r & 0xff);
    place += static_cast<int>(of_runs >> 8 * r & 0xff);
    int at = places[r];
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
      if ((firsts[r] >> k & 1) == 0) continue;
      firsts_of_tile[at++] = static_cast<int32_t>(first + r * kRun + k);
    }
  }
  if (warp == 0) {
    const int64_t before = pointsBefore(a.states, tile, count);
    if (lane == 0) before_tile = before;
  }
  __syncthreads();

  const int64_t before = before_tile;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    g.starts[before + i] = firsts_of_tile[i];
  }
  if (end >= 0) {  // no voxel begins after it
    g.starts[before + count] = static_cast<int32_t>(end);
    *g.num = static_cast<int32_t>(before + count);
  }
  if (g.heads == nullptr) return;
#pragma unroll
  for (int r = 0; r < kRuns; ++r) {
    int32_t heads[kPoints];
    auto voxel = static_cast<int32_t>(before + places[r]);
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
      voxel += static_cast<int32_t>(firsts[r] >> k & 1);
      heads[k] = voxel;
    }
    storeFour(g.heads, first + r * kRun, g.points, heads);
  }
}

template <class Number, class Key>
struct KeyArguments {
  PointSource<Number> source;
  Key none;  // of points without a voxel: more than any key
  Key* keys;
  int32_t* rows;
  TileState* states;  // must be cleared; fewer than threads
  int64_t tiles;
};

// The type that loadKeys() returns.
template <class Key>
using Signed = std::conditional_t<sizeof(Key) == 4, int32_t, int64_t>;

template <class Loader, class Key>
__global__ void __launch_bounds__(kThreads, kBlocks)
    makeKeys(const __grid_constant__ KeyArguments<typename Loader::Number, Key> a) {
  waitForLaunchesAhead();
  DropCounter drops(a.source);
  const int64_t first = firstOfThread();
  if (first / kPoints < a.tiles) a.states[first / kPoints] = 0;
  Signed<Key> found[kPoints];
  loadKeys<Loader>(a.source, first, found, &drops);
  Key keys[kPoints];
  int32_t rows[kPoints];
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    keys[k] = found[k] >= 0 ? static_cast<Key>(found[k]) : a.none;
    rows[k] = static_cast<int32_t>(first + k);
  }
  storeFour(a.keys, first, a.source.total, keys);
  storeFour(a.rows, first, a.source.total, rows);
  drops.finish();
}

inline int bitsFor(int64_t most) {
  int bits = 1;
  while (most >> bits != 0) ++bits;
  return bits;
}

template <class Key>
cudaError_t sort(void* temporary, size_t* bytes, const Key* keys, Key* sorted_keys,
                 const int32_t* rows, int32_t* order, int64_t points, int64_t voxels,
                 cudaStream_t cuda_stream) {
  return cub::DeviceRadixSort::SortPairs(temporary, *bytes, keys, sorted_keys, rows, order,
                                         static_cast<int>(points), 0, bitsFor(voxels), cuda_stream);
}

}  // namespace grouping

}  // namespace rbc::cuda
