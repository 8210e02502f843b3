// The inner part of resampling: rows of channels, once the samples that answer a query are known.
#pragma once

#include "dtype.h"
#include "simd.h"

namespace rbc {

// One query's answer: `left` as it is if weight is 0 (`right` is any valid row then), else a point
// between the two.
struct RowTask {
  const void* left;  // null: write the fill value
  const void* right;
  void* out;
  double weight;
};

struct RowTile {
  const RowTask* rows;
  int count;
  int ahead;    // how many rows before their use to prefetch them
  bool stream;  // write past the caches; all rows of out are aligned and whole cache lines
  int64_t channels;
  int64_t in_stride;  // from channel to channel, in elements
  int64_t out_stride;
  uint64_t fill_bits;
};

using RowsFunction = void (*)(const RowTile& tile);

struct RowsKind {
  DType values;
  DType out;
  bool contiguous;  // in_stride and out_stride are 1, or there is one channel
};

RowsFunction rowsFunction(SimdLevel level, const RowsKind& kind);

}  // namespace rbc
