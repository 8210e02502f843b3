// Cases of rbcConvertRotations. Their names: number, source, target, and the dtype of both, such as
// 10M quat_xyzw to rot6d_rows f32.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases.h"
#include "robocache/rotations.h"
#include "support/random.h"

namespace bench {
namespace {

struct Representation {
  const char* name;
  int32_t value;
  int64_t channels;
};
constexpr Representation kRepresentations[] = {
    {"quat_xyzw", RBC_ROTATION_QUAT_XYZW, 4},
    {"rotvec", RBC_ROTATION_ROTVEC, 3},
    {"matrix", RBC_ROTATION_MATRIX, 9},
    {"rot6d_rows", RBC_ROTATION_ROT6D_ROWS, 6},
    {"euler_xyz", RBC_ROTATION_EULER_EXTRINSIC_XYZ, 3},
};

const Representation& representationOf(const std::string& name) {
  const auto* found = std::find_if(std::begin(kRepresentations), std::end(kRepresentations),
                                   [&](const Representation& r) { return name == r.name; });
  if (found == std::end(kRepresentations)) throw std::runtime_error("no rotations: " + name);
  return *found;
}

struct RotationCase : Case {
  int64_t count = 0;
  Representation source = {};
  Representation target = {};
  rbcDType dtype = support::kF32;

  int64_t roughBytes() const override {
    return count * (source.channels + target.channels) * support::sizeOf(dtype);
  }
  std::unique_ptr<const Data> load() const override;
  std::string facts() const override {
    return "\"source\": \"" + std::string(source.name) + "\", \"target\": \"" + target.name +
           "\", \"count\": " + std::to_string(count);
  }
};

class RotationCall : public Call {
 public:
  RotationCall(const RotationCase& c, const Tensors& tensors)
      : rotations_(tensors.inputs[0].get()), out_(tensors.outputs[0].get()) {
    params_.source = c.source.value;
    params_.target = c.target.value;
  }

  void operator()(const robocache::Context& context) const override {
    robocache::check(rbcConvertRotations(context.get(), rotations_, out_, &params_));
  }

 private:
  rbcConvertRotationsParams params_ = rbcConvertRotationsParamsInit();
  const rbcTensor* rotations_;
  const rbcTensor* out_;
};

class RotationData : public Data {
 public:
  explicit RotationData(const RotationCase& c) : c_(c) {
    fill(addInput("rotations", c.dtype, {c.count, c.source.channels}));
    addOutput(c.dtype, {c.count, c.target.channels});
    answer();
    bytes = c.roughBytes();
    rows = c.count;
    in_range = 1;
  }

  std::unique_ptr<Call> callOn(const Tensors& tensors) const override {
    return std::make_unique<RotationCall>(c_, tensors);
  }

 private:
  // A block of random rotations, repeated.
  void fill(const support::Array& rotations) const {
    constexpr int64_t kBlock = 1000;
    support::Random random(1);
    std::vector<double> quaternions(4 * kBlock);
    for (double& x : quaternions) x = random.uniform(-1, 1);
    const auto block = [&](int64_t channels) { return std::vector<int64_t>{kBlock, channels}; };
    const support::Array made(c_.dtype, block(c_.source.channels));
    robocache::convertRotations(robocache::Context::cpu(1), {quaternions, block(4)},
                                robocache::Tensor(made.tensor()), robocache::Rotation::kQuatXyzw,
                                static_cast<robocache::Rotation>(c_.source.value));
    std::byte* to = rotations.memory().data();
    const std::byte* end = to + rotations.memory().bytes();
    for (; to < end; to += made.memory().bytes()) {
      const auto left = static_cast<size_t>(end - to);
      std::memcpy(to, made.memory().data(), std::min(left, made.memory().bytes()));
    }
  }

  const RotationCase c_;
};

std::unique_ptr<const Data> RotationCase::load() const {
  return std::make_unique<RotationData>(*this);
}

std::shared_ptr<Case> parseRotations(const std::string& name) {
  auto c = std::make_shared<RotationCase>();
  long long count = 0;
  char unit = 0, source[32] = {}, target[32] = {}, dtype[32] = {};
  if (std::sscanf(name.c_str(), "%lld%c %31s to %31s %31s", &count, &unit, source, target, dtype) !=
          5 ||
      count < 1 || unit != 'M') {
    throw std::runtime_error("'" + name + "' is not of the form '10M quat_xyzw to rot6d_rows f32'");
  }
  c->count = count * 1'000'000;
  c->source = representationOf(source);
  c->target = representationOf(target);
  const auto* found =
      std::find_if(std::begin(support::kFloatDTypes), std::end(support::kFloatDTypes),
                   [&](const rbcDType& known) { return support::nameOf(known) == dtype; });
  if (found == std::end(support::kFloatDTypes)) {
    throw std::runtime_error(std::string("no rotations: ") + dtype);
  }
  c->dtype = *found;
  c->kernels = 1;
  return c;
}

const CaseKind kRotations(" to ", parseRotations);

}  // namespace
}  // namespace bench
