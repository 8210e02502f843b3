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

// Lanes of a warp by point and feature: a power of two takes neighbouring features.
struct ChunkLanes {
  int features;  // side by side
  int feature;
  int point;
  int points;
};

__device__ inline ChunkLanes chunkLanes(int lanes_log2) {
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
    constexpr int kBatch = 4;  // loaded together, also where there are fewer
    const int32_t n = chunk.end - chunk.begin;
    for (int32_t base = lanes.point; base < n; base += kBatch * lanes.points) {
      int32_t point[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int32_t i = base + k * lanes.points;
        point[k] = i < n ? a.groups.order[chunk.begin + i] : -1;
      }
      Number x[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        if (point[k] < 0) continue;
        x[k] = widen(a.features.row<In>(point[k])[feature * a.features.stride[2]]);
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        if (point[k] >= 0) all = combine(all, term(x[k]));
      }
    }
  }
  return acrossPoints(all, lanes, combine);
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

// The chunks of a warp; kSecond: of large voxels, once the first pass has found their largest magnitudes.
template <class In, class Out, bool kSecond>
__device__ __forceinline__ void passOverChunks(const ReduceArguments& a) {
  using Number = Compute<In>;
  using Key = OrderKey<Number>;
  using Sum = Fixed<Number>;
  const ChunkLanes lanes = chunkLanes(a.lanes_log2);
  const uint32_t count = a.list.counters[0];
  const bool sums = isSum(a.mode);
  const auto add = [](const Sum& x, const Sum& y) { return x + y; };
  const auto most = [](Key x, Key y) { return larger(x, y); };
  const bool writes = lanes.point == 0;
  const uint32_t own = blockIdx.x * kWarpsPerBlock + threadIdx.x / kWarp;
  for (uint32_t c = kSecond ? own : takeChunk(a); c < count;
       c = kSecond ? c + a.chunk_blocks * kWarpsPerBlock : takeChunk(a)) {
    const Chunk chunk = a.list.chunks[c];
    if (kSecond && chunk.large < 0) continue;
    Out* out = targetRow<Out>(a.target, a.groups, chunk.voxel);
    if (out == nullptr) continue;
    const int64_t n = a.groups.span(chunk.voxel).y;
    const auto chunks = static_cast<uint32_t>((n + kChunkPoints - 1) / kChunkPoints);
    uint64_t* keys = a.keys + chunk.large * a.features.count;
    auto* large_sums = static_cast<Sum*>(a.sums) + chunk.large * a.features.count;
    if (kSecond) waitFor(a, chunk, chunks);
    for (int64_t base = 0; base < a.features.count; base += lanes.features) {
      const int64_t f = base + lanes.feature;
      const bool own = writes && f < a.features.count;
      Key key = 0;
      if (kSecond) {
        if (f < a.features.count) key = static_cast<Key>(loadSum(&keys[f]));
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
    if (chunk.large < 0) continue;
    const uint32_t last = (sums ? 2 : 1) * chunks - 1;
    if (arrive(a, chunk) != last) continue;
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

template <class In, class Out>
__device__ __forceinline__ void reduceChunks(const ReduceArguments& a) {
  if (a.list.counters[0] == 0) return;
  passOverChunks<In, Out, false>(a);
  if (isSum(a.mode) && a.list.counters[1] > 0) passOverChunks<In, Out, true>(a);
}

}  // namespace reduction
}  // namespace rbc::cuda
