// The last steps of rows: subtraction, normalization, limits, and the type of out.
#pragma once

#include <cstddef>

#include "dtype.h"
#include "runtime/simd.h"

namespace rbc::cpu {

// By channel, in the compute type. Null skips a step.
template <class Number>
struct RowConstants {
  const Number* shift;  // given together with scale and bias, or all null
  const Number* scale;
  const Number* bias;
  const Number* low;  // given together with high, or both null
  const Number* high;
};

template <class Number>
struct FinishTile {
  const std::byte* const* rows;  // null: fill
  const Number* reference;       // null: none. Values to add are subtracted with the opposite sign
  RowConstants<Number> constants;
  int64_t constants_step;  // from row to row
  bool divides;            // by the scale
  std::byte* out;
  int64_t out_step;  // bytes
  int count;
  int64_t channels;    // at stride 1
  uint64_t fill_bits;  // as an element of out
};

template <class Number>
using FinishFunction = void (*)(const FinishTile<Number>& tile);

// `in` is a float that is computed in Number, or Number itself.
template <class Number>
FinishFunction<Number> finishFunction(SimdLevel level, DType in, DType out);

}  // namespace rbc::cpu
