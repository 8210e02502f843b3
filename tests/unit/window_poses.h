// Relative poses with 113 bits, and bounds on the library's error.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "robocache/windows.h"
#include "support/rotation_reference.h"
#include "support/rotation_representations.h"

namespace support {

inline Representation representationOf(int32_t value) {
  for (const Representation& r : allRepresentations()) {
    if (r.value == value) return r;
  }
  return {};
}

// All channels of a stream in order: its transforms, and copies between them.
template <class Stream>
std::vector<rbcWindowsTransform> coverOf(const Stream& s) {
  std::vector<rbcWindowsTransform> sorted = s.transforms;
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::vector<rbcWindowsTransform> cover;
  int64_t next = 0;
  const auto copyTo = [&](int64_t end) {
    if (next < end)
      cover.push_back({next, end - next, RBC_WINDOWS_TRANSFORM_COPY, 0, 0, 0, 0, 0, 0, 0, 0});
    next = end;
  };
  for (const rbcWindowsTransform& t : sorted) {
    copyTo(t.begin);
    cover.push_back(t);
    next = t.begin + t.count;
  }
  copyTo(s.values.extent(1));
  return cover;
}

struct QuadPose {
  double p[3];  // if it is exact
  Quad q[3];    // otherwise
  bool exact;   // p has the position
  QuadMatrix r;
  bool known;    // the reference can compute the rotation
  bool certain;  // ... or at least that it is valid
  bool finite;   // positions
  double steps;  // number of rotations multiplied
  double reach;  // largest position so far
};

struct BoundedQuad {
  Quad value;
  Quad error;
  bool known;
};

inline bool hasAngles(const Representation& r) {
  return r.format.kind == rbc::RotationKind::Euler || r.format.kind == rbc::RotationKind::Rotvec;
}

// Nothing if the rotation is invalid.
inline std::optional<QuadPose> readPose(const Representation& from, const double* in) {
  QuadPose pose = {};
  pose.exact = pose.known = pose.certain = pose.finite = true;
  pose.steps = 1;
  for (int i = 0; i < 3; ++i) {
    pose.p[i] = in[i];
    pose.q[i] = in[i];
    pose.finite = pose.finite && std::isfinite(in[i]);
    pose.reach = std::max(pose.reach, std::fabs(in[i]));
  }
  const double* r = in + 3;
  const auto channels = static_cast<int>(channelsOf(from));
  double largest = 0;
  for (int i = 0; i < channels; ++i) {
    if (!std::isfinite(r[i])) return {};
    largest = std::max(largest, std::fabs(r[i]));
  }
  if (hasAngles(from)) {
    pose.known = largest < 1e4;
  } else if (largest == 0) {
    return {};
  }
  std::vector<double> scaled(r, r + channels);
  if (!hasAngles(from)) {  // so that products stay in range; the rotation does not change
    int exponent = 0;
    std::frexp(largest, &exponent);
    for (double& x : scaled) x = std::ldexp(x, -exponent);
  }
  switch (from.format.kind) {
    case rbc::RotationKind::Matrix: {
      // The reference does not support matrices that are far from a rotation.
      Quad square = 0;
      for (const double x : scaled) square += static_cast<Quad>(x) * x;
      const Quad size = square / 3;
      const auto& m = scaled;
      const double determinant = m[0] * (m[4] * m[8] - m[5] * m[7]) -
                                 m[1] * (m[3] * m[8] - m[5] * m[6]) +
                                 m[2] * (m[3] * m[7] - m[4] * m[6]);
      for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
          Quad dot = 0;
          for (int k = 0; k < 3; ++k) dot += static_cast<Quad>(m[3 * i + k]) * m[3 * j + k];
          if (absolute(dot / size - (i == j ? 1 : 0)) > static_cast<Quad>(0.2)) pose.known = false;
        }
      }
      if (pose.known && determinant < 0) return {};
      pose.certain = pose.known;
      if (!pose.known) return pose;
      pose.r = readReference(from.format, scaled.data(), 9);
      return pose;
    }
    case rbc::RotationKind::Rot6dRows:
    case rbc::RotationKind::Rot6dColumns:
    case rbc::RotationKind::Rot6dInterleaved: {
      const bool interleaved = from.format.kind == rbc::RotationKind::Rot6dInterleaved;
      Quad aa = 0;
      Quad bb = 0;
      Quad ab = 0;
      for (int i = 0; i < 3; ++i) {
        const Quad a = scaled[static_cast<size_t>(interleaved ? 2 * i : i)];
        const Quad b = scaled[static_cast<size_t>(interleaved ? 2 * i + 1 : 3 + i)];
        aa += a * a;
        bb += b * b;
        ab += a * b;
      }
      const Quad across = aa * bb - ab * ab;
      if (across <= static_cast<Quad>(0x1p-100) * aa * bb) return {};
      pose.known = across > static_cast<Quad>(1e-6) * aa * bb;
      break;
    }
    default: break;
  }
  if (pose.known) pose.r = readReference(from.format, scaled.data());
  return pose;
}

inline QuadPose combined(const QuadPose& a, const QuadPose& b) {
  QuadPose c = {};
  c.known = a.known && b.known;
  c.certain = a.certain && b.certain;
  c.finite = a.finite && b.finite;
  c.steps = a.steps + b.steps;
  c.reach = a.reach + b.reach;
  return c;
}

// p - pr, exact in double: the only rounding is that of one operation.
inline void addPositions(const QuadPose& a, const QuadPose& b, int sign, QuadPose* c) {
  c->exact = a.exact && b.exact;
  for (int i = 0; i < 3; ++i) {
    c->p[i] = a.p[i] + sign * b.p[i];
    c->q[i] = c->p[i];
  }
}

inline QuadPose taken(int32_t kind, const QuadPose& from, const QuadPose& pose) {
  QuadPose c = combined(from, pose);
  if (kind != RBC_WINDOWS_TRANSFORM_SE3_RELATIVE) {
    addPositions(pose, from, -1, &c);
    c.r = product(pose.r, transposed(from.r));
    return c;
  }
  const QuadMatrix back = transposed(from.r);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) c.q[i] += back.m[i][j] * (pose.q[j] - from.q[j]);
  }
  c.r = product(back, pose.r);
  return c;
}

inline QuadPose joined(int32_t kind, const QuadPose& from, const QuadPose& pose) {
  QuadPose c = combined(from, pose);
  if (kind != RBC_WINDOWS_TRANSFORM_SE3_RELATIVE) {
    if (kind == RBC_WINDOWS_TRANSFORM_SE3_STEP) {
      addPositions(from, pose, 1, &c);
    } else {
      addPositions(pose, from, 1, &c);
    }
    c.r = product(pose.r, from.r);
    return c;
  }
  for (int i = 0; i < 3; ++i) {
    c.q[i] = from.q[i];
    for (int j = 0; j < 3; ++j) c.q[i] += from.r.m[i][j] * pose.q[j];
  }
  c.r = product(from.r, pose.r);
  return c;
}

// Near a place where two forms of a rotation meet, rounding decides between them.
inline bool isAmbiguous(const Representation& to, const QuadMatrix& r,
                        const std::vector<Quad>& numbers) {
  const auto near = [](Quad x, double to_what) {
    return absolute(x - static_cast<Quad>(to_what)) < static_cast<Quad>(1e-5);
  };
  switch (to.format.kind) {
    case rbc::RotationKind::QuatXyzw:
    case rbc::RotationKind::QuatWxyz:
    case rbc::RotationKind::Rotvec: return near(quaternionOf(r).w, 0);
    case rbc::RotationKind::Euler: {
      constexpr double kPi = 3.14159265358979323846;
      if (near(absolute(numbers[0]), kPi) || near(absolute(numbers[2]), kPi)) return true;
      const bool symmetric = to.format.axes.first == to.format.axes.third;
      const double low = symmetric ? 0 : -kPi / 2;
      const double high = symmetric ? kPi : kPi / 2;
      return near(numbers[1], low) || near(numbers[1], high);
    }
    default: return false;
  }
}

inline std::vector<BoundedQuad> writePose(const Representation& to, const QuadPose& pose) {
  std::vector<BoundedQuad> all;
  for (int i = 0; i < 3; ++i) {
    const bool known = pose.certain && (pose.exact || (pose.finite && pose.known));
    all.push_back({pose.exact ? static_cast<Quad>(pose.p[i]) : pose.q[i],
                   pose.exact ? Quad(0) : static_cast<Quad>(pose.reach * 0x1p-47 * pose.steps),
                   known});
  }
  std::vector<Quad> numbers(static_cast<size_t>(channelsOf(to)));
  bool known = pose.known;
  if (known) {
    numbers = writeReference(to.format, pose.r);
    known = !isAmbiguous(to, pose.r, numbers);
  }
  for (const Quad x : numbers) {
    all.push_back({x, static_cast<Quad>(0x1p-47 * pose.steps), known});
  }
  return all;
}

}  // namespace support
