// Voxelization, dense and sparse. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "context.hpp"
#include "voxelize.h"

ROBOCACHE_NAMESPACE_BEGIN

// The value that is computed from the points of a voxel: see RBC_REDUCE_... in voxelize.h.
enum class Reduction : int32_t {
  kOccupancy = RBC_REDUCE_OCCUPANCY,
  kCount = RBC_REDUCE_COUNT,
  kSum = RBC_REDUCE_SUM,
  kMean = RBC_REDUCE_MEAN,
  kMax = RBC_REDUCE_MAX,
  kMin = RBC_REDUCE_MIN,
};

// The order in which voxelizeSparse lists voxels, and keeps them up to the capacity.
enum class VoxelOrder : int32_t {
  kLexicographic = RBC_VOXELIZE_SPARSE_ORDER_LEXICOGRAPHIC,
  kFirstPoint = RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT,
};

// The options of voxelize. The tensors are optional.
struct VoxelizeOptions {
  Reduction reduction = Reduction::kOccupancy;
  double fill_value = 0;                // written to voxels without a point
  std::optional<Tensor> features;       // [B,N,F], [N,F] as points; not set: the columns of points
  std::optional<Tensor> lengths;        // [B] i32 or i64: valid points of padded clouds
  std::optional<Tensor> batch_offsets;  // [B+1] i32 or i64: the clouds of packed points
  std::optional<Tensor> num_points_outside;  // [B] or []; i64, written: points in no voxel
};

namespace detail {

// Returns finish(call, arguments of rbcVoxelize...).
template <class Finish>
auto voxelize(const Finish& finish, const Context& context, const Tensor& points,
              const rbcVoxelGrid& grid, const Tensor& out, const VoxelizeOptions& options) {
  Call call;
  rbcVoxelizeParams params = rbcVoxelizeParamsInit();
  params.reduction = static_cast<int32_t>(options.reduction);
  params.fill_value = options.fill_value;
  params.grid = grid;
  params.lengths = call.in(options.lengths, "lengths");
  params.batch_offsets = call.in(options.batch_offsets, "batch_offsets");
  return finish(call, context.get(), call.in(points, "points"),
                call.in(options.features, "features"), call.out(out, "out"),
                call.out(options.num_points_outside, "num_points_outside"), &params);
}

}  // namespace detail

// Reduces point clouds to a dense grid.
//
//   points  [B,N,C]; [N,C] without batch; [N,C] packed, with batch_offsets; C >= 3: x, y, z, ...
//   out     [B,X,Y,Z] for occupancy and count, else [B,X,Y,Z,F]; without batch no B; written whole
//
// See rbcVoxelize for dtypes, rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> voxelize(const Context& context, const Tensor& points,
                                const rbcVoxelGrid& grid, const Tensor& out,
                                const VoxelizeOptions& options = {}) {
  return detail::voxelize(detail::run<Errors>(rbcVoxelize), context, points, grid, out, options);
}

// Returns the workspace size in bytes of this call of voxelize, for Context::reserve.
template <class Errors = DefaultErrors>
Returned<Errors, size_t> voxelizeWorkspaceSize(const Context& context, const Tensor& points,
                                               const rbcVoxelGrid& grid, const Tensor& out,
                                               const VoxelizeOptions& options = {}) {
  return detail::voxelize(detail::measure<Errors>(rbcVoxelizeWorkspaceSize), context, points, grid,
                          out, options);
}

// The outputs of voxelizeSparse, written whole: see rbcVoxelizeSparseOutputs in voxelize.h. The
// capacity is the first extent of coords. An optional tensor that is not set is not computed.
struct VoxelizeSparseOutputs {
  VoxelizeSparseOutputs(const Tensor& places, const Tensor& count)
      : coords(places), num_voxels(count) {}

  Tensor coords;                           // [capacity,4] i32: cloud, x, y, z; then -1
  Tensor num_voxels;                       // [] i64: the number of rows that are voxels
  std::optional<Tensor> points_per_voxel;  // [capacity] i32
  std::optional<Tensor> voxel_features;  // [capacity,F] any float: reduced over the voxel's points
  std::optional<Tensor> grouped;         // [capacity,P,F] any float: features of the first P points
  std::optional<Tensor> point_to_voxel;  // [B,N] or [N] i32 or i64: a row of coords, or -1
  std::optional<Tensor> num_points_outside;        // [B], without batch []; i64: points in no voxel
  std::optional<Tensor> num_voxels_over_capacity;  // [] i64: voxels that were not kept
  std::optional<Tensor> num_points_over_capacity;  // [] i64: points in voxels that were not kept
  std::optional<Tensor> num_points_over_group;     // [] i64: points of kept voxels beyond P
};

// The options of voxelizeSparse. The tensors are optional.
struct VoxelizeSparseOptions {
  Reduction reduction = Reduction::kMean;  // kSum, kMean, kMax or kMin
  VoxelOrder order = VoxelOrder::kLexicographic;
  std::optional<Tensor> features;  // [B,N,F], [N,F] as points; not set: the columns of points
  std::optional<Tensor> lengths;   // as for voxelize
  std::optional<Tensor> batch_offsets;
};

namespace detail {

// Returns finish(call, arguments of rbcVoxelizeSparse...).
template <class Finish>
auto voxelizeSparse(const Finish& finish, const Context& context, const Tensor& points,
                    const rbcVoxelGrid& grid, const VoxelizeSparseOutputs& outputs,
                    const VoxelizeSparseOptions& options) {
  Call call;
  rbcVoxelizeSparseOutputs raw = rbcVoxelizeSparseOutputsInit();
  raw.coords = call.out(outputs.coords, "coords");
  raw.num_voxels = call.out(outputs.num_voxels, "num_voxels");
  raw.points_per_voxel = call.out(outputs.points_per_voxel, "points_per_voxel");
  raw.voxel_features = call.out(outputs.voxel_features, "outputs.voxel_features");
  raw.grouped = call.out(outputs.grouped, "grouped");
  raw.point_to_voxel = call.out(outputs.point_to_voxel, "point_to_voxel");
  raw.num_points_outside = call.out(outputs.num_points_outside, "num_points_outside");
  raw.num_voxels_over_capacity =
      call.out(outputs.num_voxels_over_capacity, "num_voxels_over_capacity");
  raw.num_points_over_capacity =
      call.out(outputs.num_points_over_capacity, "num_points_over_capacity");
  raw.num_points_over_group = call.out(outputs.num_points_over_group, "num_points_over_group");
  rbcVoxelizeSparseParams params = rbcVoxelizeSparseParamsInit();
  params.reduction = static_cast<int32_t>(options.reduction);
  params.order = static_cast<int32_t>(options.order);
  params.grid = grid;
  params.lengths = call.in(options.lengths, "lengths");
  params.batch_offsets = call.in(options.batch_offsets, "batch_offsets");
  return finish(call, context.get(), call.in(points, "points"),
                call.in(options.features, "features"), &raw, &params);
}

}  // namespace detail

// Reduces point clouds, as for voxelize, to a list of the voxels that contain points. See
// rbcVoxelizeSparse for dtypes, rules and errors. Asynchronous on CUDA, as resample, including the
// number of voxels.
template <class Errors = DefaultErrors>
Returned<Errors, void> voxelizeSparse(const Context& context, const Tensor& points,
                                      const rbcVoxelGrid& grid,
                                      const VoxelizeSparseOutputs& outputs,
                                      const VoxelizeSparseOptions& options = {}) {
  return detail::voxelizeSparse(detail::run<Errors>(rbcVoxelizeSparse), context, points, grid,
                                outputs, options);
}

// Returns the workspace size in bytes of this call of voxelizeSparse, for Context::reserve.
template <class Errors = DefaultErrors>
Returned<Errors, size_t> voxelizeSparseWorkspaceSize(const Context& context, const Tensor& points,
                                                     const rbcVoxelGrid& grid,
                                                     const VoxelizeSparseOutputs& outputs,
                                                     const VoxelizeSparseOptions& options = {}) {
  return detail::voxelizeSparse(detail::measure<Errors>(rbcVoxelizeSparseWorkspaceSize), context,
                                points, grid, outputs, options);
}

ROBOCACHE_NAMESPACE_END
