// Cubic interpolation between v1 and v2 with their neighbours v0 and v3.
//
// Both methods are Hermite cubics, v1 + h01(w) D + h10(w) m1 + h11(w) m2 with D = v2 - v1 and m1,
// m2 the slopes times the length of the interval; they differ in the slopes. The part that depends
// only on times is computed once per query, in double.
#if !defined(RBC_MATH_HERMITE_H) || defined(RBC_FORMULAS_AGAIN)
#define RBC_MATH_HERMITE_H

#include "interpolate.h"
#include "number.h"
#include "weights.h"

namespace RBC_FORMULAS {

// ---- cubic: slopes of the parabola through a sample and its neighbours --------------------------

// If v0 or v3 does not exist, v1 is passed for it.
template <class V>
RBC_HD V cubic(V v0, V v1, V v2, V v3, const Weights<Scalar<V>>& k) {
  const V ahead = mulAdd(V(k.c[2]), v3 - v1, mulAdd(V(k.c[1]), v2 - v1, v1));
  return mulAdd(V(k.c[0]), v0 - v1, ahead);
}

// ---- pchip: slopes that keep the curve monotone -------------------------------------------------

// The most that the neighbour's slope may exceed d, as a ratio: a steeper one gives the same mean
// as this, to the last bit.
template <class S>
RBC_HD S steepest() {
  return sizeof(S) == 4 ? S(1.099511627776e12) : S(1.2676506002282294e30);  // 2^40, 2^100
}

// Inside, with a = (1 + f) / 3 on either side, the slopes over d are d0 / (a d + (1 - a) d0), the
// weighted harmonic mean, and the same with d2; 0 where the signs differ. Everything is scaled by
// the power of two that brings d to [1, 2), and both slopes use one denominator: no step overflows,
// and one division is enough.
template <class V>
RBC_HD V pchipInside(V v0, V v1, V v2, V v3, const Weights<Scalar<V>>& k) {
  using S = Scalar<V>;
  const V zero = V(S(0));
  const V most = V(steepest<S>());
  const S a0 = (1 + k.c[2]) / 3;
  const S a2 = (1 + k.c[3]) / 3;
  const S w = k.w;
  const S u = 1 - w;
  const V d = v2 - v1;
  const V scale = toUnit(d);
  const V unit = d * scale;
  const V d0 = clamp((v1 - v0) * V(k.c[0]) * scale, zero, most);
  const V d2 = clamp((v3 - v2) * V(k.c[1]) * scale, zero, most);
  const V mean0 = mulAdd(V(1 - a0), d0, V(a0) * unit);
  const V mean2 = mulAdd(V(1 - a2), d2, V(a2) * unit);
  const V slopes = mulAdd(V(w * u * u) * d0, mean2, V(-(w * w * u)) * d2 * mean0);
  const V way = divide(slopes, mean0 * mean2) + V(w * w * (1 + 2 * u));
  return select(d == zero, v1, mulAdd(way, d, v1));
}

// At an end the slope is that of the parabola through three samples, clamped to 0 .. 3 times d;
// with only two samples the curve is a line.
template <class V>
RBC_HD V pchipAtEnd(V v0, V v1, V v2, V v3, const Weights<Scalar<V>>& k) {
  using S = Scalar<V>;
  const V d = v2 - v1;
  if (!k.before && !k.after) return RBC_FORMULAS::lerp(v1, v2, V(k.w));
  const V zero = V(S(0));
  const S f = k.before ? k.c[2] : k.c[3];
  const S a = (1 + f) / 3;
  const V adjacent = k.before ? (v1 - v0) * V(k.c[0]) : (v3 - v2) * V(k.c[1]);
  const V scale = toUnit(d);
  const V unit = d * scale;
  const V part = adjacent * scale;
  const V outer = clamp(mulAdd(V(-f), part / unit, V(1 + f)), zero, V(S(3)));
  const V met = clamp(part, zero, V(steepest<S>()));
  const V inner = met / mulAdd(V(1 - a), met, V(a) * unit);
  const V slope1 = k.before ? inner : outer;
  const V slope2 = k.before ? outer : inner;
  const S w = k.w;
  const S u = 1 - w;
  const V way =
      mulAdd(V(w * u * u), slope1, mulAdd(V(-(w * w * u)), slope2, V(w * w * (1 + 2 * u))));
  return select(d == zero, v1, mulAdd(way, d, v1));
}

// If v0 or v3 does not exist, v1 is passed for it. The branch depends only on the query.
template <class V>
RBC_HD V pchip(V v0, V v1, V v2, V v3, const Weights<Scalar<V>>& k) {
  return k.before && k.after ? RBC_FORMULAS::pchipInside(v0, v1, v2, v3, k)
                             : RBC_FORMULAS::pchipAtEnd(v0, v1, v2, v3, k);
}

}  // namespace RBC_FORMULAS

#endif
