/*
 * RoboCache: point clouds from depth images, and farthest point sampling.
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

/* How depth becomes points. Lengths are in the unit of depth / depth_scale, by default metres. */
typedef struct rbcUnprojectParams {
  uint32_t struct_size;
  uint32_t flags;      /* 0 */
  double depth_scale;  /* a divisor, depth units per metre; default 0: 1000 for integers, 1 for
                          floats */
  double min_depth;    /* kept points are farther than this; 0 or more, default 0 */
  double max_depth;    /* kept points are nearer than this; default INFINITY */
  double crop_min[3];  /* kept points have larger x, y, z in the cloud's frame; default -INFINITY */
  double crop_max[3];  /* kept points have smaller x, y, z; default INFINITY */
  double pixel_offset; /* of a pixel's centre: 0 (default; as OpenCV, Open3D) or 0.5 */
  double color_divisor; /* colours are divided by it; default 1: u8 stays 0 .. 255 */
  int32_t pixel_stride; /* use every n-th row and column, from the first; default 1: all */
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
 * Makes point clouds from B depth images of H x W pixels, with poses, colours and a crop.
 *
 *   depth       [B,H,W], [H,W] without batch; u16, f16, f32; at most 2^24 rows and columns and
 *               2^31 - 1 pixels per image
 *   intrinsics  [B,4], or [4] for all images: fx, fy, cx, cy in pixels; f32 or f64
 *   pose        [B,4,4], or [4,4] for all images; f32 or f64: from the camera's frame (x to the
 *               right, y down, z forward) to the cloud's, for column vectors; the last row is not
 *               read; null: clouds are in the frames of their cameras
 *   colors      [B,H,W,C], [H,W,C] without batch; u8 or any float: written after the coordinates;
 *               null: C is 0
 *   points      [B,P,3+C], [P,3+C] without batch; any float: x, y, z and the colours of the kept
 *               pixels, row by row, then zeros
 *   num_points  [B], without batch []; i64: the number of points written, at most P
 *   num_points_over_capacity  [B], without batch []; i64: the number of points that did not fit; or
 *               null
 *   pixels      [B,P], [P] without batch; i32 or i64: each point's pixel, row * W + column, then
 *               -1; or null
 *   params      null: the defaults
 *
 * A pixel of depth d in column c and row r is the point, with u = c + pixel_offset and
 * v = r + pixel_offset,
 *   z = d / depth_scale;  x = ((u - cx) * z) / fx;  y = ((v - cy) * z) / fy
 * and with a pose of rows R | t
 *   x' = ((R00 * x + R01 * y) + R02 * z) + t0, and so on,
 * each step rounded to f32, or to f64 if points are f64. Intrinsics, pose and params are rounded to
 * that type first. A point is kept if min_depth < z < max_depth and crop_min[0] < x' < crop_max[0],
 * and the same for y and z. So a depth of 0 and coordinates that are NaN or infinite never give
 * points. A colour is c / color_divisor in that type. Any NaN written is the positive quiet NaN
 * with all payload bits set. CPU and CUDA agree bit for bit.
 *
 * Strides may be 0 or negative. All tensors are on the context's device. Outputs must not overlap
 * each other or an input. Every element is written.
 *
 * fx or fy of 0, and intrinsics or poses that are not finite, are INVALID_ARGUMENT on the CPU. On
 * CUDA their images have no points that are not finite.
 *
 * CUDA: several launches on the context's stream, no synchronization, and no allocation once the
 * workspace is large enough (rbcUnprojectWorkspaceSize, rbcContextReserve); from then on it can be
 * captured. A call supports 2^31 - 1 tiles of about 2,000 pixels; each image has at least one.
 * CPU: returns when done; large calls use several of the context's threads.
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
 * Writes the size in bytes of the workspace that the same call of rbcUnproject needs, for
 * rbcContextReserve. Checks the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcUnprojectWorkspaceSize(rbcContext_t context, const rbcTensor* depth,
                                              const rbcTensor* intrinsics, const rbcTensor* pose,
                                              const rbcTensor* colors, const rbcOutput* points,
                                              const rbcOutput* num_points,
                                              const rbcOutput* num_points_over_capacity,
                                              const rbcOutput* pixels,
                                              const rbcUnprojectParams* params, size_t* bytes);

/* The points to choose from, and where to start. */
typedef struct rbcFarthestPointsParams {
  uint32_t struct_size;
  uint32_t flags;                 /* 0 */
  int64_t start_index;            /* the index of the first point in its cloud; default 0 */
  const rbcTensor* start_indices; /* [B] i32 or i64: one per cloud, instead of start_index */
  const rbcTensor* lengths;       /* [B] i32 or i64: valid points of padded clouds; null: all */
  const rbcTensor* batch_offsets; /* [B+1] i32 or i64: the clouds of packed points; null: padded */
} rbcFarthestPointsParams;

static inline rbcFarthestPointsParams rbcFarthestPointsParamsInit(void) {
  rbcFarthestPointsParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Chooses K points of each cloud. Each next point is the farthest from the points chosen before
 * (Gonzalez, "Clustering to minimize the maximum intercluster distance", 1985).
 *
 *   points     [B,N,C]; [N,C] without batch; [N,C] packed, with params->batch_offsets; C >= 3;
 *              f16, bf16, f32, f64; the first three columns are x, y, z; at most 2^31 - 1 in all
 *   indices    [B,K], [K] without batch; i32 or i64: rows of the cloud; for packed points rows of
 *              `points`; K >= 1
 *   distances  [B,K], [K] without batch; any float: the squared distance of each point to the
 *              nearest of the points chosen before, INFINITY for the first; or null
 *   params     null: the defaults
 *
 * The result is exact: d^2 = (dx * dx + dy * dy) + dz * dz, each step rounded to f32, or to f64 for
 * points of f64. The next point is the one whose smallest d^2 to the chosen points is largest; of
 * several, the one with the lowest index. Chosen points stay, at distance 0, so if all other points
 * coincide with chosen ones, the lowest index repeats (as in PyTorch3D). Points with a coordinate
 * that is not finite are never chosen. If n other points exist, min(n, K) points are chosen; the
 * rest of indices is -1 and the rest of distances is 0. If the start point is not finite, the next
 * finite point replaces it; the search wraps from the last point to the first.
 *
 * A start index that is not in its cloud is INVALID_ARGUMENT on the CPU, except for clouds without
 * points; on CUDA the last point is used. Any strides are allowed; outputs must not overlap each
 * other or an input; every element is written.
 *
 * Lengths, offsets, capture, synchronization and errors are as for rbcVoxelize. On the CPU one
 * thread works on a cloud.
 */
RBC_API rbcStatus_t rbcFarthestPoints(rbcContext_t context, const rbcTensor* points,
                                      const rbcOutput* indices, const rbcOutput* distances,
                                      const rbcFarthestPointsParams* params);

/*
 * Writes the size in bytes of the workspace that the same call of rbcFarthestPoints needs, for
 * rbcContextReserve. Checks the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcFarthestPointsWorkspaceSize(rbcContext_t context, const rbcTensor* points,
                                                   const rbcOutput* indices,
                                                   const rbcOutput* distances,
                                                   const rbcFarthestPointsParams* params,
                                                   size_t* bytes);

/* The value of rows without an index. */
typedef struct rbcTakeRowsParams {
  uint32_t struct_size;
  uint32_t flags;    /* 0 */
  double fill_value; /* for rows whose index is -1, rounded to the dtype; default 0 */
} rbcTakeRowsParams;

static inline rbcTakeRowsParams rbcTakeRowsParamsInit(void) {
  rbcTakeRowsParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Copies rows by their indices, such as those that rbcFarthestPoints writes.
 *
 *   values   [B,N,C], or [N,C] for all of indices; any dtype
 *   indices  [B,K], or [K] with [N,C]; i32 or i64: rows of values, or -1
 *   out      the shape of indices and C; the dtype of values
 *   params   null: the defaults
 *
 * Any strides are allowed. `out` must not overlap an input; every element is written. Any other
 * index out of range is INVALID_ARGUMENT on the CPU; on CUDA it gives the fill value. For bool and
 * integers fill_value must be representable in the dtype.
 *
 * CUDA: one launch on the context's stream, no allocation, no synchronization, can be captured.
 * CPU: returns when done; large calls use several of the context's threads.
 *
 * Errors: INVALID_ARGUMENT, DEVICE_MISMATCH, DTYPE_MISMATCH, SHAPE_MISMATCH, CUDA_ERROR. No indices
 * and C = 0 succeed.
 */
RBC_API rbcStatus_t rbcTakeRows(rbcContext_t context, const rbcTensor* values,
                                const rbcTensor* indices, const rbcOutput* out,
                                const rbcTakeRowsParams* params);

/*
 * Writes the size in bytes of the workspace that the same call of rbcTakeRows needs, for
 * rbcContextReserve. So far it is 0. Checks the arguments as that call does; on failure *bytes does
 * not change.
 */
RBC_API rbcStatus_t rbcTakeRowsWorkspaceSize(rbcContext_t context, const rbcTensor* values,
                                             const rbcTensor* indices, const rbcOutput* out,
                                             const rbcTakeRowsParams* params, size_t* bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_CLOUDS_H */
