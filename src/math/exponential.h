// Exponential and logarithm without libm, so that every machine gives the same bits: to about one
// unit in the last place.
#pragma once

#include <cstdint>

#include "number.h"
#include "platform.h"

namespace rbc {

namespace detail {

// ln 2 in two parts; the first one has 20 zero bits at its end, so its multiples are exact.
constexpr double kLn2High = 0x1.62e42fefp-1;
constexpr double kLn2Low = 0x1.473de6af278edp-34;

}  // namespace detail

// e^x, for |x| <= 700.
RBC_HD double exponential(double x) {
  constexpr double kLog2E = 1.4426950408889634;
  const double n = roundEven(x * kLog2E);
  const double rest = mulAdd(-n, detail::kLn2Low, mulAdd(-n, detail::kLn2High, x));
  // Taylor's series, whose next term is less than 2^-57.
  double sum = 1;
  for (int k = 14; k > 0; --k) sum = mulAdd(sum, rest / k, 1.0);
  return sum * bitCast<double>((static_cast<int64_t>(n) + 1023) << 52);
}

// The natural logarithm of a normal x > 0.
RBC_HD double logarithm(double x) {
  const auto bits = bitCast<uint64_t>(x);
  // x = m 2^n with m of about sqrt(1/2) to sqrt(2).
  constexpr uint64_t kHalfRoot = 0x3fe6a09e00000000;
  const auto steps = static_cast<int64_t>(bits - kHalfRoot) >> 52;
  const auto n = static_cast<double>(steps);
  const double m = bitCast<double>(bits - (static_cast<uint64_t>(steps) << 52));
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (int k = 25; k > 1; k -= 2) sum = mulAdd(sum, square, 1.0 / k);
  const double tail = 2 * s * square * sum;
  return mulAdd(n, detail::kLn2High, 2 * s + mulAdd(n, detail::kLn2Low, tail));
}

}  // namespace rbc
