// A quantile among sorted values, as numpy.quantile(method="linear") has it.
#pragma once

#include <cstdint>

#include "platform.h"
#include "real.h"

namespace rbc {

// Between which of n > 0 sorted values a level lies.
struct QuantilePlace {
  int64_t lower;
  int64_t upper;  // lower + 1, or lower at the end
  double t;       // from one to the other
};

RBC_HD QuantilePlace quantilePlace(double level, int64_t n) {
  const double h = level * static_cast<double>(n - 1);
  auto lower = static_cast<int64_t>(h);
  if (lower >= n - 1) return {n - 1, n - 1, 0};
  return {lower, lower + 1, h - static_cast<double>(lower)};
}

RBC_HD double quantileBetween(double lower, double upper, double t) {
  const double d = upper - lower;
  // NaN where d overflows and t is 0, as there.
  return canonical(t >= 0.5 ? upper - d * (1 - t) : lower + d * t);
}

}  // namespace rbc
