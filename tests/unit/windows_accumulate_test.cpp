// Windows into accumulators: the statistics cover the elements that the rule takes, offset by
// offset or together, in every pass.
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "support/operation_tests.h"
#include "support/random_windows.h"

namespace {

using support::Accumulator;
using support::Array;
using support::Bits;
using support::Context;
using support::kF32;
using support::kF64;
using support::RandomWindows;
using support::WindowCall;
using support::WindowResult;

bool inDouble(rbcDType dtype) { return !support::same(dtype, kF32) && dtype.bits >= 32; }

// The same call with outputs that are neither normalized nor neutral.
WindowCall plainOutputs(uint64_t seed, double fill_value) {
  WindowCall call = RandomWindows(seed).make(support::varietyOf(seed), true);
  for (WindowCall::Stream& s : call.streams) {
    if (s.values.ndim() == 0) continue;
    bool wide = inDouble(s.values.dtype());
    for (const rbcWindowsTransform& t : s.transforms) {
      if (t.kind == RBC_WINDOWS_TRANSFORM_COPY) continue;
      wide |= inDouble(call.streams[static_cast<size_t>(t.reference_stream_index)].values.dtype());
    }
    for (Array* array :
         {&s.shift, &s.scale, &s.bias, &s.low, &s.high, &s.neutral, &s.neutral_channels}) {
      *array = Array();
    }
    if (s.params.outside == RBC_OUTSIDE_NEUTRAL) s.params.outside = RBC_OUTSIDE_HOLD;
    s.params.fill_value = fill_value;
    s.out_dtype = wide ? kF64 : kF32;
    s.out_layout = support::Layout::kContiguous;
    s.has_out = s.has_valid = true;
    s.accumulates = 0;
  }
  return call;
}

// The elements [B,O] that a stream's accumulator takes.
std::vector<bool> counted(const WindowCall::Stream& s, int64_t windows, const Bits& valid,
                          const Bits& one, const Bits& other) {
  const auto offsets = static_cast<size_t>(s.num_offsets);
  const auto channels = static_cast<size_t>(s.out_channels);
  std::vector<bool> taken(static_cast<size_t>(windows) * offsets);
  for (size_t b = 0; b < static_cast<size_t>(windows); ++b) {
    bool whole = true;
    for (size_t o = 0; o < offsets; ++o) whole = whole && valid[b * offsets + o] != 0;
    for (size_t o = 0; o < offsets; ++o) {
      const size_t at = b * offsets + o;
      bool has_value = true;  // it does not depend on the fill value
      for (size_t d = at * channels; d < (at + 1) * channels; ++d) has_value &= one[d] == other[d];
      const bool by_rule[] = {true, valid[at] != 0, whole};
      taken[at] = has_value && by_rule[s.accumulate];
    }
  }
  return taken;
}

// The values of elements that are taken: at one offset, or at all of them.
Array samplesOf(const WindowCall::Stream& s, const std::vector<bool>& taken, const Bits& out,
                int64_t only) {
  std::vector<uint64_t> values;
  const auto channels = static_cast<size_t>(s.out_channels);
  int64_t count = 0;
  for (size_t at = 0; at < taken.size(); ++at) {
    const bool wanted = only < 0 || static_cast<int64_t>(at) % s.num_offsets == only;
    if (!taken[at] || !wanted) continue;
    const auto first = out.begin() + static_cast<std::ptrdiff_t>(at * channels);
    values.insert(values.end(), first, first + static_cast<std::ptrdiff_t>(channels));
    ++count;
  }
  return support::arrayOf(s.out_dtype, {count, s.out_channels}, values);
}

// The channels of offset i, at one level.
template <class T>
void checkPart(const std::vector<T>& all, const std::vector<T>& part, size_t i) {
  CHECK(std::memcmp(all.data() + i * part.size(), part.data(), part.size() * sizeof(T)) == 0);
}

// Compares with accumulators that get the elements themselves.
void check(const Context& context, uint64_t seed) {
  CAPTURE(seed);
  static const Context cpu = support::cpuContext(1);
  const WindowCall call = RandomWindows(seed).make(support::varietyOf(seed), true);
  const WindowCall plain = plainOutputs(seed, 7);
  const WindowResult one = support::resultOf(cpu, plain);
  const WindowResult other = support::resultOf(cpu, plainOutputs(seed, -7));
  REQUIRE_MESSAGE(one.status == RBC_STATUS_SUCCESS, one.message);

  support::PlacedWindows placed(context, call);
  struct Expected {
    const Accumulator* accumulator;
    std::vector<Array> samples;
    std::vector<Accumulator> accumulators;  // one, or one per offset
  };
  std::vector<Expected> all;
  size_t written = 0;
  for (size_t n = 0; n < call.streams.size(); ++n) {
    const WindowCall::Stream& s = plain.streams[n];
    const size_t valid = written;
    written += (s.has_valid ? 1 : 0) + (s.has_out ? 1 : 0);
    const int kind = call.streams[n].accumulates;
    if (kind == 0) continue;
    const Bits& out = one.written[valid + 1];
    const std::vector<bool> taken =
        counted(s, call.windows, one.written[valid], out, other.written[valid + 1]);
    Expected expected = {&placed.accumulators()[all.size()], {}, {}};
    for (int64_t o = kind == 1 ? -1 : 0; o < (kind == 1 ? 0 : s.num_offsets); ++o) {
      expected.samples.push_back(samplesOf(s, taken, out, o));
      expected.accumulators.push_back(support::makeAccumulator(cpu, s.out_channels, {0.5}, 8));
    }
    all.push_back(std::move(expected));
  }

  for (bool more = true; more;) {
    CHECK_SUCCEEDS(placed.call(context));
    more = false;
    for (Expected& expected : all) {
      int64_t samples = 0;
      for (size_t i = 0; i < expected.samples.size(); ++i) {
        support::require(support::update(cpu, expected.accumulators[i], expected.samples[i]));
        samples += expected.samples[i].extent(0);
      }
      // Passes of all streams advance together: a stream without passes left would refuse the next
      // call.
      if (all.size() > 1 || samples == 0) continue;
      more = support::nextPass(*expected.accumulator);
      for (size_t i = 0; i < expected.samples.size(); ++i) {
        if (expected.samples[i].extent(0) > 0) support::nextPass(expected.accumulators[i]);
      }
    }
  }
  for (const Expected& expected : all) {
    const support::AccumulatorResult got = support::resultOf(*expected.accumulator);
    CHECK(got.status == RBC_STATUS_SUCCESS);
    for (size_t i = 0; i < expected.accumulators.size(); ++i) {
      const support::AccumulatorResult part = support::resultOf(expected.accumulators[i]);
      checkPart(got.count, part.count, i);
      checkPart(got.nonfinite, part.nonfinite, i);
      checkPart(got.min, part.min, i);
      checkPart(got.max, part.max, i);
      checkPart(got.mean, part.mean, i);
      checkPart(got.std, part.std, i);
      checkPart(got.quantiles, part.quantiles, i);
    }
  }
}

void checkRandom(const Context& context, uint64_t first, uint64_t count) {
  const uint64_t end = first + support::randomShareOf(count);
  for (uint64_t seed = first; seed < end; ++seed) check(context, seed);
}

}  // namespace

TEST_CASE("windows accumulate: on the CPU, elements by every rule") {
  checkRandom(support::cpuContext(2), 0,
              support::kThreadSanitizer ? 2
              : support::kSanitized     ? 8
                                        : 24);
}

TEST_CASE("windows accumulate: on CUDA, elements by every rule") {
  WITH_CUDA(cuda);
  checkRandom(cuda, 500, 60);
}

// More windows than a block has room for, and a later block that ends early.
TEST_CASE("windows accumulate: block after block") {
  constexpr int64_t kRows = 1000;
  constexpr int64_t kWindows = 20'011;
  constexpr int64_t kOffsets = 50;
  constexpr int64_t kChannels = 3;
  const Context context = support::cpuContext(2);
  support::Random random(5);
  const Array values(kF32, {kRows, kChannels});
  values.each([&](std::byte* p) {
    const auto x = static_cast<float>(random.uniform(-1, 1));
    std::memcpy(p, &x, sizeof x);
  });
  const Array ends = support::arrayOf(support::kI64, {3}, {0, 400, kRows});
  std::vector<uint64_t> numbers;
  for (uint64_t o = 0; o < kOffsets; ++o) numbers.push_back(o);
  const Array offsets = support::arrayOf(support::kI64, {kOffsets}, numbers);
  std::vector<uint64_t> episode_of;
  std::vector<uint64_t> anchor_at;
  for (int64_t b = 0; b < kWindows; ++b) {
    episode_of.push_back(static_cast<uint64_t>(random.below(2)));
    anchor_at.push_back(static_cast<uint64_t>(random.below(400)));
  }
  const Array episodes = support::arrayOf(support::kI64, {kWindows}, episode_of);
  const Array anchors = support::arrayOf(support::kI64, {kWindows}, anchor_at);
  const Array out(kF32, {kWindows, kOffsets, kChannels});
  const rbcTensor tensors[] = {values.tensor(),   ends.tensor(),    offsets.tensor(),
                               episodes.tensor(), anchors.tensor(), out.tensor()};
  const rbcWindowsTransform transform = {
      0, kChannels, RBC_WINDOWS_TRANSFORM_SUBTRACT, 0, 0, 0, 0, 0, 0, 0, 0};
  const Accumulator together = support::makeAccumulator(context, kChannels, {});
  const Accumulator steps = support::makeAccumulator(context, kOffsets * kChannels, {});
  rbcWindowsStream stream = rbcWindowsStreamInit();
  stream.values = &tensors[0];
  stream.episode_offsets = &tensors[1];
  stream.offsets = &tensors[2];
  stream.transforms = &transform;
  stream.num_transforms = 1;
  rbcWindowsOutputs outputs = rbcWindowsOutputsInit();
  outputs.accumulator = together.get();
  const auto call = [&] {
    CHECK_SUCCEEDS(
        rbcWindows(context.get(), &stream, 1, &tensors[3], &tensors[4], &outputs, nullptr));
  };
  call();
  outputs.accumulator = steps.get();
  call();
  outputs.accumulator = nullptr;
  outputs.out = &tensors[5];
  call();

  const Accumulator expected_together = support::makeAccumulator(context, kChannels, {});
  const Accumulator expected_steps = support::makeAccumulator(context, kOffsets * kChannels, {});
  const Array as_elements =
      support::arrayOf(kF32, {kWindows * kOffsets, kChannels}, out.elements());
  const Array as_windows = support::arrayOf(kF32, {kWindows, kOffsets * kChannels}, out.elements());
  support::require(support::update(context, expected_together, as_elements));
  support::require(support::update(context, expected_steps, as_windows));
  CHECK(support::exported(together) == support::exported(expected_together));
  CHECK(support::exported(steps) == support::exported(expected_steps));
}
