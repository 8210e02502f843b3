// Rows of unequal length: a padded batch cut by lengths, or packed rows cut by offsets.
#pragma once

#include <cstdint>

#include "platform.h"

namespace rbc {

// A caller's [B] or [B+1] array of i32 or i64; data may be null.
struct IndexArray {
  const void* data;
  int64_t stride;  // in elements
  bool is_64;

  RBC_HD int64_t operator[](int64_t i) const {
    return is_64 ? static_cast<const int64_t*>(data)[i * stride]   // NOLINT: not called
                 : static_cast<const int32_t*>(data)[i * stride];  // NOLINT: with null data
  }
};

// A range of rows: the samples or points of one member of the batch.
struct RowRange {
  int64_t begin;  // in the rows at the batch stride
  int64_t count;
};

RBC_HD int64_t clampIndex(int64_t i, int64_t low, int64_t high) {
  return i < low ? low : i > high ? high : i;
}

// Keeps the compiler from reading memory again between check and use: another thread may be writing
// it. nvcc never reads twice, and would not unroll loops around such an asm.
RBC_HD int64_t asRead(int64_t value) {
#if !defined(__CUDA_ARCH__)
  asm volatile("" : "+r"(value));
#endif
  return value;
}

// With a stride of 0 all entries are one, and there may be any number of them: checking the first
// is enough.
RBC_HD int64_t differentEntries(const IndexArray& array, int64_t entries) {
  if (array.data == nullptr) return 0;
  return array.stride == 0 && entries > 1 ? 1 : entries;
}

RBC_HD int64_t offsetBefore(const IndexArray& offsets, int64_t b) {
  return b > 0 ? offsets[b - 1] : 0;
}

// Whether an entry is invalid: offsets that decrease or are outside of 0 .. rows, and lengths
// outside.
RBC_HD bool badOffset(const IndexArray& offsets, int64_t b, int64_t rows) {
  return offsets[b] < offsetBefore(offsets, b) || offsets[b] > rows;
}
RBC_HD bool badLength(const IndexArray& lengths, int64_t b, int64_t rows) {
  return lengths[b] < 0 || lengths[b] > rows;
}

// The rows of a member: of `rows` padded rows per member, or of the packed rows of the whole batch.
// The range is inside for any lengths and offsets.
RBC_HD RowRange rangeOf(const IndexArray& lengths, const IndexArray& offsets, int64_t rows,
                        int64_t b) {
  if (offsets.data != nullptr) {
    const int64_t begin = clampIndex(offsets[b], 0, rows);
    return {begin, clampIndex(offsets[b + 1], begin, rows) - begin};
  }
  return {0, lengths.data != nullptr ? clampIndex(lengths[b], 0, rows) : rows};
}

// The member that a packed row may belong to: the last one that begins at or before it.
RBC_HD int64_t memberAround(const IndexArray& offsets, int64_t members, int64_t row) {
  int64_t low = 0;
  int64_t high = members - 1;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (offsets[middle] <= row) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace rbc
