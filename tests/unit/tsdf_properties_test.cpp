// The results of rbcVoxelizeTsdf for scenes with known distances, and changes that must not affect
// a bit.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/expect.h"
#include "support/tsdf_cases.h"
#include "support/tsdf_reference.h"

namespace {

using support::ballScene;
using support::CloudForm;
using support::Context;
using support::kF32;
using support::kF64;
using support::plainScene;
using support::Random;
using support::seenBall;
using support::TsdfRun;
using support::TsdfScene;
using support::TsdfVolume;
using support::Vector3;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double radiusOf(const TsdfScene& scene, int64_t x, int64_t y, int64_t z) {
  double square = 0;
  const int64_t index[] = {x, y, z};
  for (size_t k = 0; k < 3; ++k) {
    const double c =
        scene.grid.origin[k] + scene.grid.voxel_size[k] * (static_cast<double>(index[k]) + 0.5);
    square += c * c;
  }
  return std::sqrt(square);
}

void onCuda(void (*check)(const Context&)) {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  check(cuda);
}

void checkPlane(const Context& context) {
  for (const bool flip : {false, true}) {
    // The plane x = 10.5, by points in the middle of each column's square, seen from far away.
    std::vector<Vector3> points;
    for (int y = 0; y < 5; ++y) {
      for (int z = 0; z < 4; ++z) points.push_back({10.5, y + 0.5, z + 0.5});
    }
    TsdfScene scene = plainScene({20, 5, 4}, {}, points);
    scene.points_dtype = kF64;
    scene.truncation = 4;
    scene.sensors = {{flip ? 1e9 : -1e9, 2.5, 2}};
    const TsdfVolume volume = support::integrate(context, scene).volume;
    for (int64_t y = 0; y < 5; ++y) {
      for (int64_t z = 0; z < 4; ++z) {
        for (int64_t x = 0; x < 20; ++x) {
          CAPTURE(x);
          const double before = (10.5 - (static_cast<double>(x) + 0.5)) * (flip ? -1 : 1);
          const bool near = std::fabs(before) < 4.5;  // 6.5 .. 14.5 along x
          CHECK(volume.weightAt(scene, x, y, z) == (near ? 1 : 0));
          if (near) {
            CHECK(volume.tsdfAt(scene, x, y, z) ==
                  doctest::Approx(std::clamp(before, -4.0, 4.0)).epsilon(1e-6));
          }
        }
        CHECK(volume.tsdfAt(scene, 10, y, z) == doctest::Approx(0).epsilon(1e-6));
      }
    }
  }
}

void checkBall(const Context& context) {
  for (const bool inside : {false, true}) {
    const Vector3 sensor = inside ? Vector3{0.02, -0.01, 0.03} : Vector3{0, 0, 40};
    const TsdfScene scene = ballScene(sensor, 60000, inside ? 1 : -std::cos(1.0 / 40));
    const TsdfVolume volume = support::integrate(context, scene).volume;
    int64_t observed = 0;
    for (int64_t x = 0; x < 40; ++x) {
      for (int64_t y = 0; y < 40; ++y) {
        for (int64_t z = 0; z < 40; ++z) {
          if (volume.weightAt(scene, x, y, z) == 0) continue;
          ++observed;
          const auto got = static_cast<double>(volume.tsdfAt(scene, x, y, z));
          const double outside = radiusOf(scene, x, y, z) - 1;
          REQUIRE(std::fabs(got) <= static_cast<double>(0.3f));
          if (inside) {
            // Rays leave at right angles: the distance is the distance to the ball, except for rays
            // next to the centre.
            CHECK(got == doctest::Approx(std::clamp(-outside, -0.3, 0.3)).epsilon(0.05));
          } else if (std::fabs(outside) > 0.1 && outside < 0) {
            CHECK(got < 0);  // behind the surface
          } else if (outside > 0.1) {
            CHECK(got > 0);  // between the sensor and the ball
          }
        }
      }
    }
    CHECK(observed > 2000);
  }
}

void checkCarving(const Context& context) {
  TsdfScene scene = plainScene({30, 1, 1}, {2.5, 0.5, 0.5}, {{20.5, 0.5, 0.5}});
  scene.truncation = 3;
  TsdfVolume volume = support::integrate(context, scene).volume;
  for (int64_t x = 0; x < 30; ++x) {
    CHECK(volume.weightAt(scene, x, 0, 0) == (x >= 17 && x <= 23 ? 1 : 0));
  }
  scene.carve = true;
  volume = support::integrate(context, scene).volume;
  for (int64_t x = 0; x < 30; ++x) {
    CAPTURE(x);
    CHECK(volume.weightAt(scene, x, 0, 0) == (x >= 2 && x <= 23 ? 1 : 0));
    if (x < 2 || x > 23) continue;
    CHECK(volume.tsdfAt(scene, x, 0, 0) == std::clamp<float>(20.0f - static_cast<float>(x), -3, 3));
  }
  // The truncation does not extend behind the sensor, carving or not.
  scene.truncation = 50;
  for (const bool carve : {false, true}) {
    scene.carve = carve;
    volume = support::integrate(context, scene).volume;
    for (int64_t x = 0; x < 30; ++x) CHECK(volume.weightAt(scene, x, 0, 0) == (x >= 2 ? 1 : 0));
  }
}

void checkWeights(const Context& context) {
  // Two surfaces on one line, at 4 and at 6, seen from 0: all voxels observe both.
  TsdfScene scene = plainScene({16, 1, 1}, {0, 0.5, 0.5}, {{4, 0.5, 0.5}, {6, 0.5, 0.5}});
  scene.truncation = 10;
  const auto check = [&](double near, double far, double limit) {
    const TsdfVolume volume = support::integrate(context, scene).volume;
    for (int64_t x = 0; x < 14; ++x) {
      const double c = static_cast<double>(x) + 0.5;
      const double average = (near * (4 - c) + far * std::max(6 - c, -10.0)) / (near + far);
      CHECK(volume.tsdfAt(scene, x, 0, 0) == doctest::Approx(average).epsilon(1e-6));
      CHECK(volume.weightAt(scene, x, 0, 0) ==
            doctest::Approx(std::min(near + far, limit)).epsilon(1e-6));
    }
  };
  check(1, 1, kInfinity);
  scene.weighting = RBC_VOXELIZE_TSDF_WEIGHTING_INVERSE_SQUARE;
  check(1.0 / 16, 1.0 / 36, kInfinity);
  scene.max_weight = 0.08;
  check(1.0 / 16, 1.0 / 36, 0.08);
  // A weight is at most 1, and never 0.
  scene.max_weight = kInfinity;
  scene.clouds = {{{0.25, 0.5, 0.5}}};
  CHECK(support::integrate(context, scene).volume.weight[0] == 1);
  scene.sensors = {{-1e9, 0.5, 0.5}};
  CHECK(support::integrate(context, scene).volume.weight[0] == 0x1p-32f);
}

void checkFullWeight(const Context& context) {
  TsdfScene scene = plainScene({8, 1, 1}, {-100, 0.5, 0.5}, {{4, 0.5, 0.5}});
  scene.truncation = 4;
  scene.max_weight = 3;
  TsdfVolume volume = support::newVolume(scene);
  double average = 0;
  for (int i = 0; i < 6; ++i) {
    if (i == 3) scene.clouds[0][0][0] = 5;
    volume = support::integrate(context, scene, volume).volume;
    const double w = std::min(i, 3);
    average = (average * w + scene.clouds[0][0][0] - 4.5) / (w + 1);
    CHECK(volume.tsdfAt(scene, 4, 0, 0) == doctest::Approx(average).epsilon(1e-6));
    CHECK(volume.weightAt(scene, 4, 0, 0) == std::min(i + 1, 3));
  }
}

void checkCloudAfterCloud(const Context& context) {
  TsdfScene scene = ballScene({0, 0, 1.9}, 3000);
  scene.form = CloudForm::kPadded;
  const std::vector<Vector3> sensors = {{0, 0, 1.9}, {0, 1.7, 0.5}, {-1.5, -1.5, 0}};
  scene.sensors = sensors;
  scene.clouds.clear();
  for (const Vector3& sensor : sensors) {
    scene.clouds.push_back(seenBall({0, 0, 0}, 1, sensor, 3000));
  }
  scene.form = CloudForm::kPacked;
  scene.weighting = RBC_VOXELIZE_TSDF_WEIGHTING_INVERSE_SQUARE;
  const TsdfRun all = support::integrate(context, scene);
  TsdfVolume volume = support::newVolume(scene);
  for (size_t b = 0; b < sensors.size(); ++b) {
    TsdfScene one = scene;
    one.form = CloudForm::kUnbatched;
    one.sensors = {sensors[b]};
    one.clouds = {scene.clouds[b]};
    const TsdfRun run = support::integrate(context, one, volume);
    CHECK(run.dropped[0] == all.dropped[b]);
    volume = run.volume;
  }
  for (size_t i = 0; i < volume.tsdf.size(); ++i) {
    REQUIRE(volume.weight[i] == doctest::Approx(all.volume.weight[i]).epsilon(1e-6));
    if (volume.weight[i] == 0) continue;
    REQUIRE(std::fabs(volume.tsdf[i] - all.volume.tsdf[i]) < 1e-6);
  }
}

void checkOrder(const Context& context) {
  for (uint64_t seed = 6000; seed < 6060; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    TsdfScene scene = support::randomScene(seed);
    scene.form = CloudForm::kLengths;
    scene.dropped = true;
    const TsdfVolume before = support::randomVolume(scene, random);
    const TsdfRun expected = support::integrate(context, scene, before);
    if (scene.clouds.empty()) continue;
    if (scene.sensors.size() == 1) scene.sensors.resize(scene.clouds.size(), scene.sensors[0]);

    TsdfScene other = scene;
    other.form = CloudForm::kPacked;
    CHECK(sameBits(support::integrate(context, other, before), expected));
    for (auto& cloud : other.clouds) {
      for (size_t i = cloud.size(); i > 1; --i)
        std::swap(cloud[i - 1], cloud[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    }
    CHECK(sameBits(support::integrate(context, other, before), expected));
    std::reverse(other.clouds.begin(), other.clouds.end());
    std::reverse(other.sensors.begin(), other.sensors.end());
    CHECK(sameBits(support::integrate(context, other, before).volume, expected.volume));
  }
}

void checkFarFromOrigin(const Context& context) {
  TsdfScene near = ballScene({0.5, 0.25, 40}, 20000, -std::cos(1.0 / 20));
  near.points_dtype = near.sensors_dtype = kF64;
  TsdfScene far = near;
  const double shift = 4194304;  // metres, as in UTM; exact
  for (size_t k = 0; k < 3; ++k) {
    far.grid.origin[k] += shift;
    far.sensors[0][k] += shift;
    for (Vector3& p : near.clouds[0]) p[k] = static_cast<double>(static_cast<float>(p[k]));
  }
  far.clouds = near.clouds;
  for (Vector3& p : far.clouds[0]) {
    for (double& x : p) x += shift;
  }
  const TsdfVolume a = support::integrate(context, near).volume;
  const TsdfVolume b = support::integrate(context, far).volume;
  int64_t differ = 0;
  for (size_t i = 0; i < a.weight.size(); ++i) {
    differ += a.weight[i] != b.weight[i] ? 1 : 0;  // by a ray along a face
    if (a.weight[i] == 0 || a.weight[i] != b.weight[i]) continue;
    REQUIRE(std::fabs(a.tsdf[i] - b.tsdf[i]) < 1e-6);
  }
  CHECK(differ < 10);
}

void checkDropped(const Context& context) {
  const std::vector<Vector3> good = {{3.5, 4.5, 4.5}, {4, 5, 6}, {7.99, 7.99, 7.99}};
  const std::vector<Vector3> bad = {{kNaN, 1, 1},     {1, kInfinity, 1}, {1, 1, -kInfinity},
                                    {0.5, 0.5, 0.5},  // the sensor
                                    {30, 30, 30},     {-5, 0.5, 0.5},    {1e30, 2, 2},
                                    {-1e38, 3e38, 3}, {0.5, 0.5, 1e9},   {0.5, 9.6, 0.5}};
  TsdfScene scene = plainScene({8, 8, 8}, {0.5, 0.5, 0.5}, good);
  TsdfRun run = support::integrate(context, scene);
  CHECK(run.dropped == std::vector<int64_t>{0});
  const TsdfVolume expected = run.volume;
  scene.clouds[0].insert(scene.clouds[0].begin(), bad.begin(), bad.end());
  run = support::integrate(context, scene);
  CHECK(run.dropped == std::vector<int64_t>{static_cast<int64_t>(bad.size())});
  CHECK(sameBits(run.volume, expected));
  // Its ray enters the grid where carving begins.
  scene.points_dtype = kF64;
  scene.carve = true;
  scene.clouds = {{{1e10, 0.5, 0.5}}};
  run = support::integrate(context, scene);
  CHECK(run.dropped == std::vector<int64_t>{0});
  for (int64_t x = 0; x < 8; ++x) CHECK(run.volume.weightAt(scene, x, 0, 0) == 1);
  // A sensor that is not finite observes nothing.
  for (const double broken : {kNaN, kInfinity, -kInfinity}) {
    scene.clouds = {good};
    scene.sensors = {{0, broken, 0}};
    run = support::integrate(context, scene);
    CHECK(run.dropped == std::vector<int64_t>{3});
    CHECK(sameBits(run.volume, support::newVolume(scene)));
  }
}

void checkEdges(const Context& context) {
  for (const rbcDType dtype : {kF32, kF64}) {
    TsdfScene scene = plainScene({6, 6, 6}, {}, {});
    scene.points_dtype = dtype;
    scene.truncation = 2;
    scene.carve = true;
    for (int from = 0; from < 27; ++from) {
      scene.sensors = {{from % 3 * 3.0, from / 3 % 3 * 3.0, from / 9 * 3.0}};
      for (int to = 0; to < 27; ++to) {
        if (to == from) continue;
        scene.clouds = {{{to % 3 * 3.0, to / 3 % 3 * 3.0, to / 9 * 3.0}}};
        const TsdfVolume before = support::newVolume(scene);
        const std::string error = firstError(scene, support::tsdfReference(scene), before,
                                             support::runTsdf(context, scene, before));
        CHECK_MESSAGE(error.empty(), from, " to ", to, ": ", error);
      }
    }
  }
}

void checkWild(const Context& context) {
  for (uint64_t seed = 7000; seed < 7400; ++seed) {
    const TsdfScene scene = support::wildScene(seed);
    const TsdfRun run = support::runTsdf(context, scene, support::newVolume(scene));
    REQUIRE_MESSAGE(!run.stray_writes, "seed ", seed);
    if (run.status != RBC_STATUS_SUCCESS) {  // a grid or a truncation that f32 cannot represent
      REQUIRE_MESSAGE(run.status == RBC_STATUS_INVALID_ARGUMENT, run.message);
      continue;
    }
    for (size_t i = 0; i < run.volume.tsdf.size(); ++i) {
      const float weight = run.volume.weight[i];
      REQUIRE_MESSAGE(weight >= 0, "seed ", seed);
      if (weight > 0) {
        REQUIRE_MESSAGE(std::fabs(static_cast<double>(run.volume.tsdf[i])) <=
                            scene.truncation * (1 + 1e-6) + 1e-45,
                        "seed ", seed);
      }
    }
  }
}

void checkNothing(const Context& context) {
  Random random(1);
  for (const CloudForm form :
       {CloudForm::kUnbatched, CloudForm::kPadded, CloudForm::kLengths, CloudForm::kPacked}) {
    for (const size_t clouds : {0, 1, 3}) {
      if (form == CloudForm::kUnbatched && clouds != 1) continue;
      TsdfScene scene = plainScene({3, 4, 5}, {0, 0, 0}, {});
      scene.form = form;
      scene.clouds.assign(clouds, {});
      const TsdfVolume before = support::randomVolume(scene, random);
      const TsdfRun run = support::integrate(context, scene, before);
      CHECK(sameBits(run.volume, before));
      CHECK(run.dropped == std::vector<int64_t>(clouds, 0));
    }
  }
}

}  // namespace

TEST_CASE("tsdf cpu: a plane seen head on is linear across it") {
  checkPlane(support::cpuContext(2));
}
TEST_CASE("tsdf cuda: a plane seen head on is linear across it") { onCuda(checkPlane); }

TEST_CASE("tsdf cpu: a ball seen from outside and from within") {
  checkBall(support::cpuContext(2));
}
TEST_CASE("tsdf cuda: a ball seen from outside and from within") { onCuda(checkBall); }

TEST_CASE("tsdf cpu: carving updates the free space from the sensor on") {
  checkCarving(support::cpuContext(2));
}
TEST_CASE("tsdf cuda: carving updates the free space from the sensor on") { onCuda(checkCarving); }

TEST_CASE("tsdf cpu: weights by distance, their average and their limit") {
  checkWeights(support::cpuContext(2));
}
TEST_CASE("tsdf cuda: weights by distance, their average and their limit") { onCuda(checkWeights); }

TEST_CASE("tsdf cpu: a full weight follows new observations") {
  checkFullWeight(support::cpuContext(2));
}
TEST_CASE("tsdf cuda: a full weight follows new observations") { onCuda(checkFullWeight); }

TEST_CASE("tsdf cpu: cloud after cloud equals one call, within rounding") {
  checkCloudAfterCloud(support::cpuContext(2));
}
TEST_CASE("tsdf cuda: cloud after cloud equals one call, within rounding") {
  onCuda(checkCloudAfterCloud);
}

TEST_CASE("tsdf cpu: the order and the form of the points change no bit") {
  checkOrder(support::cpuContext(2));
}
TEST_CASE("tsdf cuda: the order and the form of the points change no bit") { onCuda(checkOrder); }

TEST_CASE("tsdf cpu: f64 points keep their precision far from the origin") {
  checkFarFromOrigin(support::cpuContext(2));
}
TEST_CASE("tsdf cuda: f64 points keep their precision far from the origin") {
  onCuda(checkFarFromOrigin);
}

TEST_CASE("tsdf cpu: points that are dropped") { checkDropped(support::cpuContext(2)); }
TEST_CASE("tsdf cuda: points that are dropped") { onCuda(checkDropped); }

TEST_CASE("tsdf cpu: rays along edges, through corners and in the faces of the grid") {
  checkEdges(support::cpuContext(2));
}
TEST_CASE("tsdf cuda: rays along edges, through corners and in the faces of the grid") {
  onCuda(checkEdges);
}

TEST_CASE("tsdf cpu: numbers of every size write only the volume") {
  checkWild(support::cpuContext(2));
}
TEST_CASE("tsdf cuda: numbers of every size write only the volume") { onCuda(checkWild); }

TEST_CASE("tsdf cpu: nothing to integrate leaves the volume unchanged") {
  checkNothing(support::cpuContext(2));
}
TEST_CASE("tsdf cuda: nothing to integrate leaves the volume unchanged") { onCuda(checkNothing); }
