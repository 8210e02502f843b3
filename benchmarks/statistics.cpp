// Cases of rbcStatistics. Their names: samples, channels, dtype, the kind of numbers and the
// requested results, such as 10M of 14 f32 normal quantiles. Separate statistics for each row of a
// batch: 1000x300 of 14 f32 ...
//   normal     around 0; clustered: in every other channel 70 % are 0, and one is constant;
//              steady: 500, with a deviation of 0.01
//   moments    count, nonfinite, min, max, mean, std; quantiles: also five levels

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases.h"
#include "robocache/statistics.h"
#include "support/random.h"

namespace bench {
namespace {

constexpr double kLevels[] = {0.01, 0.1, 0.5, 0.9, 0.99};
constexpr int64_t kNumLevels = std::size(kLevels);

struct StatisticsCase : Case {
  int64_t rows = 0;  // 0: no batch
  int64_t samples = 0;
  int64_t channels = 0;
  rbcDType dtype = support::kF32;
  bool clustered = false;
  bool steady = false;
  bool quantiles = false;

  int64_t total() const { return std::max<int64_t>(rows, 1) * samples; }
  int64_t roughBytes() const override { return total() * channels * support::sizeOf(dtype); }
  std::unique_ptr<const Data> load() const override;
  std::string facts() const override {
    return "\"samples\": " + std::to_string(total()) +
           ", \"channels\": " + std::to_string(channels) +
           ", \"quantiles\": " + (quantiles ? "true" : "false");
  }
};

class StatisticsCall : public Call {
 public:
  StatisticsCall(const StatisticsCase& c, const Tensors& tensors)
      : values_(tensors.inputs[0].get()) {
    params_.flags = c.rows > 0 ? RBC_STATISTICS_FLAG_PER_ROW : 0;
    levels_ = {
        const_cast<double*>(kLevels), {RBC_DEVICE_CPU, 0}, 1, support::kF64, &extent_, nullptr, 0};
    params_.levels = c.quantiles ? &levels_ : nullptr;
    result_.count = tensors.outputs[0].get();
    result_.nonfinite = tensors.outputs[1].get();
    result_.min = tensors.outputs[2].get();
    result_.max = tensors.outputs[3].get();
    result_.mean = tensors.outputs[4].get();
    result_.std = tensors.outputs[5].get();
    if (c.quantiles) result_.quantiles = tensors.outputs[6].get();
  }

  void operator()(const robocache::Context& context) const override {
    robocache::check(rbcStatistics(context.get(), values_, &result_, &params_));
  }

  void reserve(robocache::Context& context) const override {
    size_t bytes = 0;
    robocache::check(
        rbcStatisticsWorkspaceSize(context.get(), values_, &result_, &params_, &bytes));
    context.reserve(bytes);
  }

 private:
  const rbcTensor* values_;
  int64_t extent_ = kNumLevels;
  rbcTensor levels_ = {};
  rbcStatisticsParams params_ = rbcStatisticsParamsInit();
  rbcStatisticsOutputs result_ = rbcStatisticsOutputsInit();
};

class StatisticsData : public Data {
 public:
  explicit StatisticsData(const StatisticsCase& c) : c_(c) {
    std::vector<int64_t> shape = {c.samples, c.channels};
    std::vector<int64_t> of_channels = {c.channels};
    std::vector<int64_t> of_levels = {kNumLevels, c.channels};
    if (c.rows > 0) {
      for (auto* extents : {&shape, &of_channels, &of_levels}) {
        extents->insert(extents->begin(), c.rows);
      }
    }
    fill(addInput("values", c.dtype, shape));
    for (int i = 0; i < 6; ++i) addOutput(i < 2 ? support::kI64 : support::kF64, of_channels);
    if (c.quantiles) addOutput(support::kF64, of_levels);
    answer();
    bytes = c.roughBytes();
    rows = c.total();
    in_range = 1;
  }

  std::unique_ptr<Call> callOn(const Tensors& tensors) const override {
    return std::make_unique<StatisticsCall>(c_, tensors);
  }

 private:
  // Approximately normal: four uniform numbers of 16 bits each.
  static double normal(support::Random& random) {
    const uint64_t bits = random.bits();
    int64_t sum = 0;
    for (int i = 0; i < 64; i += 16) sum += static_cast<int64_t>(bits >> i & 0xffff);
    return static_cast<double>(sum - 2 * 65535) * 0x1.bp-16 +
           static_cast<double>(bits & 255) * 0x1p-24;
  }

  void fill(const support::Array& values) const {
    support::Random random(1);
    const auto size = static_cast<size_t>(support::sizeOf(c_.dtype));
    int64_t next = 0;
    values.each([&](std::byte* p) {
      const int64_t channel = next++ % c_.channels;
      double x = normal(random);
      if (c_.clustered && channel % 2 == 1 && random.chance(0.7)) x = 0;
      if (c_.clustered && channel == 0) x = 1.5;
      if (c_.steady) x = 500 + 0.01 * x;
      uint64_t bits = 0;
      if (support::same(c_.dtype, support::kF32)) {  // millions of them
        const auto rounded = static_cast<float>(x);
        std::memcpy(&bits, &rounded, sizeof rounded);
      } else {
        bits = support::encodeFloat(c_.dtype, x);
      }
      std::memcpy(p, &bits, size);
    });
  }

  const StatisticsCase c_;
};

std::unique_ptr<const Data> StatisticsCase::load() const {
  return std::make_unique<StatisticsData>(*this);
}

std::shared_ptr<Case> parseStatistics(const std::string& name) {
  auto c = std::make_shared<StatisticsCase>();
  long long rows = 0, samples = 0, channels = 0;
  char dtype[32] = {}, numbers[32] = {}, wanted[32] = {};
  const char* const rest = " of %lld %31s %31s %31s";
  const std::string in_rows = std::string("%lldx%lld") + rest;
  const std::string whole = std::string("%lldM") + rest;
  if (std::sscanf(name.c_str(), in_rows.c_str(), &rows, &samples, &channels, dtype, numbers,
                  wanted) != 6) {
    rows = 0;
    if (std::sscanf(name.c_str(), whole.c_str(), &samples, &channels, dtype, numbers, wanted) !=
        5) {
      throw std::runtime_error("'" + name +
                               "' is not of the form '10M of 14 f32 normal quantiles'");
    }
    samples *= 1'000'000;
  }
  c->rows = rows;
  c->samples = samples;
  c->channels = channels;
  const auto* found =
      std::find_if(std::begin(support::kFloatDTypes), std::end(support::kFloatDTypes),
                   [&](const rbcDType& known) { return support::nameOf(known) == dtype; });
  if (found == std::end(support::kFloatDTypes)) {
    throw std::runtime_error(std::string("no statistics: ") + dtype);
  }
  c->dtype = *found;
  c->clustered = std::strcmp(numbers, "clustered") == 0;
  c->steady = std::strcmp(numbers, "steady") == 0;
  c->quantiles = std::strcmp(wanted, "quantiles") == 0;
  c->kernels = 24;
  return c;
}

const CaseKind kStatistics(" of ", parseStatistics);

}  // namespace
}  // namespace bench
