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
};

}  // namespace rbc
