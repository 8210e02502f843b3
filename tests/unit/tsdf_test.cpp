// rbcVoxelizeTsdf compared with a reference that tries every voxel, between backends and numbers of
// threads, and the formulas on their own.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "support/expect.h"
#include "support/operation_tests.h"
#include "support/poisoned_scratch.h"
#include "support/tsdf_cases.h"
#include "support/tsdf_reference.h"
#include "tsdf_ray.h"

namespace {

using support::Random;
using support::TsdfRun;
using support::TsdfScene;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Tsdf {
  static constexpr uint64_t kRandomCases = 350;
  static constexpr uint64_t kSameBits = 300;
  static std::vector<support::TsdfCase> table() { return support::tsdfCases(); }
  static support::TsdfCase random(uint64_t seed) { return support::randomTsdfCase(seed); }
  static support::TsdfCase any(uint64_t seed) {
    return seed % 2 == 0 ? random(seed) : support::wildTsdfCase(seed);
  }
};

}  // namespace

OPERATION_TESTS("tsdf", Tsdf)

TEST_CASE("reference: a wrong distance, weight or count of a volume is found") {
  support::checkReferenceTells<Tsdf>(20, [](support::TsdfOutput* output, size_t i) {
    if (i > 1 + output->dropped.size()) return false;
    if (i > 1) {
      output->dropped[i - 2] += 1000;
    } else if (i == 1) {
      output->volume.weight[output->volume.weight.size() / 2] += 1000;
    } else {
      output->volume.weight[0] -= 1000;
    }
    return true;
  });
}

TEST_CASE("reference: most voxels of random scenes are certain") {
  double certain = 0;
  for (uint64_t seed = 0; seed < Tsdf::kRandomCases; ++seed) {
    certain += support::tsdfReference(support::randomScene(seed)).certainShare();
  }
  CHECK(certain > 0.9 * Tsdf::kRandomCases);  // otherwise the reference would check little
}

// Enough work for all threads and blocks, on the same voxels.
TEST_CASE("tsdf cpu: 40000 rays on any number of threads give the same bits") {
  const TsdfScene scene = support::ballScene({1.5, 0.25, -0.5}, 40000);
  const TsdfRun expected = support::integrate(support::cpuContext(1), scene);
  for (const int32_t threads : {2, 3, 7}) {
    CHECK(sameBits(support::integrate(support::cpuContext(threads), scene), expected));
  }
}

TEST_CASE("tsdf cuda: 40000 rays give the bits of the CPU") {
  WITH_CUDA(cuda);
  for (const bool carve : {false, true}) {
    TsdfScene scene = support::ballScene({1.5, 0.25, -0.5}, 40000);
    scene.carve = carve;
    CHECK(sameBits(support::integrate(support::cpuContext(), scene),
                   support::integrate(cuda, scene)));
  }
}

TEST_CASE("tsdf cpu: rays together and apart on any number of threads") {
  const support::Context one = support::cpuContext(1);
  const support::Context three = support::cpuContext(3);
  for (const support::TsdfCase& c : support::fewerWhenSanitized(support::manyRayCases())) {
    support::checkSame(support::inputsOf(c), one, three, "on three threads");
  }
}

TEST_CASE("tsdf cuda: rays together and apart give the bits of the CPU") {
  WITH_CUDA(cuda);
  support::checkBackends(cuda, support::manyRayCases());
}

// Each call continues with the result of the previous one.
TEST_CASE("tsdf cuda: calls one after another in one workspace") {
  WITH_CUDA(cuda);
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CUDA;
  const support::PoisonedScratch scratch(params);
  const support::Context& context = scratch.context();
  std::vector<support::TsdfCase> cases = support::manyRayCases();
  size_t most = 0;
  for (const support::TsdfCase& c : cases) {
    const auto placed = placedOf(scratch.other(), support::inputsOf(c));
    most = std::max(most, placed.workspaceSize(context));
  }
  support::require(rbcContextReserve(context.get(), most));
  scratch.poison(0xA5);
  const support::Context cpu = support::cpuContext();
  for (int round = 0; round < 2; ++round) {
    for (const support::TsdfCase& c : cases) {
      const auto in = support::inputsOf(c);
      auto placed = placedOf(scratch.other(), in);
      const auto result = support::detail::finish(
          context, placed, [](auto&& call) { return call(); },
          [&] { return placed.call(context); });
      const bool right =
          result.status == RBC_STATUS_SUCCESS && result.output == support::run(cpu, in).output;
      CHECK_MESSAGE(right, describe(c), " ", result.message);
    }
    std::reverse(cases.begin(), cases.end());
  }
  CHECK(scratch.isPoisonPast(most, 0xA5));
}

TEST_CASE("tsdf cuda: the workspace has room for the voxels that rays can observe") {
  WITH_CUDA(cuda);
  const auto bytesOf = [&](int points, bool carve) {
    TsdfScene scene = support::plainScene({128, 128, 128}, {64, 64, 64}, {});
    scene.truncation = 5;
    scene.carve = carve;
    scene.clouds[0].assign(static_cast<size_t>(points), {20, 30, 40});
    return support::PlacedTsdf(cuda, scene, support::newVolume(scene)).workspaceSize(cuda);
  };
  constexpr size_t kVoxels = size_t{128} * 128 * 128;
  CHECK(bytesOf(0, false) == 0);
  CHECK(bytesOf(100, false) < kVoxels / 2 + 100 * 50 * 20);
  CHECK(bytesOf(100, true) < kVoxels / 2 + 100 * 3 * 128 * 20);
  CHECK(bytesOf(100000, true) < kVoxels * 41 / 2);
}

// ---- the traversal itself -----------------------------------------------------------------------

namespace {

// The voxels that a ray passes, by their coordinates.
template <class Number>
std::vector<std::array<int64_t, 3>> pathOf(const rbc::RayField<Number>& field,
                                           const rbc::TsdfRay<Number>& ray) {
  std::vector<std::array<int64_t, 3>> path;
  rbc::walk(field, ray, [&](int64_t index, int64_t) {
    const int64_t row = index / field.extent[2];
    path.push_back({row / field.extent[1], row % field.extent[1], index % field.extent[2]});
  });
  return path;
}

template <class Number>
void checkPaths(uint64_t first, uint64_t count) {
  int64_t steps = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const bool wild = random.chance(0.5);
    const auto number = [&](double low, double high) {
      const double most = wild ? random.uniform(0, 12) : 0;
      return static_cast<Number>(random.uniform(low, high) *
                                 std::pow(10.0, random.uniform(-most, most)));
    };
    rbc::RayField<Number> field = {};
    for (int axis = 0; axis < 3; ++axis) {
      field.extent[axis] = static_cast<int32_t>(1 + random.below(200));
      field.grid.limit[axis] = static_cast<Number>(field.extent[axis]);
      field.grid.origin[axis] = number(-9, 9);
      field.grid.voxel_size[axis] = 1 / number(1, 10);
    }
    field.truncation = number(0.01, 30);
    field.inverse_truncation = 1 / field.truncation;
    field.carve = random.chance(0.5);
    Number point[3], sensor[3];
    for (int axis = 0; axis < 3; ++axis) {
      point[axis] = number(-10, 30);
      sensor[axis] = random.chance(0.2) ? point[axis] : number(-30, 30);
    }
    rbc::TsdfRay<Number> ray;
    if (!rbc::aim(field, point, sensor, &ray)) continue;
    const auto path = pathOf(field, ray);
    REQUIRE(!path.empty());
    REQUIRE(static_cast<int64_t>(path.size()) <=
            int64_t{field.extent[0]} + field.extent[1] + field.extent[2]);
    for (size_t i = 0; i < path.size(); ++i) {
      int64_t moves = 0;
      for (size_t k = 0; k < 3; ++k) {
        REQUIRE(path[i][k] >= 0);
        REQUIRE(path[i][k] < field.extent[k]);
        if (i > 0) moves += std::abs(path[i][k] - path[i - 1][k]);
      }
      REQUIRE(moves == (i > 0 ? 1 : 0));
    }
    steps += static_cast<int64_t>(path.size());
    // The point's own voxel is passed, unless the point is on an edge.
    rbc::VoxelIndex own;
    if (rbc::voxelOf(field.grid, point, &own)) {
      const std::array<int64_t, 3> voxel = {own.x, own.y, own.z};
      REQUIRE(std::count(path.begin(), path.end(), voxel) == 1);
    }
  }
  CHECK(steps > static_cast<int64_t>(count));
}

}  // namespace

TEST_CASE("tsdf formulas: a path has no gaps, no voxel twice, and stays in the grid") {
  checkPaths<float>(0, 20000);
  checkPaths<double>(50000, 20000);
}

namespace {

// Long grids and short ones, rays along the axes and across, from points on faces and far outside:
// where the most steps are taken, and where places are rounded the most.
template <class Number>
void checkMost(uint64_t first, uint64_t count) {
  int64_t close = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const auto power = [&](double most) { return std::exp2(random.uniform(-most, most)); };
    const double unit = power(random.chance(0.8) ? 1 : 60);
    rbc::RayField<Number> field = {};
    field.carve = random.chance(0.1);
    field.truncation = static_cast<Number>(unit * std::exp2(random.uniform(-3, 9)));
    field.inverse_truncation = 1 / field.truncation;
    Number point[3], sensor[3];
    for (int axis = 0; axis < 3; ++axis) {
      const auto extent = static_cast<int32_t>(std::exp2(random.uniform(0, 22)));
      const double size = unit * power(2);
      field.extent[axis] = extent;
      field.grid.limit[axis] = static_cast<Number>(extent);
      field.grid.voxel_size[axis] = static_cast<Number>(size);
      const double origin = random.chance(0.5) ? 0 : size * random.uniform(-1, 1) * extent;
      field.grid.origin[axis] = static_cast<Number>(origin);
      double place = random.uniform(-0.5, 1.5) * extent;
      if (random.chance(0.3)) place = random.uniform(0, 20);
      if (random.chance(0.3)) place = extent - random.uniform(0, 20);
      if (random.chance(0.3)) place = std::floor(place);
      point[axis] = static_cast<Number>(origin + size * place);
      const double side = random.chance(0.2) ? 0 : random.uniform(-1, 1) * power(4);
      sensor[axis] =
          point[axis] + static_cast<Number>(side * static_cast<double>(field.truncation));
    }
    rbc::TsdfRay<Number> ray;
    if (!rbc::aim(field, point, sensor, &ray)) continue;
    int64_t passed = 0;
    rbc::walk(field, ray, [&](int64_t, int64_t) { ++passed; });
    const int64_t most = rbc::mostVoxels(field);
    REQUIRE(passed <= most);
    close += 2 * passed > most ? 1 : 0;
  }
  CHECK(close > static_cast<int64_t>(count) / 200);  // otherwise this would check little
}

}  // namespace

TEST_CASE("tsdf formulas: no ray passes more than the maximum number of voxels") {
  checkMost<float>(0, 20000);
  checkMost<double>(50000, 20000);
}

TEST_CASE("tsdf formulas: grids beyond the integers of f32") {
  rbc::RayField<float> field = {};
  for (int axis = 0; axis < 3; ++axis) {
    field.extent[axis] = axis == 0 ? INT32_MAX : 1;
    field.grid.limit[axis] = axis == 0 ? 0x1p31f : 1;
    field.grid.voxel_size[axis] = 1;
  }
  field.truncation = 1000;
  field.inverse_truncation = 1e-3f;
  for (const float x : {0.5f, 16777216.0f, 2147483520.0f, 2147483648.0f, 3e9f}) {
    for (const float side : {-1.0f, 1.0f}) {
      const float point[] = {x, 0.5f, 0.5f};
      const float sensor[] = {x + side * 5000, 0.5f, 0.5f};
      rbc::TsdfRay<float> ray;
      if (!rbc::aim(field, point, sensor, &ray)) continue;
      int64_t count = 0;
      rbc::walk(field, ray, [&](int64_t index, int64_t) {
        ++count;
        REQUIRE(index >= 0);
        REQUIRE(index < INT32_MAX);
      });
      CHECK(count < 3000);
    }
  }
}

TEST_CASE("tsdf formulas: the running average") {
  const auto average = [](double distance, double weight, double truncation, double limit,
                          float tsdf, float before) {
    const double quanta = rbc::kTsdfQuanta;
    rbc::integrate({static_cast<uint64_t>(static_cast<int64_t>(distance / truncation * quanta)),
                    static_cast<uint64_t>(weight * quanta)},
                   truncation, limit, &tsdf, &before);
    return std::make_pair(tsdf, before);
  };
  using Pair = std::pair<float, float>;
  CHECK(average(-1.5, 2, 3, kInfinity, 0, 0) == Pair(-0.75f, 2));
  CHECK(average(-1.5, 2, 3, kInfinity, static_cast<float>(kNaN), 0) == Pair(-0.75f, 2));
  CHECK(average(3, 1, 3, kInfinity, -1, 1) == Pair(1, 2));
  CHECK(average(3, 1, 3, 1.5, -1, 1) == Pair(1, 1.5f));
  // The sums of the maximum number of points of a call still fit.
  const auto most = static_cast<uint64_t>(INT32_MAX) << 32;
  float tsdf = 0, weight = 0;
  rbc::integrate({uint64_t{0} - most, most}, 0.125, kInfinity, &tsdf, &weight);
  CHECK(tsdf == -0.125f);
  CHECK(weight == 0x1p31f);
}
