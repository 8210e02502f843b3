// The weights of cubic interpolation for a query: computed once from the times, in double.
#pragma once

#include "platform.h"

namespace rbc {

// Lengths of the interval around a query and of the adjacent ones; 0: no such interval.
struct Intervals {
  double before;
  double here;
  double after;
};

// The weight, up to four coefficients, and whether v0 and v3 exist.
template <class Number>
struct Weights {
  Number w;
  Number c[4];
  bool before;
  bool after;

  template <class Other>
  RBC_HD Weights<Other> as() const {
    return {static_cast<Other>(w),
            {static_cast<Other>(c[0]), static_cast<Other>(c[1]), static_cast<Other>(c[2]),
             static_cast<Other>(c[3])},
            before,
            after};
  }
};

struct HermiteBasis {
  double h01, h10, h11;
};

RBC_HD HermiteBasis hermiteBasis(double w) {
  const double u = 1 - w;
  return {w * w * (1 + 2 * u), w * u * u, -w * w * u};
}

// For cubic(), which is linear in the samples: c = the factors of v0 - v1, v2 - v1 and v3 - v1. The
// slope at v1 is f d0 + (1 - f) d1, with d the difference quotients times `here` and f = here /
// (before + here); at an end it is (1 + f) d1 - f d2, with f from the other side.
RBC_HD Weights<double> cubicWeights(double w, const Intervals& t) {
  const HermiteBasis h = hermiteBasis(w);
  const bool before = t.before > 0;
  const bool after = t.after > 0;
  double c0 = 0;  // of the quotients before, here and after
  double c1 = h.h10 + h.h11;
  double c2 = 0;
  if (before) {
    const double f = t.here / (t.before + t.here);
    c0 = after ? h.h10 * f : (h.h10 - h.h11) * f;
    c1 -= c0;
  }
  if (after) {
    const double f = t.here / (t.after + t.here);
    c2 = before ? h.h11 * f : (h.h11 - h.h10) * f;
    c1 -= c2;
  }
  const double to_before = before ? -c0 * (t.here / t.before) : 0;
  const double to_after = after ? c2 * (t.here / t.after) : 0;
  return {w, {to_before, h.h01 + c1 - to_after, to_after, 0}, before, after};
}

// For pchip(): c = here / before, here / after, here / (before + here), here / (after + here).
RBC_HD Weights<double> pchipWeights(double w, const Intervals& t) {
  Weights<double> k = {w, {0, 0, 0, 0}, t.before > 0, t.after > 0};
  if (k.before) {
    k.c[0] = t.here / t.before;
    k.c[2] = t.here / (t.before + t.here);
  }
  if (k.after) {
    k.c[1] = t.here / t.after;
    k.c[3] = t.here / (t.after + t.here);
  }
  return k;
}

}  // namespace rbc
