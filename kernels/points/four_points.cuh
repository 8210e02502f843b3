// Four neighbouring points of a thread, and arrays of what is known of them.
#pragma once

#include "points/points.cuh"
#include "runtime/aligned_vec.cuh"

namespace rbc::cuda {
namespace grouping {

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / 32;
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

// The elements first .. first + kPoints - 1 of an array, together where all are there; `none` behind the
// last. The kernel may write the array, which load() does not allow.
template <class T>
__device__ __forceinline__ void loadFour(const T* array, int64_t first, int64_t count,
                                         T (&four)[kPoints], T none) {
  if (first + kPoints <= count) {
    const auto vec = *reinterpret_cast<const AlignedVec<T, kPoints>*>(array + first);
#pragma unroll
    for (int k = 0; k < kPoints; ++k) four[k] = vec.element[k];
    return;
  }
#pragma unroll
  for (int k = 0; k < kPoints; ++k) four[k] = first + k < count ? array[first + k] : none;
}

}  // namespace grouping
}  // namespace rbc::cuda
