// Voxels with many points, in chunks of a warp each.
#pragma once

#include <cuda/atomic>

#include "points/reduce_arguments.cuh"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace reduction {

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

// What other multiprocessors have added up.
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

// Lanes of a warp by point and features: a power of two takes neighbouring ones.
struct ChunkLanes {
  int across;  // lanes side by side
  int feature;
  int point;
  int points;
};

template <int kCount>
__device__ ChunkLanes chunkLanes(int lanes_log2) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int across = 1 << lanes_log2;
  return {across, (lane & (across - 1)) * kCount, lane >> lanes_log2, kWarp >> lanes_log2};
}

// Puts the lanes of a feature together.
template <class T, class Combine>
__device__ T acrossPoints(T value, const ChunkLanes& lanes, Combine combine) {
  for (int mask = lanes.across; mask < kWarp; mask *= 2) {
    value = combine(value, shuffleXor(value, mask));
  }
  return value;
}

// All points of a chunk: all[k] with term(k, x), where x is the k-th of the lane's features.
template <class In, int kCount, class T, class Term, class Combine>
__device__ __forceinline__ void overChunk(const ReduceArguments& a, const Chunk& chunk,
                                          const ChunkLanes& lanes, int64_t feature,
                                          T (&all)[kCount], Term term, Combine combine) {
  if (feature < a.features.count) {
    constexpr int kBatch = kCount == 1 ? 4 : 2;  // loaded together, also where there are fewer
    const int step = kBatch * lanes.points;
    const int32_t n = chunk.end - chunk.begin;
    int32_t next[kBatch];  // the points to come, so that rows wait for one load, not for two
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
#pragma unroll
  for (int k = 0; k < kCount; ++k) all[k] = acrossPoints(all[k], lanes, combine);
}

// A warp tells that it has put its parts of a large voxel in; how many have told so before.
__device__ inline uint32_t arrive(const ReduceArguments& a, const Chunk& chunk) {
  __threadfence();
  __syncwarp();
  uint32_t before = 0;
  if (threadIdx.x % kWarp == 0) before = atomicAdd(&a.list.arrived[chunk.large], 1u);
  before = __shfl_sync(~0u, before, 0);
  __threadfence();
  return before;
}

// Waits until so many warps have told so.
__device__ inline void waitFor(const ReduceArguments& a, const Chunk& chunk, uint32_t warps) {
  const ::cuda::atomic_ref<uint32_t, ::cuda::thread_scope_device> arrived(
      a.list.arrived[chunk.large]);
  while (arrived.load(::cuda::std::memory_order_relaxed) < warps) __nanosleep(100);
  __threadfence();
  __syncwarp();
}

// The next chunk for the first pass, which waits for nothing. So once they are all taken, warps that run have
// them, and the second pass may wait for these, however few blocks fit beside other work.
__device__ inline uint32_t takeChunk(const ReduceArguments& a) {
  uint32_t chunk = 0;
  if (threadIdx.x % kWarp == 0) chunk = atomicAdd(&a.list.counters[2], 1u);
  return __shfl_sync(~0u, chunk, 0);
}

// A chunk's part of the lane's features. kSecond: of a large voxel, whose largest magnitudes the first pass has
// found.
template <class In, class Out, int kCount, bool kSecond>
__device__ __forceinline__ void passOverFeatures(const ReduceArguments& a, const Chunk& chunk,
                                                 const ChunkLanes& lanes, int64_t n, int64_t f,
                                                 Out* out) {
  using Number = Compute<In>;
  using Key = OrderKey<Number>;
  using Sum = Fixed<Number>;
  const bool sums = isSum(a.mode);
  const bool own = lanes.point == 0 && f < a.features.count;
  uint64_t* keys = a.keys + chunk.large * a.features.count + f;
  Key key[kCount] = {};
  if (kSecond) {
    if (f < a.features.count) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) key[k] = static_cast<Key>(loadSum(&keys[k]));
    }
  } else {
    overChunk<In>(
        a, chunk, lanes, f, key, [&](int, Number x) { return firstTerm(a.mode, x); },
        [](Key x, Key y) { return larger(x, y); });
    if (chunk.large >= 0) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        if (own) atomicLarger(&keys[k], key[k]);
      }
      return;
    }
  }
  Out result[kCount];
  if (!sums) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) result[k] = firstResult<Out, Number>(a.mode, key[k]);
    if (own) storeFeatures(a, out, f, result);
    return;
  }
  Sum sum[kCount] = {};
  overChunk<In>(
      a, chunk, lanes, f, sum, [&](int k, Number x) { return FixedSum<Number>(key[k], n).term(x); },
      [](const Sum& x, const Sum& y) { return x + y; });
  if constexpr (kSecond) {
    auto* large_sums = static_cast<Sum*>(a.sums) + chunk.large * a.features.count + f;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      if (own) atomicSum(&large_sums[k], sum[k]);
    }
  } else {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      result[k] =
          narrow<Out>(FixedSum<Number>(key[k], n).result(sum[k], a.mode == VoxelMode::kMean));
    }
    if (own) storeFeatures(a, out, f, result);
  }
}

// The chunks of a warp; kSecond: of large voxels, once the first pass is over them.
template <class In, class Out, int kCount, bool kSecond>
__device__ __forceinline__ void passOverChunks(const ReduceArguments& a) {
  using Number = Compute<In>;
  using Key = OrderKey<Number>;
  using Sum = Fixed<Number>;
  const ChunkLanes lanes = chunkLanes<kCount>(a.lanes_log2);
  const uint32_t count = a.list.counters[0];
  const bool sums = isSum(a.mode);
  const uint32_t own = blockIdx.x * kWarpsPerBlock + threadIdx.x / kWarp;
  for (uint32_t c = kSecond ? own : takeChunk(a); c < count;
       c = kSecond ? c + a.chunk_blocks * kWarpsPerBlock : takeChunk(a)) {
    const Chunk chunk = a.list.chunks[c];
    if (kSecond && chunk.large < 0) continue;
    Out* out = targetRow<Out>(a.target, a.groups, chunk.voxel);
    if (out == nullptr) continue;
    const int64_t n = a.groups.span(chunk.voxel).y;
    const auto chunks = static_cast<uint32_t>((n + kChunkPoints - 1) / kChunkPoints);
    if (kSecond) waitFor(a, chunk, chunks);
    for (int64_t base = 0; base < a.features.count; base += lanes.across * kCount) {
      passOverFeatures<In, Out, kCount, kSecond>(a, chunk, lanes, n, base + lanes.feature, out);
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
            narrow<Out>(terms.result(loadSum(&large_sums[f]), a.mode == VoxelMode::kMean));
      } else {
        out[f * a.target.feature_stride] = firstResult<Out, Number>(a.mode, key);
      }
    }
  }
}

// kCount features a lane.
template <class In, class Out, int kCount>
__device__ __forceinline__ void reduceChunks(const ReduceArguments& a) {
  if (a.list.counters[0] == 0) return;
  passOverChunks<In, Out, kCount, false>(a);
  if (isSum(a.mode) && a.list.counters[1] > 0) passOverChunks<In, Out, kCount, true>(a);
}

}  // namespace reduction
}  // namespace rbc::cuda
