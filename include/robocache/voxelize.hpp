// Voxelization, dense and sparse. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "context.hpp"
#include "voxelize.h"

ROBOCACHE_NAMESPACE_BEGIN

// What to compute from the points of a voxel.
enum class VoxelMode : int32_t {
  kOccupancy = RBC_VOXEL_OCCUPANCY,
  kCount = RBC_VOXEL_COUNT,
  kSum = RBC_VOXEL_SUM,
  kMean = RBC_VOXEL_MEAN,
  kMax = RBC_VOXEL_MAX,
  kMin = RBC_VOXEL_MIN,
};

// The order in which voxelizeSparse lists voxels, and keeps them while there is room.
enum class VoxelOrder : int32_t {
  kLexicographic = RBC_VOXEL_ORDER_LEXICOGRAPHIC,
  kFirstPoint = RBC_VOXEL_ORDER_FIRST_POINT,
};

// The options of voxelize. The tensors are optional.
struct VoxelizeOptions {
  VoxelMode mode = VoxelMode::kOccupancy;
  double empty_value = 0;          // of voxels without a point
  std::optional<Tensor> features;  // [B,N,F], [N,F] as points; none: the columns of points
  std::optional<Tensor> lengths;   // [B] i32 or i64: valid points of padded clouds
  std::optional<Tensor> offsets;   // [B+1] i32 or i64: the clouds of packed points
  std::optional<Tensor> dropped;   // [B], without batch []; i64, written: points in no voxel
};

// Reduces point clouds to a dense grid.
//
//   points  [B,N,C]; [N,C] without batch; [N,C] packed, with offsets; C >= 3: x, y, z, ...
//   out     [B,X,Y,Z] for occupancy and count, else [B,X,Y,Z,F]; without batch no B; written whole
//
// See rbcVoxelize for dtypes, rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> voxelize(const Context& context, const Tensor& points,
                                const rbcVoxelGrid& grid, const Tensor& out,
                                const VoxelizeOptions& options = {}) {
  detail::Call call;
  rbcVoxelizeParams params = rbcVoxelizeParamsInit();
  params.mode = static_cast<int32_t>(options.mode);
  params.empty_value = options.empty_value;
  params.grid = grid;
  params.lengths = call.in(options.lengths, "lengths");
  params.offsets = call.in(options.offsets, "offsets");
  return call.make<Errors>(rbcVoxelize, context.get(), call.in(points, "points"),
                           call.in(options.features, "features"), call.out(out, "out"),
                           call.out(options.dropped, "dropped"), &params);
}

// The outputs of voxelizeSparse, written whole: see rbcSparseVoxels in voxelize.h. The capacity
// is the first extent of coords. The optional tensors may be left out.
struct SparseVoxels {
  SparseVoxels(const Tensor& places, const Tensor& count) : coords(places), num_voxels(count) {}

  Tensor coords;                         // [capacity,4] i32: cloud, x, y, z; then -1
  Tensor num_voxels;                     // [] i64: how many rows are voxels
  std::optional<Tensor> counts;          // [capacity] i32: points in the voxel
  std::optional<Tensor> features;        // [capacity,F] any float: reduced
  std::optional<Tensor> grouped;         // [capacity,P,F] any float: of the first P points
  std::optional<Tensor> point_to_voxel;  // [B,N] or [N] i32 or i64: a row of coords, or -1
  std::optional<Tensor> dropped;         // [B], without batch []; i64: points in no voxel
  std::optional<Tensor> overflow;        // [3] i64: voxels and points beyond the capacity, and
                                         // points of voxels beyond P
};

// The options of voxelizeSparse. The tensors are optional.
struct VoxelizeSparseOptions {
  VoxelMode reduce = VoxelMode::kMean;  // kSum, kMean, kMax or kMin
  VoxelOrder order = VoxelOrder::kLexicographic;
  std::optional<Tensor> features;  // [B,N,F], [N,F] as points; none: the columns of points
  std::optional<Tensor> lengths;   // as for voxelize
  std::optional<Tensor> offsets;
};

// Reduces point clouds, as for voxelize, to a list of the voxels that contain points. See
// rbcVoxelizeSparse for dtypes, rules and errors. Asynchronous on CUDA, as resample; the number of
// voxels too.
template <class Errors = DefaultErrors>
Returned<Errors, void> voxelizeSparse(const Context& context, const Tensor& points,
                                      const rbcVoxelGrid& grid, const SparseVoxels& voxels,
                                      const VoxelizeSparseOptions& options = {}) {
  detail::Call call;
  rbcSparseVoxels raw = rbcSparseVoxelsInit();
  raw.coords = call.out(voxels.coords, "coords");
  raw.num_voxels = call.out(voxels.num_voxels, "num_voxels");
  raw.counts = call.out(voxels.counts, "counts");
  raw.features = call.out(voxels.features, "voxels.features");
  raw.grouped = call.out(voxels.grouped, "grouped");
  raw.point_to_voxel = call.out(voxels.point_to_voxel, "point_to_voxel");
  raw.dropped = call.out(voxels.dropped, "dropped");
  raw.overflow = call.out(voxels.overflow, "overflow");
  rbcVoxelizeSparseParams params = rbcVoxelizeSparseParamsInit();
  params.reduce = static_cast<int32_t>(options.reduce);
  params.order = static_cast<int32_t>(options.order);
  params.grid = grid;
  params.lengths = call.in(options.lengths, "lengths");
  params.offsets = call.in(options.offsets, "offsets");
  return call.make<Errors>(rbcVoxelizeSparse, context.get(), call.in(points, "points"),
                           call.in(options.features, "features"), &raw, &params);
}

ROBOCACHE_NAMESPACE_END
