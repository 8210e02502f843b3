// Arithmetic on timestamps: differences in the time's own dtype, i64 exactly.
#pragma once

#include <cstdint>

#include "platform.h"

namespace rbc {

template <class Time>
struct TimeMath {  // float and double
  using Span = Time;
  using Ratio = Time;
  static RBC_HD bool isNaN(Time t) { return t != t; }
  static RBC_HD Span span(Time later, Time earlier) { return later - earlier; }
  static RBC_HD Ratio ratio(Span part, Span whole) { return part / whole; }
  static RBC_HD Time shifted(Time t, Time offset) { return t - offset; }
  static RBC_HD Time later(Time t, Time offset) { return t + offset; }
};

// a + b, clamped to 64 bits.
RBC_HD int64_t addSaturated(int64_t a, int64_t b) {
  const auto sum = static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  if (((a ^ sum) & (b ^ sum)) >= 0) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

template <>
struct TimeMath<int64_t> {
  using Span = uint64_t;  // the difference of two i64 always fits
  using Ratio = double;
  static RBC_HD bool isNaN(int64_t) { return false; }
  static RBC_HD Span span(int64_t later, int64_t earlier) {
    return static_cast<uint64_t>(later) - static_cast<uint64_t>(earlier);
  }
  static RBC_HD Ratio ratio(Span part, Span whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  }
  // Saturates.
  static RBC_HD int64_t shifted(int64_t t, int64_t offset) {
    const auto bits = static_cast<uint64_t>(t) - static_cast<uint64_t>(offset);
    const auto difference = static_cast<int64_t>(bits);
    if (((t ^ offset) & (t ^ difference)) >= 0) return difference;
    return t < 0 ? INT64_MIN : INT64_MAX;
  }
  static RBC_HD int64_t later(int64_t t, int64_t offset) { return addSaturated(t, offset); }
};

// A row of times in memory.
template <class Time>
struct TimeRow {
  const Time* first;
  int64_t stride;  // in elements
  RBC_HD Time operator[](int64_t i) const { return first[i * stride]; }
};

}  // namespace rbc
