// Euler angles, in every order of the axes, with SciPy's choices of angles.
//
// The conversion from a quaternion is by Bernardes and Viollet ("Quaternion to Euler angles
// conversion: a direct, general and computationally efficient method", 2022). Near the singularity
// the first and the third angle are computed from numbers that almost cancel: within 1e-7 of it 24
// bits are lost. Therefore a quaternion that is converted to Euler angles is one of DoubleDouble.
#if !defined(RBC_MATH_EULER_H) || defined(RBC_FORMULAS_AGAIN)
#define RBC_MATH_EULER_H

#if !defined(RBC_FORMULAS_AGAIN)
#include <cmath>

#include "quaternion.h"
#include "rotation_kind.h"
#endif

namespace RBC_FORMULAS {
namespace detail {

// The order as extrinsic axes: intrinsic ones are reversed, and their angles too.
struct AxisOrder {
  int first, second,
      third;  // distinct: if the last axis equals the first, third is the remaining one
  bool symmetric;
  bool even;  // a permutation of x y z
};

RBC_HD AxisOrder extrinsicOrder(const EulerAxes& axes) {
  const int first = axes.extrinsic ? axes.first : axes.third;
  const int second = axes.second;
  const bool symmetric = axes.first == axes.third;
  return {first, second, 3 - first - second, symmetric, (second - first + 3) % 3 == 1};
}

// Selects instead of indexing, since a GPU keeps indexed arrays in memory.
template <class Number>
RBC_HD Number pick(const Quaternion<Number>& q, int axis) {
  return axis == 0 ? q.x : axis == 1 ? q.y : q.z;
}

template <class Number>
RBC_HD Number negatedIf(bool condition, Number x) {
  return condition ? -x : x;
}

}  // namespace detail

template <class Number>
RBC_HD Quaternion<Number> readEuler(const EulerAxes& axes, const Vector3<double>& angles) {
  const detail::AxisOrder order = detail::extrinsicOrder(axes);
  const SineCosine<Number> of1 =
      sineCosine<Number>(reduce(0.5 * (axes.extrinsic ? angles.x : angles.z)));
  const SineCosine<Number> of2 = sineCosine<Number>(reduce(0.5 * angles.y));
  const SineCosine<Number> of3 =
      sineCosine<Number>(reduce(0.5 * (axes.extrinsic ? angles.z : angles.x)));

  // The second rotation times the first: (cc, cs, sc, -ss) for even orders, in w and the three
  // axes.
  const Number cc = of2.cosine * of1.cosine;
  const Number cs = of2.cosine * of1.sine;
  const Number sc = of2.sine * of1.cosine;
  const Number ss = of2.sine * of1.sine;
  const Number c = of3.cosine;
  const Number s = of3.sine;
  // And the third times this product. In even orders e1 e2 = e3, in odd ones -e3.
  const Number turned = detail::negatedIf(!order.even, s);
  const Number css = detail::negatedIf(!order.even, c * ss);
  const bool symmetric = order.symmetric;
  const Number w = symmetric ? c * cc - s * cs : c * cc + turned * ss;
  const Number q1 = symmetric ? c * cs + s * cc : c * cs - turned * sc;
  const Number q2 = symmetric ? c * sc + s * ss : c * sc + turned * cs;
  const Number q3 = symmetric ? turned * sc - css : s * cc - css;
  const auto component = [&](int axis) {
    return axis == order.first ? q1 : axis == order.second ? q2 : q3;
  };
  return {w, component(0), component(1), component(2)};
}

// The middle angle is in [-pi/2, pi/2], or in [0, pi] if the last axis equals the first. Within
// 1e-7 of these ends the third angle is 0, and the first one is the whole remaining rotation.
template <class Number>
RBC_HD Vector3<double> writeEuler(const EulerAxes& axes, const Quaternion<Number>& q) {
  const detail::AxisOrder order = detail::extrinsicOrder(axes);
  const Number q1 = detail::pick(q, order.first);
  const Number q2 = detail::pick(q, order.second);
  const Number q3 = detail::negatedIf(!order.even, detail::pick(q, order.third));

  // (a, b) and (c, d) have the angles (third + first) / 2 and (third - first) / 2, and lengths
  // proportional to the cosine and the sine of half the middle angle (plus pi / 2 for three axes).
  const Number a = order.symmetric ? q.w : q.w - q2;
  const Number b = order.symmetric ? q1 : q1 + q3;
  const Number c = order.symmetric ? q2 : q2 + q.w;
  const Number d = order.symmetric ? q3 : q3 - q1;
  const Number ab = a * a + b * b;
  const Number cd = c * c + d * d;
  const double sine1 = head(b * c - a * d);
  const double cosine1 = head(a * c + b * d);
  const double sine3 = head(b * c + a * d);
  const double cosine3 = head(a * c - b * d);
  const double sine = 2 * std::sqrt(mulAdd(sine1, sine1, cosine1 * cosine1));
  const double cosine = head(ab - cd);
  const double second = order.symmetric ? arcTangent(sine, cosine) : arcTangent(-cosine, sine);

  constexpr double kNearTangent = 1.0000000000000033e-07;  // tangent of 1e-7
  if (sine <= kNearTangent * std::fabs(cosine)) {
    double left = 0;
    if (cosine > 0) {
      left = arcTangent(2 * head(a * b), head(a * a - b * b));
    } else {
      left = arcTangent(2 * head(c * d), head(c * c - d * d));
      left = detail::negatedIf(axes.extrinsic, left);
    }
    const bool odd_intrinsic = !axes.extrinsic && !order.symmetric && !order.even;
    return {detail::negatedIf(odd_intrinsic, left), second, 0};
  }
  const double first = arcTangent(sine1, cosine1);
  const double third =
      detail::negatedIf(!order.symmetric && !order.even, arcTangent(sine3, cosine3));
  return {axes.extrinsic ? first : third, second, axes.extrinsic ? third : first};
}

}  // namespace RBC_FORMULAS

#endif
