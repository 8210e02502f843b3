// Points grouped by a stable sort of their keys.
#pragma once

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <type_traits>

#include "points/four_points.cuh"
#include "points/group_points.h"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace grouping {

template <class Number, class Key>
struct KeyArguments {
  PointSource<Number> source;
  Key none;  // of points that have no voxel: more than any key
  Key* keys;
  int32_t* rows;
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

// 1 where a voxel's points begin.
template <class Key>
struct IsHead {
  const Key* keys;
  Key none;

  __device__ int32_t operator()(int64_t i) const {
    return keys[i] != none && (i == 0 || keys[i - 1] != keys[i]) ? 1 : 0;
  }
};

template <class Key>
struct PlaceArguments {
  PointGroups groups;
  const Key* keys;
  Key none;
};

template <class Key>
__global__ void __launch_bounds__(kThreads)
    placeVoxels(const __grid_constant__ PlaceArguments<Key> a) {
  waitForLaunchesAhead();
  const PointGroups& g = a.groups;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= g.points) return;
  const Key key = a.keys[i];
  const int32_t heads = g.heads[i];
  if (key == a.none) {
    if (i == 0) *g.num = g.starts[0] = 0;
    return;
  }
  if (i == 0 || a.keys[i - 1] != key) {
    g.keys[heads - 1] = static_cast<int64_t>(key);
    g.starts[heads - 1] = static_cast<int32_t>(i);
  }
  if (i + 1 == g.points || a.keys[i + 1] == a.none) {
    g.starts[heads] = static_cast<int32_t>(i + 1);
    *g.num = heads;
  }
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

template <class Key>
cudaError_t scanHeads(void* temporary, size_t* bytes, const Key* sorted_keys, int64_t voxels,
                      int32_t* heads, int64_t points, cudaStream_t cuda_stream) {
  const auto is_head = thrust::make_transform_iterator(
      thrust::counting_iterator<int64_t>(0), IsHead<Key>{sorted_keys, static_cast<Key>(voxels)});
  return cub::DeviceScan::InclusiveSum(temporary, *bytes, is_head, heads, static_cast<int>(points),
                                       cuda_stream);
}

}  // namespace grouping
}  // namespace rbc::cuda
