// Accumulators of statistics: any order, any pieces, any merges give the same bytes, and passes
// lead to exact quantiles.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "support/accumulator.h"
#include "support/expect.h"
#include "support/odd_floats.h"
#include "support/random.h"
#include "support/sanitizers.h"
#include "support/share.h"
#include "support/statistics_reference.h"

namespace {

using support::Accumulator;
using support::Array;
using support::Bytes;
using support::Context;
using support::exported;
using support::imported;
using support::makeAccumulator;
using support::nextPass;
using support::Random;
using support::require;
using support::resultOf;

const std::vector<double> kLevels = {0.01, 0.1, 0.5, 0.9, 0.99};

struct Kind {
  rbcDType dtype;
  int passes;  // after the first
};
const Kind kKinds[] = {{support::kF16, 1}, {support::kBF16, 0}, {support::kF32, 1},
                       {support::kF64, 3}, {support::kBool, 0}, {support::kI8, 0},
                       {support::kI16, 1}, {support::kI32, 2},  {support::kI64, 3},
                       {support::kU8, 0},  {support::kU16, 1},  {support::kU32, 2},
                       {support::kU64, 3}};

// Elements of samples with two channels: one with all kinds of values, one that is mostly 0.
std::vector<uint64_t> randomElements(rbcDType dtype, int64_t samples, uint64_t seed) {
  Random random(seed);
  std::vector<uint64_t> elements;
  for (int64_t i = 0; i < samples; ++i) {
    const double x = random.uniform(-100, 100) * (random.chance(0.02) ? 1e30 : 1);
    if (support::isFloat(dtype)) {
      elements.push_back(support::encodeFloat(dtype, random.chance(0.03) ? std::nan("") : x));
      elements.push_back(support::encodeFloat(dtype, random.chance(0.7) ? 0 : x));
    } else {
      const int shift = static_cast<int>(random.below(dtype.bits));
      const uint64_t most = dtype.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << dtype.bits) - 1;
      const uint64_t bits =
          support::same(dtype, support::kBool) ? random.bits() % 2 : random.bits() & most >> shift;
      elements.push_back(bits);
      elements.push_back(random.chance(0.7) ? 0 : bits);
    }
  }
  return elements;
}

double valueOf(rbcDType dtype, uint64_t bits) {
  if (support::isFloat(dtype)) return static_cast<double>(support::decodeFloat(dtype, bits));
  if (dtype.code != RBC_DTYPE_INT) return static_cast<double>(bits);
  const int unused = 64 - dtype.bits;
  return static_cast<double>(static_cast<int64_t>(bits << unused) >> unused);
}

Array samplesOf(rbcDType dtype, const std::vector<uint64_t>& elements, size_t begin, size_t end) {
  return support::arrayOf(dtype, {static_cast<int64_t>(end - begin), 2},
                          {elements.begin() + static_cast<int64_t>(2 * begin),
                           elements.begin() + static_cast<int64_t>(2 * end)});
}

support::ExactStatistics exactOf(rbcDType dtype, const std::vector<uint64_t>& elements,
                                 size_t channel) {
  std::vector<double> values;
  for (size_t i = channel; i < elements.size(); i += 2)
    values.push_back(valueOf(dtype, elements[i]));
  return support::ExactStatistics(values);
}

void checkMoments(const support::AccumulatorResult& r, size_t c,
                  const support::ExactStatistics& exact, int ddof = 0) {
  CHECK(r.count[c] == exact.count());
  CHECK(r.nonfinite[c] == exact.nonfinite());
  CHECK(support::bitsOf(r.min[c]) == exact.min());
  CHECK(support::bitsOf(r.max[c]) == exact.max());
  CHECK(exact.isMean(support::bitsOf(r.mean[c])));
  CHECK(exact.isStd(support::bitsOf(r.std[c]), ddof));
}

// Shuffles the samples and cuts them into pieces, one per accumulator that begins as `begin`.
// Merges these as a random tree, across contexts as bytes.
Bytes merged(const std::vector<Context>& contexts, rbcDType dtype,
             const std::vector<uint64_t>& elements, const Bytes& begin, uint64_t seed) {
  Random random(seed);
  const size_t samples = elements.size() / 2;
  std::vector<size_t> order(samples);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = samples; i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }
  std::vector<uint64_t> shuffled;
  for (const size_t i : order) {
    shuffled.push_back(elements[2 * i]);
    shuffled.push_back(elements[2 * i + 1]);
  }
  std::vector<Bytes> parts;
  for (size_t at = 0; at < samples;) {
    const Context& context =
        contexts[static_cast<size_t>(random.below(static_cast<int64_t>(contexts.size())))];
    const Accumulator part = imported(context, begin);
    for (int64_t pieces = 1 + random.below(3); pieces > 0 && at < samples; --pieces) {
      const size_t end = std::min(samples, at + static_cast<size_t>(random.below(90)));
      require(support::update(context, part, samplesOf(dtype, shuffled, at, end)));
      at = end;
    }
    parts.push_back(exported(part));
  }
  while (parts.size() > 1) {
    const auto pick = [&] {
      const auto at = parts.begin() + random.below(static_cast<int64_t>(parts.size()));
      Bytes part = std::move(*at);
      parts.erase(at);
      return part;
    };
    const Context& context =
        contexts[static_cast<size_t>(random.below(static_cast<int64_t>(contexts.size())))];
    const Accumulator one = imported(context, pick());
    const Accumulator other = imported(context, pick());
    CHECK_SUCCEEDS(rbcAccumulatorMerge(one.get(), other.get()));
    parts.push_back(exported(one));
  }
  return std::move(parts[0]);
}

void checkPasses(const std::vector<Context>& contexts, const Kind& kind, int32_t bucket_bits) {
  CAPTURE(support::nameOf(kind.dtype));
  CAPTURE(bucket_bits);
  const auto elements = randomElements(kind.dtype, 500, kind.dtype.bits);
  const Accumulator whole = makeAccumulator(contexts[0], 2, kLevels, bucket_bits, 1);
  Bytes begin = exported(whole);
  int passes = 0;
  for (bool more = true; more; ++passes) {
    require(support::update(contexts[0], whole, samplesOf(kind.dtype, elements, 0, 500)));
    const Bytes state = exported(whole);
    for (uint64_t seed = 0; seed < 3; ++seed) {
      CHECK(merged(contexts, kind.dtype, elements, begin, 10 * seed + 1) == state);
    }
    CHECK(exported(imported(contexts.back(), state)) == state);
    more = nextPass(whole);
    begin = exported(whole);
  }
  if (bucket_bits == 0) CHECK(passes - 1 == kind.passes);
  const auto result = resultOf(whole);
  const auto again = resultOf(imported(contexts.back(), begin));
  CHECK(result.status == RBC_STATUS_SUCCESS);
  for (size_t c = 0; c < 2; ++c) {
    const auto exact = exactOf(kind.dtype, elements, c);
    checkMoments(result, c, exact, 1);
    for (size_t q = 0; q < kLevels.size(); ++q) {
      CHECK(support::bitsOf(result.quantiles[2 * q + c]) == exact.quantile(kLevels[q]));
      CHECK(support::bitsOf(again.quantiles[2 * q + c]) == exact.quantile(kLevels[q]));
    }
  }
}

std::vector<Context> cpuContexts() {
  std::vector<Context> contexts;
  for (const int32_t level : support::simdLevels()) {
    contexts.push_back(support::cpuContext(1, level));
    contexts.push_back(support::cpuContext(3, level));
  }
  return contexts;
}

}  // namespace

TEST_CASE("accumulator: pieces, orders and merges give the same bytes in every pass") {
  if (support::kThreadSanitizer) SKIP_BECAUSE("its tables take minutes; others have threads");
  const std::vector<Context> contexts = cpuContexts();
  for (const Kind& kind : kKinds) {
    // With a sanitizer each takes five seconds: one dtype each of 16, 32 and 64 bits is enough, or
    // one of them in a share.
    const bool chosen = &kind == kKinds + 2 || (support::testShare().parts == 1 &&
                                                (&kind == kKinds + 1 || &kind == kKinds + 3));
    if (chosen || !support::kSanitized) checkPasses(contexts, kind, 0);
  }
}

TEST_CASE("accumulator: any number of bits in the first pass") {
  if (support::kThreadSanitizer) SKIP_BECAUSE("its tables take minutes; others have threads");
  const std::vector<Context> contexts = cpuContexts();
  if (!support::kSanitized) {
    for (const Kind& kind : {kKinds[0], kKinds[2], kKinds[3], kKinds[9]}) {
      checkPasses(contexts, kind, 11);
    }
  }
  checkPasses(contexts, kKinds[2], 8);
  if (support::kSanitized && support::testShare().parts > 1) return;
  checkPasses(contexts, kKinds[3], 20);  // 8 MiB per channel
}

TEST_CASE("accumulator: CUDA and the CPU in one merge") {
  std::string why;
  std::vector<Context> contexts;
  contexts.push_back(support::cudaContext(&why));
  if (contexts[0] == nullptr) SKIP_BECAUSE(why);
  contexts.push_back(support::cpuContext(2));
  for (const Kind& kind : kKinds) checkPasses(contexts, kind, 0);
}

TEST_CASE("accumulator: after the first pass quantiles are close, and other results are exact") {
  const Context context = support::cpuContext(2);
  for (const Kind& kind : kKinds) {
    CAPTURE(support::nameOf(kind.dtype));
    const auto elements = randomElements(kind.dtype, 700, 5);
    const Accumulator accumulator = makeAccumulator(context, 2, {0.0, 1.0, 100.0 / 699});
    require(support::update(context, accumulator, samplesOf(kind.dtype, elements, 0, 700)));
    const auto result = resultOf(accumulator);
    const bool wide =
        kind.dtype.bits == 64 || (kind.dtype.bits == 32 && !support::isFloat(kind.dtype));
    for (size_t c = 0; c < 2; ++c) {
      const auto exact = exactOf(kind.dtype, elements, c);
      checkMoments(result, c, exact);
      CHECK(std::abs(result.quantiles[0 + c] - exact.sorted().front()) <=
            std::abs(exact.sorted().front()) * (wide ? 0x1p-4 : 0x1p-7));
      CHECK(std::abs(result.quantiles[2 + c] - exact.sorted().back()) <=
            std::abs(exact.sorted().back()) * (wide ? 0x1p-4 : 0x1p-7));
    }
  }
}

TEST_CASE("accumulator: results do not depend on the rounding mode of the calling thread") {
  const Context context = support::cpuContext(1);
  const std::vector<double> levels = {0.1, 0.3, 0.7};
  for (const rbcDType dtype : {support::kF32, support::kF64, support::kI16}) {
    const std::vector<uint64_t> elements = randomElements(dtype, 60, 9);
    const auto everything = [&](int mode) {
      const support::OddFloats odd(mode);
      const Accumulator first = makeAccumulator(context, 2, levels);
      const Accumulator second = makeAccumulator(context, 2, levels);
      require(support::update(context, first, samplesOf(dtype, elements, 0, 20)));
      require(support::update(context, second, samplesOf(dtype, elements, 20, 60)));
      require(rbcAccumulatorMerge(first.get(), second.get()));
      support::AccumulatorResult all = resultOf(first);
      nextPass(first);
      CHECK(odd.still());
      std::vector<double> numbers = all.quantiles;
      for (const auto* values : {&all.min, &all.max, &all.mean, &all.std}) {
        numbers.insert(numbers.end(), values->begin(), values->end());
      }
      Bytes bytes = exported(first);
      for (const double number : numbers) {
        const uint64_t bits = support::bitsOf(number);
        for (int shift = 0; shift < 64; shift += 8)
          bytes.push_back(static_cast<uint8_t>(bits >> shift));
      }
      return bytes;
    };
    const Bytes expected = everything(FE_TONEAREST);
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      CHECK_MESSAGE(everything(mode) == expected, support::nameOf(dtype), " mode ", mode);
    }
  }
}

TEST_CASE("accumulator: 2^40 samples by merging, and no more") {
  const Context context = support::cpuContext(1);
  const Accumulator accumulator = makeAccumulator(context, 1, {});
  const std::vector<double> values = {0.1, 3e200, -7.25e-170, 1e16};
  Array array(support::kF64, {4, 1});
  size_t next = 0;
  array.each([&](std::byte* p) { std::memcpy(p, &values[next++], sizeof(double)); });
  require(support::update(context, accumulator, array));
  for (int64_t samples = 4; samples < int64_t{1} << 40; samples *= 2) {
    const Accumulator same = imported(context, exported(accumulator));
    CHECK_SUCCEEDS(rbcAccumulatorMerge(accumulator.get(), same.get()));
  }
  const auto result = resultOf(accumulator);
  CHECK(result.count[0] == int64_t{1} << 40);
  const support::ExactStatistics exact(values);  // the mean and std of the four values
  CHECK(exact.isMean(support::bitsOf(result.mean[0])));
  CHECK(exact.isStd(support::bitsOf(result.std[0]), 0));

  const Bytes before = exported(accumulator);
  const Accumulator one = makeAccumulator(context, 1, {});
  require(support::update(context, one, array));
  CHECK_FAILS(rbcAccumulatorMerge(accumulator.get(), one.get()), RBC_STATUS_UNSUPPORTED,
              "other: 4 samples", "more than 2^40");
  CHECK_FAILS(support::update(context, accumulator, array), RBC_STATUS_UNSUPPORTED,
              "values: 4 samples", "more than 2^40");
  CHECK(exported(accumulator) == before);
}

TEST_CASE("accumulator: lengths, offsets and masks") {
  const Context context = support::cpuContext(2);
  const auto elements = randomElements(support::kF32, 60, 8);
  const Array packed = samplesOf(support::kF32, elements, 0, 60);
  const Array padded = support::arrayOf(support::kF32, {3, 20, 2}, elements);
  const Array offsets = support::arrayOf(support::kI64, {4}, {0, 20, 25, 50});
  const Array lengths = support::arrayOf(support::kI32, {3}, {20, 5, 0});
  std::vector<uint64_t> on(60, 1);
  for (size_t i = 25; i < 60; ++i) on[i] = 0;
  const Array mask = support::arrayOf(support::kU8, {3, 20}, on);
  const rbcTensor packed_tensor = packed.tensor();
  const rbcTensor padded_tensor = padded.tensor();
  const rbcTensor offsets_tensor = offsets.tensor();
  const rbcTensor lengths_tensor = lengths.tensor();
  const rbcTensor mask_tensor = mask.tensor();

  const auto run = [&](const rbcTensor* values, const rbcAccumulatorUpdateParams& params) {
    const Accumulator accumulator = makeAccumulator(context, 2, kLevels);
    size_t bytes = 0;
    CHECK_SUCCEEDS(rbcAccumulatorUpdateWorkspaceSize(accumulator.get(), values, &params, &bytes));
    CHECK_SUCCEEDS(rbcAccumulatorUpdate(accumulator.get(), values, &params));
    return exported(accumulator);
  };
  const auto plain = [&](std::vector<std::pair<size_t, size_t>> ranges) {
    const Accumulator accumulator = makeAccumulator(context, 2, kLevels);
    for (const auto& [begin, end] : ranges) {
      require(
          support::update(context, accumulator, samplesOf(support::kF32, elements, begin, end)));
    }
    return exported(accumulator);
  };
  rbcAccumulatorUpdateParams params = rbcAccumulatorUpdateParamsInit();
  params.batch_offsets = &offsets_tensor;
  CHECK(run(&packed_tensor, params) == plain({{0, 50}}));
  params = rbcAccumulatorUpdateParamsInit();
  params.lengths = &lengths_tensor;
  CHECK(run(&padded_tensor, params) == plain({{0, 25}}));
  params.lengths = nullptr;
  params.sample_mask = &mask_tensor;
  CHECK(run(&padded_tensor, params) == plain({{0, 25}}));
}

TEST_CASE("accumulator: its context may be destroyed first") {
  // The accumulator still uses memory of the context, which a sanitizer checks.
  Context context = support::cpuContext(1);
  const Accumulator accumulator = makeAccumulator(context, 2, kLevels);
  require(support::update(context, accumulator, samplesOf(support::kF32, {0, 0, 0, 0}, 0, 2)));
  context.reset();
}

TEST_CASE("accumulator: keeps its context's resources after the context is destroyed") {
  std::vector<float> numbers = {1, 2, 6};
  int64_t shape[] = {3, 1};
  const rbcTensor values = {
      numbers.data(), support::kHostDevice, 2, support::kF32, shape, nullptr, 0};
  rbcContextParams cpu = rbcContextParamsInit();
  cpu.backend = RBC_BACKEND_CPU;
  rbcContext_t context = nullptr;
  CHECK_SUCCEEDS(rbcContextCreate(&cpu, &context));
  rbcAccumulatorParams params = rbcAccumulatorParamsInit();
  params.num_channels = 1;
  rbcAccumulator_t made = nullptr;
  CHECK_SUCCEEDS(rbcAccumulatorCreate(context, &params, &made));
  const Accumulator accumulator(made);
  CHECK_SUCCEEDS(rbcContextDestroy(context));
  CHECK_SUCCEEDS(rbcAccumulatorUpdate(made, &values, nullptr));
  CHECK(resultOf(accumulator).mean[0] == 3);
}
