#include "expected.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "robocache/resample.h"

namespace bench {
namespace {

using Reals = std::vector<long double>;

// The samples around a query, and where they lie.
struct Points {
  Reals t, v;
  size_t left;  // q lies between left and left + 1
};

// The value at q of the parabola, or the line, through some of the points (Lagrange).
long double through(const Points& p, size_t begin, size_t count, long double q) {
  long double sum = 0;
  for (size_t i = begin; i < begin + count; ++i) {
    long double term = p.v[i];
    for (size_t k = begin; k < begin + count; ++k) {
      if (k != i) term *= (q - p.t[k]) / (p.t[i] - p.t[k]);
    }
    sum += term;
  }
  return sum;
}

// Catmull-Rom at uneven times is a blend of two parabolas.
long double cubic(const Points& p, long double q) {
  const size_t n = p.t.size();
  if (n < 4) return through(p, 0, n, q);
  const long double w = (q - p.t[1]) / (p.t[2] - p.t[1]);
  return (1 - w) * through(p, 0, 3, q) + w * through(p, 1, 3, q);
}

long double pchipEdgeSlope(long double h0, long double h1, long double s0, long double s1) {
  const long double slope = ((2 * h0 + h1) * s0 - h0 * s1) / (h0 + h1);
  if (slope * s0 <= 0) return 0;
  return s0 * s1 < 0 && std::fabs(slope) > 3 * std::fabs(s0) ? 3 * s0 : slope;
}

// As scipy.interpolate.PchipInterpolator.
long double pchip(const Points& p, long double q) {
  const size_t n = p.t.size();
  Reals h, s;  // interval and slope of each pair
  for (size_t i = 0; i + 1 < n; ++i) {
    h.push_back(p.t[i + 1] - p.t[i]);
    s.push_back((p.v[i + 1] - p.v[i]) / h[i]);
  }
  const auto slopeAt = [&](size_t i) -> long double {
    if (n == 2) return s[0];
    if (i == 0) return pchipEdgeSlope(h[0], h[1], s[0], s[1]);
    if (i + 1 == n) return pchipEdgeSlope(h[i - 1], h[i - 2], s[i - 1], s[i - 2]);
    if (s[i - 1] * s[i] <= 0) return 0;
    const long double w1 = 2 * h[i] + h[i - 1];
    const long double w2 = h[i] + 2 * h[i - 1];
    return (w1 + w2) / (w1 / s[i - 1] + w2 / s[i]);
  };
  const size_t k = p.left;
  const long double x = (q - p.t[k]) / h[k];
  return (1 + 2 * x) * (1 - x) * (1 - x) * p.v[k] + x * (1 - x) * (1 - x) * h[k] * slopeAt(k) +
         x * x * (3 - 2 * x) * p.v[k + 1] + x * x * (x - 1) * h[k] * slopeAt(k + 1);
}

using Quaternion = std::array<long double, 4>;

Quaternion normalized(Quaternion q) {
  long double square = 0;
  for (const long double x : q) square += x * x;
  for (long double& x : q) x /= std::sqrt(square);
  return q;
}

long double slerp(const Quaternion& from, const Quaternion& to, long double w, size_t component) {
  const Quaternion a = normalized(from);
  const Quaternion b = normalized(to);
  long double dot = 0;
  for (size_t i = 0; i < 4; ++i) dot += a[i] * b[i];
  const long double sign = dot < 0 ? -1 : 1;
  const long double angle = std::acos(std::min(std::fabs(dot), 1.0L));
  if (angle == 0) return a[component];
  return (std::sin((1 - w) * angle) * a[component] + sign * std::sin(w * angle) * b[component]) /
         std::sin(angle);
}

long double wrapped(long double radians) { return std::remainder(radians, 2 * std::acos(-1.0L)); }

}  // namespace

Neighbours neighboursOf(const std::vector<long double>& times, long double q, int32_t method) {
  const size_t n = times.size();
  if (n == 0) return {};
  const auto after =
      static_cast<size_t>(std::upper_bound(times.begin(), times.end(), q) - times.begin());
  if (after == 0) return {0, 1};
  const size_t left = after - 1;
  if (times[left] == q || after == n) return {left, after};
  const bool nearer_left = q - times[left] <= times[after] - q;
  switch (method) {
    case RBC_METHOD_NEAREST:
      return nearer_left ? Neighbours{left, after} : Neighbours{after, after + 1};
    case RBC_METHOD_PREVIOUS: return {left, after};
    case RBC_METHOD_NEXT: return {after, after + 1};
    case RBC_METHOD_CUBIC:
    case RBC_METHOD_PCHIP: return {left == 0 ? 0 : left - 1, std::min(after + 2, n)};
    default: return {left, after + 1};
  }
}

long double expectedValue(const std::vector<long double>& times, long double q, int32_t method,
                          int64_t channel,
                          const std::function<long double(size_t, int64_t)>& valueAt) {
  const Neighbours near = neighboursOf(times, q, method);
  if (near.end - near.begin == 1) return valueAt(near.begin, channel);
  Points p;
  for (size_t i = near.begin; i < near.end; ++i) {
    p.t.push_back(times[i]);
    p.v.push_back(valueAt(i, channel));
  }
  p.left = static_cast<size_t>(std::upper_bound(p.t.begin(), p.t.end(), q) - p.t.begin()) - 1;
  const long double w = (q - p.t[p.left]) / (p.t[p.left + 1] - p.t[p.left]);
  switch (method) {
    case RBC_METHOD_CUBIC: return cubic(p, q);
    case RBC_METHOD_PCHIP: return pchip(p, q);
    case RBC_METHOD_ANGLE: return wrapped(p.v[0] + w * wrapped(p.v[1] - p.v[0]));
    case RBC_METHOD_SLERP: {
      Quaternion ends[2];
      for (size_t end = 0; end < 2; ++end) {
        for (size_t i = 0; i < 4; ++i)
          ends[end][i] = valueAt(near.begin + end, channel / 4 * 4 + static_cast<int64_t>(i));
      }
      return slerp(ends[0], ends[1], w, static_cast<size_t>(channel % 4));
    }
    default: return p.v[0] + w * (p.v[1] - p.v[0]);
  }
}

}  // namespace bench
