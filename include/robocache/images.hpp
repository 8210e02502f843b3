// Camera frames to images, and random draws for augmentation. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "context.hpp"
#include "images.h"

ROBOCACHE_NAMESPACE_BEGIN

enum class ImageRule : int32_t {
  kPillow = RBC_IMAGES_RULE_PILLOW,
  kPillow12 = RBC_IMAGES_RULE_PILLOW_12,
  kPillow13 = RBC_IMAGES_RULE_PILLOW_13,
  kTorchvision = RBC_IMAGES_RULE_TORCHVISION,
  kOpenCv = RBC_IMAGES_RULE_OPENCV,
  kExact = RBC_IMAGES_RULE_EXACT,
};

enum class ImageFilter : int32_t {
  kBox = RBC_IMAGES_FILTER_BOX,
  kBilinear = RBC_IMAGES_FILTER_BILINEAR,
  kHamming = RBC_IMAGES_FILTER_HAMMING,
  kBicubic = RBC_IMAGES_FILTER_BICUBIC,
  kLanczos3 = RBC_IMAGES_FILTER_LANCZOS3,
  kLinear = RBC_IMAGES_FILTER_LINEAR,
  kLinearExact = RBC_IMAGES_FILTER_LINEAR_EXACT,
  kArea = RBC_IMAGES_FILTER_AREA,
};

enum class ImageFit : int32_t {
  kStretch = RBC_IMAGES_FIT_STRETCH,
  kPad = RBC_IMAGES_FIT_PAD,
  kCover = RBC_IMAGES_FIT_COVER,
};

enum class ImagePad : int32_t {
  kCenter = RBC_IMAGES_PAD_CENTER,
  kStart = RBC_IMAGES_PAD_START,
  kEnd = RBC_IMAGES_PAD_END,
};

enum class ImageLayout : int32_t {
  kChw = RBC_IMAGES_LAYOUT_CHW,
  kHwc = RBC_IMAGES_LAYOUT_HWC,
};

// The options of images. The tensors are optional.
struct ImagesOptions {
  ImageRule rule = ImageRule::kPillow;
  ImageFilter filter = ImageFilter::kBilinear;
  ImageFit fit = ImageFit::kStretch;
  ImagePad pad_anchor = ImagePad::kCenter;
  ImageLayout layout = ImageLayout::kChw;
  bool color_first = false;                        // colours of the whole frame, before the crop
  std::array<double, 4> pad_value = {0, 0, 0, 0};  // by channel, integers of 0 to 255
  int64_t crop_height = 0;                         // the height of all boxes, if known
  int64_t crop_width = 0;                          // the width of all boxes, if known
  std::optional<Tensor> rows;                      // [B] i32 or i64: the frame of each image, or -1
  std::optional<Tensor> boxes;                     // [B,4] or [4], i32 or i64: y, x, height, width
  std::optional<Tensor> flips;        // [B] u8: 0 none, 1 left-right, 2 up-down, 3 both
  std::optional<Tensor> colors;       // [B,4] f32 or f64: brightness, contrast, saturation, hue
  std::optional<Tensor> color_order;  // [B,4] u8: the steps in their order
  std::optional<Tensor> table;        // [C,256], any float: the value of each byte
};

namespace detail {

// Returns finish(call, arguments of rbcImages...).
template <class Finish>
auto images(const Finish& finish, const Context& context, const std::vector<Tensor>& frames,
            const Tensor& out, const ImagesOptions& options) {
  Call call;
  rbcImagesFrames raw[RBC_IMAGES_MAX_FRAMES];
  // The library refuses more, and none; it reads no element of those.
  const size_t used = std::min<size_t>(frames.size(), RBC_IMAGES_MAX_FRAMES);
  for (size_t n = 0; n < used; ++n) {
    raw[n] = rbcImagesFramesInit();
    raw[n].values = call.in(frames[n], "frames");
  }
  rbcImagesParams params = rbcImagesParamsInit();
  params.flags = options.color_first ? RBC_IMAGES_FLAG_COLOR_FIRST : 0;
  params.rule = static_cast<int32_t>(options.rule);
  params.filter = static_cast<int32_t>(options.filter);
  params.fit = static_cast<int32_t>(options.fit);
  params.pad_anchor = static_cast<int32_t>(options.pad_anchor);
  params.layout = static_cast<int32_t>(options.layout);
  std::copy_n(options.pad_value.data(), 4, params.pad_value);
  params.crop_height = options.crop_height;
  params.crop_width = options.crop_width;
  params.boxes = call.in(options.boxes, "boxes");
  params.flips = call.in(options.flips, "flips");
  params.colors = call.in(options.colors, "colors");
  params.color_order = call.in(options.color_order, "color_order");
  params.table = call.in(options.table, "table");
  return finish(call, context.get(), raw, count(frames), call.in(options.rows, "rows"),
                call.out(out, "out"), &params);
}

}  // namespace detail

// Makes images from camera frames.
//
//   frames  [K], 1 to RBC_IMAGES_MAX_FRAMES; each [n,H,W,C] u8
//   out     [B,C,h,w], or [B,h,w,C] with ImageLayout::kHwc; u8 or any float; written whole
//
// See rbcImages for rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> images(const Context& context, const std::vector<Tensor>& frames,
                              const Tensor& out, const ImagesOptions& options = {}) {
  return detail::images(detail::run<Errors>(rbcImages), context, frames, out, options);
}

// Returns the workspace size in bytes of this call of images, for Context::reserve.
template <class Errors = DefaultErrors>
Returned<Errors, size_t> imagesWorkspaceSize(const Context& context,
                                             const std::vector<Tensor>& frames, const Tensor& out,
                                             const ImagesOptions& options = {}) {
  return detail::images(detail::measure<Errors>(rbcImagesWorkspaceSize), context, frames, out,
                        options);
}

enum class ImageCrop : int32_t {
  kNone = RBC_IMAGES_CROP_NONE,
  kFixed = RBC_IMAGES_CROP_FIXED,
  kFraction = RBC_IMAGES_CROP_FRACTION,
  kArea = RBC_IMAGES_CROP_AREA,
};

// The options of imageDraws. A step with a range of NaN is not drawn.
struct ImageDrawsOptions {
  int64_t seed = 0;
  int64_t epoch = 0;
  int32_t camera = 0;
  ImageCrop crop = ImageCrop::kNone;
  int64_t frame_height = 0;  // needed for boxes
  int64_t frame_width = 0;   // needed for boxes
  int64_t crop_height = 0;   // ImageCrop::kFixed
  int64_t crop_width = 0;    // ImageCrop::kFixed
  double crop_fraction = 1;  // ImageCrop::kFraction
  std::array<double, 2> area = {0.08, 1};
  std::array<double, 2> ratio = {0.75, 4.0 / 3.0};
  double flip_probability = 0;
  std::array<double, 2> brightness = {NAN, NAN};
  std::array<double, 2> contrast = {NAN, NAN};
  std::array<double, 2> saturation = {NAN, NAN};
  std::array<double, 2> hue = {NAN, NAN};
  std::optional<Tensor> boxes;        // [B,4] i32 or i64, written
  std::optional<Tensor> flips;        // [B] u8, written
  std::optional<Tensor> colors;       // [B,4] f32 or f64, written
  std::optional<Tensor> color_order;  // [B,4] u8, written
};

namespace detail {

// Returns finish(call, arguments of rbcImageDraws...).
template <class Finish>
auto imageDraws(const Finish& finish, const Context& context, const Tensor& samples,
                const ImageDrawsOptions& options) {
  Call call;
  rbcImageDrawsParams params = rbcImageDrawsParamsInit();
  params.seed = options.seed;
  params.epoch = options.epoch;
  params.camera = options.camera;
  params.crop = static_cast<int32_t>(options.crop);
  params.frame_height = options.frame_height;
  params.frame_width = options.frame_width;
  params.crop_height = options.crop_height;
  params.crop_width = options.crop_width;
  params.crop_fraction = options.crop_fraction;
  params.flip_probability = options.flip_probability;
  std::copy_n(options.area.data(), 2, params.area);
  std::copy_n(options.ratio.data(), 2, params.ratio);
  std::copy_n(options.brightness.data(), 2, params.brightness);
  std::copy_n(options.contrast.data(), 2, params.contrast);
  std::copy_n(options.saturation.data(), 2, params.saturation);
  std::copy_n(options.hue.data(), 2, params.hue);
  return finish(call, context.get(), call.in(samples, "samples"), call.out(options.boxes, "boxes"),
                call.out(options.flips, "flips"), call.out(options.colors, "colors"),
                call.out(options.color_order, "color_order"), &params);
}

}  // namespace detail

// Draws random boxes, flips and colours for images.
//
//   samples  [B] i32 or i64: the number of each sample
//
// See rbcImageDraws for rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> imageDraws(const Context& context, const Tensor& samples,
                                  const ImageDrawsOptions& options) {
  return detail::imageDraws(detail::run<Errors>(rbcImageDraws), context, samples, options);
}

// Returns the workspace size in bytes of this call of imageDraws, for Context::reserve.
template <class Errors = DefaultErrors>
Returned<Errors, size_t> imageDrawsWorkspaceSize(const Context& context, const Tensor& samples,
                                                 const ImageDrawsOptions& options) {
  return detail::imageDraws(detail::measure<Errors>(rbcImageDrawsWorkspaceSize), context, samples,
                            options);
}

ROBOCACHE_NAMESPACE_END
