// Features reduced over the points of each voxel.
//
// Voxels with few points are done by some lanes each, a feature a lane. Those with more are cut into
// chunks, a warp each: its lanes take the points in turn. A voxel of one chunk is finished there; the
// chunks of a large one put their parts together by atomics, which are exact, so their order does
// not matter, and the chunk that comes last writes the result. Sums take two passes: the second needs
// the largest magnitude.

#include "points/reduce_voxels.h"

#include <algorithm>

#include "points/feature_rows.cuh"
#include "runtime/aligned_vec.cuh"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "voxel_reduce.h"

namespace rbc::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 256;
constexpr int kWarpsPerBlock = kThreads / kWarp;
constexpr int kFewPoints = 32;  // of a voxel that lanes do
constexpr int kChunkPoints = 1024;

struct Chunk {
  int32_t voxel;
  int32_t begin;  // into `order`
  int32_t end;
  int32_t large;  // the number of the voxel among the large ones, or -1
};

struct ReduceArguments {
  PointGroups groups;
  FeatureRows features;
  VoxelTarget target;
  VoxelMode mode;
  int few_lanes_log2;  // of a voxel with few points
  int lanes_log2;      // of a chunk's features
  uint32_t* counters;
  Chunk* chunks;
  uint32_t* arrived;
  uint64_t* keys;
  void* sums;
};

__device__ bool isSum(VoxelMode mode) { return mode <= VoxelMode::kMean; }

// Where the voxel's features begin; null if they are not wanted.
template <class Out>
__device__ Out* targetRow(const VoxelTarget& target, const PointGroups& groups, int32_t voxel) {
  auto* data = static_cast<Out*>(target.data);
  if (target.dense) {
    const VoxelCoords at = target.places(groups.keys[voxel]);
    return data + at.cloud * target.stride[0] + at.x * target.stride[1] + at.y * target.stride[2] +
           at.z * target.stride[3];
  }
  const int32_t row = target.rows != nullptr ? target.rows[voxel] : voxel;
  return row < target.capacity ? data + row * target.stride[0] : nullptr;
}

// What a lane gathers in the first pass.
template <class Number>
__device__ OrderKey<Number> firstTerm(VoxelMode mode, Number x) {
  return isSum(mode) ? magnitude(x) : orderKey(x, mode == VoxelMode::kMin);
}

template <class Out, class Number>
__device__ Out firstResult(VoxelMode mode, OrderKey<Number> key) {
  return narrow<Out>(fromOrderKey<Number>(key, mode == VoxelMode::kMin));
}

template <class Key>
__device__ Key larger(Key a, Key b) {
  return a > b ? a : b;
}

__device__ void pushChunks(const ReduceArguments& a, int32_t voxel, int32_t begin, int32_t end) {
  const auto n = static_cast<uint32_t>((int64_t{end} - begin + kChunkPoints - 1) / kChunkPoints);
  const uint32_t at = atomicAdd(&a.counters[0], n);
  int32_t large = -1;
  if (n > 1) {
    large = static_cast<int32_t>(atomicAdd(&a.counters[1], 1u));
    a.arrived[large] = 0;
  }
  for (uint32_t i = 0; i < n; ++i) {
    const int32_t first = begin + static_cast<int32_t>(i) * kChunkPoints;
    a.chunks[at + i] = {voxel, first, first + min(kChunkPoints, end - first), large};
  }
}

// Some neighbouring features of a point, in one word where there are several.
template <class In, int kPack>
__device__ __forceinline__ void loadFeatures(const ReduceArguments& a, int32_t i, int64_t feature,
                                             Compute<In> (&x)[kPack]) {
  const In* row = a.features.row<In>(a.groups.order[i]);
  if constexpr (kPack == 1) {
    x[0] = widen(row[feature * a.features.stride[2]]);
  } else {
    const auto pack = load<AlignedVec<In, kPack>>(row + feature);
#pragma unroll
    for (int k = 0; k < kPack; ++k) x[k] = widen(pack.element[k]);
  }
}

template <class Out, int kPack>
__device__ __forceinline__ void storeFeatures(const ReduceArguments& a, Out* row, int64_t feature,
                                              const Out (&x)[kPack]) {
  if constexpr (kPack == 1) {
    row[feature * a.target.feature_stride] = x[0];
  } else {
    AlignedVec<Out, kPack> pack;
#pragma unroll
    for (int k = 0; k < kPack; ++k) pack.element[k] = x[k];
    store(row + feature, pack);
  }
}

// Of the points begin .. end - 1 in the order, few of them.
template <class In, class Out, int kPack>
__device__ __forceinline__ void reduceFeatures(const ReduceArguments& a, int32_t begin, int32_t end,
                                               int64_t feature, Out (&result)[kPack]) {
  using Number = Compute<In>;
  Number first[kPack];
  loadFeatures<In>(a, begin, feature, first);
  if (end - begin == 1) {
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      result[k] = isSum(a.mode) ? narrow<Out>(sumOfOne(first[k])) : narrow<Out>(first[k]);
    }
    return;
  }
  Number x[kPack];
  OrderKey<Number> key[kPack];
#pragma unroll
  for (int k = 0; k < kPack; ++k) key[k] = firstTerm(a.mode, first[k]);
  for (int32_t i = begin + 1; i < end; ++i) {
    loadFeatures<In>(a, i, feature, x);
#pragma unroll
    for (int k = 0; k < kPack; ++k) key[k] = larger(key[k], firstTerm(a.mode, x[k]));
  }
  if (!isSum(a.mode)) {
#pragma unroll
    for (int k = 0; k < kPack; ++k) result[k] = firstResult<Out, Number>(a.mode, key[k]);
    return;
  }
  Fixed<Number> sum[kPack];
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    sum[k] = FixedSum<Number>(key[k], end - begin).term(first[k]);
  }
  for (int32_t i = begin + 1; i < end; ++i) {
    loadFeatures<In>(a, i, feature, x);
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      sum[k] = sum[k] + FixedSum<Number>(key[k], end - begin).term(x[k]);
    }
  }
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    result[k] = narrow<Out>(
        FixedSum<Number>(key[k], end - begin).result(sum[k], a.mode == VoxelMode::kMean));
  }
}

// Blocks that must fit on a multiprocessor, which bounds the registers: as many as fit without
// spills. Left to itself, the compiler spills for one more.
template <class In, int kPack>
constexpr int kFewBlocks = sizeof(In) == 8 && kPack > 1 ? 4 : 5;
constexpr int kChunkBlocks = 4;

// kPack features a lane.
template <class In, class Out, int kPack>
__global__ void __launch_bounds__(kThreads, kFewBlocks<In, kPack>)
    reduceFew(const __grid_constant__ ReduceArguments a) {
  waitForLaunchesAhead();
  const int lanes = 1 << a.few_lanes_log2;
  const int64_t v = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) >> a.few_lanes_log2;
  const int32_t first = (static_cast<int32_t>(threadIdx.x) & (lanes - 1)) * kPack;
  const int64_t voxels = *a.groups.num;
  Out result[kPack] = {};
  if (v >= voxels) {  // a row of no voxel
    if (a.target.dense || v >= a.target.capacity) return;
    auto* out = static_cast<Out*>(a.target.data) + v * a.target.stride[0];
    for (int64_t f = first; f < a.features.count; f += lanes * kPack) {
      storeFeatures(a, out, f, result);
    }
    return;
  }
  const auto voxel = static_cast<int32_t>(v);
  const int32_t begin = a.groups.starts[voxel];
  const int32_t end = a.groups.starts[voxel + 1];
  if (end - begin > kFewPoints) {
    if (first == 0) pushChunks(a, voxel, begin, end);
    return;
  }
  Out* out = targetRow<Out>(a.target, a.groups, voxel);
  if (out == nullptr) return;
  for (int64_t f = first; f < a.features.count; f += lanes * kPack) {
    reduceFeatures<In>(a, begin, end, f, result);
    storeFeatures(a, out, f, result);
  }
}

__device__ void atomicLarger(uint64_t* at, uint64_t key) {
  atomicMax(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(key));
}

__device__ uint64_t addAtomic(uint64_t* at, uint64_t more) {
  return atomicAdd(reinterpret_cast<unsigned long long*>(at),
                   static_cast<unsigned long long>(more));
}
__device__ void atomicSum(uint64_t* at, uint64_t more) { addAtomic(at, more); }
__device__ void atomicSum(Fixed128* at, const Fixed128& more) {
  const uint64_t before = addAtomic(&at->low, more.low);
  addAtomic(&at->high, more.high + (before + more.low < before ? 1 : 0));
}

// What other multiprocessors have added up.
__device__ uint64_t loadSum(const uint64_t* at) {
  return __ldcg(reinterpret_cast<const unsigned long long*>(at));
}
__device__ Fixed128 loadSum(const Fixed128* at) { return {loadSum(&at->low), loadSum(&at->high)}; }

template <class T>
__device__ T shuffleXor(T value, int mask) {
  return __shfl_xor_sync(~0u, value, mask);
}
__device__ Fixed128 shuffleXor(const Fixed128& value, int mask) {
  return {__shfl_xor_sync(~0u, value.low, mask), __shfl_xor_sync(~0u, value.high, mask)};
}

// Lanes of a warp by point and feature: a power of two takes neighbouring features.
struct ChunkLanes {
  int features;  // side by side
  int feature;
  int point;
  int points;
};

__device__ ChunkLanes chunkLanes(int lanes_log2) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int features = 1 << lanes_log2;
  return {features, lane & (features - 1), lane >> lanes_log2, kWarp >> lanes_log2};
}

// Puts the lanes of a feature together.
template <class T, class Combine>
__device__ T acrossPoints(T value, const ChunkLanes& lanes, Combine combine) {
  for (int mask = lanes.features; mask < kWarp; mask *= 2) {
    value = combine(value, shuffleXor(value, mask));
  }
  return value;
}

template <class In, class Number, class T, class Term, class Combine>
__device__ T overChunk(const ReduceArguments& a, const Chunk& chunk, const ChunkLanes& lanes,
                       int64_t feature, T first, Term term, Combine combine) {
  T all = first;
  if (feature < a.features.count) {
#pragma unroll 4
    for (int32_t i = lanes.point; i < chunk.end - chunk.begin; i += lanes.points) {
      const Number x = widen(
          a.features.row<In>(a.groups.order[chunk.begin + i])[feature * a.features.stride[2]]);
      all = combine(all, term(x));
    }
  }
  return acrossPoints(all, lanes, combine);
}

// Whether this warp is the last of the voxel's chunks to have put its parts in.
__device__ bool cameLast(const ReduceArguments& a, const Chunk& chunk, uint32_t chunks_times) {
  __threadfence();
  __syncwarp();
  uint32_t before = 0;
  if (threadIdx.x % kWarp == 0) before = atomicAdd(&a.arrived[chunk.large], 1u);
  before = __shfl_sync(~0u, before, 0);
  __threadfence();
  return before + 1 == chunks_times;
}

// kSecond: the second pass, over the chunks of large voxels alone.
template <class In, class Out, bool kSecond>
__global__ void __launch_bounds__(kThreads, kChunkBlocks)
    reduceChunks(const __grid_constant__ ReduceArguments a) {
  using Number = Compute<In>;
  using Key = OrderKey<Number>;
  using Sum = Fixed<Number>;
  waitForLaunchesAhead();
  const ChunkLanes lanes = chunkLanes(a.lanes_log2);
  const uint32_t count = a.counters[0];
  const bool sums = isSum(a.mode);
  const auto add = [](const Sum& x, const Sum& y) { return x + y; };
  const auto most = [](Key x, Key y) { return larger(x, y); };
  const bool writes = lanes.point == 0;
  for (uint32_t c = blockIdx.x * kWarpsPerBlock + threadIdx.x / kWarp; c < count;
       c += gridDim.x * kWarpsPerBlock) {
    const Chunk chunk = a.chunks[c];
    if (kSecond && chunk.large < 0) continue;
    const int32_t voxel = chunk.voxel;
    Out* out = targetRow<Out>(a.target, a.groups, voxel);
    if (out == nullptr) continue;
    const int64_t n = a.groups.starts[voxel + 1] - a.groups.starts[voxel];
    const auto chunks = static_cast<uint32_t>((n + kChunkPoints - 1) / kChunkPoints);
    uint64_t* keys = a.keys + chunk.large * a.features.count;
    auto* large_sums = static_cast<Sum*>(a.sums) + chunk.large * a.features.count;
    for (int64_t base = 0; base < a.features.count; base += lanes.features) {
      const int64_t f = base + lanes.feature;
      const bool own = writes && f < a.features.count;
      Key key = 0;
      if (kSecond) {
        if (f < a.features.count) key = static_cast<Key>(keys[f]);
      } else {
        key = overChunk<In, Number>(
            a, chunk, lanes, f, Key{0}, [&](Number x) { return firstTerm(a.mode, x); }, most);
        if (chunk.large >= 0) {
          if (own) atomicLarger(&keys[f], key);
          continue;
        }
      }
      if (!sums) {
        if (own) out[f * a.target.feature_stride] = firstResult<Out, Number>(a.mode, key);
        continue;
      }
      const FixedSum<Number> terms(key, n);
      const Sum sum = overChunk<In, Number>(
          a, chunk, lanes, f, Sum{}, [&](Number x) { return terms.term(x); }, add);
      if (kSecond) {
        if (own) atomicSum(&large_sums[f], sum);
      } else if (own) {
        out[f * a.target.feature_stride] =
            narrow<Out>(terms.result(sum, a.mode == VoxelMode::kMean));
      }
    }
    if (chunk.large < 0 || (sums && !kSecond)) continue;
    if (!cameLast(a, chunk, chunks)) continue;
    for (int64_t f = threadIdx.x % kWarp; f < a.features.count; f += kWarp) {
      const auto key = static_cast<Key>(loadSum(&keys[f]));
      if (sums) {
        const FixedSum<Number> terms(key, n);
        out[f * a.target.feature_stride] =
            narrow<Out>(terms.result(loadSum(&large_sums[f]), a.mode == VoxelMode::kMean));
      } else {
        out[f * a.target.feature_stride] = firstResult<Out, Number>(a.mode, key);
      }
    }
  }
}

// Whether rows of features can be read and written as words of kPack elements.
template <class In, class Out, int kPack>
bool suitsVecs(const ReduceArguments& a) {
  const auto aligned = [](const void* data, size_t element) {
    const size_t bytes = std::min<size_t>(element * kPack, 16);
    return reinterpret_cast<uintptr_t>(data) % bytes == 0;
  };
  bool fits = a.features.count % kPack == 0 && a.features.stride[2] == 1 &&
              a.target.feature_stride == 1 && aligned(a.features.data, sizeof(In)) &&
              aligned(a.target.data, sizeof(Out));
  for (int i = 0; i < 2; ++i) fits &= a.features.stride[i] % kPack == 0;
  for (int i = 0; i < 4; ++i) fits &= a.target.stride[i] % kPack == 0;
  return fits;
}

int lanesLog2(int64_t count) {
  int log2 = 0;
  while (log2 < 5 && (1 << log2) < count) ++log2;
  return log2;
}

template <class In, class Out>
cudaError_t launchAll(ReduceArguments* a, int64_t most_chunks, const LaunchDevice& device,
                      cudaStream_t stream) {
  constexpr int kPack = 4;
  const bool packs = suitsVecs<In, Out, kPack>(*a);
  a->few_lanes_log2 = lanesLog2(packs ? a->features.count / kPack : a->features.count);
  a->lanes_log2 = lanesLog2(a->features.count);
  const int64_t rows = std::max(a->groups.most, a->target.dense ? 0 : a->target.capacity);
  // Each row has to have its lanes: a grid has 2^31 - 1 blocks at most.
  while (a->few_lanes_log2 > 0 && rows > int64_t{INT32_MAX} * kThreads >> a->few_lanes_log2) {
    --a->few_lanes_log2;
  }
  const int64_t few_blocks = ((rows << a->few_lanes_log2) + kThreads - 1) / kThreads;
  cudaError_t error = launchBlocks(packs ? reduceFew<In, Out, kPack> : reduceFew<In, Out, 1>, a,
                                   few_blocks, kThreads, device, stream);
  if (error != cudaSuccess || most_chunks == 0) return error;
  const int64_t blocks = std::min<int64_t>((most_chunks + kWarpsPerBlock - 1) / kWarpsPerBlock,
                                           int64_t{8} * device.multiprocessors);
  error = launchBlocks(reduceChunks<In, Out, false>, a, blocks, kThreads, device, stream);
  if (error != cudaSuccess || a->mode > VoxelMode::kMean) return error;
  return launchBlocks(reduceChunks<In, Out, true>, a, blocks, kThreads, device, stream);
}

}  // namespace

VoxelReduction::VoxelReduction(const PointClouds& points, const Features& features, VoxelMode mode,
                               ScratchLayout* cutter)
    : points_(points), features_(features), mode_(mode) {
  const int64_t total = points.total();
  most_large_ = total / (kChunkPoints + 1);
  most_chunks_ = total / (kFewPoints + 1) + total / kChunkPoints;
  constexpr int64_t kCounters = 2;
  cutter->take(&counters_, kCounters);
  const size_t before = cutter->used() - kCounters * sizeof *counters_;
  cutter->take(&keys_, most_large_ * features.count);
  Fixed128* sums;
  cutter->take(&sums, mode <= VoxelMode::kMean ? most_large_ * features.count : 0);
  sums_ = sums;
  clear_bytes_ = cutter->used() - before;
  Chunk* chunks;
  cutter->take(&chunks, most_chunks_);
  chunks_ = chunks;
  cutter->take(&arrived_, most_large_);
}

cudaError_t VoxelReduction::launch(const PointGroups& groups, const VoxelTarget& target,
                                   const LaunchDevice& device, cudaStream_t stream) const {
  if (features_.count == 0 || (groups.most == 0 && target.dense)) return cudaSuccess;
  // What large voxels add to is cleared whole: there are few of them.
  const cudaError_t error = cudaMemsetAsync(counters_, 0, clear_bytes_, stream);
  if (error != cudaSuccess) return error;
  ReduceArguments arguments = {
      groups,    featureRowsOf(features_, points_), target,   mode_, 0,    0,
      counters_, static_cast<Chunk*>(chunks_),      arrived_, keys_, sums_};
  return visitFloat(features_.dtype, [&](auto in) {
    using In = typename decltype(in)::type;
    return visitFloat(target.dtype, [&](auto out) {
      using Out = typename decltype(out)::type;
      return launchAll<In, Out>(&arguments, most_chunks_, device, stream);
    });
  });
}

cudaError_t loadReduceVoxels() { return loadKernelsBeside(reduceFew<float, float, 1>); }

}  // namespace rbc::cuda
