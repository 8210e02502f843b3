/*
 * RoboCache: rotations from one representation to another.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_ROTATIONS_H
#define ROBOCACHE_ROTATIONS_H

#include <string.h>

#include "base.h"
#include "context.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Representations of a rotation. The comments give the number of channels and the convention.
 * Matrices act on column vectors; r01 is in the first row and the second column.
 */
#define RBC_ROTATION_QUAT_XYZW 0     /* 4: as in SciPy, ROS, LeRobot */
#define RBC_ROTATION_QUAT_WXYZ 1     /* 4: as in PyTorch3D, MuJoCo */
#define RBC_ROTATION_ROTVEC 2        /* 3: the axis times the angle in radians */
#define RBC_ROTATION_MATRIX 3        /* 9: row-major */
#define RBC_ROTATION_ROT6D_ROWS 4    /* 6: r00 r01 r02 r10 r11 r12, as in PyTorch3D, UMI, GR00T */
#define RBC_ROTATION_ROT6D_COLUMNS 5 /* 6: r00 r10 r20 r01 r11 r21 */
#define RBC_ROTATION_ROT6D_INTERLEAVED 6 /* 6: r00 r01 r10 r11 r20 r21 */

/*
 * Euler angles about fixed (extrinsic) axes: 3 channels in radians, in the order of the axes. The
 * first rotation is by the first angle about the first axis, the second by the second angle about
 * the second axis, and so on. ROS's roll, pitch and yaw are extrinsic xyz; SciPy writes extrinsic
 * axes in lower case.
 */
#define RBC_ROTATION_EULER_EXTRINSIC_XYZ 16
#define RBC_ROTATION_EULER_EXTRINSIC_XZY 17
#define RBC_ROTATION_EULER_EXTRINSIC_YXZ 18
#define RBC_ROTATION_EULER_EXTRINSIC_YZX 19
#define RBC_ROTATION_EULER_EXTRINSIC_ZXY 20
#define RBC_ROTATION_EULER_EXTRINSIC_ZYX 21
#define RBC_ROTATION_EULER_EXTRINSIC_XYX 22
#define RBC_ROTATION_EULER_EXTRINSIC_XZX 23
#define RBC_ROTATION_EULER_EXTRINSIC_YXY 24
#define RBC_ROTATION_EULER_EXTRINSIC_YZY 25
#define RBC_ROTATION_EULER_EXTRINSIC_ZXZ 26
#define RBC_ROTATION_EULER_EXTRINSIC_ZYZ 27

/* Euler angles about axes that the earlier rotations have turned (SciPy: upper case). */
#define RBC_ROTATION_EULER_INTRINSIC_XYZ 32
#define RBC_ROTATION_EULER_INTRINSIC_XZY 33
#define RBC_ROTATION_EULER_INTRINSIC_YXZ 34
#define RBC_ROTATION_EULER_INTRINSIC_YZX 35
#define RBC_ROTATION_EULER_INTRINSIC_ZXY 36
#define RBC_ROTATION_EULER_INTRINSIC_ZYX 37
#define RBC_ROTATION_EULER_INTRINSIC_XYX 38
#define RBC_ROTATION_EULER_INTRINSIC_XZX 39
#define RBC_ROTATION_EULER_INTRINSIC_YXY 40
#define RBC_ROTATION_EULER_INTRINSIC_YZY 41
#define RBC_ROTATION_EULER_INTRINSIC_ZXZ 42
#define RBC_ROTATION_EULER_INTRINSIC_ZYZ 43

/* The representations that rbcConvertRotations reads and writes. */
typedef struct rbcConvertRotationsParams {
  uint32_t struct_size;
  uint32_t flags; /* 0 */
  int32_t source; /* RBC_ROTATION_...: the representation of `rotations`; default QUAT_XYZW */
  int32_t target; /* RBC_ROTATION_...: the representation of `out`; default QUAT_XYZW */
} rbcConvertRotationsParams;

static inline rbcConvertRotationsParams rbcConvertRotationsParamsInit(void) {
  rbcConvertRotationsParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Converts rotations to another representation.
 *
 *   rotations  [...,C]: any shape with the channels of `source` at its end; f16, bf16, f32, f64
 *   out        [...,D]: the same shape with the channels of `target`; f16, bf16, f32, f64
 *   params     not null. If target is source, rotations are brought to the form below
 *
 * Strides may be 0 or negative; no tensor is copied. Both tensors are on the context's device.
 * `out` must not overlap `rotations`. Every element of `out` is written.
 *
 * Inputs:
 *   quaternions  any length except 0; q and -q are the same rotation.
 *   rotvec,      any angle, also more than a turn.
 *   euler
 *   matrix       the rotation nearest to the matrix by least squares of the entries, its polar
 *                factor (Higham, "Computing the polar decomposition - with applications", 1986).
 *   6-D          any two vectors that are not parallel, by Gram and Schmidt: the first keeps its
 *                direction, and the second its side of the first (Zhou et al., "On the continuity
 *                of rotation representations in neural networks", 2019).
 *
 * Outputs:
 *   quaternions  length 1 and w >= 0; if w is 0, the first of x, y, z that is not 0 is positive.
 *   rotvec       an angle in [0, pi]; at pi the first component that is not 0 is positive.
 *   euler        the first and third angle in [-pi, pi], the second in [-pi/2, pi/2], or in [0, pi]
 *                if the last axis is the first axis again. Within 1e-7 of the ends of that range
 *                (gimbal lock) the third angle is 0. As SciPy, by Bernardes and Viollet,
 *                "Quaternion to Euler angles conversion: a direct, general and computationally
 *                efficient method", 2022.
 *
 * An input that is not a rotation gives NaN in all channels, never an arbitrary rotation: a
 * quaternion of zeros, a number that is not finite, vectors of 6-D that are zero or parallel (to
 * 2^-50), a matrix without a positive determinant (to 2^-40 of that of a rotation of its size).
 *
 * Arithmetic is in f64, with extra precision for Euler angles, for all dtypes, and then rounded
 * once to the dtype of `out`. In f64, components are within 4 * 2^-52 and angles within 4 * 2^-51
 * of the exact result. Any NaN written is the positive quiet NaN with all payload bits set. CPU and
 * CUDA agree bit for bit: no function of a math library is called.
 *
 * CUDA: one launch on the context's stream, no allocation, no synchronization, can be captured.
 * CPU: returns when done; large calls use several of the context's threads.
 *
 * Errors: INVALID_ARGUMENT, DEVICE_MISMATCH, DTYPE_MISMATCH, SHAPE_MISMATCH, UNSUPPORTED,
 * CUDA_ERROR. A call without rotations succeeds.
 */
RBC_API rbcStatus_t rbcConvertRotations(rbcContext_t context, const rbcTensor* rotations,
                                        const rbcOutput* out,
                                        const rbcConvertRotationsParams* params);

/*
 * Writes the size in bytes of the workspace that the same call of rbcConvertRotations needs, for
 * rbcContextReserve. So far it is 0. Checks the arguments as that call does; on failure *bytes does
 * not change.
 */
RBC_API rbcStatus_t rbcConvertRotationsWorkspaceSize(rbcContext_t context,
                                                     const rbcTensor* rotations,
                                                     const rbcOutput* out,
                                                     const rbcConvertRotationsParams* params,
                                                     size_t* bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_ROTATIONS_H */
