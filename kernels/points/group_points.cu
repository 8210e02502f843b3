// Points grouped by voxel, in one of two ways.
//
// Ranked: a bit for each voxel of the grid; the set bits before a voxel's are its number. The points
// of a voxel take their places as they come, so this serves reductions, which do not depend on it.
// Sorted: a stable radix sort of the points' rows by the bits of the keys in use, for grids that are
// too large for that, for many points (each step of the other way goes to memory at random: with 10
// million points it took 2.4 times as long, with a million 0.9 and with 100 thousand 0.55), and
// where the points of a voxel must stand in order.

#include "points/group_points.h"

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "points/points.cuh"
#include "runtime/aligned_vec.cuh"
#include "runtime/cuda_error.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks =
    4;  // of a multiprocessor at least: left to itself, the compiler spills for one more

constexpr int kWordBits = 64;

constexpr const char* kSizeOfScan = "the size of a scan";

int64_t blocksFor(int64_t items, int64_t per_block) { return (items + per_block - 1) / per_block; }

__device__ __forceinline__ int64_t firstOfThread() {
  return (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kPoints;
}

template <class T>
__device__ __forceinline__ void storeFour(T* array, int64_t first, int64_t count,
                                          const T (&four)[kPoints]) {
  if (first + kPoints <= count) {
    AlignedVec<T, kPoints> pack;
#pragma unroll
    for (int k = 0; k < kPoints; ++k) pack.element[k] = four[k];
    *reinterpret_cast<AlignedVec<T, kPoints>*>(array + first) = pack;
    return;
  }
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    if (first + k < count) array[first + k] = four[k];
  }
}

// ---- ranked -------------------------------------------------------------------------------------

// The rows first .. first + kPoints - 1 of an array, as one word where all are there.
__device__ __forceinline__ void loadFour(const int32_t* array, int64_t first, int64_t count,
                                         int32_t (&four)[kPoints]) {
  if (first + kPoints <= count) {
    const int4 word = *reinterpret_cast<const int4*>(array + first);
    four[0] = word.x, four[1] = word.y, four[2] = word.z, four[3] = word.w;
    return;
  }
#pragma unroll
  for (int k = 0; k < kPoints; ++k) four[k] = first + k < count ? array[first + k] : -1;
}

template <class Number>
struct MarkArguments {
  PointSource<Number> source;
  uint32_t* bits;
  int32_t* keys;
};

template <class Loader>
__global__ void __launch_bounds__(kThreads, kBlocks)
    markVoxels(const __grid_constant__ MarkArguments<typename Loader::Number> a) {
  waitForLaunchesAhead();
  DropCounter drops(a.source);
  int32_t keys[kPoints];
  loadKeys<Loader>(a.source, firstOfThread(), keys, &drops);
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    if (keys[k] >= 0) atomicOr(&a.bits[keys[k] / 32], 1u << keys[k] % 32);
  }
  storeFour(a.keys, firstOfThread(), a.source.total, keys);
  drops.finish();
}

struct RankArguments {
  PointGroups groups;
  const uint64_t* words;
  const uint32_t* prefix;
  uint32_t* counts;
  int32_t* slots;
  int64_t num_words;
};

// Turns the keys in `ranks` into the voxels' numbers.
__global__ void __launch_bounds__(kThreads) rankPoints(const __grid_constant__ RankArguments a) {
  waitForLaunchesAhead();
  const PointGroups& g = a.groups;
  const int64_t first = firstOfThread();
  if (first == 0) {
    const int64_t last = a.num_words - 1;
    *g.num = static_cast<int32_t>(a.prefix[last]) + __popcll(a.words[last]);
  }
  if (first >= g.points) return;
  int32_t keys[kPoints];
  int32_t ranks[kPoints];
  int32_t slots[kPoints];
  loadFour(g.ranks, first, g.points, keys);
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    ranks[k] = -1;
    if (keys[k] < 0) continue;
    const int32_t word = keys[k] / kWordBits;
    const uint64_t before = (uint64_t{1} << keys[k] % kWordBits) - 1;
    ranks[k] = static_cast<int32_t>(a.prefix[word]) + __popcll(a.words[word] & before);
  }
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    slots[k] = ranks[k] >= 0 ? static_cast<int32_t>(atomicAdd(&a.counts[ranks[k]], 1u)) : 0;
  }
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    if (ranks[k] >= 0 && slots[k] == 0) g.keys[ranks[k]] = keys[k];
  }
  storeFour(g.ranks, first, g.points, ranks);
  storeFour(a.slots, first, g.points, slots);
}

__global__ void __launch_bounds__(kThreads) orderPoints(const __grid_constant__ RankArguments a) {
  waitForLaunchesAhead();
  const PointGroups& g = a.groups;
  const int64_t first = firstOfThread();
  if (first >= g.points) return;
  int32_t ranks[kPoints];
  int32_t slots[kPoints];
  loadFour(g.ranks, first, g.points, ranks);
  loadFour(a.slots, first, g.points, slots);
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    if (ranks[k] >= 0) g.order[g.starts[ranks[k]] + slots[k]] = static_cast<int32_t>(first + k);
  }
}

struct CountBits {
  __device__ uint32_t operator()(uint64_t word) const {
    return static_cast<uint32_t>(__popcll(word));
  }
};

cudaError_t scanBits(void* temporary, size_t* bytes, const uint64_t* words, uint32_t* prefix,
                     int64_t count, cudaStream_t stream) {
  return cub::DeviceScan::ExclusiveSum(temporary, *bytes,
                                       thrust::make_transform_iterator(words, CountBits{}), prefix,
                                       static_cast<int>(count), stream);
}

cudaError_t scanCounts(void* temporary, size_t* bytes, const uint32_t* counts, int32_t* starts,
                       int64_t count, cudaStream_t stream) {
  return cub::DeviceScan::ExclusiveSum(temporary, *bytes, counts, starts, static_cast<int>(count),
                                       stream);
}

// Where it is the faster way.
bool suitsRanks(int64_t points, int64_t voxels) {
  constexpr int64_t kMaxRanked = int64_t{1} << 21;
  return points <= kMaxRanked && voxels <= INT32_MAX && voxels / 256 <= points;
}

// ---- sorted -------------------------------------------------------------------------------------

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

int bitsFor(int64_t most) {
  int bits = 1;
  while (most >> bits != 0) ++bits;
  return bits;
}

template <class Key>
cudaError_t sort(void* temporary, size_t* bytes, const Key* keys, Key* sorted_keys,
                 const int32_t* rows, int32_t* order, int64_t points, int64_t voxels,
                 cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(temporary, *bytes, keys, sorted_keys, rows, order,
                                         static_cast<int>(points), 0, bitsFor(voxels), stream);
}

template <class Key>
cudaError_t scanHeads(void* temporary, size_t* bytes, const Key* sorted_keys, int64_t voxels,
                      int32_t* heads, int64_t points, cudaStream_t stream) {
  const auto is_head = thrust::make_transform_iterator(
      thrust::counting_iterator<int64_t>(0), IsHead<Key>{sorted_keys, static_cast<Key>(voxels)});
  return cub::DeviceScan::InclusiveSum(temporary, *bytes, is_head, heads, static_cast<int>(points),
                                       stream);
}

}  // namespace

PointGrouping::PointGrouping(const PointClouds& points, const VoxelGrid& grid,
                             const Output<1>& dropped, bool ordered, ScratchLayout* cutter)
    : clouds_(points),
      grid_(grid),
      dropped_(dropped),
      voxels_(points.clouds * grid.volume()),
      ranked_(!ordered && suitsRanks(points.total(), voxels_)),
      wide_(voxels_ > INT32_MAX) {
  groups_.points = points.total();
  groups_.most = std::min(groups_.points, voxels_);
  cutter->take(&groups_.num, 1);
  cutter->take(&groups_.keys, groups_.most);
  cutter->take(&groups_.starts, groups_.most + 1);
  cutter->take(&groups_.order, groups_.points);
  if (ranked_) {
    cutRanked(cutter);
  } else if (wide_) {
    cutSorted<uint64_t>(cutter);
  } else {
    cutSorted<uint32_t>(cutter);
  }
}

void PointGrouping::cutRanked(ScratchLayout* cutter) {
  num_words_ = (voxels_ + kWordBits - 1) / kWordBits;
  cutter->take(&groups_.ranks, groups_.points);
  cutter->take(&slots_, groups_.points);
  cutter->take(&words_, num_words_);
  const size_t before = cutter->used() - sizeof(uint64_t) * static_cast<size_t>(num_words_);
  cutter->take(&counts_, groups_.most + 1);
  clear_bytes_ = cutter->used() - before;
  cutter->take(&prefix_, num_words_);
  size_t bytes[2] = {};
  checkCuda(scanBits(nullptr, &bytes[0], words_, prefix_, num_words_, nullptr), kSizeOfScan);
  checkCuda(scanCounts(nullptr, &bytes[1], counts_, groups_.starts, groups_.most + 1, nullptr),
            kSizeOfScan);
  temporary_bytes_ = std::max(bytes[0], bytes[1]);
  cutter->take(&temporary_, static_cast<int64_t>(temporary_bytes_));
}

cudaError_t PointGrouping::launchRanked(const LaunchDevice& device, cudaStream_t stream) const {
  const int64_t blocks = blocksFor(groups_.points, kThreads * kPoints);
  cudaError_t error = cudaMemsetAsync(words_, 0, clear_bytes_, stream);
  if (error != cudaSuccess) return error;
  error = visitLoader(clouds_, [&](auto tag) {
    using Loader = typename decltype(tag)::type;
    using Number = typename Loader::Number;
    MarkArguments<Number> arguments = {sourceOf<Number>(clouds_, grid_, dropped_),
                                       reinterpret_cast<uint32_t*>(words_), groups_.ranks};
    return launchBlocks(markVoxels<Loader>, &arguments, blocks, kThreads, device, stream);
  });
  if (error != cudaSuccess) return error;
  size_t bytes = temporary_bytes_;
  error = scanBits(temporary_, &bytes, words_, prefix_, num_words_, stream);
  if (error != cudaSuccess) return error;
  RankArguments arguments = {groups_, words_, prefix_, counts_, slots_, num_words_};
  error = launchBlocks(rankPoints, &arguments, blocks, kThreads, device, stream);
  if (error != cudaSuccess) return error;
  bytes = temporary_bytes_;
  error = scanCounts(temporary_, &bytes, counts_, groups_.starts, groups_.most + 1, stream);
  if (error != cudaSuccess) return error;
  return launchBlocks(orderPoints, &arguments, blocks, kThreads, device, stream);
}

template <class Key>
void PointGrouping::cutSorted(ScratchLayout* cutter) {
  cutter->take(&groups_.heads, groups_.points);
  cutter->take(&rows_, groups_.points);
  Key* keys;
  Key* sorted_keys;
  cutter->take(&keys, groups_.points);
  cutter->take(&sorted_keys, groups_.points);
  keys_ = keys;
  sorted_keys_ = sorted_keys;
  size_t bytes[2] = {};
  checkCuda(sort<Key>(nullptr, &bytes[0], keys, sorted_keys, rows_, groups_.order, groups_.points,
                      voxels_, nullptr),
            "the size of a sort");
  checkCuda(scanHeads<Key>(nullptr, &bytes[1], sorted_keys, voxels_, groups_.heads, groups_.points,
                           nullptr),
            kSizeOfScan);
  temporary_bytes_ = std::max(bytes[0], bytes[1]);
  cutter->take(&temporary_, static_cast<int64_t>(temporary_bytes_));
}

template <class Key>
cudaError_t PointGrouping::launchSorted(const LaunchDevice& device, cudaStream_t stream) const {
  const auto none = static_cast<Key>(voxels_);
  auto* keys = static_cast<Key*>(keys_);
  auto* sorted_keys = static_cast<Key*>(sorted_keys_);
  cudaError_t error = visitLoader(clouds_, [&](auto tag) {
    using Loader = typename decltype(tag)::type;
    using Number = typename Loader::Number;
    KeyArguments<Number, Key> arguments = {sourceOf<Number>(clouds_, grid_, dropped_), none, keys,
                                           rows_};
    return launchBlocks(makeKeys<Loader, Key>, &arguments,
                        blocksFor(groups_.points, kThreads * kPoints), kThreads, device, stream);
  });
  if (error != cudaSuccess) return error;
  size_t bytes = temporary_bytes_;
  error = sort<Key>(temporary_, &bytes, keys, sorted_keys, rows_, groups_.order, groups_.points,
                    voxels_, stream);
  if (error != cudaSuccess) return error;
  bytes = temporary_bytes_;
  error = scanHeads<Key>(temporary_, &bytes, sorted_keys, voxels_, groups_.heads, groups_.points,
                         stream);
  if (error != cudaSuccess) return error;
  PlaceArguments<Key> arguments = {groups_, sorted_keys, none};
  return launchBlocks(placeVoxels<Key>, &arguments, blocksFor(groups_.points, kThreads), kThreads,
                      device, stream);
}

cudaError_t PointGrouping::launch(const LaunchDevice& device, cudaStream_t stream) const {
  if (groups_.most == 0) {
    cudaError_t error = cudaMemsetAsync(groups_.num, 0, sizeof *groups_.num, stream);
    if (error == cudaSuccess) {
      error = cudaMemsetAsync(groups_.starts, 0, sizeof *groups_.starts, stream);
    }
    return error;
  }
  if (ranked_) return launchRanked(device, stream);
  return wide_ ? launchSorted<uint64_t>(device, stream) : launchSorted<uint32_t>(device, stream);
}

cudaError_t loadGroupPoints() { return loadKernelsBeside(orderPoints); }

}  // namespace rbc::cuda
