// What the rays of a block observe, added up in shared memory on the way to the sums: rays that lie
// side by side, as a LiDAR's do, observe the same voxels.
#pragma once

#include <cstddef>

#include "points/tsdf_voxels.cuh"

namespace rbc::cuda {
namespace tsdf {

__device__ __forceinline__ void addTo(uint64_t* sum, uint64_t term) {
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(term));
}

static_assert(sizeof(TsdfSums) == 2 * sizeof(uint64_t) && offsetof(TsdfSums, distance) == 0,
              "sums are two words, the distance first");

// A voxel has one place, which the first comer takes until the table is flushed; neighbours in
// number have different ones. Shared memory adds words of 32 bits at once, so sums are cut into 24
// bits and the rest: those of kThreads observations, one a ray, do not overflow.
struct SumTable {
  static constexpr uint32_t kPlaces = 2048;
  static constexpr uint32_t kNoKey = ~0u;
  static constexpr int kLowBits = 24;
  static constexpr uint32_t kLow = (1u << kLowBits) - 1;
  static constexpr int kCountBits = 9;
  static constexpr uint32_t kCount = (1u << kCountBits) - 1;
  static_assert(kThreads <= 1 << (32 - kLowBits) && kThreads <= kCount);

  uint32_t keys[kPlaces];
  uint32_t distance[kPlaces];  // low bits
  uint32_t count[kPlaces];     // of observations; above kCountBits the distance's signed rest
  uint32_t weight[kPlaces];    // low bits; only where not all weights are 1
  uint32_t weight_rest[kPlaces];

  __device__ void clear(bool weighted) {
    for (uint32_t i = threadIdx.x; i < kPlaces; i += kThreads) clearPlace(i, weighted);
  }

  // Whose place this key's is, from now on if `fresh`.
  __device__ __forceinline__ uint32_t ownerFor(uint32_t key, bool* fresh) {
    uint32_t* place = &keys[key % kPlaces];
    uint32_t owner = *static_cast<volatile uint32_t*>(place);
    *fresh = false;
    if (owner != kNoKey) return owner;
    owner = atomicCAS(place, kNoKey, key);
    *fresh = owner == kNoKey;
    return *fresh ? key : owner;
  }

  // Gives up a place that was fresh.
  __device__ void release(uint32_t key) { keys[key % kPlaces] = kNoKey; }

  // False if the place is another key's.
  __device__ __forceinline__ bool add(uint32_t key, int64_t distance_term, uint64_t weight_term,
                                      bool weighted) {
    bool fresh;
    if (ownerFor(key, &fresh) != key) return false;
    const uint32_t place = key % kPlaces;
    atomicAdd(&distance[place], static_cast<uint32_t>(distance_term) & kLow);
    const auto rest = static_cast<uint32_t>(distance_term >> kLowBits);
    atomicAdd(&count[place], (rest << kCountBits) + 1);
    if (weighted) {
      atomicAdd(&weight[place], static_cast<uint32_t>(weight_term) & kLow);
      atomicAdd(&weight_rest[place], static_cast<uint32_t>(weight_term >> kLowBits));
    }
    return true;
  }

  // By all threads of a block, two a place, which add to neighbouring words. The table is cleared
  // then.
  __device__ void flush(TsdfSums* sums, bool weighted) {
    for (uint32_t i = threadIdx.x; i < 2 * kPlaces; i += kThreads) {
      const uint32_t place = i / 2;
      const uint32_t key = keys[place];
      if (key != kNoKey) {
        if (i % 2 == 0) {
          const int64_t rest = static_cast<int32_t>(count[place]) >> kCountBits;
          addTo(&sums[key].distance, (static_cast<uint64_t>(rest) << kLowBits) + distance[place]);
        } else {
          addTo(&sums[key].weight, weighted
                                       ? (uint64_t{weight_rest[place]} << kLowBits) + weight[place]
                                       : uint64_t{count[place] & kCount} << 32);
        }
      }
      __syncwarp();
      if (i % 2 == 0 && key != kNoKey) clearPlace(place, weighted);
    }
  }

 private:
  __device__ __forceinline__ void clearPlace(uint32_t place, bool weighted) {
    keys[place] = kNoKey;
    distance[place] = count[place] = 0;
    if (weighted) weight[place] = weight_rest[place] = 0;
  }
};

}  // namespace tsdf
}  // namespace rbc::cuda
