// Sine, cosine and arc tangent, compared with 113 bits and with known numbers.
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
  // Computed with 2000 bits: the angle nearest to a quarter turn, and then some that need each word
  // of 2 / pi.
  constexpr struct {
    double x, sine, cosine;
  } kKnown[] = {
      {0x1.6ac5b262ca1ffp+849, 1.0, -4.687165924254628e-19},
      {0x1.6c6cbc45dc8dep+4, -0.7071067811865476, -0.7071067811865476},
      {0x1.c6bf526340000p+49, 0.8582727931702359, -0.5131937377869703},
      {0x1.0f0cf064dd592p+73, -0.8522008497671888, 0.523214785395139},
      {0x1.7e43c8800759cp+996, -0.8178819121159085, -0.5753861119575491},
      {0x1.fffffffffffffp+1023, 0.004961954789184062, -0.9999876894265599},
      {0x1.f4bea97b9e977p+45, -0.9938327822756854, -0.11088913776457167},
      {0x1.f2a4d27b2b760p+77, -0.9088496599473873, 0.4171238372636099},
      {0x1.0e7a2682ee434p+109, 0.7656964367603547, 0.6432021196579627},
      {0x1.15ba2bcb8dc86p+141, -0.14192565384120798, -0.9898773200663533},
      {0x1.d5e3412569220p+173, -0.6617861944259431, 0.7496926255921341},
      {0x1.bc688779e3046p+205, -0.8063070484999876, -0.5914972050138857},
      {0x1.ab73739b529c8p+237, -0.6858522887501587, -0.7277407766616963},
      {0x1.4ee207e80cf86p+269, -0.9717246731230799, -0.23611683473196843},
      {0x1.9b1f2826ca7f2p+301, 0.8027836128415403, -0.596270467953163},
      {0x1.9b575bc124bc8p+333, -0.7083402027019458, -0.7058712044248344},
      {0x1.94c9c955ccc4cp+365, -0.36823727761922076, -0.9297318470244982},
      {0x1.288bc79ffdb24p+397, -0.9981551214956211, 0.060715347582482905},
      {0x1.6e405d946e5b7p+429, -0.9830078964533611, -0.18356327386037277},
      {0x1.64be8059b7a90p+461, -0.9214701927523281, -0.38844907500081294},
      {0x1.b91751db871eap+493, 0.33936079895763366, 0.9406562858615449},
      {0x1.feac7eb04a47dp+525, 0.765465479536169, 0.6434769612336272},
      {0x1.f30b94ebe7eb0p+557, -0.03465077402552859, 0.9993994816185526},
      {0x1.8b4f2fddf159ap+589, 0.4624356773285733, -0.8866528319097975},
      {0x1.71e1f6d010ef6p+621, 0.9819261692507981, 0.18926436046031753},
      {0x1.44ab6cdcd6b1cp+653, 0.7616626714628167, -0.6479737455330464},
      {0x1.0932563bdf808p+685, 0.5783083378560737, -0.8158182802353384},
      {0x1.0706a04ba6019p+717, -0.9879975888366821, 0.1544692993863263},
      {0x1.770348bdd1afep+749, -0.8800473519241949, 0.47488594248641663},
      {0x1.5186ee3d0c49fp+781, 0.9653473350831839, 0.26096843228213434},
      {0x1.6148a86d8e389p+813, -0.9802741341623258, 0.19764266212612736},
      {0x1.e44c505c4a41cp+845, -0.9326968356485046, 0.36066135469615607},
      {0x1.8697bbc5437d4p+877, -0.933857751436887, -0.3576446561620088},
      {0x1.8f7d9b65ad8f2p+909, 0.4450785762659115, 0.8954915191944082},
      {0x1.3c7295676118ep+941, -0.7856092287975012, -0.6187229910292613},
      {0x1.061b9025a7b0ap+973, 0.9254881168474208, 0.3787766433852737},
      {0x1.533c91258e0a0p+1005, 0.9923538376204755, -0.12342552799123467},
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
