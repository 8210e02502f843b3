// rbcUnproject: the arguments of a call as an UnprojectProblem.

#include <algorithm>
#include <cinttypes>
#include <cmath>

#include "params.h"
#include "robocache/clouds.h"
#include "runtime/call.h"
#include "runtime/dtype_checks.h"
#include "status.h"
#include "unproject_problem.h"

namespace rbc {
namespace {

constexpr int64_t kMaxExtent = 1 << 24;  // of an image: f32 counts up to it exactly

struct Arguments {
  const rbcTensor* depth;
  const rbcTensor* intrinsics;
  const rbcTensor* pose;
  const rbcTensor* colors;
  const rbcTensor* points;
  const rbcTensor* num_points;
  const rbcTensor* num_points_over_capacity;
  const rbcTensor* pixels;
  const rbcUnprojectParams* params;
};

void requireRange(const char* low_name, double low, const char* high_name, double high) {
  if (!(low < high)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is %g, expected less than %s, which is %g", low_name,
         low, high_name, high);
  }
}

void requireScale(const char* name, double scale) {
  const auto rounded = static_cast<float>(scale);
  if (!(rounded > 0) || !std::isfinite(rounded)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is %g, expected more than 0 and finite, as float32",
         name, scale);
  }
}

rbcUnprojectParams checkedParams(const rbcUnprojectParams* input) {
  const rbcUnprojectParams params = readParams(input, rbcUnprojectParamsInit(), "params");
  if (params.depth_scale != 0) requireScale("depth_scale", params.depth_scale);
  requireScale("color_divisor", params.color_divisor);
  if (!(params.min_depth >= 0)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "min_depth: is %g, expected 0 or more", params.min_depth);
  }
  requireRange("min_depth", params.min_depth, "max_depth", params.max_depth);
  constexpr const char* kLow[] = {"crop_min[0]", "crop_min[1]", "crop_min[2]"};
  constexpr const char* kHigh[] = {"crop_max[0]", "crop_max[1]", "crop_max[2]"};
  for (int i = 0; i < 3; ++i)
    requireRange(kLow[i], params.crop_min[i], kHigh[i], params.crop_max[i]);
  if (params.pixel_offset != 0 && params.pixel_offset != 0.5) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "pixel_offset: is %g, expected 0 or 0.5",
         params.pixel_offset);
  }
  if (params.pixel_stride < 1) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "pixel_stride: is %" PRId32 ", expected 1 or more",
         params.pixel_stride);
  }
  return params;
}

class UnprojectCall : public CallBase {
 public:
  static constexpr const char* kOperation = "unproject";

  UnprojectCall(const rbcContext& context, const Arguments& call);

  const UnprojectProblem& problem() const { return problem_; }
  bool empty() const { return problem_.images == 0; }
  template <class Visitor>
  void visitIndexes(Visitor&&) {}
  void verifyIndexes() const {}
  // Fails on the CPU for invalid cameras.
  void check(rbcContext& context, Scratch) const;

 private:
  // Reads a tensor [B,...] with the batch of depth. Tensors of cameras may lack the batch.
  template <int Rank>
  ImageArray<Rank> array(const View& view, const char* argument, const int64_t (&shape)[Rank],
                         bool shared = false) const;
  template <int Rank>
  Output<Rank> output(const View& view, const char* argument, const int64_t (&shape)[Rank]) const;
  void addCameras(const Arguments& call);
  void addOutputs(const Arguments& call);

  UnprojectProblem problem_ = {};
  bool batched_ = false;
};

template <int Rank>
ImageArray<Rank> UnprojectCall::array(const View& view, const char* argument,
                                      const int64_t (&shape)[Rank], bool shared) const {
  const bool has_batch = shared ? view.ndim == Rank : batched_;
  requireShape(view, argument, Rank - (has_batch ? 0 : 1), shape + (has_batch ? 0 : 1));
  ImageArray<Rank> array = {view.data, {}, view.dtype};
  for (int i = has_batch ? 0 : 1; i < Rank; ++i) {
    array.stride[i] = view.strides[has_batch ? i : i - 1];
  }
  return array;
}

template <int Rank>
Output<Rank> UnprojectCall::output(const View& view, const char* argument,
                                   const int64_t (&shape)[Rank]) const {
  requireShape(view, argument, Rank - (batched_ ? 0 : 1), shape + (batched_ ? 0 : 1));
  Output<Rank> out = {view.data, {}, view.dtype};
  for (int i = batched_ ? 0 : 1; i < Rank; ++i) out.stride[i] = view.strides[batched_ ? i : i - 1];
  return out;
}

void UnprojectCall::addCameras(const Arguments& call) {
  UnprojectProblem& p = problem_;
  const View& intrinsics = operands.in(call.intrinsics, "intrinsics");
  requireRank(intrinsics, "intrinsics", 1, batched_ ? 2 : 1);
  requireF32OrF64(intrinsics, "intrinsics");
  p.intrinsics = array<2>(intrinsics, "intrinsics", {p.images, 4}, true);
  if (call.pose != nullptr) {
    const View& pose = operands.in(call.pose, "pose");
    requireRank(pose, "pose", 2, batched_ ? 3 : 2);
    requireF32OrF64(pose, "pose");
    p.pose = array<3>(pose, "pose", {p.images, 4, 4}, true);
  }
  if (call.colors != nullptr) {
    const View& colors = operands.in(call.colors, "colors");
    requireDType(colors, "colors", isFloat(colors.dtype) || colors.dtype == DType::U8,
                 "uint8 or a float");
    const int rank = batched_ ? 4 : 3;
    requireRank(colors, "colors", rank, rank);
    p.channels = colors.shape[rank - 1];
    if (p.channels > INT32_MAX - 3) {
      fail(RBC_STATUS_SHAPE_MISMATCH, "colors: has %" PRId64 " channels, expected at most 2^31 - 4",
           p.channels);
    }
    p.colors = array<4>(colors, "colors", {p.images, p.height, p.width, p.channels});
  }
}

void UnprojectCall::addOutputs(const Arguments& call) {
  UnprojectProblem& p = problem_;
  const View& points = operands.out(call.points, "points");
  const View& num_points = operands.out(call.num_points, "num_points");
  const View* over_capacity =
      operands.optionalOut(call.num_points_over_capacity, "num_points_over_capacity");
  const View* pixels = operands.optionalOut(call.pixels, "pixels");
  const int rank = batched_ ? 3 : 2;
  requireRank(points, "points", rank, rank);
  requireFloat(points, "points");
  p.capacity = points.shape[rank - 2];
  if (p.capacity > INT32_MAX) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "points: has room for %" PRId64 ", expected at most 2^31 - 1",
         p.capacity);
  }
  p.points = output<3>(points, "points", {p.images, p.capacity, 3 + p.channels});
  requireDType(num_points, "num_points", DType::I64);
  p.counts = output<1>(num_points, "num_points", {p.images});
  if (over_capacity != nullptr) {
    requireDType(*over_capacity, "num_points_over_capacity", DType::I64);
    p.over_capacity = output<1>(*over_capacity, "num_points_over_capacity", {p.images});
  }
  if (pixels != nullptr) {
    requireIndexes(*pixels, "pixels");
    p.pixels = output<2>(*pixels, "pixels", {p.images, p.capacity});
  }
}

UnprojectCall::UnprojectCall(const rbcContext& context, const Arguments& call) : CallBase(context) {
  const rbcUnprojectParams params = checkedParams(call.params);
  UnprojectProblem& p = problem_;
  const View& depth = operands.in(call.depth, "depth");
  requireRank(depth, "depth", 2, 3);
  requireDType(depth, "depth",
               depth.dtype == DType::U16 || depth.dtype == DType::F16 || depth.dtype == DType::F32,
               "uint16, float16 or float32");
  batched_ = depth.ndim == 3;
  p.images = batched_ ? depth.shape[0] : 1;
  p.height = depth.shape[depth.ndim - 2];
  p.width = depth.shape[depth.ndim - 1];
  if (p.height > kMaxExtent || p.width > kMaxExtent || p.height * p.width > INT32_MAX) {
    fail(RBC_STATUS_SHAPE_MISMATCH,
         "depth: shape is %s, expected images of at most 2^24 rows and columns and 2^31 - 1 pixels",
         shapeText(depth.ndim, depth.shape));
  }
  p.depth = array<3>(depth, "depth", {p.images, p.height, p.width});
  addCameras(call);
  addOutputs(call);
  p.step = params.pixel_stride;
  p.depth_scale = params.depth_scale != 0 ? params.depth_scale : isFloat(depth.dtype) ? 1 : 1000;
  p.min_depth = params.min_depth;
  p.max_depth = params.max_depth;
  std::copy_n(params.crop_min, 3, p.low);
  std::copy_n(params.crop_max, 3, p.high);
  p.pixel_offset = params.pixel_offset;
  p.color_divisor = params.color_divisor;
}

void UnprojectCall::check(rbcContext& context, Scratch) const {
  if (context.backend->id != RBC_BACKEND_CPU) return;
  const UnprojectProblem& p = problem_;
  const auto last = [&](int64_t batch_stride) { return batch_stride == 0 ? 1 : p.images; };
  constexpr const char* kNames[] = {"fx", "fy", "cx", "cy"};
  for (int64_t i = 0; i < std::min(p.images, last(p.intrinsics.stride[0])); ++i) {
    for (int k = 0; k < 4; ++k) {
      const int64_t at = i * p.intrinsics.stride[0] + k * p.intrinsics.stride[1];
      const auto x = numberAt<double>(p.intrinsics.data, p.intrinsics.dtype, at);
      if (std::isfinite(x) && (k > 1 || x != 0)) continue;
      fail(RBC_STATUS_INVALID_ARGUMENT, "intrinsics: %s of image %" PRId64 " is %g, expected %s",
           kNames[k], i, x, k > 1 ? "a finite number" : "a finite number that is not 0");
    }
  }
  if (p.pose.data == nullptr) return;
  for (int64_t i = 0; i < std::min(p.images, last(p.pose.stride[0])); ++i) {
    for (int k = 0; k < 12; ++k) {
      const int64_t at = i * p.pose.stride[0] + k / 4 * p.pose.stride[1] + k % 4 * p.pose.stride[2];
      const auto x = numberAt<double>(p.pose.data, p.pose.dtype, at);
      if (std::isfinite(x)) continue;
      fail(RBC_STATUS_INVALID_ARGUMENT, "pose: [%d,%d] of image %" PRId64 " is %g, expected finite",
           k / 4, k % 4, i, x);
    }
  }
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcUnproject(rbcContext_t context, const rbcTensor* depth, const rbcTensor* intrinsics,
                         const rbcTensor* pose, const rbcTensor* colors, const rbcTensor* points,
                         const rbcTensor* num_points, const rbcTensor* num_points_over_capacity,
                         const rbcTensor* pixels, const rbcUnprojectParams* params) {
  return rbc::runCall<rbc::UnprojectCall>(
      context, rbc::Arguments{depth, intrinsics, pose, colors, points, num_points,
                              num_points_over_capacity, pixels, params});
}

rbcStatus_t rbcUnprojectWorkspaceSize(rbcContext_t context, const rbcTensor* depth,
                                      const rbcTensor* intrinsics, const rbcTensor* pose,
                                      const rbcTensor* colors, const rbcTensor* points,
                                      const rbcTensor* num_points,
                                      const rbcTensor* num_points_over_capacity,
                                      const rbcTensor* pixels, const rbcUnprojectParams* params,
                                      size_t* bytes) {
  return rbc::sizeCall<rbc::UnprojectCall>(
      context,
      rbc::Arguments{depth, intrinsics, pose, colors, points, num_points, num_points_over_capacity,
                     pixels, params},
      bytes);
}
