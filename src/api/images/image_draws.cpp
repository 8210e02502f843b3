// rbcImageDraws: the arguments of a call as an ImageDrawsProblem.

#include <algorithm>
#include <cinttypes>
#include <cmath>

#include "image_draws_problem.h"
#include "images_problem.h"
#include "params.h"
#include "runtime/call.h"
#include "runtime/dtype_checks.h"
#include "runtime/indexes.h"
#include "status.h"

namespace rbc {
namespace {

constexpr int32_t kMaxCamera = (1 << 24) - 1;

struct Arguments {
  const rbcTensor* samples;
  const rbcTensor* boxes;
  const rbcTensor* flips;
  const rbcTensor* colors;
  const rbcTensor* color_order;
  const rbcImageDrawsParams* params;
};

void requireRange(const char* name, const double (&range)[2], bool above_zero, double most) {
  const double low = range[0];
  const double high = range[1];
  const bool begins = above_zero ? low > 0 : low >= 0;
  if (begins && low <= high && high <= most) return;
  fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is %g to %g, expected a range from %s to at most %g", name,
       low, high, above_zero ? "more than 0" : "0 or more", most);
}

// A factor's range, or NaN for none.
void requireFactor(const char* name, const double (&range)[2]) {
  if (std::isnan(range[0]) && std::isnan(range[1])) return;
  requireRange(name, range, false, 1e30);
}

// The same of hue.
void requireHue(const double (&range)[2]) {
  const double low = range[0];
  const double high = range[1];
  if (std::isnan(low) && std::isnan(high)) return;
  if (low >= -0.5 && low <= high && high <= 0.5) return;
  fail(RBC_STATUS_INVALID_ARGUMENT,
       "hue: is %g to %g, expected a range from -0.5 or more to at most 0.5", low, high);
}

void requireExtent(const char* name, int64_t extent, int64_t most) {
  if (extent >= 1 && extent <= most) return;
  fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is %" PRId64 ", expected 1 to %" PRId64, name, extent,
       most);
}

rbcImageDrawsParams checkedParams(const rbcImageDrawsParams* input) {
  const rbcImageDrawsParams params = readParams(input, rbcImageDrawsParamsInit(), "params");
  if (params.camera < 0 || params.camera > kMaxCamera) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "camera: is %" PRId32 ", expected 0 to 2^24 - 1",
         params.camera);
  }
  if (params.crop < RBC_IMAGES_CROP_NONE || params.crop > RBC_IMAGES_CROP_AREA) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "crop: is %" PRId32 ", expected one of RBC_IMAGES_CROP_...",
         params.crop);
  }
  if (!(params.flip_probability >= 0 && params.flip_probability <= 1)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "flip_probability: is %g, expected 0 to 1",
         params.flip_probability);
  }
  if (!(params.crop_fraction > 0 && params.crop_fraction <= 1)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "crop_fraction: is %g, expected more than 0, at most 1",
         params.crop_fraction);
  }
  requireRange("area", params.area, true, 1);
  requireRange("ratio", params.ratio, true, 1e9);
  requireFactor("brightness", params.brightness);
  requireFactor("contrast", params.contrast);
  requireFactor("saturation", params.saturation);
  requireHue(params.hue);
  return params;
}

class DrawsCall : public CallBase {
 public:
  static constexpr const char* kOperation = "image_draws";

  DrawsCall(const rbcContext& context, const Arguments& call);

  const ImageDrawsProblem& problem() const { return problem_; }
  bool empty() const {
    const ImageDrawsProblem& p = problem_;
    return p.count == 0 || (p.boxes.data == nullptr && p.flips.data == nullptr &&
                            p.colors.data == nullptr && p.color_order.data == nullptr);
  }
  template <class Visitor>
  void visitIndexes(Visitor&&) {}
  void verifyIndexes() const {}

 private:
  Output<2> four(const View& view, const char* argument) const;
  void addBoxes(const View& view, const rbcImageDrawsParams& params);

  ImageDrawsProblem problem_ = {};
};

Output<2> DrawsCall::four(const View& view, const char* argument) const {
  const int64_t shape[] = {problem_.count, 4};
  requireShape(view, argument, 2, shape);
  return {view.data, {view.strides[0], view.strides[1]}, view.dtype};
}

void DrawsCall::addBoxes(const View& view, const rbcImageDrawsParams& params) {
  ImageDrawsProblem& p = problem_;
  requireIndexes(view, "boxes");
  p.boxes = four(view, "boxes");
  requireExtent("frame_height", params.frame_height, kMaxImageExtent);
  requireExtent("frame_width", params.frame_width, kMaxImageExtent);
  p.frame[0] = params.frame_height;
  p.frame[1] = params.frame_width;
  if (params.crop == RBC_IMAGES_CROP_FIXED) {
    requireExtent("crop_height", params.crop_height, params.frame_height);
    requireExtent("crop_width", params.crop_width, params.frame_width);
    p.size[0] = params.crop_height;
    p.size[1] = params.crop_width;
  } else {
    for (int i = 0; i < 2; ++i) {
      const double side = params.crop_fraction * static_cast<double>(p.frame[i]);
      p.size[i] = std::max<int64_t>(1, static_cast<int64_t>(side));
    }
  }
  for (int i = 0; i < 2; ++i) {
    p.area[i] = params.area[i];
    p.ratio[i] = params.ratio[i];
    p.log_ratio[i] = logarithm(params.ratio[i]);
  }
}

DrawsCall::DrawsCall(const rbcContext& context, const Arguments& call) : CallBase(context) {
  const rbcImageDrawsParams params = checkedParams(call.params);
  ImageDrawsProblem& p = problem_;
  const View& samples = operands.in(call.samples, "samples");
  requireRank(samples, "samples", 1, 1);
  p.count = samples.shape[0];
  p.samples = indexArrayOf(samples, "samples", p.count);
  const View* boxes = operands.optionalOut(call.boxes, "boxes");
  const View* flips = operands.optionalOut(call.flips, "flips");
  const View* colors = operands.optionalOut(call.colors, "colors");
  const View* order = operands.optionalOut(call.color_order, "color_order");
  p.crop = params.crop;
  if (boxes != nullptr) addBoxes(*boxes, params);
  if (flips != nullptr) {
    requireDType(*flips, "flips", DType::U8);
    requireShape(*flips, "flips", 1, &p.count);
    p.flips = {flips->data, {flips->strides[0]}, flips->dtype};
  }
  if (colors != nullptr) {
    requireF32OrF64(*colors, "colors");
    p.colors = four(*colors, "colors");
  }
  if (order != nullptr) {
    requireDType(*order, "color_order", DType::U8);
    p.color_order = four(*order, "color_order");
  }
  p.seed = static_cast<uint64_t>(params.seed);
  p.epoch = static_cast<uint32_t>(static_cast<uint64_t>(params.epoch));
  p.camera = static_cast<uint32_t>(params.camera);
  p.flip_probability = params.flip_probability;
  const double* ranges[] = {params.brightness, params.contrast, params.saturation, params.hue};
  for (int i = 0; i < kColorSteps; ++i) {
    p.low[i] = ranges[i][0];
    p.high[i] = ranges[i][1];
  }
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcImageDraws(rbcContext_t context, const rbcTensor* samples, const rbcTensor* boxes,
                          const rbcTensor* flips, const rbcTensor* colors,
                          const rbcTensor* color_order, const rbcImageDrawsParams* params) {
  return rbc::runCall<rbc::DrawsCall>(
      context, rbc::Arguments{samples, boxes, flips, colors, color_order, params});
}

rbcStatus_t rbcImageDrawsWorkspaceSize(rbcContext_t context, const rbcTensor* samples,
                                       const rbcTensor* boxes, const rbcTensor* flips,
                                       const rbcTensor* colors, const rbcTensor* color_order,
                                       const rbcImageDrawsParams* params, size_t* bytes) {
  return rbc::sizeCall<rbc::DrawsCall>(
      context, rbc::Arguments{samples, boxes, flips, colors, color_order, params}, bytes);
}
