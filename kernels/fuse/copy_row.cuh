// A row on its way into shared memory, by some threads together.
#pragma once

#include <cuda_pipeline_primitives.h>

#include <cstdint>

namespace rbc::cuda {

inline constexpr int kWordBytes = 16;

// There it begins as far from a multiple of 16 bytes as in memory, so that most of it goes in words of 16
// bytes.
template <class Element>
struct CopyRow {
  const char* from;
  char* to;
  int head;  // bytes before those words
  int body;  // of those words
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
  // The elements before and behind: fewer than two words. By 32 threads at least.
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

}  // namespace rbc::cuda
