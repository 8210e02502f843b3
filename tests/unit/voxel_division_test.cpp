// Voxel indices by products with reciprocals, as on CUDA, compared with division.
#include <cfloat>
#include <cmath>
#include <limits>

#include "support/expect.h"
#include "support/random.h"
#include "voxel.h"
#include "voxel_problem.h"

namespace {

using rbc::GridOf;
using support::Random;
__extension__ typedef unsigned __int128 UInt128;

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

template <class T>
GridOf<T> gridAlong(T origin, T size, int64_t extent) {
  rbc::VoxelGrid grid = {};
  for (int axis = 0; axis < 3; ++axis) {
    grid.origin[axis] = static_cast<double>(origin);
    grid.voxel_size[axis] = static_cast<double>(size);
    grid.shape[axis] = extent;
  }
  return rbc::gridAs<T>(grid);
}

template <class T>
bool agree(const GridOf<T>& grid, T p) {
  int32_t divided = 0;
  int32_t multiplied = 0;
  const bool inside = rbc::axisIndex(grid, 0, p, &divided);
  return rbc::axisIndexByProducts(grid, 0, p, &multiplied) == inside &&
         (!inside || multiplied == divided);
}

// Modulo 2^64; b is odd.
uint64_t inverseOf(uint64_t b) {
  uint64_t x = b;
  for (int i = 0; i < 6; ++i) x *= 2 - b * x;
  return x;
}

// Visits the A of `digits` bits whose quotient by B is next to the middle of two numbers: A 2^w = B
// K + delta for an odd K, with w = digits if A >= B, else one more.
template <class Visitor>
void visitNearMiddles(uint64_t b, int digits, Visitor&& visit) {
  const int even = __builtin_ctzll(b);
  for (int64_t delta = -8; delta <= 8; ++delta) {
    if (delta == 0 || even > 3 || delta % (int64_t{1} << even) != 0) continue;
    for (int w = digits; w <= digits + 1; ++w) {
      const uint64_t step = uint64_t{1} << (w - even);
      const auto wanted = static_cast<uint64_t>(-delta / (int64_t{1} << even));
      uint64_t k = wanted * inverseOf(b >> even) & (step - 1);
      for (; k >> (digits + 1) == 0; k += step) {
        if (k >> digits == 0 || k % 2 == 0) continue;
        const UInt128 product = static_cast<UInt128>(b) * k + static_cast<UInt128>(delta);
        const auto a = static_cast<uint64_t>(product >> w);
        if (a >> (digits - 1) == 1 && (a >= b) == (w == digits)) visit(a);
      }
    }
  }
}

template <class T>
int64_t wrongNearMiddles(uint64_t b, int64_t* quotients) {
  const T size = static_cast<T>(b);
  const T reciprocal = 1 / size;
  int64_t wrong = 0;
  visitNearMiddles(b, std::numeric_limits<T>::digits, [&](uint64_t a) {
    const T x = static_cast<T>(a);
    wrong += rbc::quotientByProducts(x, size, reciprocal) != x / size ? 1 : 0;
    ++*quotients;
  });
  return wrong;
}

}  // namespace

// For f32, a step of 1 visits all cases that quotient.h counts.
TEST_CASE("voxel division: quotients next to the middle of two f32 are rounded right") {
  constexpr uint64_t kStep = 61;
  constexpr uint64_t kAll = 46517418;
  int64_t quotients = 0;
  int64_t wrong = 0;
  for (uint64_t b = 1 << 23; b < 1 << 24; b += kStep)
    wrong += wrongNearMiddles<float>(b, &quotients);
  CHECK(wrong == 0);
  CHECK(quotients > static_cast<int64_t>(kAll / kStep * 9 / 10));
}

TEST_CASE("voxel division: quotients next to the middle of two f64 are rounded right") {
  Random random(1);
  int64_t quotients = 0;
  int64_t wrong = 0;
  for (int i = 0; i < 50000; ++i) {
    const uint64_t down = random.below(50);  // also sizes next to a power of two
    const uint64_t b = (uint64_t{1} << 52) | (random.bits() >> 12 >> down);
    wrong += wrongNearMiddles<double>(b, &quotients);
  }
  CHECK(wrong == 0);
  CHECK(quotients > 100000);
}

TEST_CASE_TEMPLATE("voxel division: products give the index of the division", T, float, double) {
  constexpr int kSizes = 400;
  constexpr int kPoints = 2000;
  constexpr int kMost = rbc::kMaxByProducts<T>;
  Random random(2);
  int64_t wrong = 0;
  int64_t inside = 0;
  for (int i = 0; i < kSizes; ++i) {
    const bool usual = random.chance(0.7);
    const int exponent =
        static_cast<int>(usual ? random.below(41) - 20 : random.below(2 * kMost) - kMost);
    const T size = std::ldexp(static_cast<T>(random.uniform(1, 2)), exponent);
    const int64_t extents[] = {1, 3, 1000, (1 << 24) + 1, INT32_MAX};
    const int64_t extent = random.pick(extents);
    const T origins[] = {T(0), size * -7, static_cast<T>(random.uniform(-100, 100))};
    const GridOf<T> grid = gridAlong<T>(random.pick(origins), size, extent);
    CHECK(grid.by_products);
    for (int j = 0; j < kPoints; ++j) {
      // A border, or any number; then a few numbers further.
      const auto n = static_cast<T>(random.below(random.chance(0.5) ? 100 : extent + 2));
      T p = grid.origin[0] + (random.chance(0.7) ? n : static_cast<T>(random.uniform()) * n) * size;
      for (int64_t steps = random.below(4); steps > 0; --steps) {
        p = std::nextafter(p, random.chance(0.5) ? kInfinity<T> : -kInfinity<T>);
      }
      int32_t index;
      inside += rbc::axisIndex(grid, 0, p, &index) ? 1 : 0;
      wrong += agree(grid, p) ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
  CHECK(inside > kSizes * kPoints / 2);
}

TEST_CASE_TEMPLATE("voxel division: extremes", T, float, double) {
  constexpr T kTiny = std::numeric_limits<T>::denorm_min();
  const T most = std::ldexp(T(1), rbc::kMaxByProducts<T>);
  const T numbers[] = {T(0),
                       kTiny,
                       std::numeric_limits<T>::min(),
                       1 / most,
                       T(1e-30),
                       T(0.5),
                       T(1),
                       T(1e30),
                       most,
                       most * most,
                       std::numeric_limits<T>::max(),
                       kInfinity<T>,
                       std::numeric_limits<T>::quiet_NaN()};
  const T near_one[] = {
      T(0.1), T(0.3), std::nextafter(T(1), T(0)), T(1), std::nextafter(T(1), T(2)), T(3), T(2.5)};
  Random random(3);
  int64_t wrong = 0;
  const auto check = [&](T size) {
    for (const T origin : {T(0), T(1), -most, kTiny}) {
      const GridOf<T> grid = gridAlong<T>(origin, size, 100);
      CHECK(grid.by_products);
      for (const T number : numbers)
        wrong += (agree(grid, number) ? 0 : 1) + (agree(grid, -number) ? 0 : 1);
    }
    // Below 0, also so close to 0 that the quotient is -0.
    const GridOf<T> grid = gridAlong<T>(0, size, 100);
    for (int i = 0; i < 200; ++i) {
      T p = i < 100 ? grid.lowest[0] : -kTiny * static_cast<T>(random.below(5000));
      for (int64_t steps = random.below(3); steps > 0; --steps) {
        p = std::nextafter(p, random.chance(0.5) ? T(1) : T(-1));
      }
      wrong += agree(grid, p) ? 0 : 1;
    }
  };
  for (const T size : near_one) {
    for (const int exponent : {0, 1, 5, 11, 19, 40, 90}) {
      check(std::ldexp(size, exponent));
      check(std::ldexp(size, -exponent));
    }
  }
  check(1 / most);
  check(most);
  CHECK(wrong == 0);
  CHECK_FALSE(gridAlong<T>(0, std::nextafter(most, kInfinity<T>), 1).by_products);
  CHECK_FALSE(gridAlong<T>(0, std::nextafter(1 / most, T(0)), 1).by_products);
  CHECK_FALSE(gridAlong<T>(0, kTiny, 1).by_products);
}
