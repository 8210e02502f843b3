// The representations of rotations.
#pragma once

#include <cstdint>

#include "platform.h"

namespace rbc {

// Matrices act on column vectors: r01 is in the first row and the second column.
enum class RotationKind : uint8_t {
  QuatXyzw,
  QuatWxyz,
  Rotvec,            // the axis times the angle in radians
  Matrix,            // row-major
  Rot6dRows,         // r00 r01 r02 r10 r11 r12
  Rot6dColumns,      // r00 r10 r20 r01 r11 r21
  Rot6dInterleaved,  // r00 r01 r10 r11 r20 r21
  Euler,             // three angles in radians, in the order of the axes
};

// The axes of Euler angles, 0 to 2; neighbours differ. Extrinsic: about fixed axes, one after the
// other; intrinsic: about axes turned by the preceding angles.
struct EulerAxes {
  uint8_t first;
  uint8_t second;
  uint8_t third;
  bool extrinsic;
};

struct RotationFormat {
  RotationKind kind;
  EulerAxes axes;  // of Euler angles
};

RBC_HD int channelsOf(RotationKind kind) {
  switch (kind) {
    case RotationKind::QuatXyzw:
    case RotationKind::QuatWxyz: return 4;
    case RotationKind::Rotvec:
    case RotationKind::Euler: return 3;
    case RotationKind::Matrix: return 9;
    case RotationKind::Rot6dRows:
    case RotationKind::Rot6dColumns:
    case RotationKind::Rot6dInterleaved: return 6;
  }
  return 0;
}

// Whether it lists entries of a rotation matrix.
RBC_HD bool listsEntries(RotationKind kind) {
  return kind == RotationKind::Matrix || kind == RotationKind::Rot6dRows ||
         kind == RotationKind::Rot6dColumns || kind == RotationKind::Rot6dInterleaved;
}

}  // namespace rbc
