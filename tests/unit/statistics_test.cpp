// rbcStatistics, compared with integers of any size: every dtype, layout and kind of numbers, few
// samples, and enough samples that brackets come from some of them.
#include <iterator>
#include <vector>

#include "robocache/statistics.h"

#include "statistics/large_group.h"
#include "support/operation_tests.h"
#include "support/random.h"
#include "support/statistics_case.h"
#include "support/statistics_reference.h"

namespace {

using support::Batch;
using support::Layout;
using support::Numbers;
using support::StatisticsCase;

constexpr Numbers kNumbers[] = {Numbers::kNormal,    Numbers::kFar, Numbers::kSpike, Numbers::kTiny,
                                Numbers::kEqual,     Numbers::kTwo, Numbers::kZeros, Numbers::kWide,
                                Numbers::kNotFinite, Numbers::kHuge};
constexpr Batch kBatches[] = {Batch::kNone, Batch::kPadded, Batch::kLengths, Batch::kPacked,
                              Batch::kImages};

std::vector<rbcDType> allDTypes() {
  std::vector<rbcDType> all(std::begin(support::kFloatDTypes), std::end(support::kFloatDTypes));
  all.insert(all.end(), std::begin(support::kIntegerDTypes), std::end(support::kIntegerDTypes));
  return all;
}

std::vector<StatisticsCase> table() {
  std::vector<StatisticsCase> all;
  uint64_t seed = 1;
  const auto add = [&](auto&& change) {
    StatisticsCase c;
    c.seed = seed++;
    change(c);
    all.push_back(c);
  };
  for (const rbcDType dtype : allDTypes()) {
    add([&](StatisticsCase& c) {
      c.dtype = dtype;
      c.samples = 301;
    });
  }
  for (const Numbers numbers : kNumbers) {
    for (const rbcDType dtype : support::kFloatDTypes) {
      add([&](StatisticsCase& c) {
        c.dtype = dtype;
        c.numbers = numbers;
        c.samples = 200;
        c.ddof = static_cast<int32_t>(seed % 2);
      });
    }
  }
  for (const Batch batch : kBatches) {
    for (const bool per_row : {false, true}) {
      if (per_row && batch == Batch::kNone) continue;
      add([&](StatisticsCase& c) {
        c.batch = batch;
        c.per_row = per_row;
        c.rows = 5;
        c.masked = true;
        c.samples = 40;
      });
    }
  }
  for (const Layout layout : support::kLayouts) {
    add([&](StatisticsCase& c) {
      c.layout = layout;
      c.out_layout = layout == Layout::kBroadcast ? Layout::kReversed : layout;
      c.batch = Batch::kImages;
      c.rows = 3;
      c.samples = 11;
      c.per_row = seed % 2 == 0;
    });
  }
  for (const int64_t samples : {0, 1, 2, 3, 16, 17}) {
    for (const int64_t channels : {1, 7, 33, 100}) {
      add([&](StatisticsCase& c) {
        c.samples = samples;
        c.channels = channels;
        c.levels = {1, 0, 0.5, 0.25, 0.5};
        c.ddof = 1;
      });
    }
  }
  for (const char* name : {"count", "nonfinite", "min", "max", "mean", "std", "quantiles"}) {
    add([&](StatisticsCase& c) { c.without.insert(name); });
  }
  add([&](StatisticsCase& c) { c.levels.clear(); });
  add([&](StatisticsCase& c) {
    c.batch = Batch::kPadded;
    c.rows = 0;
    c.per_row = true;
  });
  add([&](StatisticsCase& c) { c.channels = 0; });
  // More than one thread searches directly.
  for (const Numbers numbers : kNumbers) {
    add([&](StatisticsCase& c) {
      c.dtype = seed % 2 == 0 ? support::kF32 : support::kF64;
      c.numbers = numbers;
      c.samples = 17'003;
      c.channels = numbers == Numbers::kNormal ? 3 : 1;
    });
  }
  add([&](StatisticsCase& c) {
    c.batch = Batch::kLengths;
    c.per_row = true;
    c.rows = 2;
    c.samples = 30'000;
    c.channels = 1;
    c.masked = true;
  });
  add([&](StatisticsCase& c) {
    c.samples = 20'000;
    c.channels = 2;
    for (int i = 0; i <= 60; ++i) c.levels.push_back(i / 60.0 * (i / 60.0));
    c.levels.resize(64);
  });
  return all;
}

StatisticsCase randomCase(uint64_t seed) {
  support::Random random(seed);
  const auto dtypes = allDTypes();
  StatisticsCase c;
  c.seed = seed;
  c.dtype = dtypes[static_cast<size_t>(random.below(static_cast<int64_t>(dtypes.size())))];
  if (random.chance(0.5)) c.dtype = random.pick(support::kFloatDTypes);
  c.numbers = random.pick(kNumbers);
  c.batch = random.pick(kBatches);
  c.rows = random.below(6);
  c.samples = random.below(80);
  c.channels = 1 + random.below(random.chance(0.1) ? 70 : 9);
  c.layout = random.pick(support::kLayouts);
  if (c.batch == Batch::kPacked && c.layout == Layout::kBroadcast) c.layout = Layout::kStrided;
  c.out_layout = random.pick(support::kLayouts);
  if (c.out_layout == Layout::kBroadcast) c.out_layout = Layout::kContiguous;
  c.flush = random.chance(0.5) ? support::Flush::kEnd : support::Flush::kBegin;
  c.per_row = c.batch != Batch::kNone && random.chance(0.5);
  c.masked = random.chance(0.4);
  c.ddof = static_cast<int32_t>(random.below(2));
  c.levels.clear();
  for (int64_t i = random.below(7); i > 0; --i) {
    c.levels.push_back(random.chance(0.2) ? static_cast<double>(random.below(2))
                                          : random.uniform());
  }
  return c;
}

// Larger cases: only checks that the result is the same everywhere.
StatisticsCase anyCase(uint64_t seed) {
  StatisticsCase c = randomCase(seed);
  c.samples = c.samples * 37 + 1;
  return c;
}

struct Statistics {
  static constexpr uint64_t kRandomCases = 300;
  static constexpr uint64_t kSameBits = 60;
  static std::vector<StatisticsCase> table() { return ::table(); }
  static StatisticsCase random(uint64_t seed) { return randomCase(seed); }
  static StatisticsCase any(uint64_t seed) { return anyCase(seed); }
};

}  // namespace

OPERATION_TESTS("statistics", Statistics)

TEST_CASE("reference: a wrong bit of statistics is found") {
  support::checkReferenceTells<Statistics>(20, support::spoilElement);
}

TEST_CASE("statistics cpu: a sample that does not represent the rest") {
  // The values that are sampled first are the smallest, or the largest: each bracket misses.
  constexpr int64_t kSamples = 20'000;
  const support::Context context = support::cpuContext(2);
  const int64_t size = rbc::cpu::sampleSize(kSamples);
  for (const float lure : {-5.0f, 5.0f}) {
    support::Random random(3);
    std::vector<float> values(kSamples);
    for (float& x : values) x = static_cast<float>(random.uniform());
    for (int64_t i = 0; i < size; ++i) {
      values[static_cast<size_t>(rbc::cpu::samplePlace(i, size, kSamples))] =
          lure + static_cast<float>(i) * 1e-6f;
    }
    std::vector<double> levels = {0.3, 0.5, 0.7};
    std::vector<double> out(3);
    int64_t shape[] = {kSamples, 1};
    int64_t three = 3;
    int64_t out_shape[] = {3, 1};
    constexpr rbcDevice kCpu = {RBC_DEVICE_CPU, 0};
    const rbcTensor in = {values.data(), kCpu, 2, support::kF32, shape, nullptr, 0};
    const rbcTensor at = {levels.data(), kCpu, 1, support::kF64, &three, nullptr, 0};
    const rbcTensor quantiles = {out.data(), kCpu, 2, support::kF64, out_shape, nullptr, 0};
    rbcStatisticsParams params = rbcStatisticsParamsInit();
    params.levels = &at;
    rbcStatisticsOutputs result = rbcStatisticsOutputsInit();
    result.quantiles = &quantiles;
    CHECK_SUCCEEDS(rbcStatistics(context.get(), &in, &result, &params));
    const support::ExactStatistics exact({values.begin(), values.end()});
    for (size_t i = 0; i < 3; ++i) CHECK(support::bitsOf(out[i]) == exact.quantile(levels[i]));
  }
}

TEST_CASE("statistics cpu: more samples than 32 bits count, by a stride of 0") {
  const support::Context context = support::cpuContext(2);
  const float values[] = {0.1f, -3e5f};
  constexpr int64_t kSamples = (int64_t{1} << 32) + 3;
  int64_t shape[] = {kSamples, 2};
  int64_t strides[] = {0, 1};
  int64_t two = 2;
  int64_t count[2];
  double mean[2];
  double std[2];
  constexpr rbcDevice kCpu = {RBC_DEVICE_CPU, 0};
  const rbcTensor in = {const_cast<float*>(values), kCpu, 2, support::kF32, shape, strides, 0};
  const rbcTensor count_tensor = {count, kCpu, 1, support::kI64, &two, nullptr, 0};
  const rbcTensor mean_tensor = {mean, kCpu, 1, support::kF64, &two, nullptr, 0};
  const rbcTensor std_tensor = {std, kCpu, 1, support::kF64, &two, nullptr, 0};
  rbcStatisticsOutputs result = rbcStatisticsOutputsInit();
  result.count = &count_tensor;
  result.mean = &mean_tensor;
  result.std = &std_tensor;
  if (RBC_TEST_SANITIZED) SKIP_BECAUSE("takes minutes under a sanitizer");
  CHECK_SUCCEEDS(rbcStatistics(context.get(), &in, &result, nullptr));
  for (int i = 0; i < 2; ++i) {
    CHECK(count[i] == kSamples);
    CHECK(mean[i] == static_cast<double>(values[i]));
    CHECK(std[i] == 0);
  }
}
