// Tests the search, and the rules on hand-written rows of times.
#include "locate.h"

#include <cmath>
#include <limits>
#include <vector>

#include "interpolate.h"
#include "support/cases.h"
#include "support/expect.h"

namespace {

// A row of times that counts reads and refuses reads outside.
template <class Time>
struct WatchedRow {
  const std::vector<Time>* times;
  mutable int64_t reads = 0;
  mutable int64_t strays = 0;

  Time operator[](int64_t i) const {
    ++reads;
    if (i < 0 || i >= static_cast<int64_t>(times->size())) {
      ++strays;
      return Time{};
    }
    return (*times)[static_cast<size_t>(i)];
  }
};

template <class Time>
rbc::Rules<Time> rules(rbc::Method method, rbc::Outside outside = rbc::Outside::kHold) {
  return {method, outside, false, false, {}, {}};
}

template <class Time>
rbc::SamplePosition<Time, int64_t> position(const std::vector<Time>& times, Time q,
                                            const rbc::Rules<Time>& r, int64_t guess = -1) {
  const WatchedRow<Time> row{&times};
  const auto result = rbc::positionOf(row, static_cast<int64_t>(times.size()), q, r, &guess);
  CHECK(row.strays == 0);
  CHECK(guess >= -1);
  return result;
}

template <class Time>
bool isTap(const rbc::SamplePosition<Time, int64_t>& t, int64_t index, double weight, bool mask) {
  return t.index == index && t.weight == static_cast<typename rbc::TimeMath<Time>::Ratio>(weight) &&
         t.mask == mask;
}

using rbc::Method;
using rbc::Outside;

}  // namespace

TEST_CASE_TEMPLATE("locate: the search agrees with std::upper_bound from any guess", Time, float,
                   double, int64_t) {
  support::Random random(11);
  int wrong = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<Time> times;
    const int64_t n = 1 + random.below(round < 100 ? 4 : 60);
    Time t = static_cast<Time>(random.below(10));
    for (int64_t i = 0; i < n; ++i) {
      times.push_back(t);
      t += static_cast<Time>(random.below(3));
    }
    for (int i = 0; i < 12; ++i) {
      const Time q = static_cast<Time>(random.below(static_cast<int64_t>(t) + 3) - 1);
      const auto last = std::upper_bound(times.begin(), times.end(), q) - times.begin() - 1;
      const auto last_less = std::lower_bound(times.begin(), times.end(), q) - times.begin() - 1;
      for (int64_t guess = 0; guess < n; ++guess) {
        const WatchedRow<Time> row{&times};
        wrong += rbc::lastBefore<true>(row, n, q, guess) == last ? 0 : 1;
        wrong += rbc::lastBefore<false>(row, n, q, guess) == last_less ? 0 : 1;
        if (q >= times.front() && q <= times.back()) {
          int64_t found = guess;
          rbc::positionOf(row, n, q, rules<Time>(rbc::Method::kLinear), &found);
          auto found_narrow = static_cast<int32_t>(guess);
          rbc::positionOf(row, static_cast<int32_t>(n), q, rules<Time>(rbc::Method::kLinear),
                          &found_narrow);
          wrong += found == last && found_narrow == last ? 0 : 1;
        }
        wrong += row.strays == 0 ? 0 : 1;
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("locate: a search costs a logarithm, and next to a good guess almost nothing") {
  std::vector<double> times;
  for (int i = 0; i < 100000; ++i) times.push_back(i);
  for (const int64_t guess : {0, 1, 50000, 99999}) {
    const WatchedRow<double> row{&times};
    CHECK(rbc::lastBefore<true>(row, int64_t{100000}, 77777.5, guess) == 77777);
    CHECK(row.reads <= 40);
  }
  const WatchedRow<double> row{&times};
  CHECK(rbc::lastBefore<true>(row, 100000, 77777.5, 77776) == 77777);
  CHECK(row.reads <= 4);
}

TEST_CASE_TEMPLATE("locate: for any times, no read is outside and the search ends", Time, float,
                   double) {
  support::Random random(7);
  const Time odd[] = {std::numeric_limits<Time>::quiet_NaN(),
                      std::numeric_limits<Time>::infinity(),
                      -std::numeric_limits<Time>::infinity(),
                      0,
                      1,
                      std::numeric_limits<Time>::max(),
                      std::numeric_limits<Time>::lowest(),
                      std::numeric_limits<Time>::denorm_min()};
  int wrong = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<Time> times;
    const int64_t n = 1 + random.below(40);
    for (int64_t i = 0; i < n; ++i) {
      times.push_back(random.chance(0.3) ? random.pick(odd)
                                         : static_cast<Time>(random.uniform(-9, 9)));
    }
    const Time q = random.chance(0.3) ? random.pick(odd) : static_cast<Time>(random.uniform(-9, 9));
    auto r = rules<Time>(static_cast<Method>(random.below(rbc::kMethods)));
    if (r.method == Method::kLinear) r.outside = static_cast<Outside>(random.below(3));
    r.has_tolerance = rbc::isStep(r.method) && random.chance(0.3);
    r.has_max_gap = random.chance(0.3);
    r.tolerance = r.max_gap = 1;
    int64_t guess = random.below(n + 20) - 10;
    const WatchedRow<Time> row{&times};
    const auto t = rbc::positionOf(row, n, q, r, &guess);
    wrong += row.strays == 0 && row.reads < 100 ? 0 : 1;
    // The samples that a kernel reads next: `index`, and its neighbour if there is a weight.
    const int64_t reach = t.weight == 0 ? t.index : t.index + 1;
    wrong += t.index >= -1 && reach < n ? 0 : 1;
    // And the times next to them.
    if (t.index < 0) continue;
    rbc::weightsOf(r.method, row, n, t);
    wrong += row.strays == 0 ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("locate: unsorted ticks cause no read outside and no overflow") {
  support::Random random(8);
  int wrong = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<int64_t> times;
    const int64_t n = 1 + random.below(40);
    for (int64_t i = 0; i < n; ++i) times.push_back(static_cast<int64_t>(random.bits()));
    auto r = rules<int64_t>(static_cast<Method>(random.below(rbc::kMethods)));
    if (r.method == Method::kLinear) r.outside = static_cast<Outside>(random.below(3));
    int64_t guess = random.below(n + 20) - 10;
    const WatchedRow<int64_t> row{&times};
    const auto t = rbc::positionOf(row, n, static_cast<int64_t>(random.bits()), r, &guess);
    wrong += row.strays == 0 && (t.weight == 0 ? t.index : t.index + 1) < n ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("locate: of equal times the last one is found, and the first is the right neighbour") {
  const std::vector<float> times = {0, 1, 1, 1, 3};
  CHECK(isTap(position(times, 1.0f, rules<float>(Method::kLinear)), 3, 0, true));
  CHECK(isTap(position(times, 0.5f, rules<float>(Method::kLinear)), 0, 0.5, true));
  CHECK(isTap(position(times, 0.5f, rules<float>(Method::kNext)), 1, 0, true));
  CHECK(isTap(position(times, 2.0f, rules<float>(Method::kLinear)), 3, 0.5, true));
  CHECK(isTap(position(times, 2.0f, rules<float>(Method::kPrevious)), 3, 0, true));
  CHECK(isTap(position(std::vector<float>{5, 5, 5}, 5.0f, rules<float>(Method::kPrevious)), 2, 0,
              true));
}

TEST_CASE_TEMPLATE("locate: the line without branches equals the line", Time, float, double,
                   int64_t) {
  support::Random random(12);
  const auto linear = rules<Time>(Method::kLinear);
  int wrong = 0;
  for (int round = 0; round < 20000; ++round) {
    // Also equal and descending times, and a bracket that ends the row.
    const auto any = [&] { return static_cast<Time>(random.below(6) - 3); };
    const int64_t n = 1 + random.below(4);
    const rbc::Bracket<Time, int64_t> bracket = {random.below(n), any(), any()};
    const Time q = any();
    const auto expected = rbc::positionIn(bracket, n, q, linear);
    const auto got = rbc::positionOnLine(bracket, n, q);
    const bool same_weight = got.weight == expected.weight ||
                             (got.weight != got.weight && expected.weight != expected.weight);
    wrong += got.index == expected.index && got.mask == expected.mask && same_weight ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("locate: a tie goes to the earlier sample") {
  const std::vector<int64_t> ticks = {10, 20, 31};
  CHECK(isTap(position(ticks, int64_t{15}, rules<int64_t>(Method::kNearest)), 0, 0, true));
  CHECK(isTap(position(ticks, int64_t{16}, rules<int64_t>(Method::kNearest)), 1, 0, true));
  CHECK(isTap(position(ticks, int64_t{25}, rules<int64_t>(Method::kNearest)), 1, 0, true));
  CHECK(isTap(position(ticks, int64_t{26}, rules<int64_t>(Method::kNearest)), 2, 0, true));
}

TEST_CASE("locate: ticks subtract exactly over the whole range of 64 bits") {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const std::vector<int64_t> ends = {kLeast, kMost};
  CHECK(isTap(position(ends, int64_t{0}, rules<int64_t>(Method::kLinear)), 0, 0.5, true));
  CHECK(isTap(position(ends, int64_t{-1}, rules<int64_t>(Method::kNearest)), 0, 0, true));
  CHECK(isTap(position(ends, int64_t{0}, rules<int64_t>(Method::kNearest)), 1, 0, true));
  // One tick at an epoch of nanoseconds, which f64 could not represent.
  const std::vector<int64_t> epoch = {1700000000000000000, 1700000000000000003};
  CHECK(isTap(position(epoch, int64_t{1700000000000000001}, rules<int64_t>(Method::kLinear)), 0,
              1.0 / 3, true));
}

// If no sample is missing.
template <class Row>
rbc::Intervals intervalsAt(const Row& row, int64_t n, int64_t i) {
  return rbc::intervalsAt(row, n, i, rbc::neighboursOf(rbc::AllSamples{}, n, i));
}

TEST_CASE("locate: the intervals next to a bracket end with the row, and at equal times") {
  const std::vector<float> times = {0, 1, 3, 3, 4, 8};
  const WatchedRow<float> row{&times};
  const auto are = [&](int64_t i, double before, double here, double after) {
    const rbc::Intervals t = intervalsAt(row, int64_t{6}, i);
    return t.before == before && t.here == here && t.after == after;
  };
  CHECK(are(0, 0, 1, 2));
  CHECK(are(1, 1, 2, 0));
  CHECK(are(3, 0, 1, 4));
  CHECK(are(4, 1, 4, 0));
  CHECK(row.strays == 0);
  const std::vector<int64_t> ticks = {std::numeric_limits<int64_t>::min(), 0,
                                      std::numeric_limits<int64_t>::max()};
  const WatchedRow<int64_t> wide{&ticks};
  CHECK(intervalsAt(wide, int64_t{3}, int64_t{0}).here == 0x1p63);
  CHECK(intervalsAt(wide, int64_t{3}, int64_t{0}).after == 0x1p63);
}

TEST_CASE("locate: infinite times and queries have an answer") {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::vector<double> times = {0, 1};
  CHECK(isTap(position(times, kInf, rules<double>(Method::kLinear)), 1, 0, false));
  CHECK(isTap(position(times, -kInf, rules<double>(Method::kLinear)), 0, 0, false));
  CHECK(position(times, kInf, rules<double>(Method::kLinear, Outside::kFill)).index == -1);
  CHECK(position(times, std::nan(""), rules<double>(Method::kNearest)).index == -1);
  const std::vector<double> open = {-kInf, 0, kInf};
  CHECK(isTap(position(open, kInf, rules<double>(Method::kLinear)), 2, 0, true));
  CHECK(isTap(position(open, 5.0, rules<double>(Method::kPrevious)), 1, 0, true));
  CHECK(isTap(position(open, -5.0, rules<double>(Method::kNext)), 1, 0, true));
}

TEST_CASE("interpolate: a line rounds once, and its infinite ends follow numpy.interp") {
  const float kNaN = std::numeric_limits<float>::quiet_NaN();
  const float kInf = std::numeric_limits<float>::infinity();
  CHECK(std::isnan(rbc::lerp(3.0f, kNaN, 0.5f)));
  CHECK(std::isnan(rbc::lerp(kNaN, kInf, 0.5f)));
  CHECK(rbc::lerp(3.0f, kInf, 0.5f) == kInf);
  CHECK(rbc::lerp(kInf, 3.0f, 0.5f) == kInf);
  CHECK(rbc::lerp(kInf, kInf, 0.5f) == kInf);
  CHECK(std::isnan(rbc::lerp(-kInf, kInf, 0.5f)));
  // Finite ends whose difference overflows.
  const float kMost = std::numeric_limits<float>::max();
  CHECK(rbc::lerp(-kMost, kMost, 0.5f) == 0.0f);
  CHECK(rbc::lerp(kMost, -kMost, 0.5f) == 0.0f);
  CHECK(rbc::lerp(kMost, -kMost, 0.25f) == std::fma(0.25f, -kMost, 0.75f * kMost));
  // The rounded product would be 1 and lose the last bit.
  const double w = 1 + 0x1p-52;
  CHECK(rbc::lerp(-1.0, w - 1, w) == std::fma(w, w, -1.0));
}
