// Signed distances. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "context.hpp"
#include "tsdf.h"

ROBOCACHE_NAMESPACE_BEGIN

// The weight of a point at distance r from its sensor: 1, or 1 / r^2.
enum class TsdfWeighting : int32_t {
  kConstant = RBC_VOXELIZE_TSDF_WEIGHT_CONSTANT,
  kInverseSquare = RBC_VOXELIZE_TSDF_WEIGHT_INVERSE_SQUARE,
};

// The options of voxelizeTsdf. The tensors are optional.
struct VoxelizeTsdfOptions {
  TsdfWeighting weighting = TsdfWeighting::kConstant;
  bool carve = false;             // a ray updates the free space from its sensor on, too
  double max_weight = INFINITY;   // a voxel's weight stops here
  std::optional<Tensor> lengths;  // as for voxelize
  std::optional<Tensor> batch_offsets;
  std::optional<Tensor> num_points_unused;  // [B], without batch []; i64, written
};

// Integrates point clouds into a truncated signed distance field.
//
//   points        as for voxelize
//   sensors       [B,3], or [3] for all clouds; f32 or f64: the position of each sensor
//   tsdf, weight  [X,Y,Z] f32, read and written: a new volume has zero weights
//
// See rbcVoxelizeTsdf for dtypes, rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> voxelizeTsdf(const Context& context, const Tensor& points,
                                    const Tensor& sensors, const rbcVoxelGrid& grid,
                                    double truncation, const Tensor& tsdf, const Tensor& weight,
                                    const VoxelizeTsdfOptions& options = {}) {
  detail::Call call;
  rbcVoxelizeTsdfParams params = rbcVoxelizeTsdfParamsInit();
  params.flags = options.carve ? RBC_VOXELIZE_TSDF_FLAG_CARVE : 0;
  params.weighting = static_cast<int32_t>(options.weighting);
  params.truncation = truncation;
  params.max_weight = options.max_weight;
  params.grid = grid;
  params.lengths = call.in(options.lengths, "lengths");
  params.batch_offsets = call.in(options.batch_offsets, "batch_offsets");
  return call.make<Errors>(rbcVoxelizeTsdf, context.get(), call.in(points, "points"),
                           call.in(sensors, "sensors"), call.out(tsdf, "tsdf"),
                           call.out(weight, "weight"),
                           call.out(options.num_points_unused, "num_points_unused"), &params);
}

ROBOCACHE_NAMESPACE_END
