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
 * How a rotation is written down, and in how many channels. Matrices act on column vectors; r01
 * stands in the first row and the second column.
 */
#define RBC_ROTATION_QUAT_XYZW 0   /* 4: as SciPy, ROS, LeRobot */
#define RBC_ROTATION_QUAT_WXYZ 1   /* 4: as PyTorch3D, MuJoCo */
#define RBC_ROTATION_ROTVEC 2      /* 3: the axis times the angle in radians */
#define RBC_ROTATION_MATRIX 3      /* 9: row-major */
#define RBC_ROTATION_ROT6D_ROWS 4  /* 6: r00 r01 r02 r10 r11 r12, as PyTorch3D, UMI, GR00T */
#define RBC_ROTATION_ROT6D_COLUMNS 5     /* 6: r00 r10 r20 r01 r11 r21 */
#define RBC_ROTATION_ROT6D_INTERLEAVED 6 /* 6: r00 r01 r10 r11 r20 r21 */

/*
 * Euler angles, 3 channels in radians, in the order of the axes: by the first angle about the first
 * axis, then by the second about the second. Extrinsic axes stand still (ROS's roll, pitch and yaw
 * are extrinsic xyz; SciPy writes them in lower case).
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

/* The same about axes that the angles before have turned (SciPy: upper case). */
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

/* Between which representations. */
typedef struct rbcConvertRotationsParams {
  uint32_t struct_size;
  uint32_t flags; /* 0 */
  int32_t source; /* RBC_ROTATION_...: what `rotations` are; default QUAT_XYZW */
  int32_t target; /* RBC_ROTATION_...: what `out` becomes; default QUAT_XYZW */
} rbcConvertRotationsParams;

static inline rbcConvertRotationsParams rbcConvertRotationsParamsInit(void) {
  rbcConvertRotationsParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Writes rotations in another representation.
 *
 *   rotations  [...,C]: any shape with the channels of `source` at its end; f16, bf16, f32, f64
 *   out        [...,D]: the same shape with the channels of `target`; f16, bf16, f32, f64
 *   params     not null. Where target is source, rotations are brought to the form below
 *
 * Any strides, 0 and negative too; nothing is copied. Both tensors live on the context's device.
 * `out` must not overlap `rotations`, and is written whole.
 *
 * What is read:
 *   quaternions  of any length but 0; q and -q are one rotation.
 *   rotvec,      of any angle, also beyond a turn.
 *   euler
 *   matrix       stands for the rotation nearest to it by least squares of its entries, its polar
 *                factor (Higham, "Computing the polar decomposition - with applications", 1986).
 *   6-D          of any two vectors that are not parallel, by Gram and Schmidt: the first keeps its
 *                direction, the second its side of it (Zhou et al., "On the continuity of rotation
 *                representations in neural networks", 2019).
 *
 * What is written:
 *   quaternions  of length 1 and w >= 0; where w is 0 the first of x, y, z that is not 0 is positive.
 *   rotvec       of an angle in [0, pi]; at pi the first component that is not 0 is positive.
 *   euler        the first and third angle in [-pi, pi], the second in [-pi/2, pi/2], or in [0, pi]
 *                where the last axis is the first once more. Within 1e-7 of the ends of that (gimbal
 *                lock) the third angle is 0. As SciPy; by Bernardes and Viollet, "Quaternion to Euler
 *                angles conversion: a direct, general and computationally efficient method", 2022.
 *
 * What is no rotation gives NaN in all channels, and never one that is made up: a quaternion of zeros,
 * a number that is not finite, vectors of 6-D that are zero or parallel (to 2^-50), a matrix without a
 * positive determinant (to 2^-40 of that of a rotation of its size).
 *
 * Arithmetic: in f64, for Euler angles with more, whatever the dtypes are, then rounded once to the
 * dtype of `out`. In f64 components are within 4 * 2^-52, angles within 4 * 2^-51 of what the input
 * means exactly. Any NaN written is the positive quiet NaN with all payload bits set. CPU and CUDA
 * agree bit for bit: no function of a math library is called.
 *
 * CUDA: one launch on the context's stream, no allocation, no synchronization, can be captured.
 * CPU: returns when done; work worth it is spread over the context's threads.
 *
 * Errors: INVALID_ARGUMENT, DEVICE_MISMATCH, DTYPE_MISMATCH, SHAPE_MISMATCH, UNSUPPORTED, CUDA_ERROR.
 * No rotations at all succeed.
 */
RBC_API rbcStatus_t rbcConvertRotations(rbcContext_t context, const rbcTensor* rotations,
                                        const rbcOutput* out,
                                        const rbcConvertRotationsParams* params);

/*
 * The workspace in bytes that the same call of rbcConvertRotations needs, for rbcContextReserve.
 * So far it is 0. Checks the arguments as that call does; on failure *bytes does not change.
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
