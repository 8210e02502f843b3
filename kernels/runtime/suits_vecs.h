// Whether memory can be read and written in vectors.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rbc::cuda {

// Vectors of `count` neighbouring elements of `size` bytes are words of up to 16 bytes: these have to
// be aligned at `data` and at all steps of the strides, which count elements.
template <int kRank>
bool suitsVecs(const void* data, const int64_t (&strides)[kRank], int64_t size, int64_t count) {
  const int64_t bytes = std::min<int64_t>(size * count, 16);
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0 &&
         std::all_of(strides, strides + kRank,
                     [&](int64_t stride) { return stride * size % bytes == 0; });
}

}  // namespace rbc::cuda
