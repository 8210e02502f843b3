// Checks whether memory can be read and written in vectors.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rbc::cuda {

// Whether a number is a multiple of a power of two. Without division: a launch of three streams
// took about sixty.
inline bool isMultiple(int64_t number, int64_t power_of_two) {
  return (number & (power_of_two - 1)) == 0;
}

// Vectors of `count` adjacent elements of `size` bytes, both powers of two, are words of up to 16
// bytes. These must be aligned at `data` and at all steps of the strides, which count elements.
template <int kRank>
bool suitsVecs(const void* data, const int64_t (&strides)[kRank], int64_t size, int64_t count) {
  const int64_t bytes = std::min<int64_t>(size * count, 16);
  return isMultiple(static_cast<int64_t>(reinterpret_cast<uintptr_t>(data)), bytes) &&
         std::all_of(strides, strides + kRank,
                     [&](int64_t stride) { return isMultiple(stride * size, bytes); });
}

}  // namespace rbc::cuda
