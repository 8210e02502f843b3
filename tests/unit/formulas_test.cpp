// Tests the formulas of src/math against long double: each test prints the error that it measured,
// in the last place of 1 (or of the values between which it interpolates), and checks it against a
// bound.
#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "hermite.h"
#include "interpolate.h"
#include "slerp.h"
#include "support/expect.h"
#include "support/random.h"
#include "support/reference_methods.h"

namespace {

using support::Between;
using support::Random;

constexpr long double kPi = 3.141592653589793238462643383279502884L;

template <class T>
constexpr long double kUlpOfOne = std::numeric_limits<T>::epsilon();

// The largest error, in units in the last place of 1, and its input.
class Worst {
 public:
  explicit Worst(std::string what, const std::string& unit = "units in the last place")
      : what_(std::move(what)), unit_(unit) {}
  void see(long double ulps, long double at) {
    if (ulps <= worst_) return;
    worst_ = ulps;
    at_ = at;
  }
  // Prints the error, and fails if it is above `bound`, or far below it.
  void check(long double bound) const {
    MESSAGE(what_, ": at most ", static_cast<double>(worst_), " ", unit_);
    CHECK_MESSAGE(worst_ <= bound, what_, " is off by ", static_cast<double>(worst_), " at ",
                  static_cast<double>(at_));
    CHECK_MESSAGE(worst_ > bound / 8, what_, ": the bound ", static_cast<double>(bound),
                  " is slack");
  }

 private:
  std::string what_;
  std::string unit_;
  long double worst_ = 0;
  long double at_ = 0;
};

// The numbers printed for float are measured in float, for double in double.
template <class T>
T uniform(Random& random, double low, double high) {
  return static_cast<T>(random.uniform(low, high));
}

template <class T>
constexpr int kRounds = sizeof(T) == 4 ? 400000 : 200000;

}  // namespace

// ---- slerp's polynomials ------------------------------------------------------------------------

TEST_CASE_TEMPLATE("formulas: the polynomials of slerp", T, float, double) {
  Random random(1);
  Worst sinc("sin(a) / a");
  Worst inverse_sinc("a / sin(a)");
  Worst squared_angle("a^2 over the square of the chord");
  for (int i = 0; i < kRounds<T>; ++i) {
    const bool tiny = i % 4 == 0;
    const T x = tiny ? static_cast<T>(std::pow(10, -random.uniform(0, 30)))
                     : uniform<T>(random, 0, 2.4674011);
    const long double a = std::sqrt(static_cast<long double>(x));
    sinc.see(std::fabs(rbc::detail::sinc(x) - std::sin(a) / a) / kUlpOfOne<T>, x);
    inverse_sinc.see(std::fabs(rbc::detail::inverseSinc(x) - a / std::sin(a)) / kUlpOfOne<T>, x);
    const T chord = tiny ? x : uniform<T>(random, 0, 2);
    const long double half = std::asin(std::sqrt(static_cast<long double>(chord)) / 2);
    squared_angle.see(
        std::fabs(rbc::detail::squaredAngle(chord) / (4 * half * half) - 1) / kUlpOfOne<T>, chord);
  }
  sinc.check(1);
  inverse_sinc.check(2);
  squared_angle.check(2);
  CHECK(rbc::detail::sinc(T(0)) == 1);
  CHECK(rbc::detail::inverseSinc(T(0)) == 1);
  CHECK(rbc::detail::squaredAngle(T(0)) == 0);
}

TEST_CASE_TEMPLATE("formulas: the inverse root", T, float, double) {
  Random random(2);
  Worst worst("1 / sqrt(x)");
  for (int i = 0; i < kRounds<T>; ++i) {
    const T x = std::ldexp(uniform<T>(random, 1, 2), static_cast<int>(random.below(120)) - 60);
    const long double exact = 1 / std::sqrt(static_cast<long double>(x));
    worst.see(std::fabs(rbc::detail::inverseRoot(x) / exact - 1) / kUlpOfOne<T>, x);
  }
  worst.check(2.5);
  CHECK(std::isfinite(rbc::detail::inverseRoot(T(0))));
}

TEST_CASE_TEMPLATE("formulas: zeros, NaN and infinities are not rotations", T, float, double) {
  using Limits = std::numeric_limits<T>;
  const T sound[] = {Limits::denorm_min(), -Limits::denorm_min(), 1, Limits::max(),
                     Limits::lowest()};
  const T odd[] = {Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::infinity(),
                   -Limits::infinity()};
  for (const T zero : {T(0), -T(0)}) {
    CHECK(!rbc::isRotation(std::array<T, 4>{zero, 0, -T(0), zero}.data()));
    for (size_t i = 0; i < 4; ++i) {
      std::array<T, 4> q = {zero, zero, zero, zero};
      for (const T x : sound) {
        q[i] = x;
        CHECK(rbc::isRotation(q.data()));
        for (const T bad : odd) {
          std::array<T, 4> broken = q;
          broken[(i + 1) % 4] = bad;
          CHECK(!rbc::isRotation(broken.data()));
        }
      }
      for (const T bad : odd) {
        q[i] = bad;
        CHECK(!rbc::isRotation(q.data()));
      }
    }
  }
}

TEST_CASE_TEMPLATE("formulas: slerp of any two quaternions", T, float, double) {
  Random random(3);
  Worst worst("slerp");
  Worst norm("the norm of slerp");
  constexpr support::Precision kPrecision = {kUlpOfOne<T> / 2, kUlpOfOne<T> / 2,
                                             std::numeric_limits<T>::denorm_min(), 1e9L};
  for (int i = 0; i < kRounds<T> / 8; ++i) {
    T q1[4];
    T q2[4];
    T out[4];
    const double near = std::pow(10, -random.uniform(0, 12));
    const double scale1 = std::pow(10, random.uniform(-3, 3));
    const double scale2 = std::pow(10, random.uniform(-3, 3)) * (random.chance(0.5) ? -1 : 1);
    const bool related = random.chance(0.5);
    for (int k = 0; k < 4; ++k) {
      const double x = random.uniform(-1, 1);
      q1[k] = static_cast<T>(scale1 * x);
      q2[k] = static_cast<T>(scale2 *
                             (related ? x + near * random.uniform(-1, 1) : random.uniform(-1, 1)));
    }
    const T w = random.chance(0.1) ? static_cast<T>(std::pow(10, -random.uniform(0, 20)))
                                   : uniform<T>(random, 0, 1);
    rbc::slerp(q1, q2, w, out);
    long double wide1[4];
    long double wide2[4];
    long double square = 0;
    for (int k = 0; k < 4; ++k) {
      wide1[k] = q1[k];
      wide2[k] = q2[k];
      square += static_cast<long double>(out[k]) * out[k];
    }
    for (int k = 0; k < 4; ++k) {
      const support::Bounds bounds =
          support::slerpBounds(wide1, wide2, k, {w, 0, 1, 0}, kPrecision);
      long double least = 1e30L;  // of the two ways around, if both are correct
      for (int n = 0; n < bounds.count; ++n)
        least = std::min(least, std::fabs(out[k] - bounds.bound[n].value));
      worst.see(least / kUlpOfOne<T>, w);
    }
    norm.see(std::fabs(std::sqrt(square) - 1) / kUlpOfOne<T>, w);
  }
  worst.check(4);
  norm.check(4);
}

// ---- angles -------------------------------------------------------------------------------------

TEST_CASE_TEMPLATE("formulas: wrapping of angles", T, float, double) {
  Random random(4);
  Worst wrap("wrapped angles within a few turns");
  for (int i = 0; i < kRounds<T>; ++i) {
    const T x = uniform<T>(random, -20, 20);
    const T wrapped = rbc::wrapAngle(x);
    // Both ends are the same angle.
    wrap.see(
        std::fabs(std::remainder(wrapped - static_cast<long double>(x), 2 * kPi)) / kUlpOfOne<T>,
        x);
    // Beyond pi by at most the rounding of the quotient that finds the turns.
    if (std::fabs(wrapped) > kPi + 20 * kUlpOfOne<T>) FAIL(x, " wraps to ", wrapped);
  }
  wrap.check(1.3);
  const auto pi = static_cast<T>(kPi);
  CHECK(rbc::wrapAngle(T(0)) == 0);
  CHECK(rbc::wrapAngle(T(1)) == 1);
  CHECK(rbc::wrapAngle(T(-3)) == -3);
  CHECK(std::isnan(rbc::wrapAngle(std::numeric_limits<T>::infinity())));
  CHECK(std::isnan(rbc::wrapAngle(std::numeric_limits<T>::quiet_NaN())));
  // Across the end of the range, by the shorter way.
  const T half = rbc::lerpAngle(pi - T(0.25), -pi + T(0.5), T(0.5));
  CHECK(std::fabs(half - (-pi + T(0.125))) <= 4 * kUlpOfOne<T>);
}

TEST_CASE_TEMPLATE("formulas: angles in a turn stay in its range", T, float, double) {
  Random random(14);
  constexpr rbc::DType kOuts[] = {rbc::DType::F16, rbc::DType::BF16, rbc::DType::F32,
                                  rbc::DType::F64};
  const T infinite = std::numeric_limits<T>::infinity();
  const T most = std::numeric_limits<T>::max();
  for (int period = 1; period < rbc::kPeriods; ++period) {
    const auto method = static_cast<rbc::Method>(static_cast<int>(rbc::Method::kAngle) + period);
    for (const rbc::DType out : kOuts) {
      const rbc::Turn<T> turn = rbc::turnOf<T>(method, out);
      CHECK(turn.begin < turn.top);
      CHECK(turn.top <= turn.last);
      CHECK(turn.last < turn.begin + turn.length);
      const T ends[] = {turn.begin,
                        turn.last,
                        turn.top,
                        turn.length,
                        -turn.length,
                        T(0),
                        most,
                        -most,
                        turn.far,
                        std::nextafter(turn.far, most),
                        turn.length / 2,
                        -turn.length / 2,
                        std::numeric_limits<T>::denorm_min()};
      for (int i = 0; i < kRounds<T> / 200; ++i) {
        const auto any = [&] {
          return random.chance(0.3)   ? random.pick(ends)
                 : random.chance(0.8) ? uniform<T>(random, -2, 2) * turn.length
                                      : std::ldexp(uniform<T>(random, -1, 1), i % 100);
        };
        const T v1 = any();
        const T v2 = any();
        const T w = random.chance(0.2) ? T(0.5) : uniform<T>(random, 1e-6, 1);
        const T got = rbc::lerpInTurn(v1, v2, w, turn);
        if (!(got >= turn.begin && got <= turn.top)) FAIL(v1, " ", v2, " ", w, " give ", got);
        if (rbc::lerpInTurn(v1, v2, T(0), turn) != v1 && !(v1 > turn.top && v1 <= turn.last)) {
          FAIL(v1, " is not kept");
        }
      }
      CHECK(std::isnan(rbc::lerpInTurn(infinite, T(1), T(0.5), turn)));
      CHECK(std::isnan(rbc::lerpInTurn(T(1), -infinite, T(0.5), turn)));
      CHECK(rbc::lerpInTurn(infinite, T(1), T(0), turn) == infinite);
    }
  }
  // A sample in degrees, any distance from 0: an exact remainder.
  const auto degrees = rbc::turnOf<T>(rbc::Method::kAngleDegreesPositive, rbc::DType::F64);
  for (int i = 0; i < kRounds<T> / 100; ++i) {
    const T x = std::ldexp(uniform<T>(random, 0, 1), i % (sizeof(T) == 4 ? 128 : 1024));
    CHECK(rbc::lerpInTurn(x, x, T(0.5), degrees) == std::fmod(x, T(360)));
  }
}

// ---- cubic and pchip ----------------------------------------------------------------------------

namespace {

struct Piece {
  long double v[4];
  Between t;
};

// Samples and intervals around a query; some neighbours do not exist.
template <class T>
Piece anyPiece(Random& random, double ratio) {
  Piece piece;
  for (long double& v : piece.v) v = uniform<T>(random, -2, 2);
  const auto length = [&] { return std::pow(10, random.uniform(-ratio, ratio)); };
  piece.t = {random.uniform(), random.chance(0.2) ? 0 : length(), length(),
             random.chance(0.2) ? 0 : length()};
  if (piece.t.before == 0) piece.v[0] = piece.v[1];
  if (piece.t.after == 0) piece.v[3] = piece.v[1];
  return piece;
}

template <class T>
constexpr support::Precision kExactTimes = {kUlpOfOne<T> / 2, DBL_EPSILON / 2,
                                            std::numeric_limits<T>::denorm_min(), 1e9L};

rbc::Intervals intervalsOf(const Between& t) {
  return {static_cast<double>(t.before), static_cast<double>(t.here), static_cast<double>(t.after)};
}

template <class T>
long double cubicOf(const Piece& p) {
  const auto weights =
      rbc::cubicWeights(static_cast<double>(p.t.weight), intervalsOf(p.t)).template as<T>();
  return rbc::cubic(static_cast<T>(p.v[0]), static_cast<T>(p.v[1]), static_cast<T>(p.v[2]),
                    static_cast<T>(p.v[3]), weights);
}

template <class T>
long double pchipOf(const Piece& p) {
  const auto weights =
      rbc::pchipWeights(static_cast<double>(p.t.weight), intervalsOf(p.t)).template as<T>();
  return rbc::pchip(static_cast<T>(p.v[0]), static_cast<T>(p.v[1]), static_cast<T>(p.v[2]),
                    static_cast<T>(p.v[3]), weights);
}

}  // namespace

TEST_CASE_TEMPLATE("formulas: cubic", T, float, double) {
  Random random(5);
  Worst even("cubic of samples of at most 2, similar intervals");
  Worst any("cubic, intervals unlike", "of the limit by its condition");
  for (int i = 0; i < kRounds<T> / 4; ++i) {
    const Piece alike = anyPiece<T>(random, 0.3);
    even.see(std::fabs(cubicOf<T>(alike) -
                       support::cubicBounds(alike.v, alike.t, kExactTimes<T>).bound[0].value) /
                 kUlpOfOne<T>,
             alike.t.weight);
    const Piece piece = anyPiece<T>(random, 6);
    const support::Bound bound = support::cubicBounds(piece.v, piece.t, kExactTimes<T>).bound[0];
    any.see(std::fabs(cubicOf<T>(piece) - bound.value) / bound.error, piece.t.weight);
  }
  even.check(6);
  any.check(1);
}

TEST_CASE_TEMPLATE("formulas: pchip", T, float, double) {
  Random random(6);
  Worst even("pchip of samples of at most 2");
  Worst any("pchip, different intervals and quotients", "of the limit by its condition");
  for (int i = 0; i < kRounds<T> / 4; ++i) {
    Piece piece = anyPiece<T>(random, random.chance(0.5) ? 0.3 : 6);
    even.see(std::fabs(pchipOf<T>(piece) -
                       support::pchipBounds(piece.v, piece.t, kExactTimes<T>).bound[0].value) /
                 kUlpOfOne<T>,
             piece.t.weight);
    // Quotients of all sizes, most of them in one direction; some samples equal.
    for (int k = 1; k < 4; ++k) {
      const double sign = random.chance(0.2) ? -1 : random.chance(0.1) ? 0 : 1;
      piece.v[k] = static_cast<T>(piece.v[k - 1] + sign * std::pow(10, random.uniform(-9, 3)));
    }
    if (piece.t.before == 0) piece.v[0] = piece.v[1];
    if (piece.t.after == 0) piece.v[3] = piece.v[1];
    const support::Bound bound = support::pchipBounds(piece.v, piece.t, kExactTimes<T>).bound[0];
    if (bound.error > 0)
      any.see(std::fabs(pchipOf<T>(piece) - bound.value) / bound.error, piece.t.weight);
  }
  even.check(6);
  any.check(1);
}

TEST_CASE_TEMPLATE("formulas: pchip never leaves the range of its two samples", T, float, double) {
  Random random(7);
  int beyond = 0;
  for (int i = 0; i < kRounds<T> / 4; ++i) {
    Piece piece = anyPiece<T>(random, 4);
    if (random.chance(0.5)) {
      piece.v[2] = static_cast<T>(piece.v[1] * (1 + random.uniform(-1e-6, 1e-6)));
    }
    const auto result = static_cast<T>(pchipOf<T>(piece));
    const auto low = static_cast<T>(std::min(piece.v[1], piece.v[2]));
    const auto high = static_cast<T>(std::max(piece.v[1], piece.v[2]));
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    beyond += result < std::nextafter(low, -kInfinity) || result > std::nextafter(high, kInfinity);
  }
  CHECK(beyond == 0);
}

TEST_CASE(
    "formulas: cubic and pchip of two samples give a line, and pchip next to equal samples is "
    "flat") {
  const rbc::Intervals alone = {0, 2, 0};
  for (const double w : {0.0, 0.25, 0.5, 1.0}) {
    CHECK(rbc::cubic(3.0, 3.0, 7.0, 3.0, rbc::cubicWeights(w, alone)) == 3 + 4 * w);
    CHECK(rbc::pchip(3.0, 3.0, 7.0, 3.0, rbc::pchipWeights(w, alone)) == 3 + 4 * w);
    CHECK(rbc::pchip(1.0, 3.0, 3.0, 7.0, rbc::pchipWeights(w, {1, 1, 1})) == 3);
  }
}
