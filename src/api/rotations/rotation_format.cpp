#include "rotations/rotation_format.h"

#include <cinttypes>

#include "robocache/rotations.h"
#include "status.h"

namespace rbc {
namespace {

static_assert(RBC_ROTATION_QUAT_XYZW == static_cast<int>(RotationKind::QuatXyzw) &&
              RBC_ROTATION_QUAT_WXYZ == static_cast<int>(RotationKind::QuatWxyz) &&
              RBC_ROTATION_ROTVEC == static_cast<int>(RotationKind::Rotvec) &&
              RBC_ROTATION_MATRIX == static_cast<int>(RotationKind::Matrix) &&
              RBC_ROTATION_ROT6D_ROWS == static_cast<int>(RotationKind::Rot6dRows) &&
              RBC_ROTATION_ROT6D_COLUMNS == static_cast<int>(RotationKind::Rot6dColumns) &&
              RBC_ROTATION_ROT6D_INTERLEAVED == static_cast<int>(RotationKind::Rot6dInterleaved));
static_assert(RBC_ROTATION_EULER_EXTRINSIC_ZYZ == RBC_ROTATION_EULER_EXTRINSIC_XYZ + 11 &&
              RBC_ROTATION_EULER_INTRINSIC_ZYZ == RBC_ROTATION_EULER_INTRINSIC_XYZ + 11);

RotationFormat eulerFormat(int32_t order, bool extrinsic) {
  // In the order of the constants, from ..._XYZ to ..._ZYZ.
  constexpr EulerAxes kAxes[] = {{0, 1, 2, false}, {0, 2, 1, false}, {1, 0, 2, false},
                                 {1, 2, 0, false}, {2, 0, 1, false}, {2, 1, 0, false},
                                 {0, 1, 0, false}, {0, 2, 0, false}, {1, 0, 1, false},
                                 {1, 2, 1, false}, {2, 0, 2, false}, {2, 1, 2, false}};
  RotationFormat format = {RotationKind::Euler, kAxes[order]};
  format.axes.extrinsic = extrinsic;
  return format;
}

}  // namespace

RotationFormat rotationFormatOf(int32_t value, const char* argument) {
  if (value >= RBC_ROTATION_QUAT_XYZW && value <= RBC_ROTATION_ROT6D_INTERLEAVED) {
    return {static_cast<RotationKind>(value), {}};
  }
  if (value >= RBC_ROTATION_EULER_EXTRINSIC_XYZ && value <= RBC_ROTATION_EULER_EXTRINSIC_ZYZ) {
    return eulerFormat(value - RBC_ROTATION_EULER_EXTRINSIC_XYZ, true);
  }
  if (value >= RBC_ROTATION_EULER_INTRINSIC_XYZ && value <= RBC_ROTATION_EULER_INTRINSIC_ZYZ) {
    return eulerFormat(value - RBC_ROTATION_EULER_INTRINSIC_XYZ, false);
  }
  fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is %" PRId32 ", expected one of RBC_ROTATION_...",
       argument, value);
}

const char* textOf(const RotationFormat& format) {
  constexpr const char* kTexts[] = {"quaternions", "quaternions", "rotation vectors",
                                    "matrices",    "6-D",         "6-D",
                                    "6-D",         "Euler angles"};
  return kTexts[static_cast<int>(format.kind)];
}

}  // namespace rbc
