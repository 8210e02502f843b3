// Rotations with 113 bits, by the textbook's formulas: every representation is read as a matrix and
// written from one.
#pragma once

#include <vector>

#include "quad.h"
#include "quad_rotation.h"
#include "rotation_kind.h"

namespace support {

// ---- reading ------------------------------------------------------------------------------------

inline QuadMatrix ofEuler(const rbc::EulerAxes& axes, const double* angles) {
  const QuadMatrix first = aboutAxis(axes.first, angles[0]);
  const QuadMatrix second = aboutAxis(axes.second, angles[1]);
  const QuadMatrix third = aboutAxis(axes.third, angles[2]);
  return axes.extrinsic ? product(third, product(second, first))
                        : product(first, product(second, third));
}

// `steps`: iterations that convert a matrix to a rotation.
inline QuadMatrix readReference(const rbc::RotationFormat& from, const double* in, int steps = 3) {
  using Kind = rbc::RotationKind;
  switch (from.kind) {
    case Kind::QuatXyzw: return ofQuaternion(in[3], in[0], in[1], in[2]);
    case Kind::QuatWxyz: return ofQuaternion(in[0], in[1], in[2], in[3]);
    case Kind::Rotvec: return ofRotvec(in);
    case Kind::Matrix: return ofMatrix(in, steps);
    case Kind::Rot6dRows:
      return transposed(byGramSchmidt({in[0], in[1], in[2]}, {in[3], in[4], in[5]}));
    case Kind::Rot6dColumns: return byGramSchmidt({in[0], in[1], in[2]}, {in[3], in[4], in[5]});
    case Kind::Rot6dInterleaved: return byGramSchmidt({in[0], in[2], in[4]}, {in[1], in[3], in[5]});
    case Kind::Euler: break;
  }
  return ofEuler(from.axes, in);
}

// ---- writing ------------------------------------------------------------------------------------

// For R = Ra(alpha) Rb(beta) Rc(gamma).
inline void eulerOf(const rbc::EulerAxes& axes, const QuadMatrix& r, Quad* angles) {
  const auto& m = r.m;
  const int a = axes.extrinsic ? axes.third : axes.first;
  const int b = axes.second;
  const int c = axes.extrinsic ? axes.first : axes.third;
  const int k = 3 - a - b;
  const Quad even = (b - a + 3) % 3 == 1 ? 1 : -1;
  Quad alpha;
  Quad beta;
  Quad gamma;
  Quad sum;         // alpha + gamma and alpha - gamma: near the ends of beta
  Quad difference;  // only one of them is defined
  Quad from_low;    // from the ends of beta, which is negated for odd axes
  Quad from_high;
  if (a == c) {
    const Quad sine = squareRoot(m[a][b] * m[a][b] + m[a][k] * m[a][k]);
    alpha = arcTangent(m[b][a], -even * m[k][a]);
    beta = arcTangent(sine, m[a][a]);
    gamma = arcTangent(m[a][b], even * m[a][k]);
    sum = arcTangent(even * (m[k][b] - m[b][k]), m[b][b] + m[k][k]);
    difference = arcTangent(even * (m[k][b] + m[b][k]), m[b][b] - m[k][k]);
    from_low = arcTangent(sine, m[a][a]);
    from_high = arcTangent(sine, -m[a][a]);
  } else {
    const Quad cosine = squareRoot(m[a][a] * m[a][a] + m[a][b] * m[a][b]);
    alpha = arcTangent(-even * m[b][c], m[c][c]);
    beta = arcTangent(even * m[a][c], cosine);
    gamma = arcTangent(-even * m[a][b], m[a][a]);
    sum = even * arcTangent(m[b][a] + m[c][b], m[b][b] - m[c][a]);
    difference = even * arcTangent(m[c][b] - m[b][a], m[b][b] + m[c][a]);
    from_low = arcTangent(cosine, -m[a][c]);
    from_high = arcTangent(cosine, m[a][c]);
  }
  const bool low = from_low <= static_cast<Quad>(1e-7);
  const bool high = from_high <= static_cast<Quad>(1e-7);
  if (low || high) {
    const bool is_sum = a == c ? low : high;
    const Quad left = is_sum ? sum : difference;
    // With gamma or alpha 0, it is alpha or gamma; in the difference with a minus.
    alpha = axes.extrinsic ? Quad(0) : left;
    gamma = !axes.extrinsic ? Quad(0) : is_sum ? left : -left;
  }
  angles[0] = axes.extrinsic ? gamma : alpha;
  angles[1] = beta;
  angles[2] = axes.extrinsic ? alpha : gamma;
}

inline std::vector<Quad> writeReference(const rbc::RotationFormat& to, const QuadMatrix& r) {
  using Kind = rbc::RotationKind;
  const auto& m = r.m;
  switch (to.kind) {
    case Kind::QuatXyzw: {
      const QuadQuaternion q = quaternionOf(r);
      return {q.v[0], q.v[1], q.v[2], q.w};
    }
    case Kind::QuatWxyz: {
      const QuadQuaternion q = quaternionOf(r);
      return {q.w, q.v[0], q.v[1], q.v[2]};
    }
    case Kind::Rotvec: {
      const QuadQuaternion q = quaternionOf(r);
      const Quad length = squareRoot(q.v[0] * q.v[0] + q.v[1] * q.v[1] + q.v[2] * q.v[2]);
      const Quad factor = length == 0 ? Quad(2) : 2 * arcTangent(length, q.w) / length;
      return {factor * q.v[0], factor * q.v[1], factor * q.v[2]};
    }
    case Kind::Matrix:
      return {m[0][0], m[0][1], m[0][2], m[1][0], m[1][1], m[1][2], m[2][0], m[2][1], m[2][2]};
    case Kind::Rot6dRows: return {m[0][0], m[0][1], m[0][2], m[1][0], m[1][1], m[1][2]};
    case Kind::Rot6dColumns: return {m[0][0], m[1][0], m[2][0], m[0][1], m[1][1], m[2][1]};
    case Kind::Rot6dInterleaved: return {m[0][0], m[0][1], m[1][0], m[1][1], m[2][0], m[2][1]};
    case Kind::Euler: break;
  }
  std::vector<Quad> angles(3);
  eulerOf(to.axes, r, angles.data());
  return angles;
}

}  // namespace support
