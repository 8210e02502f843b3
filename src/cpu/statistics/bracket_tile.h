// Counts values around and keeps those within a bracket.
#pragma once

#include <cstdint>

#include "runtime/simd.h"

namespace rbc::cpu {

// An open range in which an order statistic is expected.
template <class Number>
struct Bracket {
  Number low;
  Number high;
  bool with_ends;       // an end may be what is sought: it is there more than once
  int32_t first_level;  // whose values are meant to lie here, in the order of levels
  int32_t end_level;
};

// How many values there are; NaN is none of them. Without the ends two of these may miss some.
struct BracketCounts {
  int64_t below_low;
  int64_t up_to_low;
  int64_t up_to_high;
};

// Adds to the counts, and writes the values within to `kept`, which has room for them and a vector,
// or is where the values are. Returns how many these are.
template <class Number>
using BracketTile = int64_t (*)(const Number* values, int64_t count, Number low, Number high,
                                BracketCounts* counts, Number* kept);
template <class Number>
BracketTile<Number> bracketTileFor(SimdLevel level, bool with_ends);

}  // namespace rbc::cpu
