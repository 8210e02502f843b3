#include "reference_methods.h"

#include <algorithm>
#include <cmath>

namespace support {
namespace {

constexpr long double kPi = 3.141592653589793238462643383279502884L;

long double absolute(long double x) { return std::fabs(x); }

// Bound on the error of the weight: two differences and a quotient of times, then its rounding.
long double weightError(const Between& t, const Precision& p) {
  return 1.01L * absolute(t.weight) * (3 * p.times + p.unit);
}

struct Hermite {
  long double h00, h10, h01, h11;
};

Hermite hermite(long double w) {
  const long double w2 = w * w;
  const long double w3 = w2 * w;
  return {2 * w3 - 3 * w2 + 1, w3 - 2 * w2 + w, -2 * w3 + 3 * w2, w3 - w2};
}

// The parabola through three samples, `first` and `second` apart, by divided differences.
struct Parabola {
  long double first, second;
  long double y0, y1, y2;
  long double slope01() const { return (y1 - y0) / first; }
  long double slope12() const { return (y2 - y1) / second; }
  long double curve() const { return (slope12() - slope01()) / (first + second); }
  long double slopeAt0() const { return slope01() - curve() * first; }
  long double slopeAt1() const { return slope01() + curve() * first; }
  long double slopeAt2() const { return slope12() + curve() * second; }
};

// SciPy's PchipInterpolator for a sample inside: a weighted harmonic mean of the adjacent
// quotients.
long double pchipInner(long double h0, long double h1, long double m0, long double m1) {
  if (m0 == 0 || m1 == 0 || std::signbit(m0) != std::signbit(m1)) return 0;
  const long double w1 = 2 * h1 + h0;
  const long double w2 = h1 + 2 * h0;
  return 1 / ((w1 / m0 + w2 / m1) / (w1 + w2));
}

int signOf(long double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

// The same for a sample at an end: _edge_case(h0, h1, m0, m1).
long double pchipEdge(long double h0, long double h1, long double m0, long double m1) {
  const long double d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1);
  if (signOf(d) != signOf(m0)) return 0;
  if (signOf(m0) != signOf(m1) && absolute(d) > 3 * absolute(m0)) return 3 * m0;
  return d;
}

// Bound on the error of a slope, relative to the quotient d of the interval around the query:
// `edge` cancels.
long double pchipSlopeError(bool edge, long double f, long double d, long double adjacent,
                            const Precision& p) {
  const long double relative = 12 * p.unit + 8 * p.times;
  if (!edge) return 3 * relative;
  return std::min<long double>(3, (1 + f) * relative + absolute(f * adjacent / d) * relative);
}

}  // namespace

Bounds linearBounds(const long double (&v)[4], const Between& t, const Precision& p) {
  const long double rise = t.weight * (v[2] - v[1]);
  const long double exact = v[1] + rise;
  const long double relative = 1.01L * (3 * p.times + 2 * p.unit);
  Bounds bounds;
  bounds.add(exact, absolute(rise) * relative + absolute(exact) * p.unit * 1.01L +
                        2 * p.smallest * (1 + absolute(v[2] - v[1])));
  return bounds;
}

Bounds cubicBounds(const long double (&v)[4], const Between& t, const Precision& p) {
  const bool before = t.before > 0;
  const bool after = t.after > 0;
  const Parabola left = {t.before, t.here, v[0], v[1], v[2]};
  const Parabola right = {t.here, t.after, v[1], v[2], v[3]};
  const long double line = (v[2] - v[1]) / t.here;
  const long double slope1 = before ? left.slopeAt1() : after ? right.slopeAt0() : line;
  const long double slope2 = after ? right.slopeAt1() : before ? left.slopeAt2() : line;
  const Hermite h = hermite(t.weight);
  const long double exact =
      h.h00 * v[1] + h.h01 * v[2] + t.here * (h.h10 * slope1 + h.h11 * slope2);

  // The library adds c0 (v0 - v1) + c1 (v2 - v1) + c2 (v3 - v1); c0 and c2 grow with the ratios of
  // the intervals, and so do their rounding errors.
  const long double f0 = before ? t.here / (t.before + t.here) : 0;
  const long double f2 = after ? t.here / (t.after + t.here) : 0;
  const long double scale0 = before ? f0 * t.here / t.before : 0;
  const long double scale2 = after ? f2 * t.here / t.after : 0;
  const long double w = absolute(t.weight);
  const long double lost = 8 * p.times * w + 4 * 0x1p-53L;  // of a coefficient, for a scale of 1
  const long double most = w * (1 - w);                     // of |h10|, |h11| and their difference
  const long double c0 = most * scale0;
  const long double c2 = most * scale2;
  const long double c1 = absolute(h.h01) + most * (1 + f0 + f2) + c2;
  const long double e0 = lost * scale0 + 3 * p.unit * c0;
  const long double e2 = lost * scale2 + 3 * p.unit * c2;
  const long double e1 = lost * (2 + f0 + f2 + scale2) + 3 * p.unit * c1;
  const long double a0 = before ? absolute(v[0] - v[1]) : 0;
  const long double a1 = absolute(v[2] - v[1]);
  const long double a2 = after ? absolute(v[3] - v[1]) : 0;
  Bounds bounds;
  bounds.add(exact, a0 * e0 + a1 * e1 + a2 * e2 +
                        3 * p.unit * (absolute(v[1]) + a0 * c0 + a1 * c1 + a2 * c2) +
                        8 * p.smallest * (1 + a0 + a1 + a2));
  return bounds;
}

Bounds pchipBounds(const long double (&v)[4], const Between& t, const Precision& p) {
  Bounds bounds;
  const long double d = v[2] - v[1];
  if (d == 0) {
    bounds.add(v[1], 0);
    return bounds;
  }
  const bool before = t.before > 0;
  const bool after = t.after > 0;
  const long double m0 = before ? (v[1] - v[0]) / t.before : 0;
  const long double m1 = d / t.here;
  const long double m2 = after ? (v[3] - v[2]) / t.after : 0;
  const long double slope1 = before  ? pchipInner(t.before, t.here, m0, m1)
                             : after ? pchipEdge(t.here, t.after, m1, m2)
                                     : m1;
  const long double slope2 = after    ? pchipInner(t.here, t.after, m1, m2)
                             : before ? pchipEdge(t.here, t.before, m1, m0)
                                      : m1;
  const Hermite h = hermite(t.weight);
  const long double exact =
      h.h00 * v[1] + h.h01 * v[2] + t.here * (h.h10 * slope1 + h.h11 * slope2);

  long double error1 = 0;
  long double error2 = 0;
  if (before || after) {
    const long double f0 = before ? t.here / (t.before + t.here) : 0;
    const long double f2 = after ? t.here / (t.after + t.here) : 0;
    error1 = before ? pchipSlopeError(false, f0, m1, m0, p) : pchipSlopeError(true, f2, m1, m2, p);
    error2 = after ? pchipSlopeError(false, f2, m1, m2, p) : pchipSlopeError(true, f0, m1, m0, p);
  }
  // Slopes are at most 3, so that the difference from v1 to v2 changes by at most 7.5 over w.
  const long double way = 7.5L * (weightError(t, p) + p.unit) + absolute(h.h10) * error1 +
                          absolute(h.h11) * error2 + 6 * p.unit;
  bounds.add(exact, absolute(d) * way + 2 * p.unit * (absolute(v[1]) + absolute(exact)) +
                        32 * p.smallest * (1 + absolute(d)));
  return bounds;
}

Bounds angleBounds(const long double (&v)[4], const Between& t, const Precision& p) {
  Bounds bounds;
  const long double d = v[2] - v[1];
  const long double turn = std::remainder(d, 2 * kPi);
  const long double turn_error = p.unit * (2 * absolute(d) + 8);
  const auto addTurn = [&](long double way) {
    const long double x = v[1] + t.weight * way;
    const long double wrapped = std::remainder(x, 2 * kPi);
    const long double error = absolute(t.weight) * turn_error + weightError(t, p) * kPi +
                              p.unit * (2 * absolute(x) + 8) + 8 * p.smallest;
    bounds.add(wrapped, error);
    if (kPi - absolute(wrapped) < 2 * error)
      bounds.add(wrapped > 0 ? wrapped - 2 * kPi : wrapped + 2 * kPi, error);
  };
  addTurn(turn);
  if (kPi - absolute(turn) < 2 * turn_error) addTurn(turn > 0 ? turn - 2 * kPi : turn + 2 * kPi);
  return bounds;
}

Bounds angleBounds(const long double (&v)[4], const Between& t, const Precision& p,
                   const AngleRange& range) {
  Bounds bounds;
  const long double length = range.length;
  const long double d = v[2] - v[1];
  const long double turn = std::remainder(d, length);
  const long double turn_error = p.unit * (2 * absolute(d) + length);
  const auto add = [&](long double value, long double error) {
    bounds.add(std::fmin(value, range.top), error);
  };
  const auto addTurn = [&](long double way) {
    const long double x = v[1] + t.weight * way;
    const long double wrapped = x - length * std::floor((x - range.begin) / length);
    const long double error = absolute(t.weight) * turn_error + weightError(t, p) * length / 2 +
                              p.unit * (2 * absolute(x) + 2 * length) + 8 * p.smallest;
    add(wrapped, error);
    if (wrapped - range.begin < 2 * error) add(wrapped + length, error);
    if (range.begin + length - wrapped < 2 * error) add(wrapped - length, error);
  };
  addTurn(turn);
  if (length / 2 - absolute(turn) < 2 * turn_error)
    addTurn(turn > 0 ? turn - length : turn + length);
  return bounds;
}

Bounds slerpBounds(const long double (&q1)[4], const long double (&q2)[4], int i, const Between& t,
                   const Precision& p) {
  Bounds bounds;
  long double n1 = 0;
  long double n2 = 0;
  for (int k = 0; k < 4; ++k) {
    n1 += q1[k] * q1[k];
    n2 += q2[k] * q2[k];
  }
  // Below this, the squares lose digits to subnormal numbers.
  const long double least = std::sqrt(p.smallest);
  if (!(n1 > least && n2 > least && n1 < 1 / least && n2 < 1 / least)) return bounds;
  n1 = std::sqrt(n1);
  n2 = std::sqrt(n2);
  long double cosine = 0;
  long double chord[2] = {};  // squared, to q2 and to -q2: also exact if it is small
  for (int k = 0; k < 4; ++k) {
    const long double a = q1[k] / n1;
    const long double b = q2[k] / n2;
    cosine += a * b;
    chord[0] += (a - b) * (a - b);
    chord[1] += (a + b) * (a + b);
  }
  const auto addWay = [&](bool turned) {
    const long double angle = 2 * std::asin(std::min(1.0L, std::sqrt(chord[turned ? 1 : 0]) / 2));
    const long double sine = std::sin(angle);
    const long double part1 = angle == 0 ? 1 - t.weight : std::sin((1 - t.weight) * angle) / sine;
    const long double part2 = angle == 0 ? t.weight : std::sin(t.weight * angle) / sine;
    bounds.add(part1 * q1[i] / n1 + (turned ? -part2 : part2) * q2[i] / n2,
               10 * p.unit + angle * weightError(t, p));
  };
  addWay(cosine < 0);
  if (absolute(cosine) < 8 * p.unit) addWay(!(cosine < 0));
  return bounds;
}

}  // namespace support
