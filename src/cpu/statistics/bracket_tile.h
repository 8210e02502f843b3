// Counts values around a bracket and keeps those within it.
#pragma once

#include <cstdint>

#include "runtime/simd.h"

namespace rbc::cpu {

// An open range that should contain an order statistic.
template <class Number>
struct Bracket {
  Number low;
  Number high;
  bool with_ends;       // an end may be the order statistic: it occurs more than once
  int32_t first_level;  // the first level whose values should be in here, in the order of levels
  int32_t end_level;
};

// Numbers of values; NaN is not counted. Without the ends two of these may be too small.
struct BracketCounts {
  int64_t below_low;
  int64_t up_to_low;
  int64_t up_to_high;
};

// Adds to the counts, and writes the values within to `kept`, which may be `values`, or has room
// for them and one vector. Returns their number.
template <class Number>
using BracketTile = int64_t (*)(const Number* values, int64_t count, Number low, Number high,
                                BracketCounts* counts, Number* kept);
template <class Number>
BracketTile<Number> bracketTileFor(SimdLevel level, bool with_ends);

}  // namespace rbc::cpu
