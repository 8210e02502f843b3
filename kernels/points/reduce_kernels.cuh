// The kernels that reduce the features of each voxel's points: arguments, empty voxels, few points,
// many.
#pragma once

#include <cuda/atomic>

#include "points/group_points.h"
#include "points/reduce_voxels.h"
#include "runtime/aligned_vec.cuh"
#include "runtime/pdl.cuh"
#include "voxel_reduce.h"

namespace rbc::cuda {
namespace reduction {

// ---- The arguments of the kernels that reduce features over the points of each voxel.

inline constexpr int kWarp = 32;
inline constexpr int kThreads = 128;  // small blocks: each waits for its slowest warp
inline constexpr int kWarpsPerBlock = kThreads / kWarp;

struct ReduceArguments {
  PointGroups groups;
  FeatureRows features;
  VoxelTarget target;
  Reduction mode;
  int few_lanes_log2;     // per voxel with few points
  int chunk_lanes_log2;   // per point of a chunk
  unsigned chunk_blocks;  // the first ones, which process the chunks
  unsigned empty_blocks;  // the next ones, which fill the voxels without points
  ChunkList list;
  uint64_t* keys;
  void* sums;
};

__device__ inline bool isSum(Reduction mode) { return mode <= Reduction::kMean; }

// Where the voxel's features begin; null if they are not requested.
template <class Out>
__device__ Out* targetRow(const VoxelTarget& target, const PointGroups& groups, int32_t voxel) {
  auto* data = static_cast<Out*>(target.data);
  if (target.dense) {
    const VoxelCoords at = target.places(groups.key(voxel));
    return data + at.cloud * target.stride[0] + at.x * target.stride[1] + at.y * target.stride[2] +
           at.z * target.stride[3];
  }
  const int32_t row = target.rows != nullptr ? target.rows[voxel] : voxel;
  return row < target.capacity ? data + row * target.stride[0] : nullptr;
}

// Some adjacent features of a point, in one word if there are several.
template <class In, int kCount>
__device__ __forceinline__ void loadFeatures(const ReduceArguments& a, int32_t point,
                                             int64_t feature, Compute<In> (&x)[kCount]) {
  const In* row = a.features.row<In>(point);
  if constexpr (kCount == 1) {
    x[0] = widen(row[feature * a.features.stride[2]]);
  } else {
    const auto vec = load<AlignedVec<In, kCount>>(row + feature);
#pragma unroll
    for (int k = 0; k < kCount; ++k) x[k] = widen(vec.element[k]);
  }
}

template <class Out, int kCount>
__device__ __forceinline__ void storeFeatures(const ReduceArguments& a, Out* row, int64_t feature,
                                              const Out (&x)[kCount]) {
  if constexpr (kCount == 1) {
    row[feature * a.target.feature_stride] = x[0];
  } else {
    AlignedVec<Out, kCount> vec;
#pragma unroll
    for (int k = 0; k < kCount; ++k) vec.element[k] = x[k];
    store(row + feature, vec);
  }
}

// A lane's term in the first pass.
template <class Number>
__device__ OrderKey<Number> firstTerm(Reduction mode, Number x) {
  return isSum(mode) ? magnitude(x) : orderKey(x, mode == Reduction::kMin);
}

template <class Out, class Number>
__device__ Out firstResult(Reduction mode, OrderKey<Number> key) {
  return narrow<Out>(fromOrderKey<Number>(key, mode == Reduction::kMin));
}

template <class Key>
__device__ Key larger(Key a, Key b) {
  return a > b ? a : b;
}

// ---- Fills the voxels of a dense grid without points, in the launch that reduces the others:
// reducing is bound by the memory's latency, filling by its bandwidth.

// By whole warps of the blocks for it, one word of voxels each.
__device__ __forceinline__ void fillEmpty(const ReduceArguments& a) {
  const EmptyVoxels& empty = a.target.empty;
  const auto vecs = static_cast<int32_t>(empty.row_vecs.divisor);
  const int32_t lane = static_cast<int32_t>(threadIdx.x) % kWarp;
  const int64_t warps = int64_t{a.empty_blocks} * kWarpsPerBlock;
  int64_t i = int64_t{blockIdx.x - a.chunk_blocks} * kWarpsPerBlock + threadIdx.x / kWarp;
  for (; i < a.groups.num_words; i += warps) {
    const uint64_t bits = a.groups.words[i].bits;
    const int64_t first = i * RankWord::kBits;
    const auto voxels = static_cast<int32_t>(min(int64_t{RankWord::kBits}, empty.voxels - first));
    uint4* const out = static_cast<uint4*>(a.target.data) + first * vecs;
    for (int32_t v = lane; v < voxels * vecs; v += kWarp) {
      if ((bits >> empty.row_vecs(v) & 1) == 0) __stcs(out + v, empty.value);
    }
  }
}

// ---- Voxels with few points, by a few lanes each.

// For the few points begin .. end - 1 in the order.
template <class In, class Out, int kCount>
__device__ __forceinline__ void reduceFeatures(const ReduceArguments& a, int32_t begin, int32_t end,
                                               int64_t feature, Out (&result)[kCount]) {
  using Number = Compute<In>;
  Number first[kCount];
  loadFeatures<In>(a, a.groups.order[begin], feature, first);
  if (end - begin == 1) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      result[k] = isSum(a.mode) ? narrow<Out>(sumOfOne(first[k])) : narrow<Out>(first[k]);
    }
    return;
  }
  Number x[kCount];
  OrderKey<Number> key[kCount];
#pragma unroll
  for (int k = 0; k < kCount; ++k) key[k] = firstTerm(a.mode, first[k]);
  for (int32_t i = begin + 1; i < end; ++i) {
    loadFeatures<In>(a, a.groups.order[i], feature, x);
#pragma unroll
    for (int k = 0; k < kCount; ++k) key[k] = larger(key[k], firstTerm(a.mode, x[k]));
  }
  if (!isSum(a.mode)) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) result[k] = firstResult<Out, Number>(a.mode, key[k]);
    return;
  }
  Fixed<Number> sum[kCount];
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    sum[k] = FixedSum<Number>(key[k], end - begin).term(first[k]);
  }
  for (int32_t i = begin + 1; i < end; ++i) {
    loadFeatures<In>(a, a.groups.order[i], feature, x);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      sum[k] = sum[k] + FixedSum<Number>(key[k], end - begin).term(x[k]);
    }
  }
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    result[k] = narrow<Out>(
        FixedSum<Number>(key[k], end - begin).result(sum[k], a.mode == Reduction::kMean));
  }
}

// kCount features per lane.
template <class In, class Out, int kCount>
__device__ __forceinline__ void reduceFew(const ReduceArguments& a, int64_t block) {
  const int lanes = 1 << a.few_lanes_log2;
  const int64_t v = (block * kThreads + threadIdx.x) >> a.few_lanes_log2;
  const int32_t first = (static_cast<int32_t>(threadIdx.x) & (lanes - 1)) * kCount;
  const int64_t voxels = *a.groups.num;
  Out result[kCount] = {};
  if (v >= voxels) {  // a row without a voxel
    if (a.target.dense || v >= a.target.capacity) return;
    auto* out = static_cast<Out*>(a.target.data) + v * a.target.stride[0];
    for (int64_t f = first; f < a.features.count; f += lanes * kCount) {
      storeFeatures(a, out, f, result);
    }
    return;
  }
  const auto voxel = static_cast<int32_t>(v);
  const int2 span = a.groups.span(voxel);
  if (span.y > a.list.few) return;
  Out* out = targetRow<Out>(a.target, a.groups, voxel);
  if (out == nullptr) return;
  for (int64_t f = first; f < a.features.count; f += lanes * kCount) {
    reduceFeatures<In>(a, span.x, span.x + span.y, f, result);
    storeFeatures(a, out, f, result);
  }
}

// ---- Voxels with many points, in chunks of one warp each.

__device__ inline void atomicLarger(uint64_t* at, uint64_t key) {
  atomicMax(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(key));
}

__device__ inline uint64_t addAtomic(uint64_t* at, uint64_t more) {
  return atomicAdd(reinterpret_cast<unsigned long long*>(at),
                   static_cast<unsigned long long>(more));
}
__device__ inline void atomicSum(uint64_t* at, uint64_t more) { addAtomic(at, more); }
__device__ inline void atomicSum(Fixed128* at, const Fixed128& more) {
  const uint64_t before = addAtomic(&at->low, more.low);
  addAtomic(&at->high, more.high + (before + more.low < before ? 1 : 0));
}

// Loads a sum that other multiprocessors have added to.
__device__ inline uint64_t loadSum(const uint64_t* at) {
  return __ldcg(reinterpret_cast<const unsigned long long*>(at));
}
__device__ inline Fixed128 loadSum(const Fixed128* at) {
  return {loadSum(&at->low), loadSum(&at->high)};
}

template <class T>
__device__ T shuffleXor(T value, int mask) {
  return __shfl_xor_sync(~0u, value, mask);
}
__device__ inline Fixed128 shuffleXor(const Fixed128& value, int mask) {
  return {__shfl_xor_sync(~0u, value.low, mask), __shfl_xor_sync(~0u, value.high, mask)};
}

// How the lanes of a warp divide a chunk: `across` neighbouring lanes process a point, kCount
// features each. At the end each feature is combined over all points, and the lanes of kCount
// points have one result each: the low bits of `point`, in reverse order, say which of its kCount
// features a lane has.
template <int kCount>
struct ChunkLanes {
  int across;   // at most 32 / kCount
  int points;   // that the warp processes at a time
  int feature;  // first feature of the lane
  int point;    // the lane's, among these
  int own;      // which of the lane's features it has at the end
  bool writes;  // whether the lane writes it: lanes of further points have the same results

  __device__ explicit ChunkLanes(int lanes_log2)
      : across(1 << lanes_log2), points(kWarp >> lanes_log2), own(0) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    feature = (lane & (across - 1)) * kCount;
    point = lane >> lanes_log2;
    writes = point < kCount;
    for (int half = kCount / 2, bit = 1; half > 0; half /= 2, bit *= 2)
      own += point & bit ? half : 0;
  }

  // The first lane that gets the k-th of this lane's features.
  __device__ int laneOf(int k) const {
    int offset = 0;
    for (int half = kCount / 2, bit = 1; half > 0; half /= 2, bit *= 2)
      offset += k & half ? bit : 0;
    return feature / kCount + offset * across;
  }
};

// Combines the terms of all lanes of a feature: each lane gets the result for its feature. With
// several features a lane first passes on half of them in each step, until one is left.
template <int kCount, class T, class Combine>
__device__ __forceinline__ T acrossPoints(T (&all)[kCount], const ChunkLanes<kCount>& lanes,
                                          Combine combine) {
  int mask = lanes.across;
#pragma unroll
  for (int half = kCount / 2; half > 0; half /= 2, mask *= 2) {
    const bool upper = (threadIdx.x & static_cast<unsigned>(mask)) != 0;
#pragma unroll
    for (int k = 0; k < half; ++k) {
      const T sent = upper ? all[k] : all[k + half];
      const T kept = upper ? all[k + half] : all[k];
      all[k] = combine(kept, shuffleXor(sent, mask));
    }
  }
  for (; mask < kWarp; mask *= 2) all[0] = combine(all[0], shuffleXor(all[0], mask));
  return all[0];
}

// Combines all points of a chunk: `none` with each term(k, x), where x is the k-th of the lane's
// features.
template <class In, int kCount, class T, class Term, class Combine>
__device__ __forceinline__ T overChunk(const ReduceArguments& a, const Chunk& chunk,
                                       const ChunkLanes<kCount>& lanes, int64_t feature,
                                       const T& none, Term term, Combine combine) {
  T all[kCount];
#pragma unroll
  for (T& one : all) one = none;
  if (feature < a.features.count) {
    constexpr int kBatch = kCount == 1 ? 4 : 2;  // loaded together, even if there are fewer
    const int step = kBatch * lanes.points;
    const int32_t n = chunk.end - chunk.begin;
    int32_t next[kBatch];  // the next points, so that rows wait for one load instead of two
    const auto look = [&](int32_t base) {
#pragma unroll
      for (int u = 0; u < kBatch; ++u) {
        const int32_t i = base + u * lanes.points;
        next[u] = i < n ? a.groups.order[chunk.begin + i] : -1;
      }
    };
    look(lanes.point);
    for (int32_t base = lanes.point; base < n; base += step) {
      Compute<In> x[kBatch][kCount];
      bool there[kBatch];
#pragma unroll
      for (int u = 0; u < kBatch; ++u) {
        there[u] = next[u] >= 0;
        if (there[u]) loadFeatures<In>(a, next[u], feature, x[u]);
      }
      look(base + step);
#pragma unroll
      for (int u = 0; u < kBatch; ++u) {
        if (!there[u]) continue;
#pragma unroll
        for (int k = 0; k < kCount; ++k) all[k] = combine(all[k], term(k, x[u][k]));
      }
    }
  }
  return acrossPoints(all, lanes, combine);
}

// A warp reports that it has added its parts of a large voxel; returns the number of reports
// before.
__device__ inline uint32_t arrive(const ReduceArguments& a, const Chunk& chunk) {
  __threadfence();
  __syncwarp();
  uint32_t before = 0;
  if (threadIdx.x % kWarp == 0) before = atomicAdd(&a.list.arrived[chunk.large], 1u);
  before = __shfl_sync(~0u, before, 0);
  __threadfence();
  return before;
}

// Waits for the reports of `warps` warps.
__device__ inline void waitFor(const ReduceArguments& a, const Chunk& chunk, uint32_t warps) {
  const ::cuda::atomic_ref<uint32_t, ::cuda::thread_scope_device> arrived(
      a.list.arrived[chunk.large]);
  while (arrived.load(::cuda::std::memory_order_relaxed) < warps) __nanosleep(100);
  __threadfence();
  __syncwarp();
}

// Takes the next chunk for the first pass, which waits for nothing; the first lane gets its number.
// So once all are taken, running warps have them, and the second pass may wait for these, even if
// few blocks fit next to other work.
__device__ inline uint32_t takeChunk(const ReduceArguments& a) {
  return threadIdx.x % kWarp == 0 ? atomicAdd(&a.list.counters[2], 1u) : 0;
}

// A chunk's part of the lanes' features. kSecond: of a large voxel, whose largest magnitudes are
// known from the first pass.
template <class In, class Out, int kCount, bool kSecond>
__device__ __forceinline__ void passOverFeatures(const ReduceArguments& a, const Chunk& chunk,
                                                 const ChunkLanes<kCount>& lanes, int64_t n,
                                                 int64_t base, Out* out) {
  using Number = Compute<In>;
  using Key = OrderKey<Number>;
  using Sum = Fixed<Number>;
  const int64_t f = base + lanes.feature;
  const int64_t own = f + lanes.own;
  const bool writes = lanes.writes && f < a.features.count;
  uint64_t* keys = a.keys + chunk.large * a.features.count;
  Key key = 0;
  if (kSecond) {
    if (f < a.features.count) key = static_cast<Key>(loadSum(&keys[own]));
  } else {
    key = overChunk<In>(
        a, chunk, lanes, f, Key{0}, [&](int, Number x) { return firstTerm(a.mode, x); },
        [](Key x, Key y) { return larger(x, y); });
    if (chunk.large >= 0) {
      if (writes) atomicLarger(&keys[own], key);
      return;
    }
  }
  if (!isSum(a.mode)) {
    if (writes) out[own * a.target.feature_stride] = firstResult<Out, Number>(a.mode, key);
    return;
  }
  Key key_of[kCount];
#pragma unroll
  for (int k = 0; k < kCount; ++k) key_of[k] = __shfl_sync(~0u, key, lanes.laneOf(k));
  const Sum sum = overChunk<In>(
      a, chunk, lanes, f, Sum{},
      [&](int k, Number x) { return FixedSum<Number>(key_of[k], n).term(x); },
      [](const Sum& x, const Sum& y) { return x + y; });
  if (!writes) return;
  if constexpr (kSecond) {
    atomicSum(&static_cast<Sum*>(a.sums)[chunk.large * a.features.count + own], sum);
  } else {
    out[own * a.target.feature_stride] =
        narrow<Out>(FixedSum<Number>(key, n).result(sum, a.mode == Reduction::kMean));
  }
}

// The chunks of a warp; kSecond: of large voxels, after the first pass.
template <class In, class Out, int kCount, bool kSecond>
__device__ __forceinline__ void passOverChunks(const ReduceArguments& a) {
  using Number = Compute<In>;
  using Key = OrderKey<Number>;
  using Sum = Fixed<Number>;
  const ChunkLanes<kCount> lanes(a.chunk_lanes_log2);
  const uint32_t count = a.list.counters[0];
  const bool sums = isSum(a.mode);
  uint32_t next = kSecond ? blockIdx.x * kWarpsPerBlock + threadIdx.x / kWarp : takeChunk(a);
  for (;;) {
    const uint32_t c = kSecond ? next : __shfl_sync(~0u, next, 0);
    if (c >= count) break;
    next = kSecond ? c + a.chunk_blocks * kWarpsPerBlock : takeChunk(a);  // loaded meanwhile
    const Chunk chunk = a.list.chunks[c];
    if (kSecond && chunk.large < 0) continue;
    Out* out = targetRow<Out>(a.target, a.groups, chunk.voxel);
    if (out == nullptr) continue;
    const int64_t n = a.groups.span(chunk.voxel).y;
    const auto chunks = static_cast<uint32_t>((n + kChunkPoints - 1) / kChunkPoints);
    if (kSecond) waitFor(a, chunk, chunks);
    for (int64_t base = 0; base < a.features.count; base += lanes.across * kCount) {
      passOverFeatures<In, Out, kCount, kSecond>(a, chunk, lanes, n, base, out);
    }
    if (chunk.large < 0) continue;
    const uint32_t last = (sums ? 2 : 1) * chunks - 1;
    if (arrive(a, chunk) != last) continue;
    const uint64_t* keys = a.keys + chunk.large * a.features.count;
    const auto* large_sums = static_cast<const Sum*>(a.sums) + chunk.large * a.features.count;
    for (int64_t f = threadIdx.x % kWarp; f < a.features.count; f += kWarp) {
      const auto key = static_cast<Key>(loadSum(&keys[f]));
      if (sums) {
        const FixedSum<Number> terms(key, n);
        out[f * a.target.feature_stride] =
            narrow<Out>(terms.result(loadSum(&large_sums[f]), a.mode == Reduction::kMean));
      } else {
        out[f * a.target.feature_stride] = firstResult<Out, Number>(a.mode, key);
      }
    }
  }
}

// kCount features per lane.
template <class In, class Out, int kCount>
__device__ __forceinline__ void reduceChunks(const ReduceArguments& a) {
  if (a.list.counters[0] == 0) return;
  passOverChunks<In, Out, kCount, false>(a);
  if (isSum(a.mode) && a.list.counters[1] > 0) passOverChunks<In, Out, kCount, true>(a);
}

}  // namespace reduction

}  // namespace rbc::cuda
