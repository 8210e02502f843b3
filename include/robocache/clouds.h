/*
 * RoboCache: point clouds out of depth images, and the few points of them that policies take.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_CLOUDS_H
#define ROBOCACHE_CLOUDS_H

#include <math.h>
#include <string.h>

#include "base.h"
#include "context.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How depth becomes points. Lengths are metres, or whatever depth / depth_scale is in. */
typedef struct rbcUnprojectParams {
  uint32_t struct_size;
  uint32_t flags;      /* 0 */
  double depth_scale;  /* a divisor: units of depth to a metre; default 0: 1000 for integers, 1 for
                          floats */
  double min_depth;    /* points are farther than this, 0 or more; default 0 */
  double max_depth;    /* and nearer than this; default INFINITY */
  double crop_min[3];  /* points have more x, y, z than these in the cloud's frame; -INFINITY */
  double crop_max[3];  /* and less than these; default INFINITY */
  double pixel_offset; /* of a pixel's centre: 0 (default; OpenCV, Open3D) or 0.5 */
  double color_divisor; /* colours are divided by it; default 1: u8 stays 0 .. 255 */
  int32_t pixel_stride; /* every so many rows and columns, from the first; default 1: all */
  int32_t reserved0;    /* 0 */
} rbcUnprojectParams;

static inline rbcUnprojectParams rbcUnprojectParamsInit(void) {
  rbcUnprojectParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  params.max_depth = (double)INFINITY;
  for (int i = 0; i < 3; ++i) {
    params.crop_min[i] = -(double)INFINITY;
    params.crop_max[i] = (double)INFINITY;
  }
  params.color_divisor = 1;
  params.pixel_stride = 1;
  return params;
}

/*
 * Makes point clouds of B depth images of H x W pixels, with poses, colours and a crop.
 *
 *   depth       [B,H,W], [H,W] without batch; u16, f16, f32; at most 2^24 rows and columns and
 *               2^31 - 1 pixels of an image
 *   intrinsics  [B,4], or [4] for all images: fx, fy, cx, cy in pixels; f32 or f64
 *   pose        [B,4,4], or [4,4] for all images; f32 or f64: from the camera's frame (x to the
 *               right, y down, z forward) to the cloud's, for column vectors; the last row is not
 *               read; null: clouds are in the frames of their cameras
 *   colors      [B,H,W,C], [H,W,C] without batch; u8 or any float: written behind the coordinates;
 *               null: C is 0
 *   points      [B,P,3+C], [P,3+C] without batch; any float: x, y, z and the colours of the kept
 *               pixels, row by row, then zeros
 *   num_points  [B], without batch []; i64: how many points were written, at most P
 *   num_points_over_capacity  [B], without batch []; i64: how many did not fit; or null
 *   pixels      [B,P], [P] without batch; i32 or i64: each point's pixel, row * W + column, then
 *               -1; or null
 *   params      null: the defaults
 *
 * A pixel of depth d in column c and row r is the point, with u = c + pixel_offset and
 * v = r + pixel_offset,
 *   z = d / depth_scale;  x = ((u - cx) * z) / fx;  y = ((v - cy) * z) / fy
 * and with a pose of rows R | t
 *   x' = ((R00 * x + R01 * y) + R02 * z) + t0, and so on,
 * each step rounded to f32, to f64 if points are f64; intrinsics, pose and params are rounded to that
 * type first. It is kept if min_depth < z < max_depth, if crop_min[0] < x' < crop_max[0], and so for y
 * and z.
 * So NaN, infinities and a depth of 0 are never points. A colour is c / color_divisor in that type.
 * Any NaN written is the positive quiet NaN with all payload bits set. CPU and CUDA agree bit for bit.
 *
 * Any strides, 0 and negative too; all tensors live on the context's device. Outputs overlap
 * nothing and are written whole.
 *
 * fx or fy of 0, and intrinsics or poses that are not finite, are INVALID_ARGUMENT on the CPU; on
 * CUDA their images have no points that are not finite.
 *
 * CUDA: some launches on the context's stream; no synchronization; no allocation once the workspace
 * has its size (rbcUnprojectWorkspaceSize, rbcContextReserve): from then on it can be captured. One
 * call takes 2^31 - 1 tiles of some 2,000 pixels, of which an image has one at least.
 * CPU: returns when done; work worth it is spread over the context's threads.
 *
 * Errors: INVALID_ARGUMENT, DEVICE_MISMATCH, DTYPE_MISMATCH, SHAPE_MISMATCH, WORKSPACE_TOO_SMALL (a
 * capture without a reserved workspace), OUT_OF_MEMORY, CUDA_ERROR. No pixels and B = 0 succeed.
 */
RBC_API rbcStatus_t rbcUnproject(rbcContext_t context, const rbcTensor* depth,
                                 const rbcTensor* intrinsics, const rbcTensor* pose,
                                 const rbcTensor* colors, const rbcOutput* points,
                                 const rbcOutput* num_points,
                                 const rbcOutput* num_points_over_capacity, const rbcOutput* pixels,
                                 const rbcUnprojectParams* params);

/*
 * The workspace in bytes that the same call of rbcUnproject needs, for rbcContextReserve. Checks
 * the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcUnprojectWorkspaceSize(rbcContext_t context, const rbcTensor* depth,
                                              const rbcTensor* intrinsics, const rbcTensor* pose,
                                              const rbcTensor* colors, const rbcOutput* points,
                                              const rbcOutput* num_points,
                                              const rbcOutput* num_points_over_capacity,
                                              const rbcOutput* pixels,
                                              const rbcUnprojectParams* params, size_t* bytes);

/* Which points to choose among, and where to begin. */
typedef struct rbcFarthestPointsParams {
  uint32_t struct_size;
  uint32_t flags;           /* 0 */
  int64_t start_index; /* the first point taken, by its number in its cloud; default 0 */
  const rbcTensor* start_indices; /* [B] i32 or i64: one for each cloud, in place of start_index */
  const rbcTensor* lengths; /* [B] i32 or i64: valid points of padded clouds; null: all */
  const rbcTensor* batch_offsets; /* [B+1] i32 or i64: the clouds of packed points; null: padded */
} rbcFarthestPointsParams;

static inline rbcFarthestPointsParams rbcFarthestPointsParamsInit(void) {
  rbcFarthestPointsParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Chooses K points of each cloud, one after the other the farthest from those before (Gonzalez,
 * "Clustering to minimize the maximum intercluster distance", 1985).
 *
 *   points     [B,N,C]; [N,C] without batch; [N,C] packed, with params->batch_offsets; C >= 3;
 *              f16, bf16, f32, f64; the first three columns are x, y, z; at most 2^31 - 1 in all
 *   indices    [B,K], [K] without batch; i32 or i64: rows of the cloud; of packed points rows of
 *              `points`; K >= 1
 *   distances  [B,K], [K] without batch; any float: the squared distance of each point to the nearest
 *              of those before, INFINITY of the first; or null
 *   params     null: the defaults
 *
 * Exact always: d^2 = (dx * dx + dy * dy) + dz * dz, each step rounded to f32, to f64 for points of
 * f64. The next point is the one whose least d^2 to those taken is largest, of several the one with
 * the lowest index. Points that were taken stay, at distance 0, so where all others coincide with
 * taken ones the lowest index repeats (as in PyTorch3D). Points with a coordinate that is not finite
 * are never taken: with n others, min(n, K) are taken, and the rest of indices is -1, of distances 0.
 * A start that is not finite gives way to the next point that is, from the end on to the first.
 *
 * A start beyond its cloud is INVALID_ARGUMENT on the CPU, but of clouds without points; on CUDA it
 * is the last point. Any strides; outputs overlap nothing and are written whole.
 *
 * Lengths, offsets, capture, synchronization and errors are as for rbcVoxelize. CPU: a cloud is the
 * work of one thread.
 */
RBC_API rbcStatus_t rbcFarthestPoints(rbcContext_t context, const rbcTensor* points,
                                      const rbcOutput* indices, const rbcOutput* distances,
                                      const rbcFarthestPointsParams* params);

/*
 * The workspace in bytes that the same call of rbcFarthestPoints needs, for rbcContextReserve.
 * Checks the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcFarthestPointsWorkspaceSize(rbcContext_t context, const rbcTensor* points,
                                                   const rbcOutput* indices,
                                                   const rbcOutput* distances,
                                                   const rbcFarthestPointsParams* params,
                                                   size_t* bytes);

/* What rows without an index hold. */
typedef struct rbcTakeRowsParams {
  uint32_t struct_size;
  uint32_t flags;       /* 0 */
  double fill_value;    /* of rows whose index is -1, rounded to the dtype; default 0 */
} rbcTakeRowsParams;

static inline rbcTakeRowsParams rbcTakeRowsParamsInit(void) {
  rbcTakeRowsParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Copies rows by their numbers, such as those of rbcFarthestPoints.
 *
 *   values   [B,N,C], or [N,C] for all of indices; any dtype
 *   indices  [B,K], or [K] with [N,C]; i32 or i64: rows of values, or -1
 *   out      the shape of indices and C; the dtype of values
 *   params   null: the defaults
 *
 * Any strides; out overlaps nothing and is written whole. Other indices that no row has are
 * INVALID_ARGUMENT on the CPU; on CUDA they give the fill value. For bool and integers fill_value must
 * be one of theirs.
 *
 * CUDA: one launch on the context's stream, no allocation, no synchronization, can be captured.
 * CPU: returns when done; work worth it is spread over the context's threads.
 *
 * Errors: INVALID_ARGUMENT, DEVICE_MISMATCH, DTYPE_MISMATCH, SHAPE_MISMATCH, CUDA_ERROR. No indices,
 * and C = 0, succeed.
 */
RBC_API rbcStatus_t rbcTakeRows(rbcContext_t context, const rbcTensor* values,
                                const rbcTensor* indices, const rbcOutput* out,
                                const rbcTakeRowsParams* params);

/*
 * The workspace in bytes that the same call of rbcTakeRows needs, for rbcContextReserve. So far
 * it is 0. Checks the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcTakeRowsWorkspaceSize(rbcContext_t context, const rbcTensor* values,
                                             const rbcTensor* indices, const rbcOutput* out,
                                             const rbcTakeRowsParams* params, size_t* bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_CLOUDS_H */
