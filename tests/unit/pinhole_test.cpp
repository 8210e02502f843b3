// Unprojection by products with reciprocals, as on CUDA, compared with division.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "pinhole.h"
#include "support/expect.h"
#include "support/random.h"

namespace {

using support::Random;

template <class T>
bool isSame(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// Numbers of all sizes from 2^-bits to 2^bits, some of them integers.
template <class T>
T sized(Random& random, int bits) {
  const double x =
      std::ldexp(random.uniform(1, 2), static_cast<int>(random.below(2 * bits)) - bits);
  return static_cast<T>(random.chance(0.3) && x > 1 ? std::floor(x) : x);
}

template <class T>
void compare(uint64_t seed) {
  Random random(seed);
  rbc::Pinhole<T> camera = {};
  rbc::DepthRules<T> rules = {};
  for (int i = 0; i < 2; ++i) {
    camera.focal[i] = sized<T>(random, 20) * (random.chance(0.3) ? T(-1) : T(1));
    camera.centre[i] = random.chance(0.2) ? T(0) : sized<T>(random, 20);
  }
  for (auto& row : camera.pose) {
    for (T& x : row) x = static_cast<T>(random.uniform(-1, 1));
  }
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  rules.depth_scale = sized<T>(random, 20);
  rules.max_depth = kInfinity;
  for (int i = 0; i < 3; ++i) rules.low[i] = -kInfinity, rules.high[i] = kInfinity;
  rules.pixel_offset = random.chance(0.5) ? T(0.5) : T(0);
  rules.posed = random.chance(0.3);
  const auto by = rbc::reciprocalsOf(camera, rules);
  REQUIRE(by.suit);
  for (int i = 0; i < 200; ++i) {
    T depth = sized<T>(random, 20);
    if (random.chance(0.1)) depth = random.chance(0.5) ? T(0) : -depth;
    if (random.chance(0.05)) depth = std::numeric_limits<T>::quiet_NaN();
    if (!rbc::suitsProducts(depth)) continue;
    T rays[2];
    for (int axis = 0; axis < 2; ++axis) {
      T pixel = static_cast<T>(random.below(int64_t{1} << (1 + random.below(24))));
      if (random.chance(0.2)) pixel = std::floor(std::min(camera.centre[axis], T(1 << 24)));
      rays[axis] = rbc::ray(pixel, rules.pixel_offset, camera.centre[axis]);
    }
    T divided[3] = {};
    T multiplied[3] = {};
    const bool is_point = rbc::unproject(camera, rules, depth, rays[0], rays[1], divided);
    CAPTURE(depth);
    CHECK(rbc::unprojectByProducts(camera, by, rules, depth, rays[0], rays[1], multiplied) ==
          is_point);
    for (int k = 0; k < 3 && is_point; ++k) CHECK(isSame(divided[k], multiplied[k]));
  }
}

}  // namespace

TEST_CASE("pinhole: products give the bits of divisions, where they suit") {
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    CAPTURE(seed);
    compare<float>(seed);
    compare<double>(seed);
  }
}

TEST_CASE("pinhole: products do not suit extreme cameras and depths") {
  rbc::Pinhole<float> camera = {{500, 500}, {320, 240}, {}};
  rbc::DepthRules<float> rules = {};
  rules.depth_scale = 1000;
  CHECK(rbc::reciprocalsOf(camera, rules).suit);
  camera.focal[1] = 0x1p21f;
  CHECK_FALSE(rbc::reciprocalsOf(camera, rules).suit);
  camera.focal[1] = 0;
  CHECK_FALSE(rbc::reciprocalsOf(camera, rules).suit);
  camera.focal[1] = 500, camera.centre[0] = 0x1p-30f;
  CHECK_FALSE(rbc::reciprocalsOf(camera, rules).suit);
  camera.centre[0] = 0, rules.depth_scale = 0x1p-30f;
  CHECK_FALSE(rbc::reciprocalsOf(camera, rules).suit);
  CHECK(rbc::suitsProducts(0.0f));
  CHECK(rbc::suitsProducts(-1e30f));
  CHECK_FALSE(rbc::suitsProducts(1e30f));
  CHECK_FALSE(rbc::suitsProducts(1e-30f));
}
