#include "points/cloud_builder.h"
#include "runtime/dtype_checks.h"
#include "status.h"

#include <cinttypes>
#include <cmath>

namespace rbc {
namespace {

// Rounds a number to the compute dtype of the points.
double rounded(double x, bool in_double) {
  return in_double ? x : static_cast<double>(static_cast<float>(x));
}

}  // namespace

void CloudBuilder::addPoints(const rbcTensor* points, const rbcTensor* lengths,
                             const rbcTensor* batch_offsets) {
  const bool packed = batch_offsets != nullptr;
  const View& view = operands.in(points, "points");
  requireRank(view, "points", 2, packed ? 2 : 3);
  requireFloat(view, "points");
  const int64_t columns = view.shape[view.ndim - 1];
  if (columns < 3) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "points: shape is %s, expected 3 columns or more: x, y, z",
         shapeText(view.ndim, view.shape));
  }
  PointClouds& p = points_;
  p.data = view.data;
  p.stride[0] = view.ndim == 3 ? view.strides[0] : 0;
  p.stride[1] = view.strides[view.ndim - 2];
  p.stride[2] = view.strides[view.ndim - 1];
  p.columns = columns;
  p.dtype = view.dtype;
  p.clouds = view.ndim == 3 ? view.shape[0] : 1;
  p.rows = view.shape[view.ndim - 2];
  points_view_ = &view;
  batched_ = packed || view.ndim == 3;
  if (packed) {
    if (lengths != nullptr) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "lengths: expected null with batch_offsets; lengths are for padded points");
    }
    const View& ends = operands.in(batch_offsets, "batch_offsets");
    requireRank(ends, "batch_offsets", 1, 1);
    if (ends.shape[0] < 1) {
      fail(RBC_STATUS_SHAPE_MISMATCH, "batch_offsets: shape is [0], expected [B+1]");
    }
    p.clouds = ends.shape[0] - 1;
    p.offsets = indexArrayOf(ends, "batch_offsets", p.clouds + 1);
  }
  if (lengths != nullptr) {
    p.lengths = indexArrayOf(operands.in(lengths, "lengths"), "lengths", p.clouds);
  }
  if (p.total() > kMaxPoints) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "points: got %" PRId64 ", expected at most 2^31 - 1",
         p.total());
  }
}

Features CloudBuilder::features(const rbcTensor* tensor) {
  const View& view = tensor != nullptr ? operands.in(tensor, "features") : *points_view_;
  if (tensor != nullptr) {
    requireRank(view, "features", points_view_->ndim, points_view_->ndim);
    requireFloat(view, "features");
    int64_t shape[3];
    for (int i = 0; i < view.ndim; ++i) {
      shape[i] = i < view.ndim - 1 ? points_view_->shape[i] : view.shape[i];
    }
    requireShape(view, "features", view.ndim, shape);
  }
  return {view.data,
          {view.ndim == 3 ? view.strides[0] : 0, view.strides[view.ndim - 2],
           view.strides[view.ndim - 1]},
          view.dtype,
          view.shape[view.ndim - 1]};
}

VoxelGrid CloudBuilder::grid(const rbcVoxelGrid& input) const {
  const bool in_double = computesInDouble(points_.dtype);
  const char* type = in_double ? "float64" : "float32";
  VoxelGrid grid = {};
  int64_t voxels = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const double origin = input.origin[axis];
    const double size = input.voxel_size[axis];
    if (!std::isfinite(rounded(origin, in_double))) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "origin[%d]: is %g, expected a finite %s", axis, origin,
           type);
    }
    if (!(size > 0) || !std::isfinite(size)) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "voxel_size[%d]: is %g, expected more than 0 and finite",
           axis, size);
    }
    const double inverse = rounded(1 / size, in_double);
    if (!(inverse > 0) || !std::isfinite(inverse)) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "voxel_size[%d]: is %g, expected one whose inverse is a finite %s above 0", axis, size,
           type);
    }
    if (input.shape[axis] < 1 || input.shape[axis] > INT32_MAX) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "shape[%d]: is %" PRId64 ", expected 1 to 2^31 - 1", axis,
           input.shape[axis]);
    }
    if (__builtin_mul_overflow(voxels, input.shape[axis], &voxels)) voxels = INT64_MAX;
    grid.origin[axis] = origin;
    grid.voxel_size[axis] = size;
    grid.shape[axis] = input.shape[axis];
  }
  if (__builtin_mul_overflow(voxels, points_.clouds > 0 ? points_.clouds : 1, &voxels) ||
      voxels > int64_t{1} << 62) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "shape: [%" PRId64 ",%" PRId64 ",%" PRId64 "] for %" PRId64
         " clouds, expected at most 2^62 voxels in all",
         input.shape[0], input.shape[1], input.shape[2], points_.clouds);
  }
  return grid;
}

Output<1> CloudBuilder::countOutput(const View* view, const char* argument) const {
  if (view == nullptr) return {};
  const int64_t shape[] = {points_.clouds};
  const Output<1> out = batchOutput(*view, argument, shape);
  requireDType(*view, argument, DType::I64);
  return out;
}

}  // namespace rbc
