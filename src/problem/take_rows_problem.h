// Rows by index as plain numbers: the input of a backend.
#pragma once

#include "dtype.h"
#include "ragged.h"

namespace rbc {

// Strides are in elements; the batch stride is 0 without a batch.
struct TakeRowsProblem {
  const void* values;
  int64_t values_stride[3];  // batch, row, channel
  int64_t rows;
  const void* indices;
  int64_t indices_stride[2];  // batch, place
  bool indices_are_64;
  void* out;
  int64_t out_stride[3];  // batch, place, channel
  int64_t batch;
  int64_t places;
  int64_t channels;
  int32_t element;  // bytes
  uint64_t fill_bits;

  // The row for a place, or -1.
  RBC_HD int64_t rowFor(int64_t b, int64_t place) const {
    const int64_t at = b * indices_stride[0] + place * indices_stride[1];
    const int64_t row = asRead(indices_are_64 ? static_cast<const int64_t*>(indices)[at]
                                              : static_cast<const int32_t*>(indices)[at]);
    return row >= 0 && row < rows ? row : -1;
  }
};

}  // namespace rbc
