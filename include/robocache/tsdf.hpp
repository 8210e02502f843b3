// Signed distance fields. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "context.hpp"
#include "tsdf.h"

ROBOCACHE_NAMESPACE_BEGIN

// The weight of a point at distance r from its sensor: 1, or 1 / r^2.
enum class TsdfWeighting : int32_t {
  kConstant = RBC_VOXELIZE_TSDF_WEIGHTING_CONSTANT,
  kInverseSquare = RBC_VOXELIZE_TSDF_WEIGHTING_INVERSE_SQUARE,
};

// The options of voxelizeTsdf. The tensors are optional.
struct VoxelizeTsdfOptions {
  TsdfWeighting weighting = TsdfWeighting::kConstant;
  bool carve = false;             // rays also update the space from the sensor on
  double max_weight = INFINITY;   // the limit of a voxel's weight
  std::optional<Tensor> lengths;  // as for voxelize
  std::optional<Tensor> batch_offsets;
  std::optional<Tensor> num_points_unused;  // [B] or []; i64, written: points that updated no voxel
};

namespace detail {

// Returns finish(call, arguments of rbcVoxelizeTsdf...).
template <class Finish>
auto voxelizeTsdf(const Finish& finish, const Context& context, const Tensor& points,
                  const Tensor& sensors, const rbcVoxelGrid& grid, double truncation,
                  const Tensor& tsdf, const Tensor& weight, const VoxelizeTsdfOptions& options) {
  Call call;
  rbcVoxelizeTsdfParams params = rbcVoxelizeTsdfParamsInit();
  params.flags = options.carve ? RBC_VOXELIZE_TSDF_FLAG_CARVE : 0;
  params.weighting = static_cast<int32_t>(options.weighting);
  params.truncation = truncation;
  params.max_weight = options.max_weight;
  params.grid = grid;
  params.lengths = call.in(options.lengths, "lengths");
  params.batch_offsets = call.in(options.batch_offsets, "batch_offsets");
  return finish(call, context.get(), call.in(points, "points"), call.in(sensors, "sensors"),
                call.out(tsdf, "tsdf"), call.out(weight, "weight"),
                call.out(options.num_points_unused, "num_points_unused"), &params);
}

}  // namespace detail

// Integrates point clouds into a truncated signed distance field.
//
//   points        as for voxelize
//   sensors       [B,3], or [3] for all clouds; f32 or f64: the position of each cloud's sensor
//   truncation    in the points' unit, more than 0
//   tsdf, weight  [X,Y,Z] f32, read and written; for a new volume, set the weights to 0
//
// See rbcVoxelizeTsdf for dtypes, rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> voxelizeTsdf(const Context& context, const Tensor& points,
                                    const Tensor& sensors, const rbcVoxelGrid& grid,
                                    double truncation, const Tensor& tsdf, const Tensor& weight,
                                    const VoxelizeTsdfOptions& options = {}) {
  return detail::voxelizeTsdf(detail::run<Errors>(rbcVoxelizeTsdf), context, points, sensors, grid,
                              truncation, tsdf, weight, options);
}

// Returns the workspace size in bytes of this call of voxelizeTsdf, for Context::reserve.
template <class Errors = DefaultErrors>
Returned<Errors, size_t> voxelizeTsdfWorkspaceSize(const Context& context, const Tensor& points,
                                                   const Tensor& sensors, const rbcVoxelGrid& grid,
                                                   double truncation, const Tensor& tsdf,
                                                   const Tensor& weight,
                                                   const VoxelizeTsdfOptions& options = {}) {
  return detail::voxelizeTsdf(detail::measure<Errors>(rbcVoxelizeTsdfWorkspaceSize), context,
                              points, sensors, grid, truncation, tsdf, weight, options);
}

ROBOCACHE_NAMESPACE_END
