// Every RBC_ROTATION_... and its meaning.
#pragma once

#include <cstdint>
#include <vector>

#include "robocache/rotations.h"
#include "rotation_kind.h"

namespace support {

struct Representation {
  int32_t value;
  rbc::RotationFormat format;
};

// By the names of the constants: axes from 0 for X.
inline std::vector<Representation> allRepresentations() {
  using Kind = rbc::RotationKind;
  std::vector<Representation> all = {
      {RBC_ROTATION_QUAT_XYZW, {Kind::QuatXyzw, {}}},
      {RBC_ROTATION_QUAT_WXYZ, {Kind::QuatWxyz, {}}},
      {RBC_ROTATION_ROTVEC, {Kind::Rotvec, {}}},
      {RBC_ROTATION_MATRIX, {Kind::Matrix, {}}},
      {RBC_ROTATION_ROT6D_ROWS, {Kind::Rot6dRows, {}}},
      {RBC_ROTATION_ROT6D_COLUMNS, {Kind::Rot6dColumns, {}}},
      {RBC_ROTATION_ROT6D_INTERLEAVED, {Kind::Rot6dInterleaved, {}}}};
  const auto add = [&](int32_t extrinsic, int32_t intrinsic, const char* axes) {
    const auto axis = [&](int i) { return static_cast<uint8_t>(axes[i] - 'X'); };
    all.push_back({extrinsic, {Kind::Euler, {axis(0), axis(1), axis(2), true}}});
    all.push_back({intrinsic, {Kind::Euler, {axis(0), axis(1), axis(2), false}}});
  };
#define ADD(axes) \
  add(RBC_ROTATION_EULER_EXTRINSIC_##axes, RBC_ROTATION_EULER_INTRINSIC_##axes, #axes)
  ADD(XYZ);
  ADD(XZY);
  ADD(YXZ);
  ADD(YZX);
  ADD(ZXY);
  ADD(ZYX);
  ADD(XYX);
  ADD(XZX);
  ADD(YXY);
  ADD(YZY);
  ADD(ZXZ);
  ADD(ZYZ);
#undef ADD
  return all;
}

inline int64_t channelsOf(const Representation& r) { return rbc::channelsOf(r.format.kind); }

}  // namespace support
