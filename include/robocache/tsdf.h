/*
 * RoboCache: point clouds into a truncated signed distance field.
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
#define RBC_VOXELIZE_TSDF_WEIGHTING_INVERSE_SQUARE 1 /* 1 / r^2, 2^-32 to 1: for metres */

/* rbcVoxelizeTsdfParams.flags */
#define RBC_VOXELIZE_TSDF_FLAG_CARVE 0x10000u /* rays update the free space from the sensor on, too */

/* How to integrate clouds into a volume. */
typedef struct rbcVoxelizeTsdfParams {
  uint32_t struct_size;
  uint32_t flags;    /* RBC_VOXELIZE_TSDF_FLAG_CARVE or 0 (default) */
  int32_t weighting; /* RBC_VOXELIZE_TSDF_WEIGHTING_...; default constant */
  int32_t reserved0; /* 0 */
  double truncation; /* required; in the points' unit, more than 0 (in f32) */
  double max_weight; /* a voxel's weight stops here, more than 0 (in f32); default INFINITY */
  rbcVoxelGrid grid; /* required: it has no default */
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
 *            front of the surface (on the sensor's side) and negative behind it
 *   weight   [X,Y,Z] f32, read and written: 0 where nothing was observed yet (tsdf is ignored
 *            there), else more than 0
 *   num_points_unused  [B], without batch []; i64: points that updated no voxel; or null
 *   params   not null: grid and truncation have no default
 *
 * A new volume is one of zero weights: rbcVoxelizeTsdf clears nothing, and leaves voxels without an
 * observation as they are. Any strides, but none of 0 in tsdf and weight; all tensors live on the
 * context's device; tsdf, weight and num_points_unused overlap nothing.
 *
 * Take a point p that the sensor at o sees at distance r, in the direction u. Each voxel that the
 * ray passes from r - truncation (not before o; with RBC_VOXELIZE_TSDF_FLAG_CARVE: from o) to
 * r + truncation observes, once and with the weight w of the point,
 *   d = clamp(dot(p - c, u), -truncation, truncation)
 * at its centre c. The voxels are those that the traversal of Amanatides and Woo, "A fast voxel
 * traversal algorithm for ray tracing" (1987), visits: each shares a face with the one before. A
 * voxel that the ray only touches, or misses by rounding, may be among them or not. With all
 * observations of the call,
 *   tsdf = (tsdf * weight + sum(w * d)) / (weight + sum(w));  weight += sum(w), up to max_weight
 * so that calls cloud after cloud and one call with all of them agree within rounding, as long as
 * max_weight is not reached.
 *
 * Unused are points whose ray meets no voxel in that range, and those whose squared distance from
 * the sensor is not a normal number: NaN and infinite ones, all of a sensor that is not finite,
 * those at the sensor, and in f32 those closer than 1e-19 or farther than 1e19.
 *
 * w is rounded to a multiple of 2^-32 and w * d to one of truncation / 2^32; the sums of these are
 * exact, and so independent of the order of points and clouds: any run, CPU and CUDA, and any
 * permutation of the points of a call give the same bits. Rays are computed in f32 (f64 for points
 * of f64), with sensors, truncation and voxel_size rounded to it: they are as exact as the
 * coordinates of their points are in that type. Averages are computed in f64.
 *
 * CUDA, CPU, lengths and offsets, capture and errors are as for rbcVoxelize. On the CPU the
 * workspace has 16.1 bytes a voxel, of which a call touches what lies around the observed voxels.
 * On CUDA it has 24 bytes for each brick of 2 x 4 x 8 voxels that the grid takes (0.4 a voxel; 12 of
 * a grid of one row), of which a call clears a third, and 20 to 24 for each voxel that the rays may
 * observe: at most all of the grid, or X + Y + Z a point, or without carving a point's sum over the
 * axes of 2 * truncation / voxel_size + 5.
 */
RBC_API rbcStatus_t rbcVoxelizeTsdf(rbcContext_t context, const rbcTensor* points,
                                    const rbcTensor* sensors, const rbcOutput* tsdf,
                                    const rbcOutput* weight, const rbcOutput* num_points_unused,
                                    const rbcVoxelizeTsdfParams* params);

/*
 * The workspace in bytes that the same call of rbcVoxelizeTsdf needs, for rbcContextReserve.
 * Checks the arguments as that call does; on failure *bytes does not change.
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
