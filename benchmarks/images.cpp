// Cases of rbcImages. Their names: frames, the size of the images, the rule and the filter, the dtype
// of out, and optionally `crops` (a random box for each image) or `colors`, such as
// images 320x480x640 to 224x224 pillow bilinear bf16 crops.

#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases.h"
#include "robocache/images.h"
#include "support/random.h"

namespace bench {
namespace {

struct Choice {
  const char* name;
  int32_t value;
};
constexpr Choice kRules[] = {{"pillow", RBC_IMAGES_RULE_PILLOW},
                             {"pillow_13", RBC_IMAGES_RULE_PILLOW_13},
                             {"torchvision", RBC_IMAGES_RULE_TORCHVISION},
                             {"opencv", RBC_IMAGES_RULE_OPENCV},
                             {"exact", RBC_IMAGES_RULE_EXACT}};
constexpr Choice kFilters[] = {{"bilinear", RBC_IMAGES_FILTER_BILINEAR},
                               {"bicubic", RBC_IMAGES_FILTER_BICUBIC},
                               {"lanczos3", RBC_IMAGES_FILTER_LANCZOS3},
                               {"linear", RBC_IMAGES_FILTER_LINEAR},
                               {"area", RBC_IMAGES_FILTER_AREA}};

template <size_t kCount>
int32_t valueOf(const Choice (&choices)[kCount], const std::string& name) {
  for (const Choice& choice : choices) {
    if (name == choice.name) return choice.value;
  }
  throw std::runtime_error("no rule or filter of images: " + name);
}

struct ImagesCase : Case {
  int64_t images = 0;
  int64_t height = 0, width = 0, out_height = 0, out_width = 0;
  int32_t rule = 0;
  int32_t filter = 0;
  rbcDType dtype = support::kF32;
  bool crops = false;
  bool colors = false;

  int64_t roughBytes() const override {
    return images * 3 * (height * width + out_height * out_width * support::sizeOf(dtype));
  }
  std::unique_ptr<const Data> load() const override;
  std::string facts() const override {
    return "\"images\": " + std::to_string(images) + ", \"height\": " + std::to_string(height) +
           ", \"width\": " + std::to_string(width);
  }
};

class ImagesCall : public Call {
 public:
  ImagesCall(const ImagesCase& c, const Tensors& tensors) : out_(tensors.outputs[0].get()) {
    frames_.values = tensors.inputs[0].get();
    params_.rule = c.rule;
    params_.filter = c.filter;
    params_.table = tensors.inputs[1].get();
    if (c.crops) params_.boxes = tensors.inputs[2].get();
    if (c.colors) params_.colors = tensors.inputs[2].get();
  }

  void operator()(const robocache::Context& context) const override {
    robocache::check(rbcImages(context.get(), &frames_, 1, nullptr, out_, &params_));
  }
  void reserve(robocache::Context& context) const override {
    size_t bytes = 0;
    robocache::check(
        rbcImagesWorkspaceSize(context.get(), &frames_, 1, nullptr, out_, &params_, &bytes));
    context.reserve(bytes);
  }

 private:
  const rbcTensor* out_;
  rbcImagesFrames frames_ = rbcImagesFramesInit();
  rbcImagesParams params_ = rbcImagesParamsInit();
};

class ImagesData : public Data {
 public:
  explicit ImagesData(const ImagesCase& c) : c_(c) {
    support::Random random(1);
    const support::Array& frames =
        addInput("frames", support::kU8, {c.images, c.height, c.width, 3});
    auto* bytes_of_frames = elements<uint64_t>(frames);
    for (int64_t i = 0; i < frames.count() / 8; ++i) bytes_of_frames[i] = random.bits();
    auto* table = elements<float>(addInput("table", support::kF32, {3, 256}));
    for (int i = 0; i < 768; ++i) table[i] = static_cast<float>(i % 256) / 127.5f - 1;
    if (c.crops) {
      auto* box = elements<int64_t>(addInput("boxes", support::kI64, {c.images, 4}));
      for (int64_t i = 0; i < c.images; ++i, box += 4) {
        box[2] = c.height / 2 + random.below(c.height / 2);
        box[3] = c.width / 2 + random.below(c.width / 2);
        box[0] = random.below(c.height - box[2] + 1);
        box[1] = random.below(c.width - box[3] + 1);
      }
    }
    if (c.colors) {
      auto* factor = elements<float>(addInput("colors", support::kF32, {c.images, 4}));
      for (int64_t i = 0; i < 4 * c.images; ++i) {
        factor[i] = i % 4 == 3 ? NAN : static_cast<float>(random.uniform(0.8, 1.2));
      }
    }
    addOutput(c.dtype, {c.images, 3, c.out_height, c.out_width});
    answer();
    bytes = c.roughBytes();
    rows = c.images;
    in_range = 1;
  }

  std::unique_ptr<Call> callOn(const Tensors& tensors) const override {
    return std::make_unique<ImagesCall>(c_, tensors);
  }

 private:
  const ImagesCase c_;
};

std::unique_ptr<const Data> ImagesCase::load() const { return std::make_unique<ImagesData>(*this); }

std::shared_ptr<Case> parseImages(const std::string& name) {
  auto c = std::make_shared<ImagesCase>();
  long long images = 0, height = 0, width = 0, h = 0, w = 0;
  char rule[32] = {}, filter[32] = {}, dtype[32] = {};
  int read = 0;
  std::sscanf(name.c_str(), "images %lldx%lldx%lld to %lldx%lld %31s %31s %31s%n", &images, &height,
              &width, &h, &w, rule, filter, dtype, &read);
  const std::string rest = read > 0 ? name.substr(static_cast<size_t>(read)) : "?";
  const bool bf16 = std::strcmp(dtype, "bf16") == 0;
  const bool f32 = std::strcmp(dtype, "f32") == 0;
  c->crops = rest == " crops";
  c->colors = rest == " colors";
  if (images < 1 || height < 2 || width < 2 || h < 1 || w < 1 || (!bf16 && !f32) ||
      (!rest.empty() && !c->crops && !c->colors)) {
    throw std::runtime_error("'" + name +
                             "' is not of the form 'images 320x480x640 to 224x224 pillow bilinear "
                             "bf16 crops'");
  }
  c->images = images;
  c->height = height;
  c->width = width;
  c->out_height = h;
  c->out_width = w;
  c->rule = valueOf(kRules, rule);
  c->filter = valueOf(kFilters, filter);
  c->dtype = bf16 ? support::kBF16 : support::kF32;
  c->kernels = c->colors ? 3 : 2;
  return c;
}

const CaseKind kImages("images ", parseImages);

}  // namespace
}  // namespace bench
