// Cases of rbcStatistics. Their names: how many samples of how many channels, of which dtype, what is
// special, and how many quantiles, such as
//   statistics of 10M x 14 f32
//   statistics of 10M x 14 f32 clustered, 5 quantiles
//   statistics of 1000 rows 300 x 14 f32

#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <stdexcept>

#include "cases.h"
#include "robocache/statistics.h"
#include "support/random.h"

namespace bench {
namespace {

constexpr double kLevels[] = {0.01, 0.1, 0.5, 0.9, 0.99};

struct StatisticsCase : Case {
  int64_t rows = 0;  // 0: all samples together
  int64_t samples = 0;
  int64_t channels = 0;
  rbcDType dtype = support::kF32;
  bool clustered = false;  // a gripper that rests most of the time, and a joint that never moves
  bool quantiles = false;

  int64_t total() const { return std::max<int64_t>(rows, 1) * samples; }
  int64_t roughBytes() const override { return total() * channels * support::sizeOf(dtype); }
  std::unique_ptr<const Data> load() const override;
  std::string facts() const override {
    return "\"samples\": " + std::to_string(total()) +
           ", \"channels\": " + std::to_string(channels) +
           ", \"quantiles\": " + (quantiles ? "5" : "0");
  }
};

class StatisticsCall : public Call {
 public:
  StatisticsCall(const StatisticsCase& c, const Tensors& tensors)
      : values_(tensors.inputs[0].get()), num_levels_(std::size(kLevels)) {
    levels_ = {const_cast<double*>(kLevels),
               {RBC_DEVICE_CPU, 0},
               1,
               support::kF64,
               &num_levels_,
               nullptr,
               0};
    params_.flags = c.rows > 0 ? RBC_STATISTICS_PER_ROW : 0;
    params_.quantiles = c.quantiles ? &levels_ : nullptr;
    result_.count = tensors.outputs[0].get();
    result_.min = tensors.outputs[1].get();
    result_.max = tensors.outputs[2].get();
    result_.mean = tensors.outputs[3].get();
    result_.std = tensors.outputs[4].get();
    if (c.quantiles) result_.quantiles = tensors.outputs[5].get();
  }
  StatisticsCall(const StatisticsCall&) = delete;

  void operator()(const robocache::Context& context) const override {
    robocache::check(rbcStatistics(context.get(), values_, &params_, &result_));
  }
  void reserve(robocache::Context& context) const override {
    size_t bytes = 0;
    robocache::check(
        rbcStatisticsWorkspaceSize(context.get(), values_, &params_, &result_, &bytes));
    robocache::check(rbcContextReserve(context.get(), bytes));
  }

 private:
  const rbcTensor* values_;
  int64_t num_levels_;
  rbcTensor levels_ = {};
  rbcStatisticsParams params_ = rbcStatisticsParamsInit();
  rbcStatisticsResult result_ = rbcStatisticsResultInit();
};

class StatisticsData : public Data {
 public:
  explicit StatisticsData(const StatisticsCase& c) : c_(c) {
    std::vector<int64_t> shape = {c.samples, c.channels};
    std::vector<int64_t> of_channels = {c.channels};
    std::vector<int64_t> of_levels = {static_cast<int64_t>(std::size(kLevels)), c.channels};
    if (c.rows > 0) {
      for (auto* each : {&shape, &of_channels, &of_levels}) each->insert(each->begin(), c.rows);
    }
    fill(addInput("values", c.dtype, shape));
    addOutput(support::kI64, of_channels);
    for (int i = 0; i < 4; ++i) addOutput(support::kF64, of_channels);
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
  // Close to normal: four uniform numbers of 16 bits each.
  static float normal(support::Random& random) {
    const uint64_t bits = random.bits();
    int64_t sum = 0;
    for (int i = 0; i < 64; i += 16) sum += static_cast<int64_t>(bits >> i & 0xffff);
    return static_cast<float>(sum - 2 * 65535) * 0x1.bp-16f +
           static_cast<float>(bits & 255) * 0x1p-24f;
  }

  void fill(const support::Array& values) const {
    support::Random random(1);
    std::byte* to = values.memory().data();
    for (int64_t i = 0; i < c_.total(); ++i) {
      for (int64_t channel = 0; channel < c_.channels; ++channel) {
        float x = normal(random);
        if (c_.clustered && channel % 7 == 6) x = random.chance(0.7) ? 0 : x;
        if (c_.clustered && channel % 7 == 5) x = 0.5f;
        if (support::sizeOf(c_.dtype) == 2) {
          uint32_t bits;
          std::memcpy(&bits, &x, sizeof bits);
          const auto half = static_cast<uint16_t>((bits + 0x8000) >> 16);  // bf16
          std::memcpy(to, &half, sizeof half);
          to += sizeof half;
        } else {
          std::memcpy(to, &x, sizeof x);
          to += sizeof x;
        }
      }
    }
  }

  const StatisticsCase c_;
};

std::unique_ptr<const Data> StatisticsCase::load() const {
  return std::make_unique<StatisticsData>(*this);
}

std::shared_ptr<Case> parseStatistics(const std::string& name) {
  auto c = std::make_shared<StatisticsCase>();
  long long rows = 0, samples = 0, channels = 0;
  char dtype[8] = {};
  if (std::sscanf(name.c_str(), "statistics of %lldM x %lld %7s", &samples, &channels, dtype) ==
      3) {
    c->samples = samples * 1'000'000;
  } else if (std::sscanf(name.c_str(), "statistics of %lld rows %lld x %lld %7s", &rows, &samples,
                         &channels, dtype) == 4) {
    c->rows = rows;
    c->samples = samples;
  } else {
    throw std::runtime_error("'" + name + "' is not like 'statistics of 10M x 14 f32'");
  }
  c->channels = channels;
  const std::string text = std::string(dtype).substr(0, std::string(dtype).find(','));
  if (text != "f32" && text != "bf16") throw std::runtime_error("no statistics: " + text);
  c->dtype = text == "f32" ? support::kF32 : support::kBF16;
  c->clustered = name.find("clustered") != std::string::npos;
  c->quantiles = name.find("5 quantiles") != std::string::npos;
  c->kernels = 8;
  return c;
}

const CaseKind kStatistics("statistics of ", parseStatistics);

}  // namespace
}  // namespace bench
