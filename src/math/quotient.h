// Quotients by products with a reciprocal, for machines on which a division takes many instructions.
#pragma once

#include "number.h"
#include "platform.h"

namespace rbc {

// 2^100 for f32, 2^900 for f64: a remainder is a multiple of the divisor times 2^-48, or 2^-106.
template <class Number>
inline constexpr int kMaxByProducts = sizeof(Number) == sizeof(float) ? 100 : 900;

// x / divisor to the bit, for |x| of divisor / 2 and more whose quotient does not overflow, and for
// divisors within kMaxByProducts of 1, either way: no step but the last rounds where that matters, nor
// underflows. Also for x of 0, and for |x| within kMaxByProducts of 1 whose quotient neither overflows
// nor underflows. `reciprocal` is 1 / divisor, rounded to nearest.
//
// A quotient that is one of the two numbers around the true one becomes the rounded one by a step with
// its exact remainder (P. Markstein, "Computation of elementary functions on the IBM RISC System/6000
// processor", 1990; Muller et al., "Handbook of Floating-Point Arithmetic", on division by FMA). The
// product with the reciprocal may be 1.5 units in the last place off (Brisebarre, Muller and Raina,
// "Accelerating correctly rounded floating-point division when the divisor is known in advance", 2004),
// so it takes a first step to get there. In f32 one step is enough. Its result is rounded from a number
// that is off by less than 2^-22 units: the product is off by two units at most where the quotient
// is next to a power of two, and remainder and reciprocal by 2^-24 of themselves. So it is another than
// the quotient only if that lies so close to the middle of two numbers. With 24 bits of x and divisor as
// integers X and S, and the middle as M of 25 bits, that is |X 2^24 - S M| or |X 2^25 - S M| of 8 at
// most, and there are 46,517,418 such X for all S. All of them come out right: voxel_division_test.cpp
// has them, of which it takes some.
template <class Number>
RBC_HD Number quotientByProducts(Number x, Number divisor, Number reciprocal) {
  const Number about = x * reciprocal;
  const Number near = mulAdd(mulAdd(-divisor, about, x), reciprocal, about);
  if constexpr (sizeof(Number) == sizeof(float)) return near;
  return mulAdd(mulAdd(-divisor, near, x), reciprocal, near);
}

}  // namespace rbc
