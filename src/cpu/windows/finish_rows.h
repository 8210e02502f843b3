// The last steps of rows: what is subtracted, normalization, limits, and the type of out.
#pragma once

#include <cstddef>

#include "dtype.h"
#include "runtime/simd.h"

namespace rbc::cpu {

// By channel, in the compute type. What is null is left out.
template <class Number>
struct RowConstants {
  const Number* shift;  // with scale and bias, or none of them
  const Number* scale;
  const Number* bias;
  const Number* low;  // with high, or neither
  const Number* high;
};

template <class Number>
struct FinishTile {
  const std::byte* const* rows;  // null: fill
  const Number* reference;       // null: none. What is added is subtracted with the other sign
  RowConstants<Number> constants;
  int64_t constants_step;  // from row to row
  std::byte* out;
  int64_t out_step;  // bytes
  int count;
  int64_t channels;    // at stride 1
  uint64_t fill_bits;  // an element of out
};

template <class Number>
using FinishFunction = void (*)(const FinishTile<Number>& tile);

// `in` is a float that is computed in Number, or Number's own.
template <class Number>
FinishFunction<Number> finishFunction(SimdLevel level, DType in, DType out);

}  // namespace rbc::cpu
