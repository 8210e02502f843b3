// rbcImages: the arguments of a call as an ImagesProblem.

#include <cinttypes>
#include <cmath>

#include "images_problem.h"
#include "params.h"
#include "runtime/call.h"
#include "runtime/dtype_checks.h"
#include "runtime/indexes.h"
#include "status.h"

namespace rbc {

template <>
inline constexpr KnownFlags kKnownFlags<rbcImagesParams> = {RBC_IMAGES_FLAG_COLOR_FIRST,
                                                            "RBC_IMAGES_FLAG_COLOR_FIRST"};

namespace {

struct Arguments {
  const rbcImagesFrames* frames;
  int32_t num_frames;
  const rbcTensor* rows;
  const rbcTensor* out;
  const rbcImagesParams* params;
};

void requireConstant(const char* name, int32_t value, int32_t last, const char* expected) {
  if (value >= 0 && value <= last) return;
  fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is %" PRId32 ", expected one of %s", name, value,
       expected);
}

constexpr const char* kRuleNames[] = {"PILLOW",      "PILLOW_12", "PILLOW_13",
                                      "TORCHVISION", "OPENCV",    "EXACT"};
constexpr const char* kFilterNames[] = {"BOX",      "BILINEAR", "HAMMING",      "BICUBIC",
                                        "LANCZOS3", "LINEAR",   "LINEAR_EXACT", "AREA"};

void requireFilter(int32_t rule, int32_t filter) {
  constexpr uint32_t kPillow = 1u << RBC_IMAGES_FILTER_BOX | 1u << RBC_IMAGES_FILTER_BILINEAR |
                               1u << RBC_IMAGES_FILTER_HAMMING | 1u << RBC_IMAGES_FILTER_BICUBIC |
                               1u << RBC_IMAGES_FILTER_LANCZOS3;
  constexpr uint32_t kFilters[] = {
      kPillow,
      kPillow,
      kPillow,
      1u << RBC_IMAGES_FILTER_BILINEAR | 1u << RBC_IMAGES_FILTER_BICUBIC |
          1u << RBC_IMAGES_FILTER_LINEAR,
      1u << RBC_IMAGES_FILTER_LINEAR | 1u << RBC_IMAGES_FILTER_LINEAR_EXACT |
          1u << RBC_IMAGES_FILTER_AREA,
      kPillow};
  constexpr const char* kOfPillow = "BOX, BILINEAR, HAMMING, BICUBIC or LANCZOS3";
  constexpr const char* kExpected[] = {kOfPillow,
                                       kOfPillow,
                                       kOfPillow,
                                       "BILINEAR, BICUBIC or LINEAR",
                                       "LINEAR, LINEAR_EXACT or AREA",
                                       kOfPillow};
  if ((kFilters[rule] >> filter & 1) != 0) return;
  fail(RBC_STATUS_UNSUPPORTED, "filter: is %s, expected %s with rule %s", kFilterNames[filter],
       kExpected[rule], kRuleNames[rule]);
}

rbcImagesParams checkedParams(const rbcImagesParams* input) {
  const rbcImagesParams params = readParams(input, rbcImagesParamsInit(), "params");
  requireConstant("rule", params.rule, RBC_IMAGES_RULE_EXACT, "RBC_IMAGES_RULE_...");
  requireConstant("filter", params.filter, RBC_IMAGES_FILTER_AREA, "RBC_IMAGES_FILTER_...");
  requireConstant("fit", params.fit, RBC_IMAGES_FIT_COVER, "RBC_IMAGES_FIT_...");
  requireConstant("pad_anchor", params.pad_anchor, RBC_IMAGES_PAD_END, "RBC_IMAGES_PAD_...");
  requireConstant("layout", params.layout, RBC_IMAGES_LAYOUT_HWC, "RBC_IMAGES_LAYOUT_...");
  requireFilter(params.rule, params.filter);
  for (int c = 0; c < kMaxImageChannels; ++c) {
    const double value = params.pad_value[c];
    if (!(value >= 0 && value <= 255 && value == std::floor(value))) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "pad_value[%d]: is %g, expected an integer of 0 to 255", c,
           value);
    }
  }
  return params;
}

int64_t leadingStride(const View& view, int rank) {
  return view.ndim == rank ? view.strides[0] : 0;
}

class ImagesCall : public CallBase {
 public:
  static constexpr const char* kOperation = "images";

  ImagesCall(const rbcContext& context, const Arguments& call);

  const ImagesProblem& problem() const { return problem_; }
  bool empty() const {
    return problem_.images == 0 || problem_.out_height == 0 || problem_.out_width == 0;
  }
  template <class Visitor>
  void visitIndexes(Visitor&&) {}
  void verifyIndexes() const {}
  // Fails on the CPU for numbers that are out of range.
  void check(rbcContext& context, Scratch) const;

 private:
  void addFrames(const Arguments& call);
  void addArray(const rbcImagesFrames& frames, int32_t n);
  void addOut(const Arguments& call, int32_t layout);
  void addRows(const rbcTensor* rows);
  void addBoxes(const rbcImagesParams& params);
  void addColors(const rbcImagesParams& params);
  void addTable(const rbcTensor* table);
  void requireResized(int64_t height, int64_t width) const;
  void checkBox(int64_t image) const;
  void checkColors(int64_t image) const;
  void checkTable() const;

  ImagesProblem problem_ = {};
};

void ImagesCall::addArray(const rbcImagesFrames& frames, int32_t n) {
  ImagesProblem& p = problem_;
  const View& values = operands.in(frames.values, "values");
  requireRank(values, "values", 4, 4);
  requireDType(values, "values", DType::U8);
  const int64_t height = values.shape[1];
  const int64_t width = values.shape[2];
  const int64_t channels = values.shape[3];
  if (channels != 1 && channels != 3 && channels != 4) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "values: shape is %s, expected [n,H,W,C] with C of 1, 3 or 4",
         shapeText(4, values.shape));
  }
  if (height < 1 || height > kMaxImageExtent || width < 1 || width > kMaxImageExtent) {
    fail(RBC_STATUS_SHAPE_MISMATCH,
         "values: shape is %s, expected [n,H,W,C] with H and W of 1 to 65536",
         shapeText(4, values.shape));
  }
  if (n == 0) {
    p.height = height;
    p.width = width;
    p.channels = static_cast<int32_t>(channels);
  }
  const int64_t shape[] = {values.shape[0], p.height, p.width, p.channels};
  requireShape(values, "values", 4, shape);
  FrameArray& array = p.arrays[n];
  array.data = reinterpret_cast<const uint8_t*>(values.data);
  for (int i = 0; i < 4; ++i) array.stride[i] = values.strides[i];
  array.first = p.frames;
  if (__builtin_add_overflow(p.frames, values.shape[0], &p.frames)) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "values: shape is %s, expected fewer than 2^63 frames in all",
         shapeText(4, values.shape));
  }
}

void ImagesCall::addFrames(const Arguments& call) {
  if (call.num_frames < 1 || call.num_frames > RBC_IMAGES_MAX_FRAMES) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "num_frames: is %d, expected 1 to %d", call.num_frames,
         RBC_IMAGES_MAX_FRAMES);
  }
  if (call.frames == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "frames: is null");
  const uint32_t stride = structSize(call.frames);
  for (int32_t n = 0; n < call.num_frames; ++n) {
    operands.setStream(n, "frames");
    const char* separator = ": ";
    try {
      const rbcImagesFrames frames =
          readElement(call.frames, stride, n, rbcImagesFramesInit(), "frames");
      separator = ".";
      addArray(frames, n);
    } catch (const Error&) {
      prefixLastError("frames[%d]%s", n, separator);
      throw;
    }
  }
  operands.setStream(-1);
  problem_.num_arrays = call.num_frames;
}

void ImagesCall::addOut(const Arguments& call, int32_t layout) {
  ImagesProblem& p = problem_;
  const View& out = operands.out(call.out, "out");
  requireRank(out, "out", 4, 4);
  requireDType(out, "out", isFloat(out.dtype) || out.dtype == DType::U8, "uint8 or a float");
  const bool first = layout == RBC_IMAGES_LAYOUT_CHW;
  const int channel = first ? 1 : 3;
  const int row = first ? 2 : 1;
  p.images = out.shape[0];
  p.out_height = out.shape[row];
  p.out_width = out.shape[row + 1];
  if (out.shape[channel] != p.channels || p.out_height > kMaxImageExtent ||
      p.out_width > kMaxImageExtent) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "out: shape is %s, expected %s with C = %d, h and w to 65536",
         shapeText(4, out.shape), first ? "[B,C,h,w]" : "[B,h,w,C]", p.channels);
  }
  p.out = {out.data,
           {out.strides[0], out.strides[channel], out.strides[row], out.strides[row + 1]},
           out.dtype};
}

void ImagesCall::addRows(const rbcTensor* rows) {
  ImagesProblem& p = problem_;
  if (rows != nullptr) {
    const View& view = operands.in(rows, "rows");
    p.rows = indexArrayOf(view, "rows", p.images);
  } else if (p.images != p.frames) {
    fail(RBC_STATUS_SHAPE_MISMATCH,
         "out: has %" PRId64 " images, expected %" PRId64 ", one for each frame, without rows",
         p.images, p.frames);
  }
}

void ImagesCall::addBoxes(const rbcImagesParams& params) {
  ImagesProblem& p = problem_;
  if (params.boxes == nullptr) {
    if (params.crop_height != 0 || params.crop_width != 0) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "crop_height: is %" PRId64 " and crop_width is %" PRId64 ", expected 0 without boxes",
           params.crop_height, params.crop_width);
    }
  } else {
    const View& boxes = operands.in(params.boxes, "boxes");
    requireRank(boxes, "boxes", 1, 2);
    requireIndexes(boxes, "boxes");
    const int64_t shape[] = {p.images, 4};
    requireShape(boxes, "boxes", boxes.ndim, shape + 2 - boxes.ndim);
    const bool known = params.crop_height != 0 || params.crop_width != 0;
    if (known && (params.crop_height < 1 || params.crop_height > p.height ||
                  params.crop_width < 1 || params.crop_width > p.width)) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "crop_height: is %" PRId64 " and crop_width is %" PRId64 ", expected 1 to %" PRId64
           " and 1 to %" PRId64 ", or 0 for both",
           params.crop_height, params.crop_width, p.height, p.width);
    }
    p.boxes = boxes.data;
    p.boxes_stride[0] = leadingStride(boxes, 2);
    p.boxes_stride[1] = boxes.strides[boxes.ndim - 1];
    p.boxes_are_64 = boxes.dtype == DType::I64;
    p.crop_height = params.crop_height;
    p.crop_width = params.crop_width;
  }
  if (params.flips != nullptr) {
    const View& flips = operands.in(params.flips, "flips");
    requireShape(flips, "flips", 1, &p.images);
    requireDType(flips, "flips", DType::U8);
    p.flips = reinterpret_cast<const uint8_t*>(flips.data);
    p.flips_stride = flips.strides[0];
  }
}

void ImagesCall::addColors(const rbcImagesParams& params) {
  ImagesProblem& p = problem_;
  const int64_t shape[] = {p.images, kColorSteps};
  if (params.colors != nullptr) {
    const View& colors = operands.in(params.colors, "colors");
    requireF32OrF64(colors, "colors");
    requireShape(colors, "colors", 2, shape);
    if (p.channels == 4) {
      fail(RBC_STATUS_UNSUPPORTED, "colors: frames have 4 channels, expected 1 or 3");
    }
    p.colors = colors.data;
    p.colors_stride[0] = colors.strides[0];
    p.colors_stride[1] = colors.strides[1];
    p.colors_are_64 = colors.dtype == DType::F64;
  }
  p.color_first = params.colors != nullptr && (params.flags & RBC_IMAGES_FLAG_COLOR_FIRST) != 0;
  if (params.color_order == nullptr) return;
  const View& order = operands.in(params.color_order, "color_order");
  requireDType(order, "color_order", DType::U8);
  requireShape(order, "color_order", 2, shape);
  if (params.colors == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "color_order: is given, expected null without colors");
  }
  p.color_order = reinterpret_cast<const uint8_t*>(order.data);
  p.color_order_stride[0] = order.strides[0];
  p.color_order_stride[1] = order.strides[1];
}

void ImagesCall::addTable(const rbcTensor* table) {
  if (table == nullptr) return;
  ImagesProblem& p = problem_;
  const View& view = operands.in(table, "table");
  requireFloat(view, "table");
  const int64_t shape[] = {p.channels, 256};
  requireShape(view, "table", 2, shape);
  if (p.out.dtype == DType::U8) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "out: dtype is uint8, expected a float with table");
  }
  p.table = view.data;
  p.table_stride[0] = view.strides[0];
  p.table_stride[1] = view.strides[1];
  p.table_dtype = view.dtype;
}

ImagesCall::ImagesCall(const rbcContext& context, const Arguments& call) : CallBase(context) {
  const rbcImagesParams params = checkedParams(call.params);
  ImagesProblem& p = problem_;
  addFrames(call);
  addOut(call, params.layout);
  addRows(call.rows);
  addBoxes(params);
  addColors(params);
  addTable(params.table);
  p.rule = params.rule;
  p.filter = static_cast<ResizeFilter>(params.filter);
  p.fit = params.fit;
  p.pad_anchor = params.pad_anchor;
  for (int c = 0; c < kMaxImageChannels; ++c) {
    p.pad_value[c] = static_cast<uint8_t>(params.pad_value[c]);
  }
  if (empty()) return;
  if (p.boxes == nullptr) requireResized(p.height, p.width);
  if (p.crop_height > 0) requireResized(p.crop_height, p.crop_width);
}

void ImagesCall::requireResized(int64_t height, int64_t width) const {
  const ImagesProblem& p = problem_;
  const ResizedSize to = resizedSize(p.fit, height, width, p.out_height, p.out_width);
  if (to.height <= kMaxResizedExtent && to.width <= kMaxResizedExtent) return;
  fail(RBC_STATUS_INVALID_ARGUMENT,
       "fit: RBC_IMAGES_FIT_COVER resizes %" PRId64 " x %" PRId64 " to %" PRId64 " x %" PRId64
       ", expected at most 2^20 pixels along each side",
       height, width, to.height, to.width);
}

void ImagesCall::checkBox(int64_t image) const {
  const ImagesProblem& p = problem_;
  const ImageBox box = givenBox(p, image);
  if (box.y < 0 || box.x < 0 || box.height < 1 || box.width < 1 || box.height > p.height ||
      box.width > p.width || box.y > p.height - box.height || box.x > p.width - box.width) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "boxes: [%" PRId64 "] is y %" PRId64 ", x %" PRId64 ", height %" PRId64 ", width %" PRId64
         ", expected a box inside of %" PRId64 " x %" PRId64 " with 1 pixel or more",
         image, box.y, box.x, box.height, box.width, p.height, p.width);
  }
  if (p.crop_height > 0 && (box.height != p.crop_height || box.width != p.crop_width)) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "boxes: [%" PRId64 "] has %" PRId64 " x %" PRId64 ", expected %" PRId64 " x %" PRId64
         ", crop_height and crop_width",
         image, box.height, box.width, p.crop_height, p.crop_width);
  }
  requireResized(box.height, box.width);
}

void ImagesCall::checkColors(int64_t image) const {
  const ImagesProblem& p = problem_;
  constexpr const char* kSteps[] = {"brightness", "contrast", "saturation", "hue"};
  unsigned seen = 0;
  for (int i = 0; i < kColorSteps; ++i) {
    const int64_t at = image * p.colors_stride[0] + i * p.colors_stride[1];
    const double f = p.colors_are_64 ? static_cast<const double*>(p.colors)[at]
                                     : static_cast<double>(static_cast<const float*>(p.colors)[at]);
    if (!std::isnan(f) && !isFactor(static_cast<uint8_t>(i), f)) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "colors: %s of image %" PRId64 " is %g, expected NaN, or %s", kSteps[i], image, f,
           i == kHue ? "-0.5 to 0.5" : "0 or more and finite");
    }
    if (p.color_order == nullptr) continue;
    const int64_t place = image * p.color_order_stride[0] + i * p.color_order_stride[1];
    const uint8_t step = p.color_order[place];
    if (step >= kColorSteps || (seen >> step & 1) != 0) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "color_order: [%" PRId64 ",%d] is %d, expected a permutation of 0, 1, 2, 3", image, i,
           step);
    }
    seen |= 1u << step;
  }
}

void ImagesCall::checkTable() const {
  const ImagesProblem& p = problem_;
  for (int c = 0; c < p.channels; ++c) {
    for (int byte = 0; byte < 256; ++byte) {
      if (!std::isnan(valueOf<double>(p, c, byte))) continue;
      fail(RBC_STATUS_INVALID_ARGUMENT, "table: [%d,%d] is NaN, expected a number", c, byte);
    }
  }
}

void ImagesCall::check(rbcContext& context, Scratch) const {
  if (context.backend->id != RBC_BACKEND_CPU) return;
  const ImagesProblem& p = problem_;
  constexpr int64_t kBetweenPolls = 1 << 16;
  Interrupt& interrupt = context.state->interrupt;
  if (p.table != nullptr) checkTable();
  for (int64_t i = 0; i < p.images; ++i) {
    if ((i & (kBetweenPolls - 1)) == kBetweenPolls - 1 && interrupt.stopped()) {
      interrupt.requireRunning();
    }
    if (p.rows.data != nullptr) {
      const int64_t row = readEntry(p.rows, i);
      if (row < -1 || row >= p.frames) {
        fail(RBC_STATUS_INVALID_ARGUMENT,
             "rows: index %" PRId64 " is %" PRId64 ", expected -1, or one of the %" PRId64
             " frames",
             i, row, p.frames);
      }
    }
    if (p.boxes != nullptr && (i == 0 || p.boxes_stride[0] != 0)) checkBox(i);
    if (p.flips != nullptr && p.flips[i * p.flips_stride] > 3) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "flips: index %" PRId64 " is %d, expected 0 to 3", i,
           p.flips[i * p.flips_stride]);
    }
    if (p.colors != nullptr) checkColors(i);
  }
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcImages(rbcContext_t context, const rbcImagesFrames* frames, int32_t num_frames,
                      const rbcTensor* rows, const rbcTensor* out, const rbcImagesParams* params) {
  return rbc::runCall<rbc::ImagesCall>(context,
                                       rbc::Arguments{frames, num_frames, rows, out, params});
}

rbcStatus_t rbcImagesWorkspaceSize(rbcContext_t context, const rbcImagesFrames* frames,
                                   int32_t num_frames, const rbcTensor* rows, const rbcTensor* out,
                                   const rbcImagesParams* params, size_t* bytes) {
  return rbc::sizeCall<rbc::ImagesCall>(
      context, rbc::Arguments{frames, num_frames, rows, out, params}, bytes);
}
