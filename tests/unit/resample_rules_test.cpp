// The rules of resample.h on rows short enough to work out by hand.
#include <limits>
#include <ostream>

#include "robocache/robocache.hpp"
#include "support/expect.h"
#include "support/run.h"

namespace {

using robocache::Bounds;
using robocache::Method;
using robocache::ResampleOptions;
using robocache::Tensor;

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();
constexpr double kFill = -1;

struct Result {
  std::vector<double> out;
  std::vector<int> mask;
  bool operator==(const Result& other) const {
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i] != other.out[i] && !(std::isnan(out[i]) && std::isnan(other.out[i]))) return false;
    }
    return out.size() == other.out.size() && mask == other.mask;
  }
};

std::ostream& operator<<(std::ostream& stream, const Result& result) {
  for (const double x : result.out) stream << x << " ";
  stream << "mask ";
  for (const int m : result.mask) stream << m;
  return stream;
}

// One channel of values 10, 20, 30, ... at the given times, in two dtypes that must agree.
template <class Time>
Result resampled(const std::vector<Time>& times, const std::vector<Time>& queries,
                 ResampleOptions options = {}) {
  const auto context = robocache::Context::cpu(1);
  const auto n = static_cast<int64_t>(times.size());
  const auto count = static_cast<int64_t>(queries.size());
  options.fill_value = kFill;
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(10.0 * static_cast<double>(i + 1));
  const std::vector<float> narrow(values.begin(), values.end());
  std::vector<double> out(queries.size(), 999);
  std::vector<float> narrow_out(queries.size(), 999);
  std::vector<uint8_t> mask(queries.size(), 99);
  options.mask = Tensor(mask.data(), {count});
  robocache::resample(context, {values.data(), {n, 1}}, {times.data(), {n}},
                      {queries.data(), {count}}, {out.data(), {count, 1}}, options);
  robocache::resample(context, {narrow.data(), {n, 1}}, {times.data(), {n}},
                      {queries.data(), {count}}, {narrow_out.data(), {count, 1}}, options);
  const Result result = {out, {mask.begin(), mask.end()}};
  CHECK(result == Result{{narrow_out.begin(), narrow_out.end()}, result.mask});
  return result;
}

ResampleOptions with(Method method, Bounds bounds = Bounds::kHold) {
  ResampleOptions options;
  options.method = method;
  options.bounds = bounds;
  return options;
}

ResampleOptions withTolerance(Method method, double tolerance) {
  ResampleOptions options = with(method);
  options.tolerance = tolerance;
  return options;
}

ResampleOptions withGap(Method method, double max_gap) {
  ResampleOptions options = with(method);
  options.max_gap = max_gap;
  return options;
}

using Times = std::vector<double>;
const Times kTimes = {0, 1, 1, 2, 4};  // values 10 20 30 40 50

}  // namespace

TEST_CASE("rules: linear") {
  CHECK(resampled(kTimes, {0, 0.5, 1, 1.5, 2, 3, 4}) ==
        Result{{10, 15, 30, 35, 40, 45, 50}, {1, 1, 1, 1, 1, 1, 1}});
}

TEST_CASE("rules: nearest, previous and next") {
  const Times queries = {0, 0.25, 0.5, 0.75, 1, 1.5, 3, 3.5};
  const std::vector<int> all(queries.size(), 1);
  CHECK(resampled(kTimes, queries, with(Method::kNearest)) ==
        Result{{10, 10, 10, 20, 30, 30, 40, 50}, all});
  CHECK(resampled(kTimes, queries, with(Method::kPrevious)) ==
        Result{{10, 10, 10, 10, 30, 30, 40, 40}, all});
  CHECK(resampled(kTimes, queries, with(Method::kNext)) ==
        Result{{10, 20, 20, 20, 30, 40, 50, 50}, all});
}

TEST_CASE("rules: queries outside") {
  const Times queries = {-1, 5, 0, 4};
  CHECK(resampled(kTimes, queries) == Result{{10, 50, 10, 50}, {0, 0, 1, 1}});
  CHECK(resampled(kTimes, queries, with(Method::kLinear, Bounds::kFill)) ==
        Result{{kFill, kFill, 10, 50}, {0, 0, 1, 1}});
  CHECK(resampled(kTimes, queries, with(Method::kLinear, Bounds::kExtrapolate)) ==
        Result{{0, 55, 10, 50}, {0, 0, 1, 1}});
  for (const Method method : {Method::kNearest, Method::kPrevious, Method::kNext}) {
    CHECK(resampled(kTimes, queries, with(method)) == Result{{10, 50, 10, 50}, {0, 0, 1, 1}});
    CHECK(resampled(kTimes, queries, with(method, Bounds::kFill)) ==
          Result{{kFill, kFill, 10, 50}, {0, 0, 1, 1}});
  }
}

TEST_CASE("rules: extrapolation takes the two outermost distinct times") {
  const auto extrapolate = with(Method::kLinear, Bounds::kExtrapolate);
  CHECK(resampled<double>({0, 0, 1, 3, 3}, {-1, 4}, extrapolate) == Result{{10, 45}, {0, 0}});
  CHECK(resampled<double>({2, 2, 2}, {1, 3, 2}, extrapolate) ==
        Result{{kFill, kFill, 30}, {0, 0, 1}});
  CHECK(resampled<double>({2}, {1, 3, 2}, extrapolate) == Result{{kFill, kFill, 10}, {0, 0, 1}});
  CHECK(resampled<int64_t>({100, 110}, {90, 125}, extrapolate) == Result{{0, 35}, {0, 0}});
}

TEST_CASE("rules: one sample and none") {
  CHECK(resampled<double>({2}, {1, 2, 3}) == Result{{10, 10, 10}, {0, 1, 0}});
  for (const Method method :
       {Method::kLinear, Method::kNearest, Method::kPrevious, Method::kNext}) {
    CHECK(resampled<double>({}, {1, 2}, with(method)) == Result{{kFill, kFill}, {0, 0}});
  }
  CHECK(resampled<double>({}, {1}, with(Method::kLinear, Bounds::kExtrapolate)) ==
        Result{{kFill}, {0}});
}

TEST_CASE("rules: tolerance reaches outside the range too, and decides alone") {
  const Times times = {0, 1, 3};
  const Times queries = {-0.5, -0.25, 0.25, 0.5, 1.5, 2.75, 3.25, 3.5, 1};
  CHECK(resampled(times, queries, withTolerance(Method::kNearest, 0.25)) ==
        Result{{kFill, 10, 10, kFill, kFill, 30, 30, kFill, 20}, {0, 1, 1, 0, 0, 1, 1, 0, 1}});
  CHECK(
      resampled(times, queries, withTolerance(Method::kPrevious, 0.25)) ==
      Result{{kFill, kFill, 10, kFill, kFill, kFill, 30, kFill, 20}, {0, 0, 1, 0, 0, 0, 1, 0, 1}});
  CHECK(
      resampled(times, queries, withTolerance(Method::kNext, 0.25)) ==
      Result{{kFill, 10, kFill, kFill, kFill, 30, kFill, kFill, 20}, {0, 1, 0, 0, 0, 1, 0, 0, 1}});
  CHECK(resampled(times, {0, 0.001, 1}, withTolerance(Method::kNearest, 0)) ==
        Result{{10, kFill, 20}, {1, 0, 1}});
  // Neither bounds nor max_gap have a say beside it.
  ResampleOptions options = withTolerance(Method::kNearest, 0.5);
  options.max_gap = 0.1;
  options.bounds = Bounds::kFill;
  CHECK(resampled(times, {0.4, -0.4, 2.6}, options) == Result{{10, 10, 30}, {1, 1, 1}});
}

TEST_CASE("rules: a bracket longer than max_gap is invalid for every method, its ends are not") {
  const Times times = {0, 1, 3};
  for (const Method method :
       {Method::kLinear, Method::kNearest, Method::kPrevious, Method::kNext}) {
    const Result at = resampled(times, {1, 1.001, 2, 3, 0.5}, withGap(method, 1));
    CHECK(at.mask == std::vector<int>{1, 0, 0, 1, 1});
    CHECK(at.out[0] == 20);
    CHECK(at.out[1] == kFill);
    CHECK(at.out[3] == 30);
  }
  CHECK(resampled(times, {2, 0.5}, withGap(Method::kLinear, 2)) == Result{{25, 15}, {1, 1}});
  CHECK(resampled(times, {2, 0.5, 1}, withGap(Method::kLinear, 0)) ==
        Result{{kFill, kFill, 20}, {0, 0, 1}});
  // It concerns brackets: what is held outside stays.
  CHECK(resampled(times, {-5, 9}, withGap(Method::kLinear, 0)) == Result{{10, 30}, {0, 0}});
}

TEST_CASE("rules: limits are rounded to the dtype of times, for ticks down") {
  using Ticks = std::vector<int64_t>;
  CHECK(resampled(Ticks{0, 10, 26}, Ticks{5, 18}, withGap(Method::kLinear, 15.99)) ==
        Result{{15, kFill}, {1, 0}});
  CHECK(resampled(Ticks{0, 10, 26}, Ticks{5, 18}, withGap(Method::kLinear, 16)) ==
        Result{{15, 25}, {1, 1}});
  CHECK(resampled(Ticks{0, 10}, Ticks{3, 2}, withTolerance(Method::kPrevious, 2.9)).mask ==
        std::vector<int>{0, 1});
  CHECK(resampled(Ticks{0, 10}, Ticks{3}, withTolerance(Method::kPrevious, 1e30)).mask ==
        std::vector<int>{1});
  CHECK(resampled(Ticks{std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()},
                  Ticks{0}, withGap(Method::kLinear, 0x1p63))
            .mask == std::vector<int>{0});
  // 0.1 is not an f32: rounded to it, it equals the step of these times.
  CHECK(resampled(std::vector<float>{0, 0.1f}, {0.05f}, withGap(Method::kLinear, 0.1)).mask ==
        std::vector<int>{1});
  CHECK(resampled(std::vector<float>{0, 0.1f}, {0.1f - 0x1p-27f},
                  withTolerance(Method::kPrevious, 0.1))
            .mask == std::vector<int>{1});
}

TEST_CASE("rules: NaN and infinite queries") {
  for (const Bounds bounds : {Bounds::kHold, Bounds::kFill, Bounds::kExtrapolate}) {
    const Result r = resampled(kTimes, {kNaN}, with(Method::kLinear, bounds));
    CHECK(r == Result{{kFill}, {0}});
  }
  for (const Method method : {Method::kNearest, Method::kPrevious, Method::kNext}) {
    CHECK(resampled(kTimes, {kNaN, kInf, -kInf}, with(method)) ==
          Result{{kFill, 50, 10}, {0, 0, 0}});
    CHECK(resampled(kTimes, {kNaN, kInf, -kInf}, withTolerance(method, 1e9)) ==
          Result{{kFill, kFill, kFill}, {0, 0, 0}});
  }
  CHECK(resampled(kTimes, {kInf, -kInf}) == Result{{50, 10}, {0, 0}});
}

TEST_CASE("rules: times at which f32 would fail") {
  // Nanoseconds since the epoch, a millisecond apart: f32 could not tell them by two minutes.
  constexpr int64_t kEpoch = 1700000000000000000;
  constexpr int64_t kMs = 1000000;
  CHECK(resampled<int64_t>({kEpoch, kEpoch + kMs, kEpoch + 3 * kMs},
                           {kEpoch + kMs / 2, kEpoch + 2 * kMs, kEpoch + 3 * kMs}) ==
        Result{{15, 25, 30}, {1, 1, 1}});
  // One nanosecond apart: f64 could not tell them either.
  CHECK(resampled<int64_t>({kEpoch, kEpoch + 1, kEpoch + 2}, {kEpoch, kEpoch + 1, kEpoch + 2}) ==
        Result{{10, 20, 30}, {1, 1, 1}});
  CHECK(resampled<double>({1.7e9, 1.7e9 + 0.0009765625}, {1.7e9 + 0.00048828125}) ==
        Result{{15}, {1}});
}

TEST_CASE("rules: NaN and infinite values propagate, and only from the samples that count") {
  const auto context = robocache::Context::cpu(1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const float values[] = {1, nan, 3, inf, 5};
  const float times[] = {0, 1, 2, 3, 4};
  const float queries[] = {0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4};
  float out[9];
  robocache::resample(context, {values, {5, 1}}, {times, {5}}, {queries, {9}}, {out, {9, 1}});
  CHECK(out[0] == 1);
  for (const int i : {1, 2, 3}) {
    uint32_t bits = 0;
    std::memcpy(&bits, &out[i], 4);
    CHECK(bits == 0x7fffffff);
  }
  CHECK(out[4] == 3);
  CHECK(out[5] == inf);
  CHECK(out[6] == inf);
  CHECK(std::isnan(out[7]));  // inf + 0.5 (5 - inf)
  CHECK(out[8] == 5);
}

TEST_CASE("rules: ragged rows end where their lengths say") {
  const auto context = robocache::Context::cpu(1);
  const float values[] = {1, 2, 3, 4, 5, 6};
  const float times[] = {0, 1, 2, 0, 1, 2};
  const float queries[] = {0.5, 1.5, 0.5, 1.5};
  const int32_t lengths[] = {3, 2};
  const int64_t query_lengths[] = {1, 2};
  float out[4] = {};
  uint8_t mask[4] = {9, 9, 9, 9};
  ResampleOptions options;
  options.fill_value = kFill;
  options.lengths = Tensor(lengths, {2});
  options.query_lengths = Tensor(query_lengths, {2});
  options.mask = Tensor(mask, {2, 2});
  robocache::resample(context, {values, {2, 3, 1}}, {times, {2, 3}}, {queries, {2, 2}},
                      {out, {2, 2, 1}}, options);
  CHECK(out[0] == 1.5f);
  CHECK(out[1] == kFill);
  CHECK(out[2] == 4.5f);
  CHECK(out[3] == 5);  // beyond the row's last sample: held
  CHECK(mask[0] == 1);
  CHECK(mask[1] == 0);
  CHECK(mask[2] == 1);
  CHECK(mask[3] == 0);
}

TEST_CASE("rules: without channels the mask is still written") {
  const auto context = robocache::Context::cpu(1);
  const float times[] = {0, 1};
  const float queries[] = {0.5, 2, -1};
  uint8_t mask[3] = {9, 9, 9};
  ResampleOptions options;
  options.mask = Tensor(mask, {3});
  float nothing = 0;
  robocache::resample(context, {&nothing, {2, 0}}, {times, {2}}, {queries, {3}}, {&nothing, {3, 0}},
                      options);
  CHECK(mask[0] == 1);
  CHECK(mask[1] == 0);
  CHECK(mask[2] == 0);
}
