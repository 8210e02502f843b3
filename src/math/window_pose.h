// Poses relative to another: positions in double, rotations as quaternions of any length.
//
// To read the formulas again for another SIMD level, include it after rotation.h.
#if !defined(RBC_MATH_WINDOW_POSE_H) || defined(RBC_FORMULAS_AGAIN)
#define RBC_MATH_WINDOW_POSE_H

#if !defined(RBC_FORMULAS_AGAIN)
#include "rotation.h"
#include "window.h"
#endif

namespace RBC_FORMULAS {

// Number is double, or DoubleDouble if Euler angles are written: see convertRotation().
template <class Number>
struct Pose {
  Vector3<double> p;
  Quaternion<Number> q;
};

// Whether the rotation is valid: readRotation() returns NaN if not.
template <class Number>
RBC_HD bool isRotation(const Quaternion<Number>& rotation) {
  const Quaternion<double> q = head(rotation);
  return q.w == q.w && q.x == q.x && q.y == q.y && q.z == q.z;
}

template <class Number>
RBC_HD Pose<Number> readPose(const RotationFormat& from, const double* in) {
  return {{in[0], in[1], in[2]}, RBC_FORMULAS::readRotation<Number>(from, in + kPositionChannels)};
}

template <class Number>
RBC_HD void writePose(const RotationFormat& to, const Pose<Number>& pose, double* out) {
  out[0] = pose.p.x;
  out[1] = pose.p.y;
  out[2] = pose.p.z;
  writeRotation(to, pose.q, out + kPositionChannels);
}

namespace detail {

RBC_HD double dotFused(const Vector3<double>& a, double x, double y, double z) {
  return mulAdd(a.z, z, mulAdd(a.y, y, a.x * x));
}

// The quaternion scaled by a power of two, such that products of many stay in range.
RBC_HD Quaternion<double> inRange(const Quaternion<double>& q, double scale) {
  return {q.w * scale, q.x * scale, q.y * scale, q.z * scale};
}
RBC_HD Quaternion<DoubleDouble> inRange(const Quaternion<DoubleDouble>& q, double scale) {
  return {scaled(q.w, scale), scaled(q.x, scale), scaled(q.y, scale), scaled(q.z, scale)};
}

}  // namespace detail

// The reference of relative poses: computed once for all of them.
template <class Number>
struct PoseReference {
  Vector3<double> p;
  Quaternion<Number> q;
  Columns<double> m;  // of q
};

template <class Number>
RBC_HD PoseReference<Number> referenceOf(const Pose<Number>& pose) {
  return {pose.p, pose.q, columnsOf(head(pose.q))};
}

template <class Number>
RBC_HD Pose<Number> relativePose(PoseKind kind, const PoseReference<Number>& to,
                                 const Pose<Number>& pose) {
  const Vector3<double> d = {pose.p.x - to.p.x, pose.p.y - to.p.y, pose.p.z - to.p.z};
  if (kind == PoseKind::kWorld) return {d, pose.q * inverse(to.q)};
  return {{detail::dotFused(to.m.x, d.x, d.y, d.z), detail::dotFused(to.m.y, d.x, d.y, d.z),
           detail::dotFused(to.m.z, d.x, d.y, d.z)},
          inverse(to.q) * pose.q};
}

// The inverse of relativePose().
template <class Number>
RBC_HD Pose<Number> absolutePose(PoseKind kind, const PoseReference<Number>& to,
                                 const Pose<Number>& pose) {
  const Vector3<double>& p = pose.p;
  if (kind == PoseKind::kWorld) {
    return {{p.x + to.p.x, p.y + to.p.y, p.z + to.p.z}, pose.q * to.q};
  }
  const Vector3<double> rows[] = {{to.m.x.x, to.m.y.x, to.m.z.x},
                                  {to.m.x.y, to.m.y.y, to.m.z.y},
                                  {to.m.x.z, to.m.y.z, to.m.z.z}};
  return {{detail::dotFused(rows[0], p.x, p.y, p.z) + to.p.x,
           detail::dotFused(rows[1], p.x, p.y, p.z) + to.p.y,
           detail::dotFused(rows[2], p.x, p.y, p.z) + to.p.z},
          to.q * pose.q};
}

// The sum of steps and one more step, applied in the frame where the sum ends. The length of the
// quaternion does not grow with the number of steps.
template <class Number>
RBC_HD Pose<Number> afterStep(const Pose<Number>& sum, const Pose<Number>& step) {
  const Quaternion<Number> q = step.q * sum.q;
  const Quaternion<double> h = head(q);
  const double scale = detail::scaleOf(detail::magnitude(h.w, h.x, h.y, h.z));
  return {{sum.p.x + step.p.x, sum.p.y + step.p.y, sum.p.z + step.p.z}, detail::inRange(q, scale)};
}

}  // namespace RBC_FORMULAS

#endif
