// Rotation matrices: from nine numbers or the six of 6-D, from a quaternion, and to a quaternion.
#if !defined(RBC_MATH_ROTATION_MATRIX_H) || defined(RBC_FORMULAS_AGAIN)
#define RBC_MATH_ROTATION_MATRIX_H

#if !defined(RBC_FORMULAS_AGAIN)
#include <cmath>
#include <cstdint>

#include "double_double.h"
#include "quaternion.h"
#include "rotation_kind.h"
#endif

namespace RBC_FORMULAS {

// The columns of a rotation matrix.
template <class Number>
struct Columns {
  Vector3<Number> x, y, z;
};

namespace detail {

template <class Number>
RBC_HD Vector3<Number> cross(const Vector3<Number>& a, const Vector3<Number>& b) {
  return {differenceOfProducts(a.y, b.z, a.z, b.y), differenceOfProducts(a.z, b.x, a.x, b.z),
          differenceOfProducts(a.x, b.y, a.y, b.x)};
}

template <class Number>
RBC_HD Number dot(const Vector3<Number>& a, const Vector3<Number>& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}

template <class Number>
RBC_HD Vector3<Number> times(const Vector3<Number>& a, Number factor) {
  return {a.x * factor, a.y * factor, a.z * factor};
}

template <class Number>
RBC_HD Vector3<Number> normalize(const Vector3<Number>& a) {
  return times(a, Number(1.0) / squareRoot(dot(a, a)));
}

// Scaled by a power of two such that its square neither overflows nor vanishes; NaN if it is zero
// or not finite. Unchanged if `narrow`: see readQuaternion.
template <class Number>
RBC_HD Vector3<Number> scaledVector(double x, double y, double z, bool narrow) {
  if (narrow) return {x, y, z};
  const uint64_t size = magnitude(x, y, z);
  const double scale = size != 0 && isFinite(size) ? scaleOf(size) : notANumber();
  return {scale * x, scale * y, scale * z};
}

template <class Number>
RBC_HD Columns<Number> allOf(double value) {
  return {{value, value, value}, {value, value, value}, {value, value, value}};
}

template <class Number>
RBC_HD Columns<Number> times(const Columns<Number>& m, Number factor) {
  return {times(m.x, factor), times(m.y, factor), times(m.z, factor)};
}

template <class Number>
RBC_HD Vector3<Number> sum(const Vector3<Number>& a, const Vector3<Number>& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <class Number>
RBC_HD Columns<Number> sum(const Columns<Number>& a, const Columns<Number>& b) {
  return {sum(a.x, b.x), sum(a.y, b.y), sum(a.z, b.z)};
}

template <class Number>
RBC_HD double squaredLength(const Vector3<Number>& a) {
  return mulAdd(head(a.x), head(a.x), mulAdd(head(a.y), head(a.y), head(a.z) * head(a.z)));
}
template <class Number>
RBC_HD double squaredLength(const Columns<Number>& m) {
  return squaredLength(m.x) + squaredLength(m.y) + squaredLength(m.z);
}

// The right-handed base of unit vectors with `first` along x and `second` in the plane of x and y.
// Uses cross products, in which every component is exact to its last bits: the textbook's
// difference loses them if the two are nearly parallel.
template <class Number>
RBC_HD Columns<Number> gramSchmidt(const Vector3<Number>& first, const Vector3<Number>& second) {
  const Vector3<Number> across = cross(first, second);
  if (!(squaredLength(across) > 0x1p-100 * squaredLength(first) * squaredLength(second))) {
    return allOf<Number>(notANumber());
  }
  const Vector3<Number> x = normalize(first);
  const Vector3<Number> z = normalize(across);
  return {x, cross(z, x), z};
}

template <class Number>
RBC_HD Columns<Number> transpose(const Columns<Number>& m) {
  return {{m.x.x, m.y.x, m.z.x}, {m.x.y, m.y.y, m.z.y}, {m.x.z, m.y.z, m.z.z}};
}

// The square of the last step of Newton's method: the next step would change nothing relevant.
RBC_HD double settledStep(double) { return 0x1p-56; }
RBC_HD double settledStep(DoubleDouble) { return 0x1p-90; }

// The polar factor by Newton's method with Higham's scaling ("Computing the polar decomposition -
// with applications", 1986): the mean of a matrix and its inverse transposed. A rotation that was
// rounded to f64 takes one step, to f32 two, to bf16 three. NaN if the determinant is not positive.
template <class Number>
RBC_HD Columns<Number> nearestRotation(Columns<Number> m) {
  constexpr double kSingular = 0x1p-40 * 0.19245008972987526;  // 27^(-1/2): of a length of 3^(1/2)
  for (int step = 0; step < 12; ++step) {
    const Columns<Number> cofactors = {cross(m.y, m.z), cross(m.z, m.x), cross(m.x, m.y)};
    const Number determinant = dot(m.x, cofactors.x);
    const double square = squaredLength(m);
    if (!(head(determinant) > kSingular * (square * std::sqrt(square)))) {
      return allOf<Number>(notANumber());
    }
    // Its rounding does not matter: the two halves are off in opposite directions.
    const double scale =
        std::sqrt(std::sqrt(squaredLength(cofactors) / square) / head(determinant));
    const Columns<Number> half = times(m, Number(0.5 * scale));
    const Columns<Number> other = times(cofactors, Number(0.5) / (Number(scale) * determinant));
    m = sum(half, other);
    if (squaredLength(sum(other, times(half, Number(-1.0)))) < settledStep(Number())) break;
  }
  return m;
}

}  // namespace detail

// Shepperd's rule: of four expressions for the quaternion, the one with the least cancellation.
template <class Number>
RBC_HD Quaternion<Number> quaternionOf(const Columns<Number>& m) {
  const Number one(1.0);
  const Number trace = m.x.x + m.y.y + m.z.z;
  const Number wx = m.y.z - m.z.y;
  const Number wy = m.z.x - m.x.z;
  const Number wz = m.x.y - m.y.x;
  const Number xy = m.x.y + m.y.x;
  const Number xz = m.x.z + m.z.x;
  const Number yz = m.y.z + m.z.y;
  const double x = head(m.x.x);
  const double y = head(m.y.y);
  const double z = head(m.z.z);
  const double t = head(trace);
  if (t >= x && t >= y && t >= z) return {one + trace, wx, wy, wz};
  if (x >= y && x >= z) return {wx, one + m.x.x - m.y.y - m.z.z, xy, xz};
  if (y >= z) return {wy, xy, one - m.x.x + m.y.y - m.z.z, yz};
  return {wz, xz, yz, one - m.x.x - m.y.y + m.z.z};
}

template <class Number>
RBC_HD Columns<Number> readRot6d(RotationKind kind, const double* in, bool narrow) {
  const bool interleaved = kind == RotationKind::Rot6dInterleaved;
  const auto vector = [=](int a, int b, int c) {
    return detail::scaledVector<Number>(in[a], in[b], in[c], narrow);
  };
  const Columns<Number> base = detail::gramSchmidt(interleaved ? vector(0, 2, 4) : vector(0, 1, 2),
                                                   interleaved ? vector(1, 3, 5) : vector(3, 4, 5));
  return kind == RotationKind::Rot6dRows ? detail::transpose(base) : base;
}

template <class Number>
RBC_HD Columns<Number> readMatrix(const double* in) {
  const uint64_t size =
      detail::magnitude(in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], in[8]);
  if (!detail::isFinite(size)) return detail::allOf<Number>(detail::notANumber());
  const double scale = detail::scaleOf(size);
  return detail::nearestRotation<Number>({{scale * in[0], scale * in[3], scale * in[6]},
                                          {scale * in[1], scale * in[4], scale * in[7]},
                                          {scale * in[2], scale * in[5], scale * in[8]}});
}

// Each entry is one rounded quotient and few sums, so that no error is doubled.
RBC_HD Columns<double> columnsOf(const Quaternion<double>& q) {
  const double ww = q.w * q.w;
  const double xx = q.x * q.x;
  const double yy = q.y * q.y;
  const double zz = q.z * q.z;
  const double square = (ww + xx) + (yy + zz);
  const double inverse = detail::unlessInfinite(square, 1 / square);
  const double twice = 2 * inverse;
  return {{((ww + xx) - (yy + zz)) * inverse, mulAdd(q.x, q.y, q.w * q.z) * twice,
           mulAdd(q.x, q.z, -(q.w * q.y)) * twice},
          {mulAdd(q.x, q.y, -(q.w * q.z)) * twice, ((ww - xx) + (yy - zz)) * inverse,
           mulAdd(q.y, q.z, q.w * q.x) * twice},
          {mulAdd(q.x, q.z, q.w * q.y) * twice, mulAdd(q.y, q.z, -(q.w * q.x)) * twice,
           ((ww - xx) - (yy - zz)) * inverse}};
}

// Writes a matrix or 6-D.
RBC_HD void writeColumns(RotationKind kind, const Columns<double>& m, double* out) {
  const auto put = [out](double a, double b, double c, double d, double e, double f) {
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
    out[4] = e;
    out[5] = f;
  };
  switch (kind) {
    case RotationKind::Rot6dColumns: return put(m.x.x, m.x.y, m.x.z, m.y.x, m.y.y, m.y.z);
    case RotationKind::Rot6dInterleaved: return put(m.x.x, m.y.x, m.x.y, m.y.y, m.x.z, m.y.z);
    default: break;
  }
  put(m.x.x, m.y.x, m.z.x, m.x.y, m.y.y, m.z.y);
  if (kind != RotationKind::Matrix) return;
  out[6] = m.x.z;
  out[7] = m.y.z;
  out[8] = m.z.z;
}

}  // namespace RBC_FORMULAS

#endif
