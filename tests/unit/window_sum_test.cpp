// Sums in windows of exponents, compared with the limbs of exact sums: no bit of the numbers inside
// is lost, and numbers outside are reported and leave nothing behind.
#include "window_sum.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "exact_moments.h"
#include "support/expect.h"
#include "support/random.h"

namespace {

using support::Random;

enum class Kind { kAround, kWide, kAnyBits, kFewBits };
constexpr Kind kKinds[] = {Kind::kAround, Kind::kWide, Kind::kAnyBits, Kind::kFewBits};

template <class Number>
Number numberOf(Random& random, Kind kind, int top) {
  const double x = random.uniform(-1, 1);
  if (random.chance(0.002))
    return static_cast<Number>(std::ldexp(random.chance(0.5) ? 1 : -1, top));
  switch (kind) {
    case Kind::kAround: return random.chance(0.1) ? Number(-0.0) : Number(std::ldexp(x, top));
    case Kind::kWide:
      return static_cast<Number>(std::ldexp(x, top + 5 - static_cast<int>(random.below(60))));
    case Kind::kFewBits:
      return static_cast<Number>(std::ldexp(static_cast<double>(random.below(512) - 256), top - 9));
    default: break;
  }
  const uint64_t bits = random.bits();
  Number any;
  std::memcpy(&any, &bits, sizeof any);
  return any;
}

void add(double x, rbc::Moments* to) {
  rbc::splitValue(
      x, [&](int limb, int64_t amount) { to->sum[limb] += amount; },
      [&](int limb, int64_t amount) { to->squares[limb] += amount; });
}

// The number of values that are inside, after both sums have been compared.
template <class Window>
int compare(uint64_t seed, Kind kind, int top) {
  using Number = typename Window::Number;
  Random random(seed);
  Window window;
  window.start(top);
  rbc::Moments expected, got;
  rbc::clearMoments(&expected);
  rbc::clearMoments(&got);
  int inside = 0;
  for (int i = 0; i < 4000; ++i) {
    const Number x = numberOf<Number>(random, kind, window.top);
    const bool is_inside = window.add(x);
    if (!is_inside) window.remove(x);
    if (!std::isfinite(x)) {
      CHECK(!is_inside);
      continue;
    }
    inside += is_inside ? 1 : 0;
    add(static_cast<double>(x), &expected);
    if (!is_inside) add(static_cast<double>(x), &got);
  }
  Window::expand(
      window.top, window.field,
      [&](int64_t total, int exponent) {
        rbc::splitTotal<rbc::SumLimbs>(total, exponent,
                                       [&](int limb, int64_t amount) { got.sum[limb] += amount; });
      },
      [&](int64_t total, int exponent) {
        rbc::splitTotal<rbc::SquareLimbs>(
            total, exponent, [&](int limb, int64_t amount) { got.squares[limb] += amount; });
      });
  rbc::normalizeMoments(&expected);
  rbc::normalizeMoments(&got);
  CHECK(std::equal(std::begin(got.sum), std::end(got.sum), std::begin(expected.sum)));
  CHECK(std::equal(std::begin(got.squares), std::end(got.squares), std::begin(expected.squares)));
  return inside;
}

}  // namespace

TEST_CASE("window sums: equal to the limbs of exact sums") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed + 100);
    const int of_float = static_cast<int>(random.below(260)) - 130;
    const int of_double = static_cast<int>(random.below(2100)) - 1050;
    for (const Kind kind : kKinds) {
      CAPTURE(seed);
      CAPTURE(static_cast<int>(kind));
      compare<rbc::FloatWindow<1>>(seed, kind, of_float);
      compare<rbc::FloatWindow<2>>(seed, kind, of_float);
      compare<rbc::DoubleWindow>(seed, kind, of_double);
    }
  }
}

TEST_CASE("window sums: nearly all numbers of similar magnitude are inside") {
  CHECK(compare<rbc::FloatWindow<2>>(1, Kind::kAround, 3) > 3980);
  CHECK(compare<rbc::DoubleWindow>(1, Kind::kAround, 3) > 3980);
  CHECK(compare<rbc::FloatWindow<1>>(1, Kind::kFewBits, 3) > 3980);
}

TEST_CASE("window sums: the maximum number of additions fits") {
  rbc::FloatWindow<2> window;
  window.start(0);
  constexpr float kLargest = 0x1.fffffep-1f;
  for (int i = 0; i < rbc::FloatWindow<2>::kMaxAdditions; ++i) window.add(-kLargest);
  for (int f = 2; f < rbc::FloatWindow<2>::kFields; ++f)
    CHECK(std::abs(window.field[f]) < 1ll << 62);
  rbc::DoubleWindow wide;
  wide.start(0);
  constexpr double kLargestDouble = 0x1.fffffffffffffp-1;
  for (int i = 0; i < rbc::DoubleWindow::kMaxAdditions; ++i) wide.add(-kLargestDouble);
  for (int f = 3; f < rbc::DoubleWindow::kFields; ++f) {
    CHECK(wide.field[f] >= 0);
    CHECK(wide.field[f] < 1ll << 62);
  }
}
