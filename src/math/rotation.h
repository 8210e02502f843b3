// A rotation from one representation to another.
//
//   Quaternion<Number> q = readRotation<Number>(from, in);   writeRotation(to, q, out);
//
// or convertRotation(from, to, in, out), which chooses the Number and skips the quaternion where it
// is not needed. An invalid rotation gives NaN in all channels: a quaternion of zeros, a number
// that is not finite, vectors of 6-D that are zero or parallel (to 2^-50), a matrix without a
// positive determinant (to 2^-40 of the determinant of a rotation of its size).
//
// A matrix means the rotation nearest to it, by least squares of its entries: its polar factor, as
// from a singular value decomposition; a scale factor has no effect. 6-D is decoded by Gram and
// Schmidt: the first vector keeps its direction, the second its side of it.
//
// Components are within 4 * 2^-52, angles within 4 * 2^-51 of the exact meaning of the input, also
// near the singularity of Euler angles and after many turns.
//
// To read the formulas again for another SIMD level (RBC_FORMULAS_AGAIN), into a separate namespace
// in rbc, include slerp.h, double_double.h, trig.h, quaternion.h, euler.h, rotation_matrix.h and
// this header, in that order. A call without an argument of these types must name its namespace.
#if !defined(RBC_MATH_ROTATION_H) || defined(RBC_FORMULAS_AGAIN)
#define RBC_MATH_ROTATION_H

#if !defined(RBC_FORMULAS_AGAIN)
#include "euler.h"
#include "quaternion.h"
#include "rotation_kind.h"
#include "rotation_matrix.h"
#endif

namespace RBC_FORMULAS {
namespace detail {

// For a representation that lists entries.
template <class Number>
RBC_HD Columns<Number> readColumns(RotationKind kind, const double* in, bool narrow) {
  return kind == RotationKind::Matrix ? readMatrix<Number>(in)
                                      : RBC_FORMULAS::readRot6d<Number>(kind, in, narrow);
}

}  // namespace detail

template <class Number>
RBC_HD Quaternion<Number> readRotation(const RotationFormat& from, const double* in,
                                       bool narrow = false) {
  switch (from.kind) {
    case RotationKind::QuatXyzw: return readQuaternion<Number>(in[3], in[0], in[1], in[2], narrow);
    case RotationKind::QuatWxyz: return readQuaternion<Number>(in[0], in[1], in[2], in[3], narrow);
    case RotationKind::Rotvec: return readRotvec<Number>(in[0], in[1], in[2]);
    case RotationKind::Euler:
      return RBC_FORMULAS::readEuler<Number>(from.axes, {in[0], in[1], in[2]});
    default: return quaternionOf(detail::readColumns<Number>(from.kind, in, narrow));
  }
}

// Only Euler angles use a DoubleDouble.
template <class Number>
RBC_HD void writeRotation(const RotationFormat& to, const Quaternion<Number>& q, double* out) {
  switch (to.kind) {
    case RotationKind::QuatXyzw:
    case RotationKind::QuatWxyz: {
      const Quaternion<double> unit = writeQuaternion(head(q));
      const bool last = to.kind == RotationKind::QuatXyzw;
      out[0] = last ? unit.x : unit.w;
      out[1] = last ? unit.y : unit.x;
      out[2] = last ? unit.z : unit.y;
      out[3] = last ? unit.w : unit.z;
      return;
    }
    case RotationKind::Rotvec:
    case RotationKind::Euler: {
      const Vector3<double> v =
          to.kind == RotationKind::Rotvec ? writeRotvec(head(q)) : writeEuler(to.axes, q);
      out[0] = v.x;
      out[1] = v.y;
      out[2] = v.z;
      return;
    }
    default: writeColumns(to.kind, columnsOf(head(q)), out);
  }
}

// out may be in. `narrow` means that f32 can hold all numbers of `in`: fewer instructions, the same
// bits.
RBC_HD void convertRotation(const RotationFormat& from, const RotationFormat& to, const double* in,
                            double* out, bool narrow = false) {
  if (to.kind == RotationKind::Euler) {
    writeRotation(to, RBC_FORMULAS::readRotation<DoubleDouble>(from, in), out);
  } else if (listsEntries(from.kind) && listsEntries(to.kind)) {
    writeColumns(to.kind, detail::readColumns<double>(from.kind, in, narrow), out);
  } else {
    writeRotation(to, RBC_FORMULAS::readRotation<double>(from, in, narrow), out);
  }
}

}  // namespace RBC_FORMULAS

#endif
