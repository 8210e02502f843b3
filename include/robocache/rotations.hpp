// Rotations from one representation to another. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "context.hpp"
#include "rotations.h"

ROBOCACHE_NAMESPACE_BEGIN

// Representations of a rotation: see RBC_ROTATION_... in rotations.h.
enum class Rotation : int32_t {
  kQuatXyzw = RBC_ROTATION_QUAT_XYZW,
  kQuatWxyz = RBC_ROTATION_QUAT_WXYZ,
  kRotvec = RBC_ROTATION_ROTVEC,
  kMatrix = RBC_ROTATION_MATRIX,
  kRot6dRows = RBC_ROTATION_ROT6D_ROWS,
  kRot6dColumns = RBC_ROTATION_ROT6D_COLUMNS,
  kRot6dInterleaved = RBC_ROTATION_ROT6D_INTERLEAVED,
  kEulerExtrinsicXyz = RBC_ROTATION_EULER_EXTRINSIC_XYZ,
  kEulerExtrinsicXzy = RBC_ROTATION_EULER_EXTRINSIC_XZY,
  kEulerExtrinsicYxz = RBC_ROTATION_EULER_EXTRINSIC_YXZ,
  kEulerExtrinsicYzx = RBC_ROTATION_EULER_EXTRINSIC_YZX,
  kEulerExtrinsicZxy = RBC_ROTATION_EULER_EXTRINSIC_ZXY,
  kEulerExtrinsicZyx = RBC_ROTATION_EULER_EXTRINSIC_ZYX,
  kEulerExtrinsicXyx = RBC_ROTATION_EULER_EXTRINSIC_XYX,
  kEulerExtrinsicXzx = RBC_ROTATION_EULER_EXTRINSIC_XZX,
  kEulerExtrinsicYxy = RBC_ROTATION_EULER_EXTRINSIC_YXY,
  kEulerExtrinsicYzy = RBC_ROTATION_EULER_EXTRINSIC_YZY,
  kEulerExtrinsicZxz = RBC_ROTATION_EULER_EXTRINSIC_ZXZ,
  kEulerExtrinsicZyz = RBC_ROTATION_EULER_EXTRINSIC_ZYZ,
  kEulerIntrinsicXyz = RBC_ROTATION_EULER_INTRINSIC_XYZ,
  kEulerIntrinsicXzy = RBC_ROTATION_EULER_INTRINSIC_XZY,
  kEulerIntrinsicYxz = RBC_ROTATION_EULER_INTRINSIC_YXZ,
  kEulerIntrinsicYzx = RBC_ROTATION_EULER_INTRINSIC_YZX,
  kEulerIntrinsicZxy = RBC_ROTATION_EULER_INTRINSIC_ZXY,
  kEulerIntrinsicZyx = RBC_ROTATION_EULER_INTRINSIC_ZYX,
  kEulerIntrinsicXyx = RBC_ROTATION_EULER_INTRINSIC_XYX,
  kEulerIntrinsicXzx = RBC_ROTATION_EULER_INTRINSIC_XZX,
  kEulerIntrinsicYxy = RBC_ROTATION_EULER_INTRINSIC_YXY,
  kEulerIntrinsicYzy = RBC_ROTATION_EULER_INTRINSIC_YZY,
  kEulerIntrinsicZxz = RBC_ROTATION_EULER_INTRINSIC_ZXZ,
  kEulerIntrinsicZyz = RBC_ROTATION_EULER_INTRINSIC_ZYZ,
};

namespace detail {

// Returns finish(call, arguments of rbcConvertRotations...).
template <class Finish>
auto convertRotations(const Finish& finish, const Context& context, const Tensor& rotations,
                      const Tensor& out, Rotation source, Rotation target) {
  Call call;
  rbcConvertRotationsParams params = rbcConvertRotationsParamsInit();
  params.source = static_cast<int32_t>(source);
  params.target = static_cast<int32_t>(target);
  return finish(call, context.get(), call.in(rotations, "rotations"), call.out(out, "out"),
                &params);
}

}  // namespace detail

// Converts rotations to another representation.
//
//   rotations  [...,C]: any shape with the channels of `source` at its end
//   out        [...,D]: the same shape with the channels of `target`; written whole
//
// See rbcConvertRotations for dtypes, rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> convertRotations(const Context& context, const Tensor& rotations,
                                        const Tensor& out, Rotation source, Rotation target) {
  return detail::convertRotations(detail::run<Errors>(rbcConvertRotations), context, rotations, out,
                                  source, target);
}

// Returns the workspace size in bytes of this call of convertRotations, for Context::reserve.
template <class Errors = DefaultErrors>
Returned<Errors, size_t> convertRotationsWorkspaceSize(const Context& context,
                                                       const Tensor& rotations, const Tensor& out,
                                                       Rotation source, Rotation target) {
  return detail::convertRotations(detail::measure<Errors>(rbcConvertRotationsWorkspaceSize),
                                  context, rotations, out, source, target);
}

ROBOCACHE_NAMESPACE_END
