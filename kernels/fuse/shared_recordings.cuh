// Whole recordings in shared memory: their slots, the copy, and the search.
#pragma once

#include <cuda_pipeline_primitives.h>
#include <cstdint>

#include "fuse/block_contents.h"

namespace rbc::cuda {

// ---- The copy of a row into shared memory, by several threads together.

// The row's offset from a multiple of 16 bytes is the same as in memory, so that most of it is
// copied in words of 16 bytes.
template <class Element>
struct CopyRow {
  const char* from;
  char* to;
  int head;  // bytes before these words
  int body;  // bytes in these words
  int all;

  __device__ __forceinline__ CopyRow(const char* row, int32_t count, char* slot) : from(row) {
    const auto skew = static_cast<int>(reinterpret_cast<uintptr_t>(row) % kWordBytes);
    to = slot + skew;
    all = count * static_cast<int>(sizeof(Element));
    head = min((kWordBytes - skew) % kWordBytes, all);
    body = (all - head) / kWordBytes * kWordBytes;
  }

  __device__ __forceinline__ void copyWords(int thread, int threads) const {
#pragma unroll 4
    for (int i = head + thread * kWordBytes; i < head + body; i += threads * kWordBytes)
      __pipeline_memcpy_async(to + i, from + i, kWordBytes);
  }
  // Copies the elements before and after these words: fewer than two words. Needs at least 32
  // threads.
  __device__ __forceinline__ void copyEnds(int thread) const {
    int i = thread * static_cast<int>(sizeof(Element));
    if (i >= head) i += body;
    if (i >= all) return;
    if constexpr (sizeof(Element) >= 4) {
      __pipeline_memcpy_async(to + i, from + i, sizeof(Element));
    } else {
      *reinterpret_cast<Element*>(to + i) = *reinterpret_cast<const Element*>(from + i);
    }
  }
  __device__ __forceinline__ const Element* row() const {
    return reinterpret_cast<const Element*>(to);
  }
};

// ---- The search for a few queries at once, of times in shared memory.
//
// No guess, and no branch on times: the steps depend only on the number of times. So a thread's
// queries wait for memory together, and if the queries of a warp are neighbours, the first steps
// read the same times.

// Steps of the search, from the last one up, and the number of times that the steps below a level
// can distinguish. They are halves, but odd from 31 on: neighbours read times one step apart, and
// if that were a multiple of 32 all of these would be in one bank of shared memory.
constexpr int32_t timesBelow(int level);
constexpr int32_t stepOf(int level) { return level < 5 ? 1 << level : (timesBelow(level) - 1) | 1; }
constexpr int32_t timesBelow(int level) {
  return level == 0 ? 1 : timesBelow(level - 1) + stepOf(level - 1);
}

template <int kLevel>
inline constexpr int32_t kTimesBelow = timesBelow(kLevel);
template <int kLevel>
inline constexpr int32_t kStepOf = stepOf(kLevel);

inline constexpr int kTopLevel = 12;
static_assert(kMaxSearched == kTimesBelow<kTopLevel + 1>);

// The number of times, of 0 < n <= kMaxSearched, that the first step must leave for the steps
// below.
template <int kLevel = kTopLevel>
__device__ __forceinline__ int32_t timesLeftOf(int32_t n) {
  if constexpr (kLevel == 0) {
    return 1;
  } else {
    return kTimesBelow<kLevel> < n ? kTimesBelow<kLevel> : timesLeftOf<kLevel - 1>(n);
  }
}

// Advances `at` by kBytes if the time there is at or before q. Written in PTX: the compiler would
// use twice as many instructions. The compiler does not see that this reads memory: the caller
// needs a barrier between the code that writes the times and the search.
template <int kBytes>
__device__ __forceinline__ void stepTo(uint32_t* at, float q) {
  asm volatile(
      "{\n\t"
      ".reg .f32 t;\n\t"
      ".reg .pred p;\n\t"
      "ld.shared.f32 t, [%0 + %2];\n\t"
      "setp.le.f32 p, t, %1;\n\t"
      "@p add.u32 %0, %0, %2;\n\t"
      "}"
      : "+r"(*at)
      : "f"(q), "n"(kBytes));
}
template <int kBytes>
__device__ __forceinline__ void stepTo(uint32_t* at, double q) {
  asm volatile(
      "{\n\t"
      ".reg .f64 t;\n\t"
      ".reg .pred p;\n\t"
      "ld.shared.f64 t, [%0 + %2];\n\t"
      "setp.le.f64 p, t, %1;\n\t"
      "@p add.u32 %0, %0, %2;\n\t"
      "}"
      : "+r"(*at)
      : "d"(q), "n"(kBytes));
}
template <int kBytes>
__device__ __forceinline__ void stepTo(uint32_t* at, int64_t q) {
  asm volatile(
      "{\n\t"
      ".reg .s64 t;\n\t"
      ".reg .pred p;\n\t"
      "ld.shared.s64 t, [%0 + %2];\n\t"
      "setp.le.s64 p, t, %1;\n\t"
      "@p add.u32 %0, %0, %2;\n\t"
      "}"
      : "+r"(*at)
      : "l"(q), "n"(kBytes));
}

// The steps from a level down that distinguish `left` times.
template <int kLevel, class Time, int kQueries>
__device__ __forceinline__ void stepsFrom(int32_t left, const Time (&q)[kQueries],
                                          uint32_t (&at)[kQueries]) {
  constexpr int kBytes = kStepOf<kLevel> * static_cast<int>(sizeof(Time));
  if (kTimesBelow<kLevel> < left) {
#pragma unroll
    for (int k = 0; k < kQueries; ++k) stepTo<kBytes>(&at[k], q[k]);
  }
  if constexpr (kLevel > 0) stepsFrom<kLevel - 1>(left, q, at);
}

// For each query the last i with times[i] <= q, or 0 without such an i, for 0 < n <= kMaxSearched
// times in shared memory; `left` is timesLeftOf(n). If times do not ascend, the result is some i.
template <class Time, int kQueries>
__device__ __forceinline__ void lastBefore(const Time* times, int32_t n, int32_t left,
                                           const Time (&q)[kQueries], int32_t (&last)[kQueries]) {
  constexpr auto kSize = static_cast<uint32_t>(sizeof(Time));
  const auto first = static_cast<uint32_t>(__cvta_generic_to_shared(times));
  const int32_t step = n - left;
  const Time time = times[step];
  uint32_t at[kQueries];
#pragma unroll
  for (int k = 0; k < kQueries; ++k) {
    at[k] = time <= q[k] ? first + static_cast<uint32_t>(step) * kSize : first;
  }
  stepsFrom<kTopLevel - 1>(left, q, at);
#pragma unroll
  for (int k = 0; k < kQueries; ++k) last[k] = static_cast<int32_t>((at[k] - first) / kSize);
}

}  // namespace rbc::cuda
