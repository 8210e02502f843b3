// A block's points that have a key in common, such as those of a wall that a scanner passes over: what they
// add to memory is put together in shared memory and added once. For points at random it costs little.
#pragma once

#include "points/four_points.cuh"

namespace rbc::cuda {
namespace grouping {

class SharedKeys {
 public:
  // Enters a thread's points; those with a key below 0 take no part. To be called by all threads of the block,
  // which wait for each other. Of the points whose keys have one place any may become its owner; those with
  // another key than the owner's are on their own.
  __device__ __forceinline__ void enter(const int32_t (&keys)[kPoints]) {
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
      keys_[pointOf(k)] = keys[k];
      sums_[pointOf(k)] = 0;
      if (keys[k] >= 0) atomicExch(&owners_[placeOf(keys[k])], pointOf(k));
    }
    __syncthreads();
  }

  // Where points with this key put their parts together; null: another key has the place, and this point
  // is on its own.
  __device__ __forceinline__ uint32_t* sumOf(int32_t key) {
    const int place = placeOf(key);
    return keys_[owners_[place]] == key ? &sums_[place] : nullptr;
  }

  // Whether the thread's k-th point, which has that key, is the one that adds the sum.
  __device__ __forceinline__ bool owns(int32_t key, int k) const {
    return owners_[placeOf(key)] == pointOf(k);
  }

 private:
  static constexpr int kPlacesLog2 = 10;
  static constexpr int kPlaces = 1 << kPlacesLog2;
  static_assert(kPlaces == kThreads * kPoints);

  static __device__ __forceinline__ int placeOf(int32_t key) {
    return static_cast<int>(static_cast<uint32_t>(key) * 2654435761u >> (32 - kPlacesLog2));
  }
  static __device__ __forceinline__ int pointOf(int k) {
    return static_cast<int>(threadIdx.x) + k * kThreads;
  }

  int32_t keys_[kPlaces];   // by point
  uint32_t sums_[kPlaces];  // by place
  int owners_[kPlaces];     // likewise: one of the points whose keys have that place
};

}  // namespace grouping
}  // namespace rbc::cuda
