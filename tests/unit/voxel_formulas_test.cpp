// The formulas of voxelization in src/math, compared with exact arithmetic.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "support/dtypes.h"
#include "support/expect.h"
#include "support/random.h"
#include "voxel.h"
#include "voxel_problem.h"
#include "voxel_reduce.h"

namespace {

using rbc::bitCast;
using rbc::Fixed;
using rbc::Fixed128;
using rbc::OrderKey;
using support::Random;
__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T>
constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
template <class T>
constexpr T kTiny = std::numeric_limits<T>::denorm_min();
template <class T>
constexpr T kMost = std::numeric_limits<T>::max();

Int128 wide(const Fixed128& x) {
  return static_cast<Int128>(static_cast<UInt128>(x.high) << 64 | x.low);
}
Int128 wide(uint64_t x) { return static_cast<int64_t>(x); }
Fixed128 fixed(Int128 x) {
  const auto bits = static_cast<UInt128>(x);
  return {static_cast<uint64_t>(bits), static_cast<uint64_t>(bits >> 64)};
}

// Any finite number: all exponents and signs are equally likely.
template <class T>
T anyFinite(Random& random) {
  T x;
  do x = bitCast<T>(static_cast<OrderKey<T>>(random.bits()));
  while (!std::isfinite(x));
  return x;
}

// A number within 2^spread of `scale`, of either sign.
template <class T>
T about(Random& random, T scale, int spread) {
  const auto down = static_cast<int>(random.below(spread + 1));
  return std::ldexp(static_cast<T>(random.uniform(-1, 1)) * scale, -down);
}

template <class T>
rbc::GridOf<T> gridAlong(double origin, double voxel_size, int64_t extent) {
  rbc::VoxelGrid grid = {};
  for (int axis = 0; axis < 3; ++axis) {
    grid.origin[axis] = origin;
    grid.voxel_size[axis] = voxel_size;
    grid.shape[axis] = extent;
  }
  return rbc::gridAs<T>(grid);
}

// The header's definition: floor(x), if it is one of 0 .. extent - 1.
template <class T>
bool indexBy(T x, int64_t extent, int64_t* index) {
  if (!std::isfinite(x)) return false;
  const long double floor = std::floor(static_cast<long double>(x));
  if (floor < 0 || floor > static_cast<long double>(extent - 1)) return false;
  *index = static_cast<int64_t>(floor);
  return true;
}

constexpr int64_t kExtents[] = {1,
                                2,
                                3,
                                100,
                                (1 << 24) - 1,
                                1 << 24,
                                (1 << 24) + 1,
                                (1 << 25) + 3,
                                (1 << 30) + 1,
                                INT32_MAX - 64,
                                INT32_MAX - 1,
                                INT32_MAX};

}  // namespace

// ---- the voxel of a point -----------------------------------------------------------------------

TEST_CASE_TEMPLATE("voxel formulas: an index is the floor, within the extent", T, float, double) {
  Random random(1);
  int64_t inside = 0;
  int64_t wrong = 0;
  const auto check = [&](const rbc::GridOf<T>& grid, T p, int64_t extent) {
    const T x = (p - grid.origin[0]) / grid.voxel_size[0];
    int64_t expected = 0;
    int32_t index = -1;
    const bool expected_inside = indexBy(x, extent, &expected);
    const bool is_inside = rbc::axisIndex(grid, 0, p, &index);
    inside += is_inside ? 1 : 0;
    wrong += is_inside == expected_inside && (!is_inside || index == expected) ? 0 : 1;
  };
  for (const int64_t extent : kExtents) {
    for (const double size : {1.0, 0.5, 0.1, 0.3, 7.0}) {
      for (const double origin : {0.0, -1.0, 0.7, -1e6}) {
        const rbc::GridOf<T> grid = gridAlong<T>(origin, size, extent);
        for (int i = 0; i < 400; ++i) {
          const int64_t ends[] = {-1, 0, 1, extent - 1, extent, extent + 1, random.below(extent)};
          T p = static_cast<T>(origin + size * static_cast<double>(random.pick(ends)));
          for (int64_t steps = random.below(3); steps > 0; --steps)
            p = std::nextafter(p, random.chance(0.5) ? kInfinity<T> : -kInfinity<T>);
          check(grid, p, extent);
        }
        for (const T p : {T(0), T(-0.0), kTiny<T>, -kTiny<T>, kMost<T>, -kMost<T>, kInfinity<T>,
                          -kInfinity<T>, kNaN<T>, -kNaN<T>})
          check(grid, p, extent);
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(inside > 30000);
}

TEST_CASE_TEMPLATE("voxel formulas: the limit is the least number without an index", T, float,
                   double) {
  for (const int64_t extent : kExtents) {
    const T limit = gridAlong<T>(0, 1, extent).limit[0];
    CHECK(static_cast<long double>(limit) >= static_cast<long double>(extent));
    CHECK(static_cast<long double>(std::nextafter(limit, T(0))) < static_cast<long double>(extent));
  }
}

// If every step is exact, the index equals that of exact arithmetic.
TEST_CASE_TEMPLATE("voxel formulas: borders are exact if the numbers are", T, float, double) {
  Random random(2);
  int64_t wrong = 0;
  for (int i = 0; i < 200000; ++i) {
    const auto log2 = static_cast<int>(random.below(9)) - 4;  // voxels of 1/16 to 16
    const int64_t origin = random.below(2001) - 1000;         // in 64ths
    const int64_t p = random.below(200001) - 100000;
    const int64_t extent = 1 + random.below(3000);
    const auto grid = gridAlong<T>(static_cast<double>(origin) / 64, std::ldexp(1, log2), extent);
    const int64_t voxel = int64_t{1} << (log2 + 6);  // in 64ths
    const int64_t from = p - origin;
    const int64_t expected = from >= 0 ? from / voxel : -((voxel - 1 - from) / voxel);
    int32_t index = -1;
    const bool inside = rbc::axisIndex(grid, 0, static_cast<T>(p) / 64, &index);
    wrong +=
        inside == (expected >= 0 && expected < extent) && (!inside || index == expected) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("voxel formulas: a voxel of three axes") {
  const auto grid = gridAlong<float>(0, 1, 5);
  rbc::VoxelIndex voxel = {};
  CHECK(rbc::voxelOf(grid, {0.5f, 4.5f, 2.0f}, &voxel));
  CHECK((voxel.x == 0 && voxel.y == 4 && voxel.z == 2));
  for (const float bad : {-1e-20f, 5.0f, kNaN<float>, kInfinity<float>}) {
    CHECK_FALSE(rbc::voxelOf(grid, {bad, 1.0f, 1.0f}, &voxel));
    CHECK_FALSE(rbc::voxelOf(grid, {1.0f, bad, 1.0f}, &voxel));
    CHECK_FALSE(rbc::voxelOf(grid, {1.0f, 1.0f, bad}, &voxel));
  }
}

TEST_CASE("voxel formulas: keys follow the lexicographic order, up to 2^62") {
  constexpr int64_t kTwo20 = 1 << 20;
  constexpr int64_t kShapes[][4] = {{3, 4, 5, 6},
                                    {1, INT32_MAX, INT32_MAX, 1},
                                    {1, 1, INT32_MAX, INT32_MAX},
                                    {4, kTwo20, kTwo20, kTwo20}};
  Random random(3);
  for (const auto& [clouds, x, y, z] : kShapes) {
    const rbc::VoxelGrid grid = {{}, {}, {x, y, z}};
    std::vector<std::pair<std::vector<int64_t>, int64_t>> keys;
    for (int i = 0; i < 2000; ++i) {
      const auto draw = [&](int64_t extent) {
        const int64_t choices[] = {0, extent - 1, random.below(extent)};
        return random.pick(choices);
      };
      const std::vector<int64_t> at = {draw(clouds), draw(x), draw(y), draw(z)};
      const int64_t key = rbc::voxelKey(
          grid, at[0],
          {static_cast<int32_t>(at[1]), static_cast<int32_t>(at[2]), static_cast<int32_t>(at[3])});
      CHECK((key >= 0 && key < clouds * grid.volume()));
      const rbc::VoxelCoords place = rbc::coordsOf(grid, key);
      CHECK(std::vector<int64_t>{place.cloud, place.x, place.y, place.z} == at);
      keys.emplace_back(at, key);
    }
    std::sort(keys.begin(), keys.end());
    CHECK(std::is_sorted(keys.begin(), keys.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; }));
  }
}

// ---- max and min --------------------------------------------------------------------------------

TEST_CASE_TEMPLATE("voxel formulas: order keys order as numbers do", T, float, double) {
  Random random(4);
  std::vector<T> numbers = {
      -kInfinity<T>, -kMost<T>,   T(-1),    -std::numeric_limits<T>::min(), -kTiny<T>,
      T(-0.0),       T(0.0),      kTiny<T>, std::numeric_limits<T>::min(),  T(1),
      kMost<T>,      kInfinity<T>};
  for (int i = 0; i < 300; ++i) numbers.push_back(anyFinite<T>(random));
  std::sort(numbers.begin(), numbers.end(),
            [](T a, T b) { return a == b ? std::signbit(a) && !std::signbit(b) : a < b; });
  const auto sameBits = [](T a, T b) { return bitCast<OrderKey<T>>(a) == bitCast<OrderKey<T>>(b); };
  int wrong = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    for (const bool minimum : {false, true}) {
      const OrderKey<T> key = rbc::orderKey(numbers[i], minimum);
      wrong += sameBits(rbc::fromOrderKey<T>(key, minimum), numbers[i]) ? 0 : 1;
      wrong += key > rbc::kMinKey<T> ? 0 : 1;
      wrong += key < rbc::orderKey(kNaN<T>, minimum) ? 0 : 1;
      for (size_t k = 0; k < i; ++k) {
        const OrderKey<T> less = rbc::orderKey(numbers[k], minimum);
        const bool equal = sameBits(numbers[k], numbers[i]);
        wrong += (equal ? less == key : minimum ? less > key : less < key) ? 0 : 1;
      }
    }
  }
  CHECK(wrong == 0);
  for (const bool minimum : {false, true}) {
    for (const T nan : {kNaN<T>, -kNaN<T>}) {
      const T back = rbc::fromOrderKey<T>(rbc::orderKey(nan, minimum), minimum);
      CHECK(sameBits(back, rbc::canonical(kNaN<T>)));
    }
  }
}

// ---- sums in fixed point: the parts -------------------------------------------------------------

TEST_CASE("voxel formulas: integers of 128 bits") {
  Random random(5);
  int wrong = 0;
  for (int i = 0; i < 100000; ++i) {
    // Carries are common if the low words are near their ends.
    const auto draw = [&] {
      const uint64_t low[] = {random.bits(), 0, ~uint64_t{0}, 1};
      const uint64_t high[] = {random.bits(), 0, ~uint64_t{0}, random.bits() >> 40};
      return Fixed128{random.pick(low), random.pick(high)};
    };
    const Fixed128 a = draw();
    const Fixed128 b = draw();
    const auto sum = static_cast<UInt128>(wide(a)) + static_cast<UInt128>(wide(b));
    wrong += static_cast<UInt128>(wide(a + b)) == sum ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("voxel formulas: logarithms and powers") {
  CHECK(rbc::ceilLog2(1) == 0);
  for (int k = 1; k < 40; ++k) {
    const int64_t n = int64_t{1} << k;
    CHECK(rbc::ceilLog2(n) == k);
    CHECK(rbc::ceilLog2(n + 1) == k + 1);
    CHECK(rbc::ceilLog2(n - 1) == (k == 1 ? 0 : k));
  }
  for (int k = -1022; k <= 1023; ++k) CHECK(rbc::powerOfTwo(k) == std::ldexp(1.0, k));
}

TEST_CASE_TEMPLATE("voxel formulas: the exponent past a magnitude", T, float, double) {
  Random random(6);
  int wrong = 0;
  const auto check = [&](T x) {
    int expected = 0;
    std::frexp(x, &expected);  // in [1/2, 1) * 2^expected
    wrong += rbc::exponentPast(rbc::magnitude(x)) == expected ? 0 : 1;
    wrong += rbc::magnitude(x) < rbc::kNotFinite<T> ? 0 : 1;
  };
  for (int e = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
       e < std::numeric_limits<T>::max_exponent; ++e) {
    const T power = std::ldexp(T(1), e);
    if (power == 0) continue;
    for (const T x : {power, std::nextafter(power, T(0)), std::nextafter(power, kMost<T>)}) {
      if (x != 0) check(x), check(-x);
    }
  }
  for (int i = 0; i < 100000; ++i) {
    const T x = anyFinite<T>(random);
    if (x != 0) check(x);
  }
  check(kMost<T>);
  CHECK(wrong == 0);
  for (const T bad : {kInfinity<T>, -kInfinity<T>, kNaN<T>, -kNaN<T>})
    CHECK(rbc::magnitude(bad) >= rbc::kNotFinite<T>);
}

TEST_CASE_TEMPLATE("voxel formulas: rounding to a multiple of the quantum", T, float, double) {
  Random random(7);
  int wrong = 0;
  for (int i = 0; i < 300000; ++i) {
    // The largest of n values, and another of them, down to one that rounds to nothing.
    const T largest = anyFinite<T>(random);
    const int64_t n = 1 + (random.bits() >> (33 + random.below(31)));
    const int shift = rbc::fixedShift<T>(rbc::magnitude(largest), n);
    const int64_t spread = sizeof(T) == 4 ? 70 : 140;
    const T x = random.chance(0.1) ? largest : about<T>(random, largest, spread);
    const Int128 expected =
        static_cast<Int128>(std::rint(std::scalbn(static_cast<long double>(x), shift)));
    const Int128 actual = wide(rbc::toFixed(x, shift));
    wrong += actual == expected ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("voxel formulas: ties of f64 go to even") {
  // Multiples of 2^-1 and 2^-2 at a shift of 0, and of the same digits far below.
  for (int shift = -60; shift <= 0; ++shift) {
    for (int64_t digits = 0; digits < 4096; ++digits) {
      const double x = std::ldexp(static_cast<double>(digits), -2 - shift);
      const auto expected = static_cast<Int128>(std::rint(static_cast<double>(digits) / 4));
      if (wide(rbc::toFixed(x, shift)) != expected || wide(rbc::toFixed(-x, shift)) != -expected)
        FAIL(digits, " / 4 at ", shift);
    }
  }
}

// Features that another thread writes between the passes. The sanitizers report an invalid shift.
TEST_CASE("voxel formulas: a number that was far smaller before is shifted within its bits") {
  for (const double x : {0x1p-900, 1.0, kMost<double>, kInfinity<double>}) {
    const int shift = rbc::fixedShift<double>(rbc::magnitude(kTiny<double>), 2);
    CHECK(rbc::toFixed(x, shift).low == 0);
    CHECK(rbc::toFixed(-x, shift).low == 0);
  }
}

TEST_CASE("voxel formulas: sums in fixed point become the nearest f64") {
  Random random(8);
  int wrong = 0;
  const auto check = [&](Int128 sum, int shift) {
    const double expected = std::ldexp(static_cast<double>(sum), -shift);
    const double actual = rbc::fromFixed(fixed(sum), shift);
    wrong += bitCast<uint64_t>(actual) == bitCast<uint64_t>(expected) ? 0 : 1;
    if (sum == static_cast<int64_t>(sum) && shift > -900) {
      const double narrow = rbc::fromFixed(static_cast<uint64_t>(sum), shift);
      wrong += bitCast<uint64_t>(narrow) == bitCast<uint64_t>(expected) ? 0 : 1;
    }
  };
  for (int i = 0; i < 300000; ++i) {
    const auto bits = static_cast<int>(random.below(125));
    const auto any = static_cast<UInt128>(random.bits()) << 64 | random.bits();
    auto sum = static_cast<Int128>(any >> (127 - bits));
    if (random.chance(0.5)) sum = -sum;
    check(sum, static_cast<int>(random.below(1000)) - 500);
    // Around ties: halfway between two doubles, and next to that.
    const auto up = static_cast<int>(random.below(70));
    const Int128 odd = static_cast<Int128>((random.bits() >> 10) | uint64_t{1} << 53 | 1);
    for (const int step : {-1, 0, 1}) {
      check((odd << up) + step, static_cast<int>(random.below(200)) - 100);
      check(-(odd << up) + step, static_cast<int>(random.below(200)) - 100);
    }
  }
  check(0, 0);
  check(0, 211);
  for (int k = 0; k <= 124; ++k) {
    for (const int step : {-1, 0, 1}) {
      check((Int128{1} << k) + step, 124);
      check(-(Int128{1} << k) + step, 124);
    }
  }
  CHECK(wrong == 0);
  // Past the largest f64 it is infinite, and near the smallest ones nothing is lost.
  constexpr Int128 kOne = Int128{1} << 124;
  CHECK(rbc::fromFixed(fixed(kOne), -930) == kInfinity<double>);
  CHECK(rbc::fromFixed(fixed(-kOne), -930) == -kInfinity<double>);
  CHECK(rbc::fromFixed(fixed(kOne), 1198) == kTiny<double>);
  CHECK(rbc::fromFixed(fixed(3 * (kOne >> 2)), 1196) == 3 * kTiny<double>);
}

// ---- sums in fixed point: the whole -------------------------------------------------------------

namespace {

// The two passes, with the terms in several parts that are added at the end.
template <class T>
double fixedSum(const std::vector<T>& values, size_t parts, bool mean = false) {
  OrderKey<T> largest = 0;
  for (const T x : values) largest = std::max(largest, rbc::magnitude(x));
  const rbc::FixedSum<T> sum(largest, static_cast<int64_t>(values.size()));
  std::vector<Fixed<T>> partial(parts, Fixed<T>{});
  for (size_t i = 0; i < values.size(); ++i)
    partial[i % parts] = partial[i % parts] + sum.term(values[i]);
  Fixed<T> total{};
  for (const Fixed<T>& part : partial) total = part + total;
  return sum.result(total, mean);
}

// The header's bound on the error beyond the rounding to f64: n / 2 quanta.
template <class T>
long double boundOf(const std::vector<T>& values) {
  T largest = 0;
  for (const T x : values) largest = std::max(largest, std::fabs(x));
  if (largest == 0) return 0;
  const auto n = static_cast<long double>(values.size());
  const int quantum = std::ilogb(largest) + 1 + static_cast<int>(std::ceil(std::log2(n))) -
                      (sizeof(T) == 4 ? 62 : 124);
  return n / 2 * std::scalbn(1.0L, quantum);
}

// An exact sum as an integer times 2^-kBias, with a limb for every 32 bits.
class ExactSum {
 public:
  void add(long double x) {
    int exponent = 0;
    const long double fraction = std::frexp(std::fabs(x), &exponent);
    auto digits = static_cast<UInt128>(std::scalbn(fraction, 64));  // times 2^(exponent - 64)
    const int at = exponent - 64 + kBias;
    digits <<= at % 32;
    for (size_t limb = static_cast<size_t>(at / 32); digits != 0; ++limb, digits >>= 32) {
      const auto part = static_cast<int64_t>(static_cast<uint32_t>(digits));
      limbs_[limb] += x < 0 ? -part : part;
    }
  }
  long double value() const {
    std::vector<int64_t> limbs = limbs_;
    int64_t carry = 0;
    for (int64_t& limb : limbs) {
      limb += carry;
      carry = limb >> 32;
      limb -= carry * (int64_t{1} << 32);
    }
    if (carry < 0) return -negated().value();  // it would cancel in two's complement
    long double sum = 0;
    for (size_t i = limbs.size(); i-- > 0;)
      sum += std::scalbn(static_cast<long double>(limbs[i]), 32 * static_cast<int>(i) - kBias);
    return sum;
  }

 private:
  static constexpr int kBias = 1280;

  ExactSum negated() const {
    ExactSum result;
    for (size_t i = 0; i < limbs_.size(); ++i) result.limbs_[i] = -limbs_[i];
    return result;
  }

  std::vector<int64_t> limbs_ = std::vector<int64_t>(84, 0);
};

template <class T>
std::vector<T> someValues(Random& random, size_t n) {
  const T scale = random.chance(0.2) ? kTiny<T> * 1000
                                     : std::ldexp(T(1), static_cast<int>(random.below(200)) - 100);
  const auto spread = random.below(sizeof(T) == 4 ? 80 : 160);
  std::vector<T> values;
  for (size_t i = 0; i < n; ++i)
    values.push_back(about<T>(random, scale, static_cast<int>(spread)));
  // Large values that cancel leave the sum of the small ones.
  if (random.chance(0.3) && n > 2) {
    values[0] = 8 * scale;
    values[n - 1] = -8 * scale;
  }
  return values;
}

}  // namespace

TEST_CASE_TEMPLATE("voxel formulas: a sum is as accurate as the header states", T, float, double) {
  Random random(9);
  int wrong = 0;
  long double largest = 0;  // relative to the bound
  for (int round = 0; round < 4000; ++round) {
    const auto n = static_cast<size_t>(1 + random.below(round % 10 == 0 ? 3000 : 40));
    const std::vector<T> values = someValues<T>(random, n);
    ExactSum exact;
    for (const T x : values) exact.add(x);
    const long double error = std::fabs(fixedSum(values, 1) - exact.value());
    // Plus one rounding to f64 of the inexact sum.
    const long double rounding =
        std::scalbn(std::fabs(exact.value()) + boundOf(values), -53) + kTiny<double> / 2.0L;
    wrong += error <= boundOf(values) + rounding ? 0 : 1;
    if (boundOf(values) > 0) largest = std::max(largest, (error - rounding) / boundOf(values));
  }
  CHECK(wrong == 0);
  MESSAGE("at most ", static_cast<double>(largest), " of the stated bound");
}

TEST_CASE("voxel formulas: a sum of 1000 f32 is within 2^-42 of the largest") {
  Random random(10);
  for (int round = 0; round < 500; ++round) {
    std::vector<float> values;
    ExactSum exact;
    for (int i = 0; i < 1000; ++i) {
      // Small enough, relative to the largest, to be rounded.
      values.push_back(i == 0 ? 1.0f : about<float>(random, 0.99f, 60));
      exact.add(values.back());
    }
    const double sum = fixedSum(values, 1);
    const long double rounding = std::scalbn(std::fabs(static_cast<long double>(sum)), -53);
    CHECK(std::fabs(sum - exact.value()) <= 0x1p-42L + rounding);
  }
}

TEST_CASE_TEMPLATE("voxel formulas: the order of terms and parts changes no bit", T, float,
                   double) {
  Random random(11);
  int wrong = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<T> values = someValues<T>(random, static_cast<size_t>(1 + random.below(60)));
    if (round % 5 == 0)
      values[static_cast<size_t>(random.below(static_cast<int64_t>(values.size())))] =
          random.chance(0.3)   ? kNaN<T>
          : random.chance(0.5) ? kInfinity<T>
                               : -kInfinity<T>;
    const bool mean = random.chance(0.5);
    const auto expected = bitCast<uint64_t>(fixedSum(values, 1, mean));
    for (size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    const auto parts = static_cast<size_t>(1 + random.below(9));
    wrong += bitCast<uint64_t>(fixedSum(values, parts, mean)) == expected ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("voxel formulas: simple sums", T, float, double) {
  CHECK(fixedSum<T>({T(1), T(2), T(3.5)}, 1) == 6.5);
  CHECK(fixedSum<T>({T(1), T(2), T(3)}, 2, true) == 2);
  CHECK(bitCast<uint64_t>(fixedSum<T>({T(-0.0)}, 1)) == 0);
  CHECK(bitCast<uint64_t>(fixedSum<T>({T(1), T(-1)}, 1)) == 0);
  CHECK(fixedSum<T>({kTiny<T>}, 1) == kTiny<T>);
  CHECK(fixedSum<T>({kTiny<T>, kTiny<T>, -kTiny<T>}, 2) == kTiny<T>);
  CHECK(fixedSum<T>({kMost<T>}, 1) == kMost<T>);
  CHECK(fixedSum<T>({kMost<T>, -kMost<T>, T(0)}, 1) == 0);
  CHECK(fixedSum<T>({std::numeric_limits<T>::min(), -kTiny<T>}, 1) ==
        std::nextafter(std::numeric_limits<T>::min(), T(0)));
  // Beyond the range of the type: for f32 the sum is an f64, for f64 it is infinite.
  CHECK(fixedSum<T>({kMost<T>, kMost<T>}, 1) ==
        (sizeof(T) == 4 ? 2 * static_cast<double>(kMost<T>) : kInfinity<double>));
  // Infinities and NaN.
  CHECK(fixedSum<T>({kInfinity<T>, T(1)}, 1) == kInfinity<double>);
  CHECK(fixedSum<T>({-kInfinity<T>, kMost<T>, -kInfinity<T>}, 2) == -kInfinity<double>);
  CHECK(fixedSum<T>({kInfinity<T>, T(1)}, 1, true) == kInfinity<double>);
  CHECK(std::isnan(fixedSum<T>({kInfinity<T>, -kInfinity<T>}, 1)));
  CHECK(std::isnan(fixedSum<T>({kNaN<T>, T(1)}, 2)));
  CHECK(std::isnan(fixedSum<T>({-kNaN<T>, kInfinity<T>}, 2)));
}

TEST_CASE_TEMPLATE("voxel formulas: the sum of one value equals its fixed point", T, float,
                   double) {
  Random random(12);
  std::vector<T> values = {T(0),      T(-0.0),      kTiny<T>,      -kTiny<T>,   kMost<T>,
                           -kMost<T>, kInfinity<T>, -kInfinity<T>, T(1) / T(3), kNaN<T>};
  for (int i = 0; i < 1000; ++i) values.push_back(anyFinite<T>(random));
  for (const T x : values) {
    for (const bool mean : {false, true}) {
      const double expected = rbc::canonical(fixedSum<T>({x}, 1, mean));
      CHECK(bitCast<uint64_t>(rbc::canonical(rbc::sumOfOne(x))) == bitCast<uint64_t>(expected));
    }
  }
}

TEST_CASE_TEMPLATE("voxel formulas: 2^31 - 1 values do not overflow", T, float, double) {
  constexpr int64_t n = INT32_MAX;
  for (const T x : {kMost<T>, -kMost<T>, T(1.5), kTiny<T>, -kTiny<T>}) {
    const rbc::FixedSum<T> sum(rbc::magnitude(x), n);
    const Int128 total = wide(sum.term(x)) * n;  // the result of adding it n times
    Fixed<T> terms{};
    if constexpr (sizeof(T) == 4) {
      CHECK(total == static_cast<int64_t>(total));
      terms = static_cast<uint64_t>(total);
    } else {
      CHECK(total / n == wide(sum.term(x)));
      terms = fixed(total);
    }
    // The product is rounded once, as the sum is.
    CHECK(sum.result(terms, false) ==
          static_cast<double>(static_cast<long double>(x) * static_cast<long double>(n)));
  }
  // The same number of infinities or NaN.
  for (const T x : {kInfinity<T>, -kInfinity<T>, kNaN<T>}) {
    const rbc::FixedSum<T> sum(rbc::magnitude(x), n);
    const auto total = static_cast<UInt128>(wide(sum.term(x)));
    double result = 0;
    if constexpr (sizeof(T) == 4) {
      result = sum.result(static_cast<uint64_t>(total) * static_cast<uint64_t>(n), false);
    } else {
      result = sum.result({sum.term(x).low * n, sum.term(x).high * n}, false);
    }
    CHECK((std::isnan(x) ? std::isnan(result) : result == static_cast<double>(x)));
  }
}
