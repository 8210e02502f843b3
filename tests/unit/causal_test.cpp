// rbcResample and rbcFuse with arrivals and RBC_FLAG_CAUSAL, on every backend: against the
// reference, which gets the samples that exist for each query.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrivals.h"
#include "locate.h"
#include "support/causal_cases.h"
#include "support/operation_tests.h"

namespace {

using support::Context;
using support::FuseCase;
using support::Random;
using support::ResampleCase;
using support::ResampleInputs;

struct Resample {
  static constexpr uint64_t kRandomCases = 600;
  static constexpr uint64_t kSameBits = 150;
  static std::vector<ResampleCase> table() { return support::causalCases(); }
  static ResampleCase random(uint64_t seed) { return support::randomCausalCase(seed); }
  static ResampleCase any(uint64_t seed) { return random(seed); }
};

struct Fuse {
  static constexpr uint64_t kRandomCases = 300;
  static constexpr uint64_t kSameBits = 80;
  static std::vector<FuseCase> table() { return support::causalFuseCases(); }
  static FuseCase random(uint64_t seed) { return support::randomCausalFuseCase(seed); }
  static FuseCase any(uint64_t seed) { return random(seed); }
};

}  // namespace

OPERATION_TESTS("causal", Resample)
OPERATION_TESTS("causal streams", Fuse)

TEST_CASE("reference: a sample that should or should not have arrived is found") {
  const Context context = support::cpuContext(1);
  int found = 0;
  for (uint64_t seed = 9700; seed < 9900; ++seed) {
    ResampleCase c = support::randomCausalCase(seed);
    if (!c.arrivals || c.samples < 5 || c.queries < 5 || c.channels < 1 || c.batch < 1) continue;
    const ResampleInputs in = support::makeInputs(c);
    ResampleInputs without = support::makeInputs(c);
    without.arrivals = support::Array();
    found += support::firstError(in, support::run(context, without).output) != "" ? 1 : 0;
  }
  CHECK(found > 50);
}

TEST_CASE("causal: arrivals that are not after any query change nothing") {
  const Context context = support::cpuContext(2);
  for (ResampleCase c : support::randomResampleCases(9900, 150)) {
    c.specials = false;  // nothing arrives before a query at -inf
    ResampleInputs early = support::makeInputs(c);
    support::Array arrivals(c.times, {early.values.extent(early.values.ndim() - 2)});
    const uint64_t least = support::same(c.times, support::kI64)
                               ? static_cast<uint64_t>(INT64_MIN)
                               : support::encodeFloat(c.times, -1e30);
    for (int64_t i = 0; i < arrivals.extent(0); ++i) arrivals.set({i}, least);
    early.arrivals = std::move(arrivals);
    const ResampleInputs none = support::makeInputs(c);
    REQUIRE(support::run(context, early).output == support::run(context, none).output);
  }
}

// ---- skipping samples that had not arrived ------------------------------------------------------

TEST_CASE("arrived samples: the next one up and down, with and without minima") {
  Random random(92);
  for (int round = 0; round < 300; ++round) {
    const int64_t line = 1 + random.below(round % 20 == 0 ? 30000 : 700);
    const double late = random.chance(0.2) ? 1 : random.uniform(0.5, 1);
    std::vector<double> arrivals(static_cast<size_t>(line));
    std::vector<uint8_t> mask(static_cast<size_t>(line));
    for (int64_t i = 0; i < line; ++i) {
      const auto at = static_cast<size_t>(i);
      const double nan = std::numeric_limits<double>::quiet_NaN();
      arrivals[at] = random.chance(0.02) ? nan : random.chance(late) ? 2 : 0;
      mask[at] = random.chance(0.8) ? 1 : 0;
    }
    // The minima as the searches read them: by level, one block after the other.
    std::vector<double> minima;
    std::vector<double> below = arrivals;
    do {
      std::vector<double> level((below.size() + 63) / 64, 9);
      for (size_t i = 0; i < below.size(); ++i) {
        if (below[i] < level[i / 64]) level[i / 64] = below[i];
      }
      minima.insert(minima.end(), level.begin(), level.end());
      below = level;
    } while (below.size() > 1);
    REQUIRE(rbc::arrivalMinimaOf(line) == static_cast<int64_t>(minima.size()));
    const int64_t begin = random.below(line);
    const int64_t n = 1 + random.below(line - begin);
    for (const bool quick : {false, true}) {
      const rbc::ArrivedSamples<double, int64_t> samples = {
          {mask.data() + begin, 1},
          reinterpret_cast<const char*>(arrivals.data() + begin),
          sizeof(double),
          1,
          begin,
          {quick ? minima.data() : nullptr, line}};
      const auto exists = [&](int64_t i) {
        const auto at = static_cast<size_t>(begin + i);
        return mask[at] != 0 && arrivals[at] <= 1;
      };
      for (int probe = 0; probe < 40; ++probe) {
        const int64_t i = random.below(n);
        int64_t up = i;
        while (up < n && !exists(up)) ++up;
        int64_t down = i;
        while (down >= 0 && !exists(down)) --down;
        REQUIRE(samples.from(i, n) == up);
        REQUIRE(samples.upTo(i) == down);
        REQUIRE(samples.shifted(i).from(0, n - i) == up - i);
        REQUIRE(samples.shifted(i).upTo(0) == (exists(i) ? 0 : -1));
      }
      CHECK(samples.from(n, n) == n);
      CHECK(samples.upTo(-1) == -1);
    }
  }
}

TEST_CASE("first samples: the next one up and down, with and without a mask") {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    const int64_t n = 1 + random.below(90);
    std::vector<uint8_t> mask(static_cast<size_t>(n));
    for (uint8_t& each : mask) each = random.chance(0.7) ? 1 : 0;
    std::vector<double> arrivals(static_cast<size_t>(n));
    double arrival = 0;
    for (double& each : arrivals) each = arrival += static_cast<double>(random.below(3));
    for (size_t i = 0; i < arrivals.size(); ++i) {
      if (mask[i] == 0) arrivals[i] = static_cast<double>(random.below(200));  // does not count
    }
    const double until = static_cast<double>(random.below(2 * n + 1)) - 1;
    const auto check = [&](const auto& valid, const auto& counts) {
      const rbc::LastArrivals<double, std::decay_t<decltype(valid)>> row = {{arrivals.data(), 1},
                                                                            valid};
      const int64_t guess = random.below(n);
      const int64_t count = 1 + rbc::lastBefore<true>(row, n, until, guess);
      const rbc::FirstSamples<std::decay_t<decltype(valid)>, int64_t> samples = {valid, count};
      const auto exists = [&](int64_t i) {
        return counts(i) && arrivals[static_cast<size_t>(i)] <= until;
      };
      for (int64_t i = 0; i < n; ++i) {
        int64_t up = i;
        while (up < n && !exists(up)) ++up;
        int64_t down = i;
        while (down >= 0 && !exists(down)) --down;
        REQUIRE(samples.counts(i) == exists(i));
        REQUIRE(samples.from(i, n) == up);
        REQUIRE(samples.upTo(i) == down);
        REQUIRE(samples.shifted(i).from(0, n - i) == up - i);
        REQUIRE(samples.shifted(i).upTo(0) == (exists(i) ? 0 : -1));
      }
      CHECK(samples.from(n, n) == n);
      CHECK(samples.upTo(-1) == -1);
    };
    check(rbc::ValidSamples<int64_t>{mask.data(), 1},
          [&](int64_t i) { return mask[static_cast<size_t>(i)] != 0; });
    std::sort(arrivals.begin(), arrivals.end());
    check(rbc::AllSamples{}, [](int64_t) { return true; });
  }
}

TEST_CASE("causal cpu: of a long recording that arrives after all queries, one sample exists") {
  ResampleCase c;
  c.batch = 1;
  c.samples = 1 << 18;
  c.queries = 20000;
  c.channels = 1;
  c.arrivals = true;
  c.setCausal(c.times, support::kNone);
  ResampleInputs in = support::makeInputs(c);
  support::Array arrivals(c.times, {c.samples});
  for (int64_t i = 0; i < c.samples; ++i) arrivals.set({i}, support::encodeFloat(c.times, 1e9));
  arrivals.set({0}, 0);
  in.arrivals = std::move(arrivals);
  const support::Run result = support::run(support::cpuContext(2), in);
  REQUIRE(result.status == RBC_STATUS_SUCCESS);
  const uint64_t first = in.values.get({0, 0, 0});
  for (const uint64_t bits : result.output.out) CHECK((bits == first || bits == 0));
}
