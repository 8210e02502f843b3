// Scenes for rbcVoxelizeTsdf, number by number.
#include "support/tsdf_cases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/tsdf_reference.h"

namespace support {

TsdfScene plainScene(std::array<int64_t, 3> shape, Vector3 sensor, std::vector<Vector3> points) {
  TsdfScene scene;
  for (size_t k = 0; k < 3; ++k) {
    scene.grid.voxel_size[k] = 1;
    scene.grid.shape[k] = shape[k];
  }
  scene.form = CloudForm::kUnbatched;
  scene.sensors = {sensor};
  scene.clouds = {std::move(points)};
  return scene;
}

std::vector<Vector3> seenBall(const Vector3& centre, double radius, const Vector3& sensor,
                              int count, double most) {
  std::vector<Vector3> points;
  for (int i = 0; i < count; ++i) {
    // Evenly on the sphere of directions, by the golden angle.
    const double z = -1 + (most + 1) * (i + 0.5) / count;
    const double angle = i * 2.399963229728653;
    const double across = std::sqrt(1 - z * z);
    const Vector3 u = {across * std::cos(angle), across * std::sin(angle), z};
    double along = 0, square = 0;
    for (size_t k = 0; k < 3; ++k) {
      along += (centre[k] - sensor[k]) * u[k];
      square += (centre[k] - sensor[k]) * (centre[k] - sensor[k]);
    }
    const double root = along * along - square + radius * radius;
    if (root < 0) continue;
    const double near = along - std::sqrt(root);
    const double t = near > 0 ? near : along + std::sqrt(root);
    if (t <= 0) continue;
    points.push_back({sensor[0] + t * u[0], sensor[1] + t * u[1], sensor[2] + t * u[2]});
  }
  return points;
}

TsdfScene ballScene(const Vector3& sensor, int points, double most) {
  TsdfScene scene = plainScene({40, 40, 40}, sensor, seenBall({0, 0, 0}, 1, sensor, points, most));
  for (size_t k = 0; k < 3; ++k) {
    scene.grid.origin[k] = -2;
    scene.grid.voxel_size[k] = 0.1;
  }
  scene.truncation = 0.3;
  return scene;
}

TsdfVolume randomVolume(const TsdfScene& scene, Random& random) {
  TsdfVolume volume = newVolume(scene);
  for (size_t i = 0; i < volume.tsdf.size(); ++i) {
    if (!random.chance(0.5)) continue;
    volume.tsdf[i] = static_cast<float>(random.uniform(-1, 1) * scene.truncation);
    volume.weight[i] = static_cast<float>(random.uniform(0.01, 20));
  }
  return volume;
}

TsdfScene randomScene(uint64_t seed) {
  Random random(seed);
  TsdfScene scene;
  scene.points_dtype = random.chance(0.5) ? kF32 : random.pick(kFloatDTypes);
  scene.sensors_dtype = random.chance(0.5) ? kF32 : kF64;
  scene.index_dtype = random.chance(0.5) ? kI32 : kI64;
  double smallest = 1e9;
  for (int axis = 0; axis < 3; ++axis) {
    scene.grid.shape[axis] = 1 + random.below(14);
    scene.grid.voxel_size[axis] = random.uniform(0.05, 0.5);
    scene.grid.origin[axis] = random.uniform(-4, 2);
    smallest = std::min(smallest, scene.grid.voxel_size[axis]);
  }
  scene.truncation = smallest * random.uniform(0.3, 5);
  if (random.chance(0.1)) scene.truncation = 100;  // more than the grid
  scene.weighting = random.chance(0.4) ? RBC_VOXELIZE_TSDF_WEIGHTING_INVERSE_SQUARE
                                       : RBC_VOXELIZE_TSDF_WEIGHTING_CONSTANT;
  scene.carve = random.chance(0.3);
  if (random.chance(0.3)) scene.max_weight = random.uniform(0.5, 10);

  constexpr CloudForm kForms[] = {CloudForm::kUnbatched, CloudForm::kPadded, CloudForm::kLengths,
                                  CloudForm::kPacked};
  scene.form = random.pick(kForms);
  const size_t clouds =
      scene.form == CloudForm::kUnbatched ? 1 : static_cast<size_t>(random.below(5));
  const int64_t most = random.chance(0.1) ? 0 : 1 + random.below(120);
  const auto place = [&](double margin) {  // in the grid, or at most `margin` grids away from it
    Vector3 p;
    for (size_t k = 0; k < 3; ++k) {
      const double extent = scene.grid.voxel_size[k] * static_cast<double>(scene.grid.shape[k]);
      p[k] = scene.grid.origin[k] + extent * random.uniform(-margin, 1 + margin);
    }
    return p;
  };
  for (size_t b = 0; b < clouds; ++b) {
    const int64_t count = scene.form == CloudForm::kPadded ? most : random.below(most + 1);
    scene.clouds.emplace_back();
    for (int64_t i = 0; i < count; ++i) {
      Vector3 p = place(random.chance(0.8) ? 0 : 0.5);
      if (random.chance(0.02)) p[static_cast<size_t>(random.below(3))] = NAN;
      if (random.chance(0.02)) p[static_cast<size_t>(random.below(3))] = -INFINITY;
      scene.clouds[b].push_back(p);
    }
  }
  const size_t sensors = clouds > 0 && random.chance(0.7) ? clouds : 1;
  for (size_t b = 0; b < sensors; ++b) scene.sensors.push_back(place(random.chance(0.4) ? 0 : 2));
  if (random.chance(0.05)) scene.sensors[0][1] = NAN;
  if (clouds > 0 && !scene.clouds[0].empty() && random.chance(0.2))
    scene.clouds[0][0] = scene.sensors[0];

  const auto layout = [&](bool input) {
    Layout any = random.pick(kLayouts);
    return !input && any == Layout::kBroadcast ? Layout::kContiguous : any;
  };
  scene.columns = 3 + random.below(3);
  scene.dropped = random.chance(0.8);
  scene.points_layout = layout(false);  // clouds differ
  scene.sensors_layout = layout(false);
  scene.tsdf_layout = layout(false);
  scene.weight_layout = layout(false);
  scene.flush = random.chance(0.5) ? Flush::kEnd : Flush::kBegin;
  return scene;
}

TsdfScene wildScene(uint64_t seed) {
  Random random(seed);
  TsdfScene scene = randomScene(seed ^ 0x5eed);
  const bool in_double = random.chance(0.4);
  scene.points_dtype = in_double ? kF64 : kF32;
  const double most = in_double ? 300 : 37;
  const auto wild = [&] {
    if (random.chance(0.1)) return static_cast<double>(random.below(5)) - 2;
    if (random.chance(0.05)) return static_cast<double>(decodeFloat(kF64, random.bits()));
    const double size = std::pow(10.0, random.uniform(-most, most) * random.uniform());
    return random.chance(0.5) ? size : -size;
  };
  for (int axis = 0; axis < 3; ++axis) {
    if (random.chance(0.5)) scene.grid.origin[axis] = wild();
    if (!std::isfinite(scene.grid.origin[axis])) scene.grid.origin[axis] = 0;
    if (random.chance(0.5)) {
      scene.grid.voxel_size[axis] = std::pow(10.0, random.uniform(-most, most) * random.uniform());
    }
  }
  if (random.chance(0.5)) {
    scene.truncation = std::pow(10.0, random.uniform(-most, most) * random.uniform());
  }
  for (auto& cloud : scene.clouds) {
    for (Vector3& p : cloud) {
      for (double& x : p) {
        if (random.chance(0.7)) x = wild();
      }
    }
  }
  for (Vector3& sensor : scene.sensors) {
    for (double& x : sensor) {
      if (random.chance(0.5)) x = wild();
    }
  }
  return scene;
}

// ---- as cases -----------------------------------------------------------------------------------

std::string firstError(const TsdfInputs& in, const TsdfOutput& output) {
  if (in.c.wild) return {};
  return firstError(in.c.scene, tsdfReference(in.c.scene), in.c.before, output);
}

TsdfCase randomTsdfCase(uint64_t seed) {
  Random random(seed + 7);
  TsdfCase c = {"random scene " + std::to_string(seed), randomScene(seed), {}};
  c.before = random.chance(0.5) ? newVolume(c.scene) : randomVolume(c.scene, random);
  return c;
}

TsdfCase wildTsdfCase(uint64_t seed) {
  Random random(seed);
  TsdfCase c = {"wild scene " + std::to_string(seed), wildScene(seed), {}, true};
  c.before = randomVolume(c.scene, random);
  return c;
}

std::vector<TsdfCase> tsdfCases() {
  constexpr CloudForm kForms[] = {CloudForm::kUnbatched, CloudForm::kPadded, CloudForm::kLengths,
                                  CloudForm::kPacked};
  std::vector<TsdfCase> cases;
  for (const CloudForm form : kForms) {
    for (const rbcDType dtype : kFloatDTypes) {
      for (const bool carve : {false, true}) {
        TsdfScene scene = ballScene({1.5, 0.25, -0.5}, 160);
        for (size_t k = 0; k < 3; ++k) {
          scene.grid.shape[k] = 12;
          scene.grid.voxel_size[k] = 4.0 / 12;
        }
        scene.truncation = 0.7;
        scene.form = form;
        scene.points_dtype = dtype;
        scene.carve = carve;
        if (carve) scene.weighting = RBC_VOXELIZE_TSDF_WEIGHTING_INVERSE_SQUARE;
        if (form != CloudForm::kUnbatched) {
          scene.clouds.push_back(scene.clouds[0]);
          if (form != CloudForm::kPadded) scene.clouds[1].resize(scene.clouds[1].size() / 2);
          scene.sensors.push_back({-1, 1.75, 1.5});
        }
        Random random(cases.size() + 1);
        const TsdfVolume before =
            cases.size() % 3 == 0 ? newVolume(scene) : randomVolume(scene, random);
        cases.push_back({"ball " + std::to_string(cases.size()), scene, before});
      }
    }
  }
  return cases;
}

namespace {

// Anywhere in the grid, with `same` points at each place.
std::vector<Vector3> scattered(const TsdfScene& scene, int count, int same, Random& random) {
  std::vector<Vector3> points;
  while (static_cast<int>(points.size()) < count) {
    Vector3 p;
    for (size_t k = 0; k < 3; ++k) {
      p[k] = scene.grid.voxel_size[k] * static_cast<double>(scene.grid.shape[k]) * random.uniform();
    }
    points.insert(points.end(), static_cast<size_t>(same), p);
  }
  return points;
}

// A wall across y and z, in the order of a LiDAR: 64 beams for each direction.
std::vector<Vector3> wall(double x, double width, int count) {
  std::vector<Vector3> points;
  for (int i = 0; i < count; ++i) {
    const double share = static_cast<double>(i / 64 * 64) / count;
    points.push_back({x, width * share, width * (i % 64) / 64});
  }
  return points;
}

}  // namespace

std::vector<TsdfCase> manyRayCases() {
  std::vector<TsdfCase> cases;
  const auto add = [&](const std::string& name, TsdfScene scene) {
    Random random(cases.size() + 1);
    const TsdfVolume before = randomVolume(scene, random);
    cases.push_back({name, std::move(scene), before, true});
  };
  Random random(9);
  for (const bool carve : {false, true}) {
    for (const rbcDType dtype : {kF32, kF64}) {
      for (const int32_t weighting :
           {RBC_VOXELIZE_TSDF_WEIGHTING_CONSTANT, RBC_VOXELIZE_TSDF_WEIGHTING_INVERSE_SQUARE}) {
        const auto vary = [&](TsdfScene scene) {
          scene.carve = carve;
          scene.points_dtype = dtype;
          scene.weighting = weighting;
          return scene;
        };
        TsdfScene scene = vary(plainScene({9, 10, 11}, {0.3, 0.4, 0.2}, {}));
        scene.truncation = 2;
        scene.clouds[0].assign(3000, {7.4, 6.3, 5.2});
        add("identical rays", scene);

        scene = vary(plainScene({61, 45, 83}, {30, 22, 41}, {}));
        scene.truncation = 4.5;
        scene.clouds[0] = scattered(scene, 5000, 1, random);
        add("rays apart", scene);
        scene.clouds[0] = scattered(scene, 5000, 2, random);
        add("pairs of rays, apart", scene);

        scene.clouds[0] = scattered(scene, 1500, 1, random);
        for (const Vector3& p : wall(50, 44, 3000)) scene.clouds[0].push_back(p);
        for (const Vector3& p : scattered(scene, 700, 1, random)) scene.clouds[0].push_back(p);
        add("some rays apart and some together", scene);
        scene.form = CloudForm::kPacked;
        scene.clouds = {scene.clouds[0], {}, wall(12, 40, 777), scattered(scene, 333, 3, random)};
        scene.clouds[0][4] = {NAN, 0, 0};
        scene.sensors = {{30, 22, 41}, {0, 0, 0}, {1, 2, 3}, {0, 0, 0}};
        add("packed clouds", scene);
        scene.form = CloudForm::kLengths;
        add("padded clouds", scene);
      }
    }
  }
  for (const auto& shape : std::vector<std::array<int64_t, 3>>{
           {4000, 3, 5}, {3, 5, 4000}, {2, 3000, 7}, {1, 1, 5000}, {5000, 1, 1}, {1, 700, 1}}) {
    TsdfScene scene = plainScene(shape, {0.5, 0.5, 0.5}, {});
    scene.clouds[0] = scattered(scene, 700, 2, random);
    scene.truncation = 30;
    add("a long grid", scene);
    scene.carve = true;
    add("a long grid, carved", scene);
  }
  return cases;
}

}  // namespace support
