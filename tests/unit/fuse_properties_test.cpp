// Checks that rbcFuse and rbcResample agree, and properties that hold for any streams, groups and
// clocks.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "support/check_cases.h"

namespace {

using support::Array;
using support::Context;
using support::copyOf;
using support::FuseCase;
using support::FuseInputs;
using support::Output;
using support::Random;
using support::ResampleCase;
using support::ResampleInputs;
using support::Run;
using support::StreamCase;
using support::StreamInputs;

StreamInputs copyOf(const StreamInputs& in) {
  return {copyOf(in.values), copyOf(in.times), copyOf(in.lengths),     copyOf(in.offsets),
          copyOf(in.shift),  copyOf(in.scale), copyOf(in.sample_mask), copyOf(in.arrivals)};
}

// One stream of a fusion as a call of rbcResample; it must have no clock offset.
ResampleInputs alone(const FuseInputs& in, size_t n) {
  ResampleInputs one;
  static_cast<support::SharedCase&>(one.c) = in.c;
  static_cast<StreamCase&>(one.c) = in.c.streams[n];
  one.c.out_layout = one.c.mask_layout = support::Layout::kContiguous;
  static_cast<StreamInputs&>(one) = copyOf(in.streams[n]);
  one.query_times = copyOf(in.query_times);
  one.query_lengths = copyOf(in.query_lengths);
  return one;
}

// The columns [begin, begin + count) of rows of `width`.
std::vector<uint64_t> columns(const std::vector<uint64_t>& rows, int64_t width, int64_t begin,
                              int64_t count) {
  std::vector<uint64_t> some;
  for (auto row = rows.begin(); row != rows.end() && width > 0; row += width)
    some.insert(some.end(), row + begin, row + begin + count);
  return some;
}

std::vector<FuseCase> anyCases(uint64_t first, uint64_t count, bool offsets) {
  std::vector<FuseCase> cases = support::randomFuseCases(first, count);
  for (const FuseCase& c : support::fuseCases()) cases.push_back(c);
  for (FuseCase& c : cases) {
    for (StreamCase& stream : c.streams) {
      if (!offsets) stream.clock_offset = 0, stream.clock_offset_ticks = 0;
    }
  }
  return support::shareOf(cases);
}

Output outputOf(const Context& context, const FuseInputs& in) {
  const Run result = support::run(context, in);
  REQUIRE_MESSAGE(result.status == RBC_STATUS_SUCCESS, result.message, " in ",
                  support::describe(in.c));
  return result.output;
}

Output outputOf(const Context& context, const ResampleInputs& in) {
  const Run result = support::run(context, in);
  REQUIRE_MESSAGE(result.status == RBC_STATUS_SUCCESS, result.message, " in ",
                  support::describe(in.c));
  return result.output;
}

// Checks that each stream of a fusion equals rbcResample.
void checkAgainstResample(const Context& context, const std::vector<FuseCase>& cases) {
  for (const FuseCase& c : cases) {
    const FuseInputs in = support::makeFuseInputs(c);
    const Output fused = outputOf(context, in);
    const auto N = static_cast<int64_t>(c.streams.size());
    int64_t begin = 0;
    for (int64_t n = 0; n < N; ++n) {
      const int64_t channels = c.streams[static_cast<size_t>(n)].channels;
      const Output own = outputOf(context, alone(in, static_cast<size_t>(n)));
      REQUIRE_MESSAGE(columns(fused.out, c.channels(), begin, channels) == own.out, "stream ", n,
                      " of ", support::describe(c));
      if (c.mask)
        REQUIRE_MESSAGE(columns(fused.mask, N, n, 1) == own.mask, "stream ", n, " of ",
                        support::describe(c));
      begin += channels;
    }
  }
}

}  // namespace

TEST_CASE("fuse cpu: every stream equals a resampling of that stream, to the bit") {
  checkAgainstResample(support::cpuContext(2), anyCases(5000, 150, false));
}

TEST_CASE("fuse cuda: every stream equals a resampling of that stream, to the bit") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  checkAgainstResample(cuda, anyCases(5000, 60, false));
}

TEST_CASE("fuse cpu: streams in another order are columns in another order") {
  const Context context = support::cpuContext(2);
  Random random(61);
  for (const FuseCase& c : anyCases(5500, 150, true)) {
    const FuseInputs in = support::makeFuseInputs(c);
    std::vector<size_t> order(c.streams.size());
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    FuseInputs turned;
    turned.c = c;
    turned.query_times = copyOf(in.query_times);
    turned.query_lengths = copyOf(in.query_lengths);
    for (size_t i = 0; i < order.size(); ++i) {
      turned.c.streams[i] = c.streams[order[i]];
      turned.streams.push_back(copyOf(in.streams[order[i]]));
    }
    const Output before = outputOf(context, in);
    const Output after = outputOf(context, turned);
    const auto N = static_cast<int64_t>(order.size());
    int64_t begin = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      int64_t from = 0;
      for (size_t n = 0; n < order[i]; ++n) from += c.streams[n].channels;
      const int64_t channels = c.streams[order[i]].channels;
      REQUIRE_MESSAGE(columns(after.out, c.channels(), begin, channels) ==
                          columns(before.out, c.channels(), from, channels),
                      support::describe(c));
      if (c.mask) {
        REQUIRE_MESSAGE(columns(after.mask, N, static_cast<int64_t>(i), 1) ==
                            columns(before.mask, N, static_cast<int64_t>(order[i]), 1),
                        support::describe(c));
      }
      begin += channels;
    }
  }
}

TEST_CASE("fuse cpu: valid is 0 where only fill is written, and 1 where no fill is") {
  const Context context = support::cpuContext(2);
  constexpr double kFill = -12345;  // no value is near it
  int64_t invalid = 0;
  int64_t valid = 0;
  for (FuseCase& c : anyCases(6000, 150, true)) {
    c.mask = true;
    for (StreamCase& stream : c.streams) {
      stream.fill_value = kFill;
      stream.outside = RBC_OUTSIDE_FILL;
      stream.shift = stream.scale = false;
      if (!support::isFloat(stream.values)) stream.values = support::kBool;
    }
    const FuseInputs in = support::makeFuseInputs(c);
    const Output output = outputOf(context, in);
    const uint64_t fill = support::encode(c.out, kFill);
    const auto N = static_cast<int64_t>(c.streams.size());
    int64_t begin = 0;
    for (int64_t n = 0; n < N; ++n) {
      const int64_t channels = c.streams[static_cast<size_t>(n)].channels;
      for (int64_t row = 0; row < c.batch * c.queries && channels > 0; ++row) {
        const auto first = output.out.begin() + row * c.channels() + begin;
        const bool filled =
            std::any_of(first, first + channels, [&](uint64_t x) { return x == fill; });
        const bool mask = output.mask[static_cast<size_t>(row * N + n)] != 0;
        REQUIRE_MESSAGE(mask == !filled, "row ", row, " stream ", n, " of ", support::describe(c));
        (filled ? invalid : valid) += 1;
      }
      begin += channels;
    }
  }
  CHECK(invalid > 1000);  // a share of the cases has some as well
  CHECK(valid > 1000);
}

TEST_CASE("fuse cpu: a clock offset equals shifted times") {
  const Context context = support::cpuContext(2);
  for (FuseCase& c : anyCases(6500, 150, false)) {
    if (!support::same(c.times, support::kI64)) continue;
    FuseInputs in = support::makeFuseInputs(c);
    // Samples later by an offset in ticks, with unchanged queries.
    std::vector<Array> shifted;
    for (size_t n = 0; n < in.streams.size(); ++n) {
      const int64_t offset = static_cast<int64_t>(n + 1) * 3333333 - 7000000;
      in.c.streams[n].clock_offset_ticks = offset;
      shifted.push_back(copyOf(in.streams[n].times));
      shifted.back().each([&](std::byte* p) {
        uint64_t t = 0;
        std::memcpy(&t, p, sizeof t);
        t += static_cast<uint64_t>(offset);
        std::memcpy(p, &t, sizeof t);
      });
    }
    // Samples beyond a row's length have no order in either.
    const Output expected = outputOf(context, in);
    for (size_t n = 0; n < in.streams.size(); ++n) {
      in.c.streams[n].clock_offset_ticks = 0;
      in.streams[n].times = std::move(shifted[n]);
    }
    REQUIRE_MESSAGE(outputOf(context, in) == expected, support::describe(c));
  }
}

// ---- groups and the steps after them, through rbcResample ---------------------------------------

TEST_CASE("resample cpu: groups equal separate calls") {
  const Context context = support::cpuContext(2);
  int groups = 0;
  std::vector<ResampleCase> cases = support::methodCases();
  for (ResampleCase& c : support::randomResampleCases(7000, 300)) cases.push_back(std::move(c));
  for (const ResampleCase& c : cases) {
    if (c.groups.size() < 2) continue;
    const ResampleInputs in = support::makeInputs(c);
    const Output whole = outputOf(context, in);
    std::vector<uint64_t> mask(whole.mask.size(), 1);
    for (const rbcChannelGroup& group : c.groups) {
      ResampleInputs own;
      own.c = c;
      own.c.groups.clear();
      own.c.method = group.method;
      if (group.period != 0) own.c.setAngles(group.count, group.period);
      own.c.out_layout = support::Layout::kContiguous;
      // Limits that only apply to other groups.
      if (!support::isStep(group.method)) own.c.tolerance = support::kNone;
      if (group.method != RBC_METHOD_LINEAR && c.outside == RBC_OUTSIDE_EXTRAPOLATE)
        own.c.outside = RBC_OUTSIDE_HOLD;
      static_cast<StreamInputs&>(own) = copyOf(in);
      own.query_times = copyOf(in.query_times);
      own.query_lengths = copyOf(in.query_lengths);
      const auto cut = [&](Array& array) {
        if (array.ndim() == 0) return;
        std::vector<int64_t> shape = array.placement().shape;
        const int64_t width = shape.back();
        shape.back() = group.count;
        array = support::arrayOf(array.dtype(), shape,
                                 columns(array.elements(), width, group.begin, group.count));
      };
      cut(own.values);
      cut(own.shift);
      cut(own.scale);
      own.c.channels = group.count;
      const Output part = outputOf(context, own);
      REQUIRE_MESSAGE(columns(whole.out, c.channels, group.begin, group.count) == part.out,
                      "channels from ", group.begin, " of ", support::describe(c));
      for (size_t i = 0; i < mask.size(); ++i) mask[i] &= part.mask[i];
      ++groups;
    }
    REQUIRE_MESSAGE(whole.mask == mask, support::describe(c));
  }
  CHECK(groups > 400);
}

TEST_CASE("resample cpu: shift and scale are a subtraction and a multiplication afterwards") {
  const Context context = support::cpuContext(2);
  size_t elements = 0;
  for (const ResampleCase& base : support::randomResampleCases(7500, 300)) {
    ResampleCase c = base;
    // Without them the result is their input: in the compute type, f32 or f64.
    if (!support::same(c.values, support::kF64) && !support::same(c.values, support::kF32))
      continue;
    c.groups.clear();
    if (c.method == RBC_METHOD_SLERP) c.channels = c.channels / 4 * 4;
    if (!support::isStep(c.method)) c.tolerance = support::kNone;
    if (c.method != RBC_METHOD_LINEAR) c.outside = RBC_OUTSIDE_HOLD;
    c.out = c.values;
    c.shift = c.scale = c.mask = true;
    c.max_gap = support::kNone;
    c.no_rotations = 0;
    c.query_lengths = false;
    c.samples = std::max<int64_t>(c.samples, 2);
    if (c.lengths || c.packed || c.missing != 0 || c.specials || !std::isinf(c.tolerance) ||
        c.outside != RBC_OUTSIDE_HOLD)
      continue;  // nothing in the remaining cases is invalid
    ResampleInputs in = support::makeInputs(c);
    const Output normalized = outputOf(context, in);
    in.c.shift = in.c.scale = false;
    const Array shift = std::move(in.shift);
    const Array scale = std::move(in.scale);
    in.shift = Array();
    in.scale = Array();
    const Output plain = outputOf(context, in);
    CHECK(plain.mask == normalized.mask);
    int wrong = 0;
    for (size_t i = 0; i < plain.out.size(); ++i) {
      const auto d = static_cast<int64_t>(i) % c.channels;
      const long double v = support::decodeFloat(c.out, plain.out[i]);
      const long double m = support::decodeFloat(c.affine, shift.get({d}));
      const long double s = support::decodeFloat(c.affine, scale.get({d}));
      const long double expected =
          support::same(c.out, support::kF32)
              ? (static_cast<float>(v) - static_cast<float>(m)) * static_cast<float>(s)
              : (static_cast<double>(v) - static_cast<double>(m)) * static_cast<double>(s);
      wrong += support::encodeFloat(c.out, expected) == normalized.out[i] ? 0 : 1;
    }
    REQUIRE_MESSAGE(wrong == 0, support::describe(c));
    elements += plain.out.size();
  }
  CHECK(elements > 10000);
}
