// Quotients by products with a reciprocal, for machines where a division takes many instructions.
#pragma once

#include "number.h"
#include "platform.h"

namespace rbc {

// 2^100 for f32, 2^900 for f64: a remainder is a multiple of the divisor times 2^-48, or 2^-106.
template <class Number>
inline constexpr int kMaxByProducts = sizeof(Number) == sizeof(float) ? 100 : 900;

// x / divisor to the bit, for |x| of at least divisor / 2 whose quotient does not overflow, and for
// divisors within 2^kMaxByProducts of 1, either way: no step except the last rounds where that
// matters, and none underflows. Also for x of 0, and for |x| within 2^kMaxByProducts of 1 whose
// quotient neither overflows nor underflows. `reciprocal` is 1 / divisor, rounded to nearest.
//
// A quotient that is one of the two numbers around the true one is corrected to the rounded one by
// a step with its exact remainder (P. Markstein, "Computation of elementary functions on the IBM
// RISC System/6000 processor", 1990; Muller et al., "Handbook of Floating-Point Arithmetic", on
// division by FMA). The product with the reciprocal may be 1.5 units in the last place off
// (Brisebarre, Muller and Raina, "Accelerating correctly rounded floating-point division when the
// divisor is known in advance", 2004), so it takes a first step to get there. In f32 one step is
// enough. Its result is rounded from a number that is off by less than 2^-22 units: the product is
// off by two units at most where the quotient is next to a power of two, and remainder and
// reciprocal by 2^-24 of themselves. So it differs from the quotient only if the quotient is that
// close to the middle of two numbers. With 24 bits of x and divisor as integers X and S, and the
// middle as M of 25 bits, that is |X 2^24 - S M| or |X 2^25 - S M| of at most 8, and there are
// 46,517,418 such X for all S. All of them give the right result: voxel_division_test.cpp generates
// them and tests a share.
template <class Number>
RBC_HD Number quotientByProducts(Number x, Number divisor, Number reciprocal) {
  const Number about = x * reciprocal;
  const Number near = mulAdd(mulAdd(-divisor, about, x), reciprocal, about);
  if constexpr (sizeof(Number) == sizeof(float)) return near;
  return mulAdd(mulAdd(-divisor, near, x), reciprocal, near);
}

}  // namespace rbc
