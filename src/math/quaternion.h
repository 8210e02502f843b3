// Quaternions, the form through which every rotation is read and written, and rotation vectors.
//
// A quaternion of any length stands for a rotation, so that reading one loses nothing: its length
// is 2^-52 to 2^3, or in the range of f32, and it is normalized only when it is written. NaN marks
// an invalid rotation.
#if !defined(RBC_MATH_QUATERNION_H) || defined(RBC_FORMULAS_AGAIN)
#define RBC_MATH_QUATERNION_H

#if !defined(RBC_FORMULAS_AGAIN)
#include <cmath>
#include <cstdint>

#include "double_double.h"
#include "number.h"
#include "trig.h"
#endif

namespace RBC_FORMULAS {

// Number is double or DoubleDouble.
template <class Number>
struct Vector3 {
  Number x, y, z;
};

template <class Number>
struct Quaternion {
  Number w, x, y, z;
};

// The rotation by b, followed by a.
template <class Number>
RBC_HD Quaternion<Number> operator*(const Quaternion<Number>& a, const Quaternion<Number>& b) {
  return {
      a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
      a.w * b.y + a.y * b.w + a.z * b.x - a.x * b.z, a.w * b.z + a.z * b.w + a.x * b.y - a.y * b.x};
}

template <class Number>
RBC_HD Quaternion<Number> inverse(const Quaternion<Number>& q) {
  return {q.w, -q.x, -q.y, -q.z};
}

RBC_HD Quaternion<double> head(const Quaternion<double>& q) { return q; }
RBC_HD Quaternion<double> head(const Quaternion<DoubleDouble>& q) {
  return {q.w.head, q.x.head, q.y.head, q.z.head};
}

namespace detail {

RBC_HD double notANumber() { return bitCast<double>(uint64_t{0x7fffffffffffffff}); }

// The bits of the largest magnitude; a NaN or an infinity has larger bits than any finite number.
RBC_HD uint64_t magnitude(double x) { return bitCast<uint64_t>(x) & 0x7fffffffffffffffull; }
template <class... Rest>
RBC_HD uint64_t magnitude(double x, Rest... rest) {
  const uint64_t a = magnitude(x);
  const uint64_t b = magnitude(rest...);
  return a > b ? a : b;
}

RBC_HD bool isFinite(uint64_t magnitude) { return magnitude < 0x7ff0000000000000ull; }

// A power of two that brings finite magnitudes to [1, 4), and subnormal ones to at least 2^-51.
RBC_HD double scaleOf(uint64_t magnitude) {
  const uint64_t exponent = magnitude >> 52;
  const uint64_t inverse = exponent < 2046 ? 2046 - exponent : 1;
  return bitCast<double>(inverse << 52);
}

template <class Number>
RBC_HD Quaternion<Number> noRotation() {
  return {notANumber(), notANumber(), notANumber(), notANumber()};
}

// A factor for the components of an output, which must become NaN if there is no rotation. It is
// NaN if the square of the length is infinite. If the square is 0, the factor is infinite or NaN
// already, and the components are all 0, so that each product is NaN.
RBC_HD double unlessInfinite(double square, double factor) {
  return square < 0x1p1023 ? factor : notANumber();
}

// Of the two quaternions of a rotation the one with w > 0; if w is 0, the one whose first nonzero
// component is positive.
RBC_HD Quaternion<double> canonicalSign(const Quaternion<double>& q) {
  const double first = q.w != 0 ? q.w : q.x != 0 ? q.x : q.y != 0 ? q.y : q.z;
  if (!(first < 0)) return q;
  return {0 - q.w, 0 - q.x, 0 - q.y, 0 - q.z};  // 0 stays 0, not -0
}

}  // namespace detail

// Unchanged if `narrow`, which means that f32 can hold the numbers: then neither their squares nor
// the squares of these overflow or vanish, and a power of two changes no bit of the result. Zeros
// and non-finite numbers are handled when the quaternion is written.
template <class Number>
RBC_HD Quaternion<Number> readQuaternion(double w, double x, double y, double z,
                                         bool narrow = false) {
  if (narrow) return {w, x, y, z};
  const uint64_t magnitude = detail::magnitude(w, x, y, z);
  if (magnitude == 0 || !detail::isFinite(magnitude)) return detail::noRotation<Number>();
  const double scale = detail::scaleOf(magnitude);
  return {scale * w, scale * x, scale * y, scale * z};
}

// Normalizes to length 1.
RBC_HD Quaternion<double> writeQuaternion(const Quaternion<double>& rotation) {
  const Quaternion<double> q = detail::canonicalSign(rotation);
  const double square = mulAdd(q.w, q.w, mulAdd(q.x, q.x, mulAdd(q.y, q.y, q.z * q.z)));
  const double inverse = detail::unlessInfinite(square, 1 / std::sqrt(square));
  return {inverse * q.w, inverse * q.x, inverse * q.y, inverse * q.z};
}

// With half the angle h, a quaternion of length 2: (2 cos h, v sin h / h). It keeps every bit of
// the smallest vectors. The length of v is a DoubleDouble, so that whole turns of a large angle are
// removed exactly; from 2^51 on only if the length is a double.
template <class Number>
RBC_HD Quaternion<Number> readRotvec(double x, double y, double z) {
  const uint64_t magnitude = detail::magnitude(x, y, z);
  if (!detail::isFinite(magnitude)) return detail::noRotation<Number>();
  const double scale = detail::scaleOf(magnitude);
  const double sx = scale * x;
  const double sy = scale * y;
  const double sz = scale * z;
  const DoubleDouble length =
      squareRoot(exactProduct(sx, sx) + exactProduct(sy, sy) + exactProduct(sz, sz));
  DoubleDouble half = scaled(length, 0.5 / scale);
  if (half.head > 0x1p50) half.tail = 0;
  const SineCosine<Number> half_turned = sineCosine<Number>(reduce(half));
  // Below, sin h / h differs from 1 by less than 2^-85, and a subnormal h could not be a divisor.
  Number ratio = Number(1.0);
  if (half.head > 0x1p-42) ratio = half_turned.sine / as(half, Number());
  return {Number(2.0) * half_turned.cosine, ratio * Number(x), ratio * Number(y),
          ratio * Number(z)};
}

// The angle is in [0, pi].
RBC_HD Vector3<double> writeRotvec(const Quaternion<double>& rotation) {
  const Quaternion<double> q = detail::canonicalSign(rotation);
  const double square = mulAdd(q.x, q.x, mulAdd(q.y, q.y, q.z * q.z));
  const double length = std::sqrt(square);
  // For small angles the tangent is the angle; the square may then be subnormal or 0.
  const bool small = square < 0x1p-80 * (q.w * q.w);
  const double factor = detail::unlessInfinite(
      square + q.w * q.w, small ? 2 / q.w : 2 * arcTangent(length, q.w) / (small ? 1.0 : length));
  return {factor * q.x, factor * q.y, factor * q.z};
}

}  // namespace RBC_FORMULAS

#endif
