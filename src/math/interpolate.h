// The formulas that make a value out of two samples. V is a number or a vector of them (number.h).
#if !defined(RBC_MATH_INTERPOLATE_H) || defined(RBC_FORMULAS_AGAIN)
#define RBC_MATH_INTERPOLATE_H

#include "number.h"

namespace RBC_FORMULAS {

// v1 + w (v2 - v1), rounded once at the end. Where w = 0, v1 is meant, whatever v2 is: that is the
// caller's to see to.
template <class V>
RBC_HD V lerp(V v1, V v2, V w) {
  return mulAdd(w, v2 - v1, v1);
}

// x less the nearest multiple of 2 pi, which is taken in two parts (Cody and Waite, "Software
// manual for the elementary functions", 1980): to [-pi, pi].
RBC_HD float twoPiHigh(float) { return 6.28318548f; }
RBC_HD float twoPiLow(float) { return -1.74845553e-7f; }
RBC_HD double twoPiHigh(double) { return 6.283185307179586; }
RBC_HD double twoPiLow(double) { return 2.4492935982947064e-16; }

template <class V>
RBC_HD V wrapAngle(V x) {
  using S = Scalar<V>;
  const V turns = roundEven(x * V(static_cast<S>(0.15915494309189535)));
  return mulAdd(turns, V(-twoPiLow(S())), mulAdd(turns, V(-twoPiHigh(S())), x));
}

// From one angle to another by the shorter way round.
template <class V>
RBC_HD V lerpAngle(V v1, V v2, V w) {
  return wrapAngle(mulAdd(w, wrapAngle(v2 - v1), v1));
}

// Per channel, after interpolation.
template <class V>
RBC_HD V normalized(V v, V mean, V inv_std) {
  return (v - mean) * inv_std;
}

}  // namespace RBC_FORMULAS

#endif
