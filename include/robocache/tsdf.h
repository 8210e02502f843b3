/*
 * RoboCache: integration of point clouds into a truncated signed distance field.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_TSDF_H
#define ROBOCACHE_TSDF_H

#include <math.h>

#include "voxelize.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rbcVoxelizeTsdfParams.weighting: the weight of a point at distance r from its sensor */
#define RBC_VOXELIZE_TSDF_WEIGHTING_CONSTANT 0       /* always 1 */
#define RBC_VOXELIZE_TSDF_WEIGHTING_INVERSE_SQUARE 1 /* 1 / r^2, 2^-32 to 1; r in metres */

/* rbcVoxelizeTsdfParams.flags */
#define RBC_VOXELIZE_TSDF_FLAG_CARVE 0x10000u /* rays also update the space from the sensor on */

/* How to integrate clouds into a volume. */
typedef struct rbcVoxelizeTsdfParams {
  uint32_t struct_size;
  uint32_t flags;    /* RBC_VOXELIZE_TSDF_FLAG_CARVE or 0 (default) */
  int32_t weighting; /* RBC_VOXELIZE_TSDF_WEIGHTING_...; default constant */
  int32_t reserved0; /* 0 */
  double truncation; /* required; in the points' unit, more than 0 (in f32) */
  double max_weight; /* the limit of a voxel's weight, more than 0 (in f32); default INFINITY */
  rbcVoxelGrid grid; /* required */
  const rbcTensor* lengths;       /* [B] i32 or i64: valid points of padded clouds; null: all */
  const rbcTensor* batch_offsets; /* [B+1] i32 or i64: the clouds of packed points; null: padded */
} rbcVoxelizeTsdfParams;

static inline rbcVoxelizeTsdfParams rbcVoxelizeTsdfParamsInit(void) {
  rbcVoxelizeTsdfParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  params.max_weight = (double)INFINITY;
  return params;
}

/*
 * Integrates B point clouds into one volume: the signed distance from each voxel to the surface,
 * along the ray from the sensor, as a weighted running average (Curless and Levoy, "A volumetric
 * method for building complex models from range images", 1996).
 *
 *   points   as for rbcVoxelize
 *   sensors  [B,3], or [3] for all clouds and without batch; f32 or f64: the position of each
 *            cloud's sensor
 *   tsdf     [X,Y,Z] f32, read and written: in the points' unit, within +-truncation, positive in
 *            front of the surface (on the sensor's side) and negative on the other side
 *   weight   [X,Y,Z] f32, read and written: 0 for voxels that have not been observed yet (their
 *            tsdf is ignored), else more than 0
 *   num_points_unused  [B], without batch []; i64: points that updated no voxel; or null
 *   params   not null: grid and truncation have no default
 *
 * For a new volume, set all weights to zero: rbcVoxelizeTsdf clears nothing, and does not change
 * voxels without an observation. Any strides are allowed, except 0 in tsdf and weight. All tensors
 * are on the context's device. tsdf, weight and num_points_unused must not overlap each other or an
 * input.
 *
 * Take a point p that the sensor at o sees at distance r, in the direction u. The ray runs from
 * r - truncation (not before o; with RBC_VOXELIZE_TSDF_FLAG_CARVE: from o) to r + truncation. Each
 * voxel on it, with centre c, observes once, with the weight w of the point,
 *   d = clamp(dot(p - c, u), -truncation, truncation)
 * The voxels are those that the traversal of Amanatides and Woo, "A fast voxel traversal algorithm
 * for ray tracing" (1987), visits: each shares a face with the one before. A voxel that the ray
 * only touches, or misses by rounding, may or may not be among them. With all observations of the
 * call,
 *   tsdf = (tsdf * weight + sum(w * d)) / (weight + sum(w));  weight += sum(w), up to max_weight
 * So one call per cloud and one call with all clouds agree within rounding, as long as max_weight
 * is not reached.
 *
 * Points are unused if their ray meets no voxel in that range, or if their squared distance from
 * the sensor is not a normal number: NaN and infinite points, all points of a sensor that is not
 * finite, points at the sensor, and in f32 points closer than 1e-19 or farther than 1e19.
 *
 * w is rounded to a multiple of 2^-32 and w * d to one of truncation / 2^32. Their sums are exact,
 * and so do not depend on the order of points and clouds: any run, CPU and CUDA, and any
 * permutation of the points of a call give the same bits. Rays are computed in f32 (f64 for points
 * of f64), with sensors, truncation and voxel_size rounded to it: they are as exact as the
 * coordinates of their points are in that type. Averages are computed in f64.
 *
 * CUDA, CPU, lengths and offsets, capture and errors are as for rbcVoxelize. On the CPU the
 * workspace has 16.1 bytes per voxel; a call touches the part around the observed voxels. On CUDA
 * it has 24 bytes for each brick of 2 x 4 x 8 voxels of the grid, and a call clears a third of
 * that. This is 0.4 bytes per voxel, and 12 in a grid of one row. In addition it has 20 to 24 bytes
 * for each voxel that the rays may observe. Their number is at most all voxels of the grid, or X +
 * Y + Z per point; without carving, per point at most the sum over the axes of 2 * truncation /
 * voxel_size + 5.
 */
RBC_API rbcStatus_t rbcVoxelizeTsdf(rbcContext_t context, const rbcTensor* points,
                                    const rbcTensor* sensors, const rbcOutput* tsdf,
                                    const rbcOutput* weight, const rbcOutput* num_points_unused,
                                    const rbcVoxelizeTsdfParams* params);

/*
 * Writes the size in bytes of the workspace that the same call of rbcVoxelizeTsdf needs, for
 * rbcContextReserve. Checks the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcVoxelizeTsdfWorkspaceSize(rbcContext_t context, const rbcTensor* points,
                                                 const rbcTensor* sensors, const rbcOutput* tsdf,
                                                 const rbcOutput* weight,
                                                 const rbcOutput* num_points_unused,
                                                 const rbcVoxelizeTsdfParams* params,
                                                 size_t* bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_TSDF_H */
