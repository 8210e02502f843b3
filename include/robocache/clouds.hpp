// Point clouds from depth images, farthest points, rows by index. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "clouds.h"
#include "context.hpp"

ROBOCACHE_NAMESPACE_BEGIN

// The options of unproject; the tensors are optional.
struct UnprojectOptions {
  double depth_scale = 0;       // a divisor, depth units per metre; 0: 1000 for integers, else 1
  double min_depth = 0;         // kept points are farther than this
  double max_depth = INFINITY;  // kept points are nearer than this
  std::array<double, 3> crop_min = {-INFINITY, -INFINITY, -INFINITY};  // in the cloud's frame
  std::array<double, 3> crop_max = {INFINITY, INFINITY, INFINITY};
  double pixel_offset = 0;                         // of a pixel's centre: 0 or 0.5
  double color_divisor = 1;                        // colours are divided by it
  int32_t pixel_stride = 1;                        // every n-th row and column, from the first
  std::optional<Tensor> pose;                      // [B,4,4] or [4,4]: camera to cloud
  std::optional<Tensor> colors;                    // [B,H,W,C], [H,W,C] without batch
  std::optional<Tensor> num_points_over_capacity;  // [B] or []; i64, written: points beyond P
  std::optional<Tensor> pixels;  // [B,P] or [P]; i32 or i64, written: each point's pixel, then -1
};

namespace detail {

// Returns finish(call, arguments of rbcUnproject...).
template <class Finish>
auto unproject(const Finish& finish, const Context& context, const Tensor& depth,
               const Tensor& intrinsics, const Tensor& points, const Tensor& num_points,
               const UnprojectOptions& options) {
  Call call;
  rbcUnprojectParams params = rbcUnprojectParamsInit();
  params.depth_scale = options.depth_scale;
  params.min_depth = options.min_depth;
  params.max_depth = options.max_depth;
  std::copy_n(options.crop_min.data(), 3, params.crop_min);
  std::copy_n(options.crop_max.data(), 3, params.crop_max);
  params.pixel_offset = options.pixel_offset;
  params.color_divisor = options.color_divisor;
  params.pixel_stride = options.pixel_stride;
  return finish(call, context.get(), call.in(depth, "depth"), call.in(intrinsics, "intrinsics"),
                call.in(options.pose, "pose"), call.in(options.colors, "colors"),
                call.out(points, "points"), call.out(num_points, "num_points"),
                call.out(options.num_points_over_capacity, "num_points_over_capacity"),
                call.out(options.pixels, "pixels"), &params);
}

}  // namespace detail

// Makes point clouds from depth images.
//
//   depth       [B,H,W], [H,W] without batch
//   intrinsics  [B,4], or [4]: fx, fy, cx, cy
//   points      [B,P,3+C], [P,3+C] without batch; written whole
//   num_points  [B], without batch []; i64, written
//
// See rbcUnproject for dtypes, rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> unproject(const Context& context, const Tensor& depth,
                                 const Tensor& intrinsics, const Tensor& points,
                                 const Tensor& num_points, const UnprojectOptions& options = {}) {
  return detail::unproject(detail::run<Errors>(rbcUnproject), context, depth, intrinsics, points,
                           num_points, options);
}

// Returns the workspace size in bytes of this call of unproject, for Context::reserve.
template <class Errors = DefaultErrors>
Returned<Errors, size_t> unprojectWorkspaceSize(const Context& context, const Tensor& depth,
                                                const Tensor& intrinsics, const Tensor& points,
                                                const Tensor& num_points,
                                                const UnprojectOptions& options = {}) {
  return detail::unproject(detail::measure<Errors>(rbcUnprojectWorkspaceSize), context, depth,
                           intrinsics, points, num_points, options);
}

// The options of farthestPoints. The tensors are optional.
struct FarthestPointsOptions {
  int64_t start_index = 0;              // the index of the first point in its cloud
  std::optional<Tensor> start_indices;  // [B] i32 or i64: one per cloud
  std::optional<Tensor> lengths;        // [B] i32 or i64: valid points of padded clouds
  std::optional<Tensor> batch_offsets;  // [B+1] i32 or i64: the clouds of packed points
  std::optional<Tensor> distances;      // [B,K] or [K]; any float, written: squared distances
};

namespace detail {

// Returns finish(call, arguments of rbcFarthestPoints...).
template <class Finish>
auto farthestPoints(const Finish& finish, const Context& context, const Tensor& points,
                    const Tensor& indices, const FarthestPointsOptions& options) {
  Call call;
  rbcFarthestPointsParams params = rbcFarthestPointsParamsInit();
  params.start_index = options.start_index;
  params.start_indices = call.in(options.start_indices, "start_indices");
  params.lengths = call.in(options.lengths, "lengths");
  params.batch_offsets = call.in(options.batch_offsets, "batch_offsets");
  return finish(call, context.get(), call.in(points, "points"), call.out(indices, "indices"),
                call.out(options.distances, "distances"), &params);
}

}  // namespace detail

// Chooses points of each cloud. Each next point is the farthest from the points chosen before.
//
//   points   [B,N,C]; [N,C] without batch; [N,C] packed, with batch_offsets
//   indices  [B,K], [K] without batch; i32 or i64; written whole
//
// See rbcFarthestPoints for dtypes, rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> farthestPoints(const Context& context, const Tensor& points,
                                      const Tensor& indices,
                                      const FarthestPointsOptions& options = {}) {
  return detail::farthestPoints(detail::run<Errors>(rbcFarthestPoints), context, points, indices,
                                options);
}

// Returns the workspace size in bytes of this call of farthestPoints, for Context::reserve.
template <class Errors = DefaultErrors>
Returned<Errors, size_t> farthestPointsWorkspaceSize(const Context& context, const Tensor& points,
                                                     const Tensor& indices,
                                                     const FarthestPointsOptions& options = {}) {
  return detail::farthestPoints(detail::measure<Errors>(rbcFarthestPointsWorkspaceSize), context,
                                points, indices, options);
}

namespace detail {

// Returns finish(call, arguments of rbcTakeRows...).
template <class Finish>
auto takeRows(const Finish& finish, const Context& context, const Tensor& values,
              const Tensor& indices, const Tensor& out, double fill_value) {
  Call call;
  rbcTakeRowsParams params = rbcTakeRowsParamsInit();
  params.fill_value = fill_value;
  return finish(call, context.get(), call.in(values, "values"), call.in(indices, "indices"),
                call.out(out, "out"), &params);
}

}  // namespace detail

// Copies rows by index; -1 gives the fill value.
//
//   values   [B,N,C], or [N,C]
//   indices  [B,K], or [K] with [N,C]
//   out      the shape of indices and C; written whole
//
// See rbcTakeRows for dtypes, rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> takeRows(const Context& context, const Tensor& values, const Tensor& indices,
                                const Tensor& out, double fill_value = 0) {
  return detail::takeRows(detail::run<Errors>(rbcTakeRows), context, values, indices, out,
                          fill_value);
}

// Returns the workspace size in bytes of this call of takeRows, for Context::reserve.
template <class Errors = DefaultErrors>
Returned<Errors, size_t> takeRowsWorkspaceSize(const Context& context, const Tensor& values,
                                               const Tensor& indices, const Tensor& out,
                                               double fill_value = 0) {
  return detail::takeRows(detail::measure<Errors>(rbcTakeRowsWorkspaceSize), context, values,
                          indices, out, fill_value);
}

ROBOCACHE_NAMESPACE_END
