// rbcImages and rbcImageDraws.
#include "fuzz/bind.h"
#include "fuzz/calls.h"
#include "fuzz/fill.h"

namespace fuzz {
namespace {

struct RuleFilter {
  int32_t rule;
  int32_t filter;
};

RuleFilter anyRule(Choices& choices) {
  const auto rule = static_cast<int32_t>(choices.below(6));
  if (choices.chance(4)) return {rule, static_cast<int32_t>(choices.below(8))};
  if (rule == RBC_IMAGES_RULE_TORCHVISION) {
    return {rule, choices.pick({RBC_IMAGES_FILTER_BILINEAR, RBC_IMAGES_FILTER_BICUBIC,
                                RBC_IMAGES_FILTER_LINEAR})};
  }
  return {rule, static_cast<int32_t>(rule == RBC_IMAGES_RULE_OPENCV ? choices.between(5, 7)
                                                                    : choices.below(5))};
}

int64_t anySide(Choices& choices, int64_t usual) {
  return choices.chance(4) ? choices.between(100, 400) : choices.between(1, usual);
}

}  // namespace

static std::unique_ptr<Call> makeImages(Choices& choices) {
  auto call = std::make_unique<Call>("rbcImages");
  const int64_t height = anySide(choices, 12);
  const int64_t width = anySide(choices, 12);
  const int64_t channels = choices.pick({1, 3, 3, 4});
  const auto arrays =
      static_cast<int32_t>(choices.chance(5) ? choices.between(5, 16) : choices.between(1, 3));
  std::vector<rbcImagesFrames> frames;
  int64_t total = 0;
  for (int32_t n = 0; n < arrays; ++n) {
    const int64_t count = anyExtent(choices, 3);
    Tensor* values = call->add(choices, "frames[" + std::to_string(n) + "].values", support::kU8,
                               {count, height, width, channels}, Role::kInput);
    fillBits(*call, *values, choices);
    frames.push_back(rbcImagesFramesInit());
    frames.back().values = values->hold();
    total += count;
  }
  const bool in_order = choices.chance(30);
  const int64_t images = in_order ? total : choices.chance(8) ? 0 : choices.between(1, 4);
  const auto add = [&](const char* name, rbcDType dtype, const std::vector<int64_t>& shape) {
    return call->add(choices, name, dtype, shape, Role::kInput);
  };
  Tensor* rows = nullptr;
  if (!in_order) {
    rows = add("rows", anyIndex(choices), {images});
    fillIntegers(*call, *rows, choices, -1, total - 1);
  }
  rbcImagesParams params = rbcImagesParamsInit();
  const RuleFilter pair = anyRule(choices);
  params.rule = pair.rule;
  params.filter = pair.filter;
  params.fit = static_cast<int32_t>(choices.below(3));
  params.pad_anchor = static_cast<int32_t>(choices.below(3));
  params.layout = static_cast<int32_t>(choices.below(2));
  if (choices.chance(50)) params.pad_value[choices.below(4)] = choices.pick({1.0, 255.0, 0.5});
  if (choices.chance(30)) {
    Tensor* boxes =
        add("boxes", anyIndex(choices),
            choices.chance(30) ? std::vector<int64_t>{4} : std::vector<int64_t>{images, 4});
    fillIntegers(*call, *boxes, choices, 1, choices.chance(50) ? 1 : 3);
    params.boxes = boxes->hold();
    if (choices.chance(30)) params.crop_height = params.crop_width = choices.between(1, 3);
  }
  if (choices.chance(40)) {
    Tensor* flips = add("flips", support::kU8, {images});
    fillIntegers(*call, *flips, choices, 0, 3);
    params.flips = flips->hold();
  }
  if (channels != 4 && choices.chance(40)) {
    Tensor* colors = add("colors", anyReal(choices), {images, 4});
    fillReals(*call, *colors, choices, 0, 2);
    fillWhere(*call, *colors, 0.25, [](int64_t i) { return i % 4 == 3; });
    params.colors = colors->hold();
    if (choices.chance(50)) params.flags = RBC_IMAGES_FLAG_COLOR_FIRST;
    if (choices.chance(50)) {
      Tensor* order = add("color_order", support::kU8, {images, 4});
      for (int step = 0; step < 4; ++step) {
        fillWhere(*call, *order, step, [=](int64_t i) { return (i + i / 4) % 4 == step; });
      }
      params.color_order = order->hold();
    }
  }
  const rbcDType dtype = choices.chance(40) ? support::kU8 : anyFloat(choices);
  if (dtype.code != RBC_DTYPE_UINT && choices.chance(60)) {
    Tensor* table = add("table", anyFloat(choices), {channels, 256});
    fillReals(*call, *table, choices, -3, 3);
    params.table = table->hold();
  }
  const int64_t out_height = choices.chance(3) ? 0 : anySide(choices, 10);
  const int64_t out_width = choices.chance(3) ? 0 : anySide(choices, 10);
  const std::vector<int64_t> shape =
      params.layout == RBC_IMAGES_LAYOUT_CHW
          ? std::vector<int64_t>{images, channels, out_height, out_width}
          : std::vector<int64_t>{images, out_height, out_width, channels};
  Tensor* out = call->add(choices, "out", dtype, shape, Role::kOutput);
  call->names = {"frames", "num_frames"};
  Struct* array = call->add("rbcImagesFrames", frames.data(), arrays);
  Struct* p = call->add("rbcImagesParams", &params);
  const int32_t num_frames =
      choices.chance(97) ? arrays : choices.pick({0, -1, 65, INT32_MAX, INT32_MIN});
  Operation<rbcImages, rbcImagesWorkspaceSize>::bind(call.get(), array, num_frames, rows, out, p);
  return call;
}
const Maker kImages(13, makeImages);

static std::unique_ptr<Call> makeImageDraws(Choices& choices) {
  auto call = std::make_unique<Call>("rbcImageDraws");
  const int64_t count = anyExtent(choices, 20);
  Tensor* samples = call->add(choices, "samples", anyIndex(choices), {count}, Role::kInput);
  fillBits(*call, *samples, choices);
  const auto output = [&](const char* name, rbcDType dtype, const std::vector<int64_t>& shape) {
    return choices.chance(75) ? call->add(choices, name, dtype, shape, Role::kOutput) : nullptr;
  };
  Tensor* boxes = output("boxes", anyIndex(choices), {count, 4});
  Tensor* flips = output("flips", support::kU8, {count});
  Tensor* colors = output("colors", anyReal(choices), {count, 4});
  Tensor* order = output("color_order", support::kU8, {count, 4});
  rbcImageDrawsParams params = rbcImageDrawsParamsInit();
  params.seed = choices.between(-9, 9);
  params.epoch = choices.below(4);
  params.camera = static_cast<int32_t>(choices.below(3));
  params.crop = static_cast<int32_t>(choices.below(4));
  params.frame_height = choices.between(1, 700);
  params.frame_width = choices.between(1, 700);
  params.crop_height = choices.between(1, choices.chance(90) ? params.frame_height : 800);
  params.crop_width = choices.between(1, choices.chance(90) ? params.frame_width : 800);
  params.crop_fraction = choices.pick({1.0, 0.95, 0.5, 1e-9, 0.0});
  params.flip_probability = choices.pick({0.0, 0.5, 1.0});
  if (choices.chance(50)) {
    params.brightness[0] = choices.uniform(0, 1);
    params.brightness[1] = 1;
  }
  if (choices.chance(30)) params.hue[0] = params.hue[1] = 0.25;
  Struct* p = call->add("rbcImageDrawsParams", &params);
  Operation<rbcImageDraws, rbcImageDrawsWorkspaceSize>::bind(call.get(), samples, boxes, flips,
                                                             colors, order, p);
  return call;
}
const Maker kImageDraws(14, makeImageDraws);

}  // namespace fuzz
