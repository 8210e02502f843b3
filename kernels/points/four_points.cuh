// Four neighbouring points of a thread, and arrays of what is known of them.
#pragma once

#include "points/points.cuh"
#include "runtime/aligned_vec.cuh"

namespace rbc::cuda {
namespace grouping {

inline constexpr int kThreads = 256;
// Of a multiprocessor at least: left to itself, the compiler spills for one more.
inline constexpr int kBlocks = 4;

__device__ __forceinline__ int64_t firstOfThread() {
  return (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kPoints;
}

template <class T>
__device__ __forceinline__ void storeFour(T* array, int64_t first, int64_t count,
                                          const T (&four)[kPoints]) {
  if (first + kPoints <= count) {
    AlignedVec<T, kPoints> vec;
#pragma unroll
    for (int k = 0; k < kPoints; ++k) vec.element[k] = four[k];
    *reinterpret_cast<AlignedVec<T, kPoints>*>(array + first) = vec;
    return;
  }
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    if (first + k < count) array[first + k] = four[k];
  }
}

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

}  // namespace grouping
}  // namespace rbc::cuda
