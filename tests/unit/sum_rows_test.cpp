// Sums of rows in one pass, compared bit by bit with fixed point.
#include "points/sum_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "real.h"
#include "support/expect.h"
#include "support/random.h"
#include "voxel_problem.h"
#include "voxel_reduce.h"

namespace {

using support::Random;

std::vector<rbc::cpu::SimdLevel> levelsHere() {
  std::vector<rbc::cpu::SimdLevel> levels;
  for (const int32_t level : {RBC_SIMD_AVX2, RBC_SIMD_AVX512, RBC_SIMD_NEON}) {
    try {
      levels.push_back(rbc::cpu::chooseSimd(level));
    } catch (...) {  // this machine lacks the level
    }
  }
  return levels;
}

// The sum, or mean, by the two passes of voxel_reduce.h.
float inFixedPoint(const std::vector<float>& numbers, bool mean) {
  const auto count = static_cast<int64_t>(numbers.size());
  if (count == 1) return rbc::narrow<float>(rbc::sumOfOne(numbers[0]));
  rbc::OrderKey<float> largest = 0;
  for (const float x : numbers) largest = std::max(largest, rbc::magnitude(x));
  const rbc::FixedSum<float> sum(largest, count);
  rbc::Fixed<float> total = {};
  for (const float x : numbers) total = total + sum.term(x);
  return rbc::narrow<float>(sum.result(total, mean));
}

// Exponents are within `spread` of each other; some numbers are not.
float numberOf(Random& random, int exponent, int spread, bool odd) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float odd_ones[] = {0.0f,   -0.0f,   kInfinity, -kInfinity,
                            1e-45f, -1e-40f, 3.4e38f,   std::numeric_limits<float>::quiet_NaN()};
  if (odd && random.chance(0.1)) return random.pick(odd_ones);
  if (random.chance(0.1)) return random.chance(0.5) ? 0.0f : -0.0f;
  const auto x = static_cast<float>(random.uniform(1, 2));
  const int down = random.chance(0.3) ? spread : static_cast<int>(random.below(spread + 1));
  return std::ldexp(random.chance(0.5) ? x : -x, exponent - down);
}

}  // namespace

TEST_CASE("sum rows: sums in one pass have the bits of the fixed point") {
  Random random(1);
  for (const rbc::cpu::SimdLevel level : levelsHere()) {
    const rbc::cpu::SumRows sumRows = rbc::cpu::sumRowsFor(level);
    REQUIRE((sumRows != nullptr));
    int64_t taken = 0;
    int64_t refused = 0;
    int64_t wrong = 0;
    for (int i = 0; i < 20000; ++i) {
      const int64_t features = 1 + random.below(9);
      const int64_t count = random.chance(0.2) ? 1 : 1 + random.below(random.chance(0.1) ? 300 : 9);
      const auto spread = static_cast<int>(random.below(45));
      const auto exponent = static_cast<int>(random.below(200)) - 90;
      const bool odd = random.chance(0.2);
      const bool mean = random.chance(0.5);
      std::vector<float> data(count * features);
      for (float& x : data) x = numberOf(random, exponent, spread, odd);
      // Cancellation reveals lost bits.
      for (int64_t k = 2 * features; k < count * features; ++k) {
        if (random.chance(0.3)) data[k] = -data[k - 2 * features];
      }
      std::vector<int32_t> points(count);
      for (int64_t k = 0; k < count; ++k) points[k] = static_cast<int32_t>(count - 1 - k);

      rbc::PointClouds clouds = {};
      clouds.clouds = 1;
      clouds.rows = count;
      const rbc::cpu::PointRows offsets(clouds, count * features, features);
      std::vector<float> sums(features + 1, 7.0f);
      if (!sumRows({data.data(), offsets, points.data(), count, features}, mean, sums.data())) {
        ++refused;
        continue;
      }
      ++taken;
      for (int64_t f = 0; f < features; ++f) {
        std::vector<float> numbers;
        for (int64_t k = 0; k < count; ++k) numbers.push_back(data[k * features + f]);
        const float expected = inFixedPoint(numbers, mean);
        wrong += rbc::bitCast<uint32_t>(sums[f]) == rbc::bitCast<uint32_t>(expected) ? 0 : 1;
      }
      wrong += sums[features] == 7.0f ? 0 : 1;  // nothing after the row
    }
    CHECK(wrong == 0);
    CHECK(taken > 5000);
    CHECK(refused > 2000);
  }
}
