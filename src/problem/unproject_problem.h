// Depth images to clouds as plain numbers: the input of a backend.
#pragma once

#include "dtype.h"
#include "output.h"
#include "pinhole.h"
#include "real.h"

namespace rbc {

// Strides are in elements; the first is 0 if the images share the array, or there is one image.
template <int Rank>
struct ImageArray {
  const void* data;  // null: not given
  int64_t stride[Rank];
  DType dtype;
};

struct UnprojectProblem {
  int64_t images;
  int64_t height;
  int64_t width;
  int64_t step;
  ImageArray<3> depth;       // image, row, column; U16, F16 or F32
  ImageArray<2> intrinsics;  // image, number; F32 or F64
  ImageArray<3> pose;        // image, row, column; F32 or F64
  ImageArray<4> colors;      // image, row, column, channel; U8 or a float
  int64_t channels;          // of the colours
  int64_t capacity;          // points of an image
  Output<3> points;          // image, point, channel
  Output<1> counts;          // i64
  Output<1> over_capacity;   // i64
  Output<2> pixels;          // image, point; i32 or i64
  double depth_scale;
  double min_depth;
  double max_depth;
  double low[3];
  double high[3];
  double pixel_offset;
  double color_divisor;

  // Rows and columns that are visited.
  RBC_HD int64_t rows() const { return (height + step - 1) / step; }
  RBC_HD int64_t columns() const { return (width + step - 1) / step; }
};

template <class Number>
DepthRules<Number> rulesAs(const UnprojectProblem& p) {
  DepthRules<Number> rules;
  rules.depth_scale = static_cast<Number>(p.depth_scale);
  rules.min_depth = static_cast<Number>(p.min_depth);
  rules.max_depth = static_cast<Number>(p.max_depth);
  for (int i = 0; i < 3; ++i) {
    rules.low[i] = static_cast<Number>(p.low[i]);
    rules.high[i] = static_cast<Number>(p.high[i]);
  }
  rules.pixel_offset = static_cast<Number>(p.pixel_offset);
  rules.posed = p.pose.data != nullptr;
  return rules;
}

// An element of an array of f32 or f64.
template <class Number>
RBC_HD Number numberAt(const void* data, DType dtype, int64_t at) {
  return dtype == DType::F64 ? static_cast<Number>(static_cast<const double*>(data)[at])
                             : static_cast<Number>(static_cast<const float*>(data)[at]);
}

// The numbers of a camera, one by one: `intrinsics`, then the pose.
inline constexpr int kCameraNumbers = 16;
template <class Number>
RBC_HD void readCameraNumber(const UnprojectProblem& p, int64_t image, int n,
                             Pinhole<Number>* camera) {
  if (n < 4) {
    const auto& k = p.intrinsics;
    (n < 2 ? camera->focal : camera->centre)[n % 2] =
        numberAt<Number>(k.data, k.dtype, image * k.stride[0] + n * k.stride[1]);
    return;
  }
  const int i = n / 4 - 1;
  const int j = n % 4;
  const int64_t at = image * p.pose.stride[0] + i * p.pose.stride[1] + j * p.pose.stride[2];
  camera->pose[i][j] = p.pose.data == nullptr ? 0 : numberAt<Number>(p.pose.data, p.pose.dtype, at);
}

template <class Number>
RBC_HD Pinhole<Number> cameraOf(const UnprojectProblem& p, int64_t image) {
  Pinhole<Number> camera;
  for (int n = 0; n < kCameraNumbers; ++n) readCameraNumber(p, image, n, &camera);
  return camera;
}

// Calls visitor(Tag<Storage>) for the dtypes that depth may have.
template <class Visitor>
decltype(auto) visitDepth(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::U16: return visitor(Tag<uint16_t>{});
    case DType::F16: return visitor(Tag<f16>{});
    case DType::F32: return visitor(Tag<float>{});
    default: detail::failDispatch(dtype);
  }
}

// A colour at an offset in the array, for any dtype that colours may have.
template <class Number>
RBC_HD Number colorAt(const ImageArray<4>& colors, int64_t at) {
  switch (colors.dtype) {
    case DType::U8: return static_cast<Number>(static_cast<const uint8_t*>(colors.data)[at]);
    case DType::F16: return static_cast<Number>(widen(static_cast<const f16*>(colors.data)[at]));
    case DType::BF16: return static_cast<Number>(widen(static_cast<const bf16*>(colors.data)[at]));
    default: return numberAt<Number>(colors.data, colors.dtype, at);
  }
}

}  // namespace rbc
