// The rules of resample.h on rows short enough to compute by hand.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <utility>
#include <vector>

#include "robocache/robocache.hpp"
#include "support/expect.h"
#include "support/run.h"

namespace {

using robocache::Method;
using robocache::Outside;
using robocache::ResampleOptions;
using robocache::Tensor;

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();
constexpr double kFill = -1;
// The methods for a single channel.
constexpr Method kMethods[] = {Method::kLinear, Method::kNearest, Method::kPrevious, Method::kNext,
                               Method::kCubic,  Method::kPchip,   Method::kAngle};

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
  stream << "valid ";
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
  options.valid = Tensor(mask.data(), {count});
  robocache::resample(context, {values.data(), {n, 1}}, {times.data(), {n}},
                      {queries.data(), {count}}, {out.data(), {count, 1}}, options);
  robocache::resample(context, {narrow.data(), {n, 1}}, {times.data(), {n}},
                      {queries.data(), {count}}, {narrow_out.data(), {count, 1}}, options);
  const Result result = {out, {mask.begin(), mask.end()}};
  // Those numbers are exact in both, except for curves.
  const bool curve = options.method == Method::kCubic || options.method == Method::kPchip ||
                     options.method == Method::kAngle;
  if (!curve) CHECK(result == Result{{narrow_out.begin(), narrow_out.end()}, result.mask});
  for (size_t i = 0; i < out.size() && curve; ++i)
    CHECK(narrow_out[i] == doctest::Approx(out[i]).epsilon(1e-6));
  return result;
}

ResampleOptions with(Method method, Outside outside = Outside::kHold) {
  ResampleOptions options;
  options.method = method;
  options.outside = outside;
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
  CHECK(resampled(kTimes, queries, with(Method::kLinear, Outside::kFill)) ==
        Result{{kFill, kFill, 10, 50}, {0, 0, 1, 1}});
  CHECK(resampled(kTimes, queries, with(Method::kLinear, Outside::kExtrapolate)) ==
        Result{{0, 55, 10, 50}, {0, 0, 1, 1}});
  for (const Method method : kMethods) {
    CHECK(resampled(kTimes, queries, with(method)) == Result{{10, 50, 10, 50}, {0, 0, 1, 1}});
    CHECK(resampled(kTimes, queries, with(method, Outside::kFill)) ==
          Result{{kFill, kFill, 10, 50}, {0, 0, 1, 1}});
  }
}

TEST_CASE("rules: extrapolation takes the two outermost distinct times") {
  const auto extrapolate = with(Method::kLinear, Outside::kExtrapolate);
  CHECK(resampled<double>({0, 0, 1, 3, 3}, {-1, 4}, extrapolate) == Result{{10, 45}, {0, 0}});
  CHECK(resampled<double>({2, 2, 2}, {1, 3, 2}, extrapolate) ==
        Result{{kFill, kFill, 30}, {0, 0, 1}});
  CHECK(resampled<double>({2}, {1, 3, 2}, extrapolate) == Result{{kFill, kFill, 10}, {0, 0, 1}});
  CHECK(resampled<int64_t>({100, 110}, {90, 125}, extrapolate) == Result{{0, 35}, {0, 0}});
}

TEST_CASE("rules: one sample and none") {
  CHECK(resampled<double>({2}, {1, 2, 3}) == Result{{10, 10, 10}, {0, 1, 0}});
  for (const Method method : kMethods) {
    CHECK(resampled<double>({2}, {1, 2, 3}, with(method)) == Result{{10, 10, 10}, {0, 1, 0}});
    CHECK(resampled<double>({}, {1, 2}, with(method)) == Result{{kFill, kFill}, {0, 0}});
  }
  CHECK(resampled<double>({}, {1}, with(Method::kLinear, Outside::kExtrapolate)) ==
        Result{{kFill}, {0}});
}

TEST_CASE("rules: tolerance also applies outside of the range, and only it decides") {
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
  // Neither outside nor max_gap affects it.
  ResampleOptions options = withTolerance(Method::kNearest, 0.5);
  options.max_gap = 0.1;
  options.outside = Outside::kFill;
  CHECK(resampled(times, {0.4, -0.4, 2.6}, options) == Result{{10, 10, 30}, {1, 1, 1}});
}

TEST_CASE("rules: a bracket longer than max_gap is invalid for every method, its ends are not") {
  const Times times = {0, 1, 3};
  for (const Method method : kMethods) {
    const Result at = resampled(times, {1, 1.001, 2, 3, 0.5}, withGap(method, 1));
    CHECK(at.mask == std::vector<int>{1, 0, 0, 1, 1});
    CHECK(at.out[0] == 20);
    CHECK(at.out[1] == kFill);
    CHECK(at.out[3] == 30);
  }
  CHECK(resampled(times, {2, 0.5}, withGap(Method::kLinear, 2)) == Result{{25, 15}, {1, 1}});
  CHECK(resampled(times, {2, 0.5, 1}, withGap(Method::kLinear, 0)) ==
        Result{{kFill, kFill, 20}, {0, 0, 1}});
  // It applies to brackets: held samples outside are kept.
  CHECK(resampled(times, {-5, 9}, withGap(Method::kLinear, 0)) == Result{{10, 30}, {0, 0}});
}

TEST_CASE("rules: neighbours of cubic and pchip end at a pair of equal times") {
  // The values climb by 10 per sample: by 10, 5, 10, a jump, 10 and 10 per unit of time.
  const Times times = {0, 1, 3, 4, 4, 5, 6};
  // Between 3 and 4 there is no sample after, between 4 and 5 none before.
  const Result cubic = resampled(times, {3.5, 4.5}, with(Method::kCubic));
  const Result before = resampled<double>({0, 1, 3, 4}, {3.5}, with(Method::kCubic));
  const Result after = resampled<double>({3, 3, 3, 3, 4, 5, 6}, {4.5}, with(Method::kCubic));
  CHECK(cubic.out[0] == before.out[0]);
  CHECK(cubic.out[1] == after.out[0]);
  // By hand: the parabola through (1,20), (3,30), (4,40) at 3.5.
  CHECK(before.out[0] == doctest::Approx(20 + 5 * 2.5 + 5.0 / 3 * 2.5 * 0.5));
  CHECK(after.out[0] == 55);
  const Result pchip = resampled(times, {3.5, 4.5}, with(Method::kPchip));
  CHECK(pchip.out[0] == resampled<double>({0, 1, 3, 4}, {3.5}, with(Method::kPchip)).out[0]);
  CHECK(pchip.out[1] == 55);
  // With only two pairs around it, both methods give a line.
  for (const Method method : {Method::kCubic, Method::kPchip}) {
    CHECK(resampled<double>({0, 1, 1, 2, 2, 9}, {1.25}, with(method)) == Result{{32.5}, {1}});
  }
}

TEST_CASE("rules: pchip and cubic by hand") {
  // Values 10 20 30 40 50 at times 0 1 3 4 6: slopes over the intervals 10 5 10 5.
  const Times times = {0, 1, 3, 4, 6};
  // pchip: at 1 (w1, w2) = (2*2+1, 2+2*1) give 9 / (5/10 + 4/5), at 3 9 / (4/5 + 5/10).
  const double pchip = 9 / 1.3;
  CHECK(resampled<double>(times, {2}, with(Method::kPchip)).out[0] ==
        doctest::Approx(25 + (pchip - pchip) * 2 / 8));
  CHECK(resampled<double>(times, {1.5}, with(Method::kPchip)).out[0] ==
        doctest::Approx(20 + 10 * 0.15625 + 2 * pchip * (0.140625 - 0.046875)).epsilon(1e-6));
  // cubic: at 1 the slope is (10*2 + 5*1) / 3, at 3 (5*1 + 10*2) / 3.
  const double cubic = 25.0 / 3;
  CHECK(resampled<double>(times, {1.5}, with(Method::kCubic)).out[0] ==
        doctest::Approx(20 + 10 * 0.15625 + 2 * cubic * (0.140625 - 0.046875)).epsilon(1e-6));
}

TEST_CASE("rules: each group of channels has its own method, and valid covers all of them") {
  const auto context = robocache::Context::cpu(1);
  // Four samples of a position, a quaternion and a gripper, with a gap before the last.
  const float values[] = {0, 1, 0, 0, 0, 5, 1, 0, 0, 2, 0, 6, 4, 0, 0, 3, 0, 7, 9, 0, 0, 0, 4, 8};
  const double times[] = {0, 1, 2, 5};
  const double queries[] = {0.5, 1.75, 3, 2, -1, 6};
  const auto run = [&](Outside outside, double tolerance) {
    float out[36];
    uint8_t mask[6];
    ResampleOptions options;
    options.groups = {robocache::channels(5, 1, Method::kPrevious),
                      robocache::channels(0, 1, Method::kLinear),
                      robocache::channels(1, 4, Method::kSlerp)};
    options.outside = outside;
    options.fill_value = kFill;
    options.max_gap = 2;
    options.tolerance = tolerance;
    options.valid = Tensor(mask, {6});
    robocache::resample(context, {values, {4, 6}}, {times, {4}}, {queries, {6}}, {out, {6, 6}},
                        options);
    return std::pair(std::vector<float>(out, out + 36), std::vector<int>(mask, mask + 6));
  };
  using Row = std::vector<float>;
  const auto row = [](const std::vector<float>& out, int k) {
    return Row(out.begin() + 6 * k, out.begin() + 6 * k + 6);
  };
  {
    const auto [out, mask] = run(Outside::kExtrapolate, 0.75);
    CHECK(mask == std::vector<int>{1, 1, 0, 1, 0, 0});
    const Row half = row(out, 0);  // half a turn of 90 degrees between two axes
    CHECK(half[0] == 0.5f);
    CHECK(half[1] == doctest::Approx(std::sqrt(0.5)));
    CHECK(half[2] == 0);
    CHECK(half[3] == doctest::Approx(std::sqrt(0.5)));
    CHECK(half[4] == 0);
    CHECK(half[5] == 5);
    const Row quarter = row(out, 1);
    CHECK(quarter[0] == 3.25f);
    CHECK(quarter[3] == doctest::Approx(1));
    CHECK(quarter[5] == 6);                                               // 0.75 away
    CHECK(row(out, 2) == Row{kFill, kFill, kFill, kFill, kFill, kFill});  // the gap; 1 away
    CHECK(row(out, 3) == Row{4, 0, 0, 3, 0, 7});
    CHECK(row(out, 4) == Row{-1, 1, 0, 0, 0, kFill});  // a line, the edge, no previous
    CHECK(row(out, 5)[0] == doctest::Approx(9 + 5.0 / 3));
    CHECK(row(out, 5)[4] == 4);
    CHECK(row(out, 5)[5] == kFill);
  }
  {
    // Only the tolerance decides: in the gap the gripper is valid, the pose is not.
    const auto [out, mask] = run(Outside::kFill, 1);
    CHECK(mask == std::vector<int>{1, 1, 0, 1, 0, 0});
    CHECK(row(out, 2) == Row{kFill, kFill, kFill, kFill, kFill, 7});
    CHECK(row(out, 5) == Row{kFill, kFill, kFill, kFill, kFill, 8});
  }
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
  for (const Outside outside : {Outside::kHold, Outside::kFill, Outside::kExtrapolate}) {
    const Result r = resampled(kTimes, {kNaN}, with(Method::kLinear, outside));
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

TEST_CASE("rules: a first sample at -inf, in a row long enough for vectors") {
  Times times = {-kInf};
  for (int i = 1; i < 40; ++i) times.push_back(i);
  for (const Method method : kMethods) {
    CHECK(resampled(times, {-kInf, 1, 38, 39}, with(method)) ==
          Result{{10, 20, 390, 400}, {1, 1, 1, 1}});
  }
}

// Their values are unspecified, but nothing outside the arrays is read or written: they are between
// inaccessible pages, at every SIMD level.
TEST_CASE("rules: unchecked times that are NaN or out of order do no harm") {
  for (const int32_t level : support::simdLevels()) {
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CPU;
    params.simd = level;
    const robocache::Context context(params);
    for (const int64_t n : {1, 2, 7, 8, 16, 17, 100}) {
      for (const support::Flush flush : {support::Flush::kBegin, support::Flush::kEnd}) {
        for (const int bad : {0, 1, 2}) {
          support::GuardedMemory times(sizeof(double) * static_cast<size_t>(n), flush);
          support::GuardedMemory values(sizeof(float) * static_cast<size_t>(n), flush);
          auto* time = reinterpret_cast<double*>(times.data());
          std::fill_n(reinterpret_cast<float*>(values.data()), n, 1.0f);
          for (int64_t i = 0; i < n; ++i) time[i] = bad == 2 ? -static_cast<double>(i) : i;
          if (bad < 2) time[bad * (n - 1)] = kNaN;
          Times queries = {kNaN, -kInf, kInf};
          for (int i = -3; i < 2 * n + 6; ++i) queries.push_back(i * 0.5);
          const auto count = static_cast<int64_t>(queries.size());
          std::vector<float> out(queries.size());
          for (const Method method : kMethods) {
            robocache::resample(context, {reinterpret_cast<float*>(values.data()), {n, 1}},
                                {time, {n}}, {queries.data(), {count}}, {out.data(), {count, 1}},
                                with(method));
          }
        }
      }
    }
  }
}

TEST_CASE("rules: times at which f32 would fail") {
  // Nanoseconds since the epoch, a millisecond apart: f32 would be off by two minutes.
  constexpr int64_t kEpoch = 1700000000000000000;
  constexpr int64_t kMs = 1000000;
  CHECK(resampled<int64_t>({kEpoch, kEpoch + kMs, kEpoch + 3 * kMs},
                           {kEpoch + kMs / 2, kEpoch + 2 * kMs, kEpoch + 3 * kMs}) ==
        Result{{15, 25, 30}, {1, 1, 1}});
  // One nanosecond apart: f64 cannot distinguish them either.
  CHECK(resampled<int64_t>({kEpoch, kEpoch + 1, kEpoch + 2}, {kEpoch, kEpoch + 1, kEpoch + 2}) ==
        Result{{10, 20, 30}, {1, 1, 1}});
  CHECK(resampled<double>({1.7e9, 1.7e9 + 0.0009765625}, {1.7e9 + 0.00048828125}) ==
        Result{{15}, {1}});
}

TEST_CASE("rules: NaN and infinite values propagate, and only from the samples in use") {
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
  CHECK(out[7] == inf);  // from the right: 5 - 0.5 (5 - inf)
  CHECK(out[8] == 5);
}

TEST_CASE("rules: a weight that rounds to 0 gives the sample before, for any other samples") {
  const auto context = robocache::Context::cpu(1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const double times[] = {-1, 0, 1, 2};
  const double query = 1e-60;  // 0 as a weight in f32
  for (int32_t method = RBC_METHOD_LINEAR; method <= RBC_METHOD_ANGLE; ++method) {
    if (support::isStep(method)) continue;
    const float values[] = {nan, nan, nan, nan, 3, 4, 5, 7, nan, nan, nan, nan, nan, nan, nan, nan};
    float out[4] = {};
    robocache::resample(context, {values, {4, 4}}, {times, {4}}, {&query, {1}}, {out, {1, 4}},
                        with(static_cast<Method>(method)));
    CHECK_MESSAGE(std::equal(out, out + 4, values + 4), support::methodName(method), ": ", out[0]);
  }
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
  options.valid = Tensor(mask, {2, 2});
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

TEST_CASE("rules: without channels valid is still written") {
  const auto context = robocache::Context::cpu(1);
  const float times[] = {0, 1};
  const float queries[] = {0.5, 2, -1};
  uint8_t mask[3] = {9, 9, 9};
  ResampleOptions options;
  options.valid = Tensor(mask, {3});
  float nothing = 0;
  robocache::resample(context, {&nothing, {2, 0}}, {times, {2}}, {queries, {3}}, {&nothing, {3, 0}},
                      options);
  CHECK(mask[0] == 1);
  CHECK(mask[1] == 0);
  CHECK(mask[2] == 0);
}
