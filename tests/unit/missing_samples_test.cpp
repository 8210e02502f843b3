// rbcResample and rbcFuse with missing samples, on every backend: against the reference, which gets
// rows without them, and properties that must hold as if the caller had removed them.
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "support/missing_cases.h"
#include "support/operation_tests.h"
#include "valid_samples.h"

namespace {

using support::Context;
using support::FuseCase;
using support::Random;
using support::ResampleCase;
using support::ResampleInputs;

// A share that keeps some samples.
double anyShare(uint64_t seed) { return Random(seed + 3000017).uniform(0.01, 0.9); }

struct Resample {
  static constexpr uint64_t kRandomCases = 400;
  static constexpr uint64_t kSameBits = 100;
  static std::vector<ResampleCase> table() { return support::missingCases(); }
  static ResampleCase random(uint64_t seed) {
    ResampleCase c = support::randomResampleCase(seed + 50000);
    if (c.missing == 0) c.missing = anyShare(seed);
    return c;
  }
  static ResampleCase any(uint64_t seed) { return random(seed); }
};

struct Fuse {
  static constexpr uint64_t kRandomCases = 200;
  static constexpr uint64_t kSameBits = 60;
  static std::vector<FuseCase> table() { return support::missingFuseCases(); }
  static FuseCase random(uint64_t seed) {
    FuseCase c = support::randomFuseCase(seed + 50000);
    for (size_t n = 0; n < c.streams.size(); n += 2) {
      if (c.streams[n].missing == 0) c.streams[n].missing = anyShare(seed + n);
    }
    return c;
  }
  static FuseCase any(uint64_t seed) { return random(seed); }
};

}  // namespace

OPERATION_TESTS("missing samples", Resample)
OPERATION_TESTS("missing samples of streams", Fuse)

TEST_CASE("missing samples: a valid without zeros changes nothing") {
  const Context context = support::cpuContext(2);
  for (const ResampleCase& c : support::randomResampleCases(9000, 200)) {
    ResampleCase masked = c;
    masked.missing = 1e-300;
    const ResampleInputs in = support::makeInputs(masked);
    ResampleInputs without = support::makeInputs(masked);
    without.sample_mask = support::Array();
    REQUIRE(support::run(context, in).output == support::run(context, without).output);
  }
}

TEST_CASE("reference: a sample that should or should not be missing is found") {
  const Context context = support::cpuContext(1);
  int found = 0;
  for (const ResampleCase& c : support::randomResampleCases(9500, 200)) {
    ResampleCase masked = c;
    masked.missing = 0.3;
    if (c.samples < 5 || c.queries < 5 || c.channels < 1 || c.batch < 1) continue;
    const ResampleInputs in = support::makeInputs(masked);
    ResampleInputs without = support::makeInputs(masked);
    without.sample_mask = support::Array();
    found += support::firstError(in, support::run(context, without).output) != "" ? 1 : 0;
  }
  CHECK(found > 50);
}

// ---- skipping missing samples -------------------------------------------------------------------

TEST_CASE("valid samples: the next one up and down, for any begin and stride of a row") {
  Random random(91);
  for (int round = 0; round < 4000; ++round) {
    const int64_t n = random.below(round % 10 == 0 ? 300 : 90);
    const int64_t strides[] = {1, 1, 1, 2, 3, 0, -1};
    const int64_t stride = random.pick(strides);
    const auto lead = static_cast<size_t>(random.below(9));
    const double missing = random.chance(0.1) ? 1 : random.uniform(0.5, 1);
    std::vector<uint8_t> bytes(lead + static_cast<size_t>(3 * n + 1), 0);
    for (uint8_t& byte : bytes) {
      if (!random.chance(missing)) byte = static_cast<uint8_t>(1 + random.below(255));
    }
    const uint8_t* first = bytes.data() + lead + (stride < 0 ? n : 0);
    const rbc::ValidSamples<int64_t> valid = {first, stride};
    const rbc::ValidSamples<int32_t> few = {first, static_cast<int32_t>(stride)};
    for (int64_t i = 0; i < n; ++i) {
      int64_t up = i;
      while (up < n && first[up * stride] == 0) ++up;
      int64_t down = i;
      while (down >= 0 && first[down * stride] == 0) --down;
      REQUIRE(valid.from(i, n) == up);
      REQUIRE(valid.upTo(i) == down);
      REQUIRE(few.from(static_cast<int32_t>(i), static_cast<int32_t>(n)) == up);
      REQUIRE(few.upTo(static_cast<int32_t>(i)) == down);
    }
    CHECK(valid.from(n, n) == n);
    CHECK(valid.upTo(-1) == -1);
  }
}

TEST_CASE("valid samples: nothing outside of the row is read") {
  for (const auto flush : {support::Flush::kBegin, support::Flush::kEnd}) {
    for (int64_t n = 1; n < 140; ++n) {
      support::GuardedMemory memory(static_cast<size_t>(n), flush);
      std::memset(memory.data(), 0, memory.bytes());
      const rbc::ValidSamples<int64_t> valid = {reinterpret_cast<uint8_t*>(memory.data()), 1};
      for (int64_t i = 0; i < n; ++i) {
        CHECK(valid.from(i, n) == n);
        CHECK(valid.upTo(i) == -1);
      }
      CHECK(rbc::trimmed(valid, n).count == 0);
    }
  }
}

TEST_CASE("valid samples: a row is cut to the first and the last") {
  const uint8_t mask[] = {0, 0, 7, 0, 1, 0};
  const rbc::ValidSamples<int64_t> valid = {mask, 1};
  const auto part = rbc::trimmed(valid, int64_t{6});
  CHECK(part.begin == 2);
  CHECK(part.count == 3);
  CHECK(rbc::neighboursOf(valid.shifted(2), int64_t{3}, int64_t{0}).right == 2);
  CHECK(rbc::trimmed(valid, int64_t{2}).count == 0);
}

TEST_CASE("missing samples cpu: a run as long as a recording") {
  ResampleCase c;
  c.batch = 1;
  c.samples = 1 << 18;
  c.queries = 200;
  c.channels = 1;
  c.missing = 1;
  ResampleInputs in = support::makeInputs(c);
  support::Array mask(support::kBool, {1, c.samples});
  mask.each([](std::byte* p) { *p = std::byte{0}; });
  mask.set({0, 0}, 1);
  mask.set({0, c.samples - 1}, 1);
  in.sample_mask = std::move(mask);
  in.c.missing = 0.5;
  CHECK(support::isRight(support::cpuContext(2), in));
}
