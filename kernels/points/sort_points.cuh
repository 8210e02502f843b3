// Points grouped by a stable sort of their keys.
#pragma once

#include <cub/device/device_radix_sort.cuh>
#include <type_traits>

#include "points/four_points.cuh"
#include "points/group_points.h"
#include "points/tile_prefix.cuh"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace grouping {

template <class Number, class Key>
struct KeyArguments {
  PointSource<Number> source;
  Key none;  // of points that have no voxel: more than any key
  Key* keys;
  int32_t* rows;
  TileState* states;  // to be cleared, fewer than threads
  int64_t tiles;
};

// The type that loadKeys() gives.
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
