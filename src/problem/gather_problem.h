// Rows from anywhere in host memory, copied one after the other: see rbcEntryGather.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rbc {

struct GatherProblem {
  const void* const* rows;  // [count] in host memory
  const uint8_t* pinned;    // [count] whether CUDA reads the row where it is; null: no row
  int64_t count;
  size_t row_bytes;
  void* out;  // [count] rows without a gap

  // Returns the number of rows from row i on, before `end`, that follow each other in memory, such as
  // those of a window.
  int64_t neighbours(int64_t i, int64_t end) const {
    int64_t count = 1;
    while (i + count < end && rows[i + count] == static_cast<const std::byte*>(rows[i]) +
                                                     static_cast<size_t>(count) * row_bytes) {
      ++count;
    }
    return count;
  }
};

}  // namespace rbc
