// A quantile of sorted values, as in numpy.quantile(method="linear").
#pragma once

#include <cstdint>

#include "platform.h"
#include "real.h"

namespace rbc {

// The two of n > 0 sorted values around a level.
struct QuantilePlace {
  int64_t lower;
  int64_t upper;  // lower + 1, or lower at the end
  double t;       // weight of upper
};

RBC_HD QuantilePlace quantilePlace(double level, int64_t n) {
  const double h = level * static_cast<double>(n - 1);
  auto lower = static_cast<int64_t>(h);
  if (lower >= n - 1) return {n - 1, n - 1, 0};
  return {lower, lower + 1, h - static_cast<double>(lower)};
}

RBC_HD double quantileBetween(double lower, double upper, double t) {
  const double d = upper - lower;
  // NaN where d overflows and t is 0, as in NumPy.
  return canonical(t >= 0.5 ? upper - d * (1 - t) : lower + d * t);
}

}  // namespace rbc
