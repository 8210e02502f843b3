/*
 * RoboCache: voxelization of point clouds, dense and sparse.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_VOXELIZE_H
#define ROBOCACHE_VOXELIZE_H

#include <string.h>

#include "base.h"
#include "context.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rbcVoxelizeParams.reduction; rbcVoxelizeSparseParams.reduction supports the last four */
#define RBC_REDUCE_OCCUPANCY 0 /* 1 if the voxel contains a point, else fill_value */
#define RBC_REDUCE_COUNT 1     /* the number of points in the voxel */
#define RBC_REDUCE_SUM 2       /* the sum of each feature over the voxel's points */
#define RBC_REDUCE_MEAN 3      /* the mean of each feature over the voxel's points */
#define RBC_REDUCE_MAX 4       /* the maximum of each feature over the voxel's points */
#define RBC_REDUCE_MIN 5       /* the minimum of each feature over the voxel's points */

/* rbcVoxelizeSparseParams.order */
#define RBC_VOXELIZE_SPARSE_ORDER_LEXICOGRAPHIC 0 /* by cloud, x, y, z */
#define RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT 1   /* by first point, as detectors expect */

/*
 * The position, voxel size and shape of a grid.
 *
 * The voxel of a point p is floor((p - origin) / voxel_size) on each axis: a subtraction and a
 * division in f32 (f64 for points of f64), after origin and voxel_size are rounded to that type. So
 * the voxels equal those of spconv and mmcv, and for f64 those of Open3D. A point is in the grid if
 * every index is in 0 .. shape - 1, so a voxel contains its lower faces and not its upper ones.
 * Points outside the grid and points that are NaN or infinite are dropped.
 */
typedef struct rbcVoxelGrid {
  double origin[3];     /* the corner with the smallest coordinates, in the points' unit */
  double voxel_size[3]; /* in the points' unit, more than 0 */
  int64_t shape[3];     /* the number of voxels along x, y, z: 1 to 2^31 - 1 */
} rbcVoxelGrid;

/* How to fill a dense grid. */
typedef struct rbcVoxelizeParams {
  uint32_t struct_size;
  uint32_t flags;                 /* 0 */
  int32_t reduction;              /* RBC_REDUCE_...; default occupancy */
  int32_t reserved0;              /* 0 */
  double fill_value;              /* written to voxels without a point; default 0 */
  rbcVoxelGrid grid;              /* required: it has no default */
  const rbcTensor* lengths;       /* [B] i32 or i64: valid points of padded clouds; null: all */
  const rbcTensor* batch_offsets; /* [B+1] i32 or i64: the clouds of packed points; null: padded */
} rbcVoxelizeParams;

static inline rbcVoxelizeParams rbcVoxelizeParamsInit(void) {
  rbcVoxelizeParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Reduces B point clouds of N points each to a dense grid of X x Y x Z voxels.
 *
 *   points    [B,N,C]; [N,C] without batch; [N,C] packed, with params->batch_offsets; C >= 3;
 *             f16, bf16, f32, f64; the first three columns are x, y, z; at most 2^31 - 1 in all
 *   features  [B,N,F]; [N,F] as points; f16, bf16, f32, f64; for sum, mean, max and min only;
 *             null: the C columns of points
 *   out       [B,X,Y,Z] for occupancy and count, [B,X,Y,Z,F] else; without batch no B;
 *             occupancy: bool, u8, i32 or any float; count: i32, i64 or any float; else any float
 *   num_points_outside  [B], without batch []; i64: points that are in no voxel; or null
 *   params    not null: the grid has no default
 *
 * Strides may be 0 or negative (a permuted view of out gives z-major grids); no tensor is copied.
 * All tensors are on the context's device. `out` and `num_points_outside` must not overlap each
 * other or an input. Every element of both is written; they need not be cleared before.
 *
 * The result depends only on the points of a voxel, not on their order: any run, CPU and CUDA, and
 * any permutation of the points give the same bits.
 *   count    exact; rounded if out is a float.
 *   sum      in fixed point: with 2^(E-1) <= max |f| < 2^E over the n features of a voxel, each is
 *            rounded to a multiple of 2^(E + ceil(log2 n) - 62), these are added exactly, and the
 *            sum is rounded to f64 and then to out. Apart from that rounding, the error is at most
 *            n / 2 of these quanta: 2^-42 of max |f| for 1000 points. For features of f64 the
 *            quantum is 2^(E + ceil(log2 n) - 124).
 *   mean     the f64 sum divided by n, then rounded to out.
 *   max,min  exact; +0 is more than -0.
 * A NaN feature makes its voxel NaN; so do infinite features of both signs in sum and mean.
 * fill_value is rounded to the dtype of out; for bool and integers it must be representable.
 *
 * Lengths and offsets out of range are INVALID_ARGUMENT on the CPU; on CUDA they give unspecified
 * values but never an access outside the tensors. Packed points that are in no cloud are ignored.
 *
 * CUDA: several launches on the context's stream, no synchronization, and no allocation once the
 * workspace is large enough (rbcVoxelizeWorkspaceSize, rbcContextReserve); from then on it can be
 * captured. CPU: returns when done; large calls use several of the context's threads.
 *
 * Errors: INVALID_ARGUMENT, DEVICE_MISMATCH, DTYPE_MISMATCH, SHAPE_MISMATCH, WORKSPACE_TOO_SMALL (a
 * capture without a reserved workspace), OUT_OF_MEMORY, CUDA_ERROR. No points, B = 0 and F = 0
 * succeed.
 */
RBC_API rbcStatus_t rbcVoxelize(rbcContext_t context, const rbcTensor* points,
                                const rbcTensor* features, const rbcOutput* out,
                                const rbcOutput* num_points_outside,
                                const rbcVoxelizeParams* params);

/*
 * Writes the size in bytes of the workspace that the same call of rbcVoxelize needs, for
 * rbcContextReserve. Checks the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcVoxelizeWorkspaceSize(rbcContext_t context, const rbcTensor* points,
                                             const rbcTensor* features, const rbcOutput* out,
                                             const rbcOutput* num_points_outside,
                                             const rbcVoxelizeParams* params, size_t* bytes);

/* How to list the occupied voxels. */
typedef struct rbcVoxelizeSparseParams {
  uint32_t struct_size;
  uint32_t flags;                 /* 0 */
  int32_t reduction;              /* RBC_REDUCE_SUM, _MEAN (default), _MAX or _MIN of features */
  int32_t order;                  /* RBC_VOXELIZE_SPARSE_ORDER_...; default lexicographic */
  rbcVoxelGrid grid;              /* required; B * X * Y * Z is at most 2^62 */
  const rbcTensor* lengths;       /* [B] i32 or i64: valid points of padded clouds; null: all */
  const rbcTensor* batch_offsets; /* [B+1] i32 or i64: the clouds of packed points; null: padded */
} rbcVoxelizeSparseParams;

static inline rbcVoxelizeSparseParams rbcVoxelizeSparseParamsInit(void) {
  rbcVoxelizeSparseParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  params.reduction = RBC_REDUCE_MEAN;
  return params;
}

/*
 * The tensors that rbcVoxelizeSparse writes; a null tensor is not computed. M is the number of
 * occupied voxels. The first min(M, capacity) of them in the requested order are kept.
 */
typedef struct rbcVoxelizeSparseOutputs {
  uint32_t struct_size;
  uint32_t reserved0;                /* 0 */
  const rbcOutput* coords;           /* [capacity,4] i32: cloud, x, y, z; required */
  const rbcOutput* num_voxels;       /* [] i64: min(M, capacity), the rows in use; required */
  const rbcOutput* points_per_voxel; /* [capacity] i32; with `grouped` at most P */
  const rbcOutput* voxel_features;   /* [capacity,F], any float: reduced over the voxel's points */
  const rbcOutput* grouped; /* [capacity,P,F], any float: the features of its first P points */
  const rbcOutput* point_to_voxel; /* [B,N], or [N] as points; i32 or i64: a row of coords, or -1 */
  const rbcOutput* num_points_outside;       /* [B], without batch []; i64: points in no voxel */
  const rbcOutput* num_voxels_over_capacity; /* [] i64: occupied voxels that were not kept */
  const rbcOutput* num_points_over_capacity; /* [] i64: points in voxels that were not kept */
  const rbcOutput* num_points_over_group;    /* [] i64: points of kept voxels beyond P */
} rbcVoxelizeSparseOutputs;

static inline rbcVoxelizeSparseOutputs rbcVoxelizeSparseOutputsInit(void) {
  rbcVoxelizeSparseOutputs outputs;
  memset(&outputs, 0, sizeof outputs);
  outputs.struct_size = (uint32_t)sizeof outputs;
  return outputs;
}

/*
 * Reduces B point clouds to a list of the voxels that contain points.
 *
 *   points    as for rbcVoxelize
 *   features  as for rbcVoxelize; null: the columns of points
 *   outputs   the tensors to write
 *   params    not null: the grid has no default
 *
 * The number of voxels stays on the device, so the host does not wait for it. Rows after the kept
 * voxels are also written, with coords and point_to_voxel -1 and the rest 0: every element of every
 * tensor is written. Points in voxels beyond the capacity have point_to_voxel -1. The number of all
 * points is sum(points_per_voxel) + sum(num_points_outside) + num_points_over_capacity +
 * num_points_over_group.
 *
 * `grouped` is the hard voxelization of detection networks: the features of a voxel's first P
 * points by index, then zeros. With RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT, voxels are in the order
 * of their first points (and of clouds), and the capacity is max_voxels.
 *
 * Strides, the arithmetic of `voxel_features`, determinism, lengths and offsets, synchronization,
 * capture and errors are as for rbcVoxelize. Outputs must not overlap each other or an input. A
 * capacity of 0 is SHAPE_MISMATCH.
 */
RBC_API rbcStatus_t rbcVoxelizeSparse(rbcContext_t context, const rbcTensor* points,
                                      const rbcTensor* features,
                                      const rbcVoxelizeSparseOutputs* outputs,
                                      const rbcVoxelizeSparseParams* params);

/*
 * Writes the size in bytes of the workspace that the same call of rbcVoxelizeSparse needs, for
 * rbcContextReserve. Checks the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcVoxelizeSparseWorkspaceSize(rbcContext_t context, const rbcTensor* points,
                                                   const rbcTensor* features,
                                                   const rbcVoxelizeSparseOutputs* outputs,
                                                   const rbcVoxelizeSparseParams* params,
                                                   size_t* bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_VOXELIZE_H */
