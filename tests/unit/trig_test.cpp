// Sine, cosine and arc tangent, against 113 bits and against known numbers.
#include "trig.h"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <limits>

#include "support/quad.h"
#include "support/random.h"

namespace {

using rbc::DoubleDouble;
using support::Quad;
using support::Random;

// The error in units in the last place of `exact`.
double unitsOff(double got, Quad exact) {
  const auto magnitude = static_cast<double>(support::absolute(exact));
  const int exponent = std::ilogb(magnitude);
  return static_cast<double>(support::absolute(got - exact) / std::ldexp(1.0, exponent - 52));
}

void keepLargest(double* most, double error) {
  if (!(error <= *most)) *most = error;
}

}  // namespace

TEST_CASE("trig: sine and cosine") {
  Random random(1);
  double most = 0;
  double most_of_pair = 0;
  for (int i = 0; i < 200000; ++i) {
    const double size = std::pow(10, random.uniform(i % 2 == 0 ? -20 : -1, 15));
    const double x = size * random.uniform(-1, 1);
    Quad sine;
    Quad cosine;
    support::sineCosine(x, &sine, &cosine);
    const auto got = rbc::sineCosine<double>(rbc::reduce(x));
    keepLargest(&most, unitsOff(got.sine, sine));
    keepLargest(&most, unitsOff(got.cosine, cosine));
    const auto pair = rbc::sineCosine<DoubleDouble>(rbc::reduce(x));
    const Quad pair_sine = static_cast<Quad>(pair.sine.head) + pair.sine.tail;
    const Quad pair_cosine = static_cast<Quad>(pair.cosine.head) + pair.cosine.tail;
    keepLargest(&most_of_pair, static_cast<double>(support::absolute(pair_sine - sine)));
    keepLargest(&most_of_pair, static_cast<double>(support::absolute(pair_cosine - cosine)));
  }
  MESSAGE("sine and cosine: at most ", most, " units in the last place; as DoubleDouble ",
          most_of_pair / 0x1p-80, " of 2^-80");
  CHECK(most < 0.8);
  CHECK(most > 0.5);
  CHECK(most_of_pair < 0x1p-80);
}

TEST_CASE("trig: sine and cosine of the largest and hardest angles") {
  // Worked out with 2000 bits.
  constexpr struct {
    double x, sine, cosine;
  } kKnown[] = {
      {0x1.6ac5b262ca1ffp+849, 1.0, -4.687165924254628e-19},
      {0x1.fffffffffffffp+1023, 0.004961954789184062, -0.9999876894265599},
      {0x1.0000000000000p+45, 0.7184912917209151, 0.6955359542979865},
      {0x1.0000000000000p+1023, 0.563127779850884, -0.826369834614148},
      {0x1.0f0cf064dd592p+73, -0.8522008497671888, 0.523214785395139},
      {0x1.7e43c8800759cp+996, -0.8178819121159085, -0.5753861119575491},
      {0x1.c6bf526340000p+49, 0.8582727931702359, -0.5131937377869703},
      {0x1.0000000000180p+45, -0.6131469482000084, -0.7899688727494371},
      {0x1.c12218377de6bp+106, 0.2061391803869976, 0.9785226815508044},
      {0x1.5555555555555p+1021, 0.986956372768751, -0.16098794442799166},
      {0x1.2e5f0f521a58dp+27, -0.9725103259715818, 0.23285975581591525},
      {0x1.6c6cbc45dc8dep+4, -0.7071067811865476, -0.7071067811865476},
  };
  for (const auto& known : kKnown) {
    const auto got = rbc::sineCosine<double>(rbc::reduce(known.x));
    CHECK(std::fabs(got.sine - known.sine) <= std::fabs(known.sine) * 0x1p-52);
    CHECK(std::fabs(got.cosine - known.cosine) <= std::fabs(known.cosine) * 0x1p-52);
    const auto opposite = rbc::sineCosine<double>(rbc::reduce(-known.x));
    CHECK(opposite.sine == -got.sine);
    CHECK(opposite.cosine == got.cosine);
  }
  for (const double x : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    CHECK(std::isnan(rbc::sineCosine<double>(rbc::reduce(x)).sine));
    CHECK(std::isnan(rbc::sineCosine<double>(rbc::reduce(-x)).cosine));
  }
}

TEST_CASE("trig: both reductions agree where they meet") {
  Random random(2);
  for (int i = 0; i < 20000; ++i) {
    const double x = std::ldexp(random.uniform(1, 2), 23 + static_cast<int>(random.below(22)));
    const auto a = rbc::sineCosine<DoubleDouble>(rbc::detail::reduceModerate(x));
    const auto b = rbc::sineCosine<DoubleDouble>(rbc::detail::reduceLarge(x));
    CHECK(std::fabs((a.sine - b.sine).head) < 0x1p-80);
    CHECK(std::fabs((a.cosine - b.cosine).head) < 0x1p-80);
  }
}

TEST_CASE("trig: the arc tangent") {
  Random random(3);
  double most = 0;
  for (int i = 0; i < 200000; ++i) {
    const double range = i % 2 == 0 ? 1 : 200;
    const double y = random.uniform(-1, 1) * std::pow(10, random.uniform(-range, 0));
    const double x = random.uniform(-1, 1) * std::pow(10, random.uniform(-range, 0));
    keepLargest(&most, unitsOff(rbc::arcTangent(y, x), support::arcTangent(y, x)));
  }
  MESSAGE("the arc tangent: at most ", most, " units in the last place");
  CHECK(most < 2.5);
  CHECK(most > 0.5);
  constexpr double kPi = 3.141592653589793;
  CHECK(rbc::arcTangent(0, 0) == 0);
  CHECK(rbc::arcTangent(0, 1) == 0);
  CHECK(rbc::arcTangent(0, -1) == kPi);
  CHECK(rbc::arcTangent(-0.0, -1) == kPi);
  CHECK(rbc::arcTangent(1, 0) == kPi / 2);
  CHECK(rbc::arcTangent(-1, 0) == -kPi / 2);
  CHECK(rbc::arcTangent(2, 2) == kPi / 4);
  CHECK(rbc::arcTangent(-2, -2) == -3 * (kPi / 4));
  CHECK(rbc::arcTangent(5e-324, 1) == 5e-324);
  CHECK(std::isnan(rbc::arcTangent(std::nan(""), 1)));
  CHECK(std::isnan(rbc::arcTangent(1, std::nan(""))));
}
