// rbcStatistics on CUDA gives the bits of the CPU, for any samples and layouts.
#include "robocache/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <deque>
#include <optional>
#include <vector>

#include "support/expect.h"
#include "support/operation_tests.h"
#include "support/random.h"
#include "support/run.h"
#include "support/share.h"

namespace {

using support::Array;
using support::Context;
using support::kF64;
using support::kI64;
using support::Layout;
using support::Placed;
using support::Random;

// The kind of numbers in a channel.
enum class Pattern {
  kNormal,
  kOffset,    // far from 0, close together
  kClusters,  // most are one of a few values
  kConstant,
  kWide,       // of all magnitudes
  kWalk,       // each close to the previous one
  kStretches,  // long stretches of zeros
  kSpecials,   // infinities, NaN, zeros of both signs, and subnormals among other numbers
};
constexpr Pattern kPatterns[] = {Pattern::kNormal,    Pattern::kOffset,  Pattern::kClusters,
                                 Pattern::kConstant,  Pattern::kWide,    Pattern::kWalk,
                                 Pattern::kStretches, Pattern::kSpecials};

struct Case {
  rbcDType dtype = support::kF32;
  std::vector<int64_t> shape;  // of values
  Pattern pattern = Pattern::kNormal;
  Layout layout = Layout::kContiguous;
  bool lengths = false;
  bool packed = false;
  bool mask = false;
  bool per_row = false;
  int32_t ddof = 0;
  std::vector<double> levels = {0.01, 0.1, 0.5, 0.9, 0.99};
  uint64_t seed = 1;
};

double normal(Random& random) {
  double sum = 0;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return sum - 6;
}

double numberOf(Random& random, Pattern pattern, int64_t i, double* walk) {
  switch (pattern) {
    case Pattern::kOffset: return 1e6 + 5 * normal(random);
    case Pattern::kClusters:
      return random.chance(0.7) ? 0 : random.chance(0.8) ? 1 : normal(random);
    case Pattern::kConstant: return 0.1;
    case Pattern::kWide:
      return std::ldexp(normal(random), static_cast<int>(random.below(200)) - 100);
    case Pattern::kWalk: return *walk += 0.01 * normal(random);
    case Pattern::kStretches: return i / 5000 % 10 < 7 ? 0 : 3 + normal(random);
    case Pattern::kSpecials: {
      const double kSpecials[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0, 0x1p-149, -0x1p-1074, 1e300};
      return random.chance(0.1) ? random.pick(kSpecials) : normal(random);
    }
    default: return normal(random);
  }
}

uint64_t bitsOf(rbcDType dtype, double x, Random& random) {
  if (support::isFloat(dtype)) return support::encodeFloat(dtype, x);
  if (support::same(dtype, support::kBool)) return x > 0.5 ? 1 : 0;
  if (dtype.bits == 64 && random.chance(0.1)) return random.bits();
  const double scaled = std::isfinite(x) ? std::fmod(x * 50, 1e9) : 0;
  return static_cast<uint64_t>(std::llround(scaled));
}

Array valuesOf(const Case& c) {
  Array values(c.dtype, c.shape, c.layout);
  Random random(c.seed);
  int64_t i = 0;
  double walk = 0;
  values.each([&](std::byte* p) {
    const uint64_t bits = bitsOf(c.dtype, numberOf(random, c.pattern, i, &walk), random);
    std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(c.dtype)));
    ++i;
  });
  return values;
}

struct Arguments {
  Array values;
  Array lengths;
  Array offsets;
  Array mask;
  int64_t groups = 1;
};

Arguments argumentsOf(const Case& c) {
  Arguments a;
  a.values = valuesOf(c);
  Random random(c.seed + 99);
  const int64_t batch = c.shape.size() > 2 ? c.shape[0] : 5;
  const int64_t rows = c.packed ? c.shape[0] : c.shape.size() > 2 ? c.shape[1] : 1;
  if (c.lengths) {
    a.lengths = Array(kI64, {batch});
    for (int64_t b = 0; b < batch; ++b) {
      a.lengths.set({b}, static_cast<uint64_t>(random.below(rows + 1)));
    }
  }
  if (c.packed) {
    a.offsets = Array(support::kI32, {batch + 1});
    std::vector<int64_t> ends;
    for (int64_t b = 0; b <= batch; ++b) ends.push_back(random.below(rows + 1));
    std::sort(ends.begin(), ends.end());
    for (int64_t b = 0; b <= batch; ++b) {
      a.offsets.set({b}, static_cast<uint64_t>(ends[static_cast<size_t>(b)]));
    }
  }
  if (c.mask) {
    std::vector<int64_t> shape(c.shape.begin(), c.shape.end() - 1);
    a.mask = Array(support::kBool, shape);
    a.mask.each([&](std::byte* p) { *p = random.chance(0.6) ? std::byte{1} : std::byte{0}; });
  }
  a.groups = c.per_row ? batch : 1;
  return a;
}

using Results = std::vector<std::vector<uint64_t>>;

Results resultsOf(const Context& context, const Case& c, const Arguments& a) {
  const bool cuda = support::infoOf(context).backend == RBC_BACKEND_CUDA;
  const Placed values(context, a.values, cuda);
  std::optional<Placed> lengths, offsets, mask;
  if (c.lengths) lengths.emplace(context, a.lengths, cuda);
  if (c.packed) offsets.emplace(context, a.offsets, cuda);
  if (c.mask) mask.emplace(context, a.mask, cuda);
  int64_t num_levels = static_cast<int64_t>(c.levels.size());
  const rbcTensor levels = {
      const_cast<double*>(c.levels.data()), {RBC_DEVICE_CPU, 0}, 1, kF64, &num_levels, nullptr, 0};
  rbcStatisticsParams params = rbcStatisticsParamsInit();
  params.flags = c.per_row ? RBC_STATISTICS_FLAG_PER_ROW : 0;
  params.lengths = lengths ? lengths->get() : nullptr;
  params.batch_offsets = offsets ? offsets->get() : nullptr;
  params.sample_mask = mask ? mask->get() : nullptr;
  params.levels = num_levels > 0 ? &levels : nullptr;
  params.ddof = c.ddof;
  const int64_t channels = c.shape.back();
  std::vector<int64_t> shape = {channels};
  std::vector<int64_t> quantile_shape = {num_levels, channels};
  if (c.per_row) {
    shape.insert(shape.begin(), a.groups);
    quantile_shape.insert(quantile_shape.begin(), a.groups);
  }
  std::deque<Array> arrays;
  std::deque<Placed> placed;
  std::deque<rbcOutput> tensors;
  const auto out = [&](rbcDType dtype, const std::vector<int64_t>& of) {
    arrays.emplace_back(dtype, of);
    placed.emplace_back(context, arrays.back(), cuda);
    tensors.push_back(*placed.back().get());
    return &tensors.back();
  };
  rbcStatisticsOutputs result = rbcStatisticsOutputsInit();
  result.count = out(kI64, shape);
  result.nonfinite = out(kI64, shape);
  result.min = out(kF64, shape);
  result.max = out(kF64, shape);
  result.mean = out(kF64, shape);
  result.std = out(kF64, shape);
  if (num_levels > 0) result.quantiles = out(kF64, quantile_shape);
  CHECK_SUCCEEDS(rbcStatistics(context.get(), values.get(), &result, &params));
  support::require(rbcContextSynchronize(context.get()));
  Results all;
  for (size_t i = 0; i < arrays.size(); ++i) {
    CHECK(placed[i].fetch(context, arrays[i]));
    all.push_back(arrays[i].elements());
  }
  return all;
}

void checkSame(const Context& cuda, const Case& c) {
  static const Context cpu = support::cpuContext();
  const Arguments a = argumentsOf(c);
  const Results expected = resultsOf(cpu, c, a);
  constexpr const char* kNames[] = {"count", "nonfinite", "min", "max", "mean", "std", "quantiles"};
  for (int again = 0; again < 2; ++again) {
    const Results got = resultsOf(cuda, c, a);
    for (size_t i = 0; i < expected.size(); ++i) {
      CHECK_MESSAGE(got[i] == expected[i], kNames[i], " of ", support::nameOf(c.dtype), " pattern ",
                    static_cast<int>(c.pattern), " layout ", support::nameOf(c.layout), " seed ",
                    c.seed, " rank ", c.shape.size(), " rows ", c.shape[0], " channels ",
                    c.shape.back());
    }
  }
}

}  // namespace

TEST_CASE("statistics cuda: every dtype and pattern, few samples and many") {
  WITH_CUDA(cuda);
  std::vector<rbcDType> dtypes(std::begin(support::kFloatDTypes), std::end(support::kFloatDTypes));
  dtypes.insert(dtypes.end(), std::begin(support::kIntegerDTypes),
                std::end(support::kIntegerDTypes));
  uint64_t seed = 0;
  for (const rbcDType dtype : dtypes) {
    for (const Pattern pattern : kPatterns) {
      for (const int64_t samples : {1, 2, 300, 3000, 100'000}) {
        Case c;
        c.dtype = dtype;
        c.pattern = pattern;
        c.shape = {samples, samples > 50'000 ? 3 : 14};
        c.seed = ++seed;
        c.ddof = static_cast<int32_t>(seed % 2);
        if (!support::inShare(seed)) continue;
        checkSame(cuda, c);
        if (samples < 100'000) continue;
        c.levels = {};  // dense, and only moments
        checkSame(cuda, c);
      }
    }
  }
}

TEST_CASE("statistics cuda: rows, lengths, offsets, masks and layouts") {
  WITH_CUDA(cuda);
  for (uint64_t seed = 0; seed < 120; ++seed) {
    if (!support::inShare(seed)) continue;
    Random random(seed + 1000);
    Case c;
    c.seed = seed;
    c.dtype = random.chance(0.5)   ? support::kF32
              : random.chance(0.5) ? random.pick(support::kFloatDTypes)
                                   : random.pick(support::kIntegerDTypes);
    c.pattern = random.pick(kPatterns);
    c.layout = random.pick(support::kLayouts);
    c.packed = random.chance(0.3);
    const int64_t channels = random.chance(0.2) ? 1 + random.below(600) : 1 + random.below(20);
    const int64_t rows = random.chance(0.3) ? random.below(40'000) / channels : random.below(700);
    if (c.packed) {
      c.shape = {rows * 4, channels};
    } else if (random.chance(0.2)) {
      c.shape = {3, 1 + random.below(30), 1 + random.below(50), 1 + random.below(8)};
    } else if (random.chance(0.2)) {
      c.shape = {rows, channels};
    } else {
      c.shape = {1 + random.below(6), rows, channels};
    }
    c.lengths = c.shape.size() == 3 && random.chance(0.4);
    c.mask = random.chance(0.3);
    c.per_row = (c.packed || c.shape.size() > 2) && random.chance(0.5);
    if (random.chance(0.2)) c.levels = {};
    if (random.chance(0.2)) {
      c.levels = {1, 0, 0.25, 0.25, 0.3, 0.75, 0.9999, 1e-9, 0.5, 0.51, 0.52, 0.53, 0.123};
    }
    checkSame(cuda, c);
  }
}

TEST_CASE("statistics cuda: many samples, in brackets that miss, overlap and overflow") {
  WITH_CUDA(cuda);
  for (const rbcDType dtype : {support::kF32, support::kBF16, support::kF64, support::kU8}) {
    for (const Pattern pattern : kPatterns) {
      Case c;
      c.dtype = dtype;
      c.pattern = pattern;
      c.shape = {700'000, 5};
      c.seed = static_cast<uint64_t>(pattern) + 7;
      if (!support::inShare(c.seed)) continue;
      c.levels = {0, 0.01, 0.1, 0.499, 0.5, 0.501, 0.9, 0.99, 1};
      checkSame(cuda, c);
      c.mask = true;
      c.levels = {0.5};
      checkSame(cuda, c);
    }
  }
}

// Their statistics are unspecified, but nothing is read or written outside the tensors.
TEST_CASE("statistics cuda: descending offsets of samples that are refined") {
  WITH_CUDA(cuda);
  for (const rbcDType dtype : {support::kF32, support::kBF16, support::kF64}) {
    Case c;
    c.dtype = dtype;
    c.shape = {1'000'000, 1};
    c.packed = c.per_row = true;
    c.levels = {0.1, 0.9};
    Arguments a = argumentsOf(c);
    const uint64_t rows = 1'000'000;
    const uint64_t ends[] = {0, rows, rows / 2, rows, rows / 4, rows};
    for (int64_t i = 0; i < a.offsets.count(); ++i) a.offsets.set({i}, ends[i]);
    resultsOf(cuda, c, a);
    c.shape = {3000, 2};
    checkSame(cuda, c);  // the context remains usable
  }
}

TEST_CASE("statistics cuda: without samples, without channels, and 2^32 + 3 of them") {
  WITH_CUDA(cuda);
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{0, 5}, {7, 0}, {0, 4, 3}, {3, 0, 2}, {3, 4, 0}}) {
    Case c;
    c.shape = shape;
    checkSame(cuda, c);
    c.per_row = shape.size() > 2;
    checkSame(cuda, c);
  }
  const Array one(support::kF32, {1});
  const float x = 0.1f;
  std::memcpy(one.memory().data(), &x, sizeof x);
  const Placed value(cuda, one, true);
  int64_t shape[] = {(int64_t{1} << 32) + 3, 1};
  int64_t strides[] = {0, 1};
  rbcTensor values = *value.get();
  values.ndim = 2;
  values.shape = shape;
  values.strides = strides;
  double level = 0.5;
  int64_t levels_shape = 1;
  const rbcTensor levels = {&level, {RBC_DEVICE_CPU, 0}, 1, kF64, &levels_shape, nullptr, 0};
  rbcStatisticsParams params = rbcStatisticsParamsInit();
  params.levels = &levels;
  Array count(kI64, {1}), mean(kF64, {1}), std(kF64, {1}), median(kF64, {1, 1});
  const Placed placed_count(cuda, count, true), placed_mean(cuda, mean, true),
      placed_std(cuda, std, true), placed_median(cuda, median, true);
  rbcStatisticsOutputs result = rbcStatisticsOutputsInit();
  const rbcOutput outputs[] = {*placed_count.get(), *placed_mean.get(), *placed_std.get(),
                               *placed_median.get()};
  result.count = &outputs[0];
  result.mean = &outputs[1];
  result.std = &outputs[2];
  result.quantiles = &outputs[3];
  CHECK_SUCCEEDS(rbcStatistics(cuda.get(), &values, &result, &params));
  support::require(rbcContextSynchronize(cuda.get()));
  CHECK(placed_count.fetch(cuda, count));
  CHECK(placed_mean.fetch(cuda, mean));
  CHECK(placed_std.fetch(cuda, std));
  CHECK(placed_median.fetch(cuda, median));
  const double exact = x;
  uint64_t bits;
  std::memcpy(&bits, &exact, sizeof bits);
  CHECK(count.get({0}) == static_cast<uint64_t>(shape[0]));
  CHECK(mean.get({0}) == bits);
  CHECK(std.get({0}) == 0);
  CHECK(median.get({0, 0}) == bits);
}
