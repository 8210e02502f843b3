// The formulas that compute a value from two samples. V is a number or a vector of them (number.h).
#if !defined(RBC_MATH_INTERPOLATE_H) || defined(RBC_FORMULAS_AGAIN)
#define RBC_MATH_INTERPOLATE_H

#include "number.h"
#include "turn.h"

namespace RBC_FORMULAS {

// lerp() where v1 + w d is not finite, d = v2 - v1. Infinite samples follow numpy.interp: computed
// from v2 if that gives a number, else v1 if both are equal. Finite samples whose difference
// overflows give the weighted sum.
template <class V>
RBC_HD V lerpNotFinite(V v1, V v2, V w, V d, V sum) {
  const V one = V(Scalar<V>(1));
  const V from_right = mulAdd(w - one, d, v2);
  const V better = select(sum == sum, sum, from_right);
  const V best = select(better == better, better, select(v1 == v2, v1, better));
  const V weighted = mulAdd(w, v2, (one - w) * v1);
  // x - x is 0 for a finite x, else NaN, which equals nothing.
  const V of_finite = select(d - d == d - d, best, weighted);
  return select(v1 - v1 == v2 - v2, of_finite, best);
}

// v1 + w (v2 - v1), rounded once at the end; for samples that are not finite see lerpNotFinite(). A
// weight of 0 must be handled by the caller: v1 would be changed if v2 is not finite.
template <class V>
RBC_HD V lerp(V v1, V v2, V w) {
  const V d = v2 - v1;
  const V sum = mulAdd(w, d, v1);
  return allFinite(sum) ? sum : RBC_FORMULAS::lerpNotFinite(v1, v2, w, d, sum);
}

// v1 + w (v2 - v1) of several pairs. Returns whether all are finite; if not, use lerp().
template <int kCount, class V>
RBC_HD bool lerpFinite(const V (&v1)[kCount], const V (&v2)[kCount], V w, V (&out)[kCount]) {
  V even = V(0);  // NaN if a sum is not finite
  V odd = V(0);
  for (int i = 0; i < kCount; ++i) {
    out[i] = mulAdd(w, v2[i] - v1[i], v1[i]);
    V& zero = i % 2 == 0 ? even : odd;
    zero = mulAdd(out[i], V(0), zero);
  }
  return even == odd;
}

// x minus the nearest multiple of 2 pi: in [-pi, pi].
template <class V>
RBC_HD V wrapAngle(V x) {
  using S = Scalar<V>;
  const V turns = roundEven(x * V(static_cast<S>(0.15915494309189535)));
  return mulAdd(turns, V(-twoPiLow(S())), mulAdd(turns, V(-twoPiHigh(S())), x));
}

// From one angle in radians to another by the shorter way around.
template <class V>
RBC_HD V lerpAngle(V v1, V v2, V w) {
  return wrapAngle(mulAdd(w, wrapAngle(v2 - v1), v1));
}

// x minus whole turns: the nearest number of turns, or with a shift of 0.5 the one below. Exact in
// degrees and turns. Near an end of the range it may be off by a turn, since the quotient is
// rounded: see movedInto().
template <class V>
RBC_HD V lessTurns(V x, Scalar<V> shift, const Turn<Scalar<V>>& turn) {
  const V turns = roundEven(mulAdd(x, V(turn.inverse), V(-shift)));
  return mulAdd(turns, V(-turn.rest), mulAdd(turns, V(-turn.length), x));
}

// x moved by one turn if it is outside of [low, high].
template <class V>
RBC_HD V movedInto(V x, Scalar<V> low, Scalar<V> high, const Turn<Scalar<V>>& turn) {
  const V above = (x + V(turn.length)) + V(turn.rest);
  const V below = (x - V(turn.length)) - V(turn.rest);
  return select(x < V(low), above, select(x > V(high), below, x));
}

// An angle that may be any number of turns away from 0, moved near 0. Each step leaves about 2^-21
// of it in f32, 2^-50 in f64.
template <class V>
RBC_HD V nearZero(V x, const Turn<Scalar<V>>& turn) {
  using S = Scalar<V>;
  constexpr int kSteps = sizeof(S) == 4 ? 6 : 22;
  for (int i = 0; i < kSteps; ++i) {
    const V less = RBC_FORMULAS::lessTurns(x, S(0), turn);
    x = select(x > V(turn.far), less, select(x < V(-turn.far), less, x));
  }
  return x;
}

// From one angle to another by the shorter way around; half a turn goes in the direction of the
// difference. The result is in the turn's range. A weight of 0 gives v1, moved only as needed to
// keep its rounded value in the range.
template <class V>
RBC_HD V lerpInTurn(V v1, V v2, V w, const Turn<Scalar<V>>& turn) {
  using S = Scalar<V>;
  V from = v1;
  V to = v2;
  if (!areWithin(v1, v2, turn.far)) {
    from = RBC_FORMULAS::nearZero(v1, turn);
    to = RBC_FORMULAS::nearZero(v2, turn);
  }
  const S half = turn.length * S(0.5);
  const V way =
      RBC_FORMULAS::movedInto(RBC_FORMULAS::lessTurns(to - from, S(0), turn), -half, half, turn);
  const V wrapped = RBC_FORMULAS::movedInto(
      RBC_FORMULAS::lessTurns(mulAdd(w, way, from), turn.shift, turn), turn.begin, turn.last, turn);
  const V top = V(turn.top);
  // 2 pi itself may give a result a little below 0, as it is rounded.
  const V begin = V(turn.begin);
  const V between = select(wrapped > top, top, select(wrapped < begin, begin, wrapped));
  const V sample = select(v1 > top, select(v1 > V(turn.last), v1, top), v1);
  return select(w == V(S(0)), sample, between);
}

// Applied per channel, after interpolation.
template <class V>
RBC_HD V normalized(V v, V shift, V scale) {
  return (v - shift) * scale;
}

}  // namespace RBC_FORMULAS

#endif
