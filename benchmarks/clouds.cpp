// Cases of rbcFarthestPoints and rbcUnproject. Their names: farthest 1024 from 64x8192 f32 uniform,
// where the last word is the distribution of points (surface: as a camera sees them); unproject
// 32x480x640 f32, optionally with pose and crop.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "cases.h"
#include "robocache/clouds.h"
#include "support/random.h"

namespace bench {
namespace {

// The distance that a camera sees in column u and row v of an image, in metres.
double depthAt(int64_t image, double u, double v) {
  return 1.4 + 0.4 * std::sin(0.012 * u + static_cast<double>(image)) * std::cos(0.017 * v) +
         0.05 * std::sin(0.2 * u);
}

// ---- farthest points ----------------------------------------------------------------------------

struct FarthestCase : Case {
  int64_t clouds = 0;
  int64_t points = 0;
  int64_t count = 0;
  bool surface = false;

  int64_t roughBytes() const override {
    return clouds * (points * 3 * int64_t{sizeof(float)} + count * int64_t{sizeof(int64_t)});
  }
  std::unique_ptr<const Data> load() const override;
  std::string facts() const override {
    return "\"clouds\": " + std::to_string(clouds) + ", \"points\": " + std::to_string(points) +
           ", \"count\": " + std::to_string(count);
  }
};

class FarthestCall : public Call {
 public:
  explicit FarthestCall(const Tensors& tensors)
      : points_(tensors.inputs[0].get()), indices_(tensors.outputs[0].get()) {}

  void operator()(const robocache::Context& context) const override {
    robocache::check(rbcFarthestPoints(context.get(), points_, indices_, nullptr, nullptr));
  }
  void reserve(robocache::Context& context) const override {
    size_t bytes = 0;
    robocache::check(
        rbcFarthestPointsWorkspaceSize(context.get(), points_, indices_, nullptr, nullptr, &bytes));
    context.reserve(bytes);
  }

 private:
  const rbcTensor* points_;
  const rbcTensor* indices_;
};

class FarthestData : public Data {
 public:
  explicit FarthestData(const FarthestCase& c) {
    points = c.clouds * c.points;
    auto* p = elements<float>(addInput("points", support::kF32, {c.clouds, c.points, 3}));
    support::Random random(1);
    for (int64_t i = 0; i < points; ++i, p += 3) {
      for (int axis = 0; axis < 3; ++axis) p[axis] = static_cast<float>(random.uniform(-1, 1));
      if (!c.surface) continue;
      const double u = 320 * (1 + static_cast<double>(p[0]));
      const double v = 240 * (1 + static_cast<double>(p[1]));
      p[2] = static_cast<float>(depthAt(i / c.points, u, v));
    }
    addOutput(support::kI64, {c.clouds, c.count});
    answer();
    bytes = c.roughBytes();
    rows = c.clouds * c.count;
    in_range = 1;
  }

  std::unique_ptr<Call> callOn(const Tensors& tensors) const override {
    return std::make_unique<FarthestCall>(tensors);
  }
};

std::unique_ptr<const Data> FarthestCase::load() const {
  return std::make_unique<FarthestData>(*this);
}

std::shared_ptr<Case> parseFarthest(const std::string& name) {
  auto c = std::make_shared<FarthestCase>();
  long long count = 0, clouds = 0, points = 0;
  char lie[32] = {};
  if (std::sscanf(name.c_str(), "farthest %lld from %lldx%lld f32 %31s", &count, &clouds, &points,
                  lie) != 4 ||
      count < 1 || clouds < 1 || points < 1) {
    throw std::runtime_error("'" + name +
                             "' is not of the form 'farthest 1024 from 64x8192 f32 uniform'");
  }
  c->count = count;
  c->clouds = clouds;
  c->points = points;
  c->surface = std::strcmp(lie, "surface") == 0;
  c->variant = c->surface;
  c->kernels = 1;
  return c;
}

const CaseKind kFarthest("farthest ", parseFarthest);

// ---- unproject ----------------------------------------------------------------------------------

struct UnprojectCase : Case {
  int64_t images = 0;
  int64_t height = 0;
  int64_t width = 0;
  bool metres = false;  // f32; else u16, millimetres
  bool pose = false;
  bool crop = false;

  int64_t pixels() const { return images * height * width; }
  // Each depth once, and the capacity for points, which is written completely.
  int64_t roughBytes() const override {
    return pixels() * ((metres ? 4 : 2) + 3 * int64_t{sizeof(float)}) + images * 8;
  }
  std::unique_ptr<const Data> load() const override;
  std::string facts() const override {
    return "\"images\": " + std::to_string(images) + ", \"height\": " + std::to_string(height) +
           ", \"width\": " + std::to_string(width);
  }
};

class UnprojectCall : public Call {
 public:
  UnprojectCall(const UnprojectCase& c, const Tensors& tensors)
      : depth_(tensors.inputs[0].get()),
        intrinsics_(tensors.inputs[1].get()),
        pose_(c.pose ? tensors.inputs[2].get() : nullptr),
        points_(tensors.outputs[0].get()),
        counts_(tensors.outputs[1].get()) {
    if (!c.crop) return;
    params_.crop_min[0] = params_.crop_min[1] = -0.5;
    params_.crop_max[0] = params_.crop_max[1] = 0.5;
    params_.crop_min[2] = 0.3;
    params_.crop_max[2] = 3;
  }

  void operator()(const robocache::Context& context) const override {
    robocache::check(rbcUnproject(context.get(), depth_, intrinsics_, pose_, nullptr, points_,
                                  counts_, nullptr, nullptr, &params_));
  }
  void reserve(robocache::Context& context) const override {
    size_t bytes = 0;
    robocache::check(rbcUnprojectWorkspaceSize(context.get(), depth_, intrinsics_, pose_, nullptr,
                                               points_, counts_, nullptr, nullptr, &params_,
                                               &bytes));
    context.reserve(bytes);
  }

 private:
  const rbcTensor* depth_;
  const rbcTensor* intrinsics_;
  const rbcTensor* pose_;
  const rbcTensor* points_;
  const rbcTensor* counts_;
  rbcUnprojectParams params_ = rbcUnprojectParamsInit();
};

class UnprojectData : public Data {
 public:
  explicit UnprojectData(const UnprojectCase& c) : c_(c) {
    points = c.pixels();
    addDepth();
    const double size = static_cast<double>(c.width);
    const double camera[] = {0.9 * size, 0.9 * size, 0.5 * size,
                             0.5 * static_cast<double>(c.height)};
    std::copy_n(camera, 4, elements<double>(addInput("intrinsics", support::kF64, {4})));
    if (c.pose) {  // a rotation about the viewing direction
      const double pose[] = {0.8, -0.6, 0, 0.1, 0.6, 0.8, 0, -0.05, 0, 0, 1, 0.02, 0, 0, 0, 1};
      std::copy_n(pose, 16, elements<double>(addInput("pose", support::kF64, {4, 4})));
    }
    addOutput(support::kF32, {c.images, c.height * c.width, 3});
    addOutput(support::kI64, {c.images});
    answer();
    bytes = c.roughBytes();
    const auto* kept = elements<int64_t>(outputs[1]);
    for (int64_t i = 0; i < c.images; ++i) rows += kept[i];
    in_range = 1;
  }

  std::unique_ptr<Call> callOn(const Tensors& tensors) const override {
    return std::make_unique<UnprojectCall>(c_, tensors);
  }

 private:
  // A twentieth of the pixels has no depth.
  void addDepth() {
    const rbcDType dtype = c_.metres ? support::kF32 : support::kU16;
    std::byte* to = addInput("depth", dtype, {c_.images, c_.height, c_.width}).memory().data();
    support::Random random(1);
    for (int64_t i = 0; i < c_.pixels(); ++i) {
      const int64_t image = i / (c_.height * c_.width);
      const auto u = static_cast<double>(i % c_.width);
      const auto v = static_cast<double>(i / c_.width % c_.height);
      const double metres = random.chance(0.05) ? 0 : depthAt(image, u, v);
      if (c_.metres) {
        reinterpret_cast<float*>(to)[i] = static_cast<float>(metres);
      } else {
        reinterpret_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(1000 * metres);
      }
    }
  }

  const UnprojectCase c_;
};

std::unique_ptr<const Data> UnprojectCase::load() const {
  return std::make_unique<UnprojectData>(*this);
}

std::shared_ptr<Case> parseUnproject(const std::string& name) {
  auto c = std::make_shared<UnprojectCase>();
  long long images = 0, height = 0, width = 0;
  char dtype[32] = {};
  int read = 0;
  std::sscanf(name.c_str(), "unproject %lldx%lldx%lld %31s%n", &images, &height, &width, dtype,
              &read);
  const std::string rest = read > 0 ? name.substr(static_cast<size_t>(read)) : "?";
  c->images = images;
  c->height = height;
  c->width = width;
  c->metres = std::strcmp(dtype, "f32") == 0;
  c->pose = rest == " pose" || rest == " pose crop";
  c->crop = rest == " crop" || rest == " pose crop";
  if (images < 1 || height < 1 || width < 1 || (!c->metres && std::strcmp(dtype, "u16") != 0) ||
      (!rest.empty() && !c->pose && !c->crop)) {
    throw std::runtime_error("'" + name +
                             "' is not of the form 'unproject 32x480x640 f32 pose crop'");
  }
  c->kernels = 3;
  return c;
}

const CaseKind kUnproject("unproject ", parseUnproject);

}  // namespace
}  // namespace bench
