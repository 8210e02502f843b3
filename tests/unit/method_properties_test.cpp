// The guaranteed properties of each interpolation method, through rbcResample at every SIMD level.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "robocache/robocache.hpp"
#include "support/expect.h"
#include "support/random.h"
#include "support/run.h"

namespace {

using robocache::Method;
using robocache::ResampleOptions;
using support::Random;

constexpr long double kPi = 3.141592653589793238462643383279502884L;
constexpr Method kMethods[] = {Method::kLinear, Method::kNearest, Method::kPrevious,
                               Method::kNext,   Method::kCubic,   Method::kPchip,
                               Method::kSlerp,  Method::kAngle};

std::vector<robocache::Context> contexts() {
  std::vector<robocache::Context> all;
  for (const int32_t level : support::simdLevels()) {
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CPU;
    params.simd = level;
    params.num_threads = 1;
    all.emplace_back(params);
  }
  return all;
}

std::vector<double> ascending(Random& random, int64_t n) {
  std::vector<double> times;
  double t = random.uniform(-1, 1);
  for (int64_t i = 0; i < n; ++i) times.push_back(t += random.uniform(0.05, 1));
  return times;
}

std::vector<double> within(Random& random, const std::vector<double>& times, int64_t count) {
  std::vector<double> queries;
  for (int64_t i = 0; i < count; ++i)
    queries.push_back(random.uniform(times.front(), times.back()));
  return queries;
}

// Rows of `channels` values at the queries.
template <class T>
std::vector<T> resampled(const robocache::Context& context, const std::vector<T>& values,
                         const std::vector<double>& times, const std::vector<double>& queries,
                         const ResampleOptions& options) {
  const auto n = static_cast<int64_t>(times.size());
  const auto count = static_cast<int64_t>(queries.size());
  const int64_t channels = static_cast<int64_t>(values.size()) / n;
  std::vector<T> out(static_cast<size_t>(count * channels), T(99));
  robocache::resample(context, {values.data(), {n, channels}}, {times.data(), {n}},
                      {queries.data(), {count}}, {out.data(), {count, channels}}, options);
  return out;
}

ResampleOptions by(Method method) {
  ResampleOptions options;
  options.method = method;
  return options;
}

// The largest distance from f(q), relative to the largest value.
template <class T>
long double worstOf(const std::vector<T>& out, const std::vector<double>& queries,
                    const std::function<long double(double, int64_t)>& f) {
  const int64_t channels = static_cast<int64_t>(out.size() / queries.size());
  long double worst = 0;
  for (size_t k = 0; k < queries.size(); ++k) {
    for (int64_t d = 0; d < channels; ++d) {
      const long double x = out[k * static_cast<size_t>(channels) + static_cast<size_t>(d)];
      worst = std::max(worst, std::fabs(x - f(queries[k], d)));
    }
  }
  return worst;
}

template <class T>
std::vector<T> sampled(const std::vector<double>& times, int64_t channels,
                       const std::function<long double(double, int64_t)>& f) {
  std::vector<T> values;
  for (const double t : times) {
    for (int64_t d = 0; d < channels; ++d) values.push_back(static_cast<T>(f(t, d)));
  }
  return values;
}

}  // namespace

TEST_CASE_TEMPLATE("methods: at the samples' times every method gives the samples, to the bit", T,
                   float, double) {
  Random random(51);
  for (const robocache::Context& context : contexts()) {
    for (const Method method : kMethods) {
      const std::vector<double> times = ascending(random, 60);
      std::vector<T> values(60 * 20);
      for (T& v : values) v = static_cast<T>(random.uniform(-9, 9));
      std::vector<double> queries = times;
      CHECK(resampled(context, values, times, queries, by(method)) == values);
      std::reverse(queries.begin(), queries.end());
      std::vector<T> reversed;
      for (size_t i = 60; i-- > 0;)
        reversed.insert(reversed.end(), values.begin() + static_cast<int64_t>(i) * 20,
                        values.begin() + static_cast<int64_t>(i + 1) * 20);
      CHECK(resampled(context, values, times, queries, by(method)) == reversed);
    }
  }
}

TEST_CASE_TEMPLATE("methods: linear, cubic and pchip reproduce lines, cubic parabolas too", T,
                   float, double) {
  Random random(52);
  const long double unit = std::numeric_limits<T>::epsilon();
  const auto line = [](double t, int64_t d) {
    return 0.75L * static_cast<long double>(t) * (d - 4) + d;
  };
  const auto parabola = [](double t, int64_t d) {
    const long double x = static_cast<long double>(t) / 20;
    return (d + 1) * x * x - d * x + 0.5L;
  };
  for (const robocache::Context& context : contexts()) {
    for (const int64_t n : {2, 3, 4, 50}) {
      const std::vector<double> times = ascending(random, n);
      const std::vector<double> queries = within(random, times, 300);
      const std::vector<T> on_line = sampled<T>(times, 9, line);
      for (const Method method : {Method::kLinear, Method::kCubic, Method::kPchip}) {
        const auto out = resampled(context, on_line, times, queries, by(method));
        // Values up to 150, neighbours 0.05 to 1 apart: their rounding is multiplied by about 20.
        CHECK(worstOf(out, queries, line) <= 20 * 150 * unit);
      }
      if (n < 3) continue;
      const auto out =
          resampled(context, sampled<T>(times, 9, parabola), times, queries, by(Method::kCubic));
      CHECK(worstOf(out, queries, parabola) <= 20 * 60 * unit);
    }
  }
}

TEST_CASE_TEMPLATE("methods: pchip is monotone where the samples are, and never overshoots", T,
                   float, double) {
  Random random(53);
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (const robocache::Context& context : contexts()) {
    for (int round = 0; round < 20; ++round) {
      const int64_t n = 2 + random.below(20);
      const bool rising = round % 2 == 0;
      const std::vector<double> times = ascending(random, n);
      std::vector<double> queries = within(random, times, 2000);
      std::sort(queries.begin(), queries.end());
      std::vector<T> values;
      T v = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double size = std::pow(10, random.uniform(-6, 2));
        const double sign = rising ? 1 : random.uniform(-1, 1);
        values.push_back(v += static_cast<T>(random.chance(0.2) ? 0 : sign * size));
      }
      const std::vector<T> out = resampled(context, values, times, queries, by(Method::kPchip));
      int outside = 0;
      int falling = 0;
      size_t i = 0;
      for (size_t k = 0; k < queries.size(); ++k) {
        while (i + 2 < times.size() && times[i + 1] <= queries[k]) ++i;
        const T low = std::nextafter(std::min(values[i], values[i + 1]), -kInfinity);
        const T high = std::nextafter(std::max(values[i], values[i + 1]), kInfinity);
        outside += out[k] < low || out[k] > high;
        // Between queries that are almost equal, rounding may step back slightly.
        const T slack = 4 * std::numeric_limits<T>::epsilon() * std::fabs(values[i + 1]);
        if (rising && k > 0) falling += out[k] < out[k - 1] - slack;
      }
      CHECK(outside == 0);
      CHECK(falling == 0);
    }
  }
}

TEST_CASE("methods: a query in a flat piece of pchip gives the sample, for any neighbours") {
  const double nan = std::nan("");
  for (const robocache::Context& context : contexts()) {
    const std::vector<double> values = {nan, 5, 5, -1e300};
    CHECK(resampled<double>(context, values, {0, 1, 2, 3}, {1.25}, by(Method::kPchip))[0] == 5);
  }
}

// ---- slerp --------------------------------------------------------------------------------------

namespace {

struct Quaternion {
  long double x[4];
};

// A rotation of `angle` about an axis.
Quaternion rotation(const long double (&axis)[3], long double angle) {
  const long double s = std::sin(angle / 2);
  return {{std::cos(angle / 2), s * axis[0], s * axis[1], s * axis[2]}};
}

// The distance of two rotations, for either sign: 0 .. 2.
template <class T>
long double distance(const T* got, const Quaternion& expected) {
  long double same = 0;
  long double opposite = 0;
  for (int i = 0; i < 4; ++i) {
    same += (got[i] - expected.x[i]) * (got[i] - expected.x[i]);
    opposite += (got[i] + expected.x[i]) * (got[i] + expected.x[i]);
  }
  return std::sqrt(std::min(same, opposite));
}

}  // namespace

TEST_CASE_TEMPLATE("methods: slerp follows a rotation at constant speed, for any signs", T, float,
                   double) {
  Random random(54);
  const long double unit = std::numeric_limits<T>::epsilon();
  constexpr long double kAxis[3] = {0.48L, -0.6L, 0.64L};
  for (const robocache::Context& context : contexts()) {
    // Turns between samples: the largest possible, small ones, and tiny ones.
    for (const long double speed : {3.0L, 1.0L, 1e-2L, 1e-4L, 1e-7L, 1e-12L, 0.0L}) {
      for (const bool normalized : {true, false}) {
        std::vector<double> times;
        std::vector<T> values;
        for (int i = 0; i < 40; ++i) {
          times.push_back(i);
          const double sign = random.chance(0.5) ? -1 : 1;
          const double scale = normalized ? 1 : random.uniform(0.1, 10);
          for (const long double x : rotation(kAxis, speed * i).x)
            values.push_back(static_cast<T>(sign * scale * x));
        }
        const std::vector<double> queries = within(random, times, 400);
        const std::vector<T> out = resampled(context, values, times, queries, by(Method::kSlerp));
        long double worst = 0;
        long double norm = 0;
        bool follows = true;
        for (size_t k = 0; k < queries.size(); ++k) {
          const T* got = &out[4 * k];
          worst = std::max(worst, distance(got, rotation(kAxis, speed * queries[k])));
          long double square = 0;
          long double dot = 0;  // with the previous sample
          for (int i = 0; i < 4; ++i) {
            square += static_cast<long double>(got[i]) * got[i];
            dot += got[i] * values[4 * static_cast<size_t>(queries[k]) + static_cast<size_t>(i)];
          }
          norm = std::max(norm, std::fabs(square - 1));
          follows = follows && dot > 0;
        }
        // The samples themselves are rounded, each component by half a unit.
        CHECK(worst <= 6 * unit);
        CHECK(norm <= 8 * unit);
        CHECK(follows);
      }
    }
  }
}

TEST_CASE_TEMPLATE("methods: slerp of opposite quaternions is constant", T, float, double) {
  const auto unit = static_cast<double>(std::numeric_limits<T>::epsilon());
  for (const robocache::Context& context : contexts()) {
    const std::vector<T> values = {T(0.5),  T(-0.5), T(0.5),  T(0.5),
                                   T(-0.5), T(0.5),  T(-0.5), T(-0.5)};
    const std::vector<double> queries = {0.1, 0.5, 0.9};
    const std::vector<T> out = resampled<T>(context, values, {0, 1}, queries, by(Method::kSlerp));
    for (size_t i = 0; i < out.size(); ++i) CHECK(std::fabs(out[i] - values[i % 4]) <= 3 * unit);
  }
}

TEST_CASE("methods: slerp takes the components in any order") {
  Random random(55);
  const std::vector<double> times = ascending(random, 10);
  const std::vector<double> queries = within(random, times, 50);
  std::vector<double> values(40);
  std::vector<double> turned(40);
  for (size_t i = 0; i < 40; ++i) values[i] = random.uniform(-1, 1);
  for (size_t i = 0; i < 40; ++i) turned[i] = values[i / 4 * 4 + (i + 1) % 4];
  for (const robocache::Context& context : contexts()) {
    const auto a = resampled(context, values, times, queries, by(Method::kSlerp));
    const auto b = resampled(context, turned, times, queries, by(Method::kSlerp));
    double worst = 0;
    for (size_t i = 0; i < a.size(); ++i)
      worst = std::max(worst, std::fabs(b[i] - a[i / 4 * 4 + (i + 1) % 4]));
    CHECK(worst <= 8 * std::numeric_limits<double>::epsilon());
  }
}

TEST_CASE("methods: slerp writes samples unchanged, not normalized, at their times and outside") {
  for (const robocache::Context& context : contexts()) {
    const std::vector<float> values = {2, 0, 0, 0, 0, -3, 0, 0};
    CHECK(resampled<float>(context, values, {0, 1}, {0, 1, -5, 5}, by(Method::kSlerp)) ==
          std::vector<float>{2, 0, 0, 0, 0, -3, 0, 0, 2, 0, 0, 0, 0, -3, 0, 0});
  }
}

TEST_CASE_TEMPLATE("methods: slerp of an invalid rotation gives the fill value and valid 0", T,
                   float, double) {
  constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const std::vector<std::vector<T>> none = {
      {0, 0, 0, 0}, {0, -T(0), 0, -T(0)}, {kNaN, 0, 0, 1}, {0, 0, 1, -kInfinity}};
  const std::vector<double> queries = {-1, 0, 0.5, 1, 1.5, 2, 2.5, 3};
  for (const robocache::Context& context : contexts()) {
    for (const int64_t count : {1, 3, 4, 17, 200}) {  // quaternions
      for (const std::vector<T>& q : none) {
        for (const int64_t lost : {int64_t{0}, count / 2, count - 1}) {
          // Of the second of four samples, one quaternion.
          std::vector<T> values;
          for (int64_t i = 0; i < 4 * count; ++i)
            values.insert(values.end(), {0, T(0.6), 0, T(0.8)});
          std::copy(q.begin(), q.end(), values.begin() + 4 * (count + lost));
          std::vector<uint8_t> mask(queries.size(), 9);
          ResampleOptions options = by(Method::kSlerp);
          options.fill_value = -7;
          options.valid = robocache::Tensor(mask.data(), {static_cast<int64_t>(mask.size())});
          const std::vector<T> out = resampled<T>(context, values, {0, 1, 2, 3}, queries, options);
          CHECK(mask == std::vector<uint8_t>{0, 1, 0, 0, 0, 1, 1, 1});
          int wrong = 0;
          for (size_t k = 0; k < queries.size(); ++k) {
            const bool met = queries[k] > 0 && queries[k] < 2;
            for (int64_t i = 0; i < 4 * count; ++i) {
              const T expected = met && i / 4 == lost ? T(-7)
                                 : i % 4 == 1         ? T(0.6)
                                 : i % 4 == 3         ? T(0.8)
                                                      : T(0);
              const T got = out[k * static_cast<size_t>(4 * count) + static_cast<size_t>(i)];
              wrong += std::fabs(got - expected) < T(1e-6) ? 0 : 1;
            }
          }
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("methods: a quaternion of any finite size is a rotation") {
  for (const robocache::Context& context : contexts()) {
    for (const double size : {5e-324, 1e-200, 1e200, std::numeric_limits<double>::max()}) {
      std::vector<uint8_t> mask(2, 9);
      ResampleOptions options = by(Method::kSlerp);
      options.fill_value = -7;
      options.valid = robocache::Tensor(mask.data(), {2});
      const std::vector<double> values = {0, size, 0, 0, 0, size, 0, 0};
      const auto out = resampled<double>(context, values, {0, 1}, {0, 0.5}, options);
      CHECK(mask == std::vector<uint8_t>{1, 1});
      CHECK(out[1] == size);
      CHECK(out[5] != -7);
    }
  }
}

// ---- angles -------------------------------------------------------------------------------------

TEST_CASE_TEMPLATE("methods: angles take the shorter way, across pi and from any turn", T, float,
                   double) {
  Random random(56);
  const long double unit = std::numeric_limits<T>::epsilon();
  for (const robocache::Context& context : contexts()) {
    for (const bool wrapped : {true, false}) {
      // At least three turns, in either direction; kept in the range, or with random turns added.
      const auto course = [&](double t, int64_t d) {
        return static_cast<long double>(t) * (d % 2 == 0 ? 0.9L : -0.9L) + d;
      };
      const std::vector<double> times = ascending(random, 50);
      const std::vector<double> queries = within(random, times, 500);
      std::vector<T> values;
      for (const double t : times) {
        for (int64_t d = 0; d < 7; ++d) {
          const long double angle = std::remainder(course(t, d), 2 * kPi);
          const long double turns = wrapped ? 0 : static_cast<long double>(random.below(7) - 3);
          values.push_back(static_cast<T>(angle + turns * 2 * kPi));
        }
      }
      const std::vector<T> out = resampled(context, values, times, queries, by(Method::kAngle));
      long double worst = 0;
      long double farthest = 0;
      for (size_t i = 0; i < out.size(); ++i) {
        const long double expected = course(queries[i / 7], static_cast<int64_t>(i % 7));
        worst = std::max(worst, std::fabs(std::remainder(out[i] - expected, 2 * kPi)));
        farthest = std::max(farthest, std::fabs(static_cast<long double>(out[i])));
      }
      CHECK(worst <= 20 * unit * (wrapped ? 1 : 3));
      CHECK(farthest <= kPi + 20 * unit);
    }
  }
}

TEST_CASE("methods: angles are written unchanged at their times and outside") {
  for (const robocache::Context& context : contexts()) {
    const std::vector<double> values = {7, -20};
    CHECK(resampled<double>(context, values, {0, 1}, {0, 1, -5, 5}, by(Method::kAngle)) ==
          std::vector<double>{7, -20, 7, -20});
  }
}
