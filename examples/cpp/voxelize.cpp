// Voxelize a depth camera's points of a floor with a box on it: count the points in each voxel, and
// average the points of each occupied voxel.
//
//   c++ -std=c++17 voxelize.cpp $(pkg-config --cflags --libs robocache) && ./a.out
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <robocache/robocache.hpp>

constexpr int kPoints = 4000;
constexpr int kColumns = 4;  // x y z in metres, and an intensity
constexpr int kX = 12;
constexpr int kY = 8;
constexpr int kZ = 4;
constexpr int kCapacity = 200;

// Spread evenly over 3 m x 2 m. The box is 60 cm high, and brighter; every 50th ray has no return.
std::vector<float> look() {
  std::vector<float> points;
  for (int i = 0; i < kPoints; ++i) {
    const double x = 3 * std::fmod(i * 0.7548776662, 1);
    const double y = 2 * std::fmod(i * 0.5698402910, 1);
    const bool on_box = x > 1 && x < 1.75 && y > 0.5 && y < 1;
    points.push_back(static_cast<float>(x));
    points.push_back(static_cast<float>(y));
    points.push_back(i % 50 == 0 ? NAN : on_box ? 0.6f : 0.1f);
    points.push_back(on_box ? 0.8f : 0.2f);
  }
  return points;
}

int main() try {
  const std::vector<float> points = look();
  const robocache::Tensor cloud(points, {kPoints, kColumns});
  const rbcVoxelGrid grid = {{0, 0, 0}, {0.25, 0.25, 0.25}, {kX, kY, kZ}};
  const auto context = robocache::Context::cpu();

  std::vector<int32_t> counts(kX * kY * kZ);
  int64_t dropped = 0;
  robocache::VoxelizeOptions options;
  options.reduction = robocache::Reduction::kCount;
  options.num_points_outside = robocache::Tensor(&dropped, {});
  robocache::voxelize(context, cloud, grid, {counts, {kX, kY, kZ}}, options);

  std::vector<int32_t> coords(kCapacity * 4);  // cloud x y z
  int64_t num_voxels = 0;
  std::vector<int32_t> sizes(kCapacity);
  std::vector<float> means(kCapacity * kColumns);
  robocache::VoxelizeSparseOutputs voxels({coords, {kCapacity, 4}}, {&num_voxels, {}});
  voxels.points_per_voxel = sizes;
  voxels.voxel_features = robocache::Tensor(means, {kCapacity, kColumns});  // of points' columns
  robocache::voxelizeSparse(context, cloud, grid, voxels);

  std::printf("%d points are in %d voxels, %d outside; from above, by height:\n",
              kPoints - static_cast<int>(dropped), static_cast<int>(num_voxels),
              static_cast<int>(dropped));
  for (int y = kY - 1; y >= 0; --y) {
    std::string row(kX, ' ');
    for (int x = 0; x < kX; ++x) {
      for (int z = 0; z < kZ; ++z) {
        if (counts[(x * kY + y) * kZ + z] > 0) row[x] = static_cast<char>('0' + z);
      }
    }
    std::printf("%s\n", row.c_str());
  }
  for (int i = 0; i < num_voxels; ++i) {
    const int32_t* const place = &coords[i * 4];
    const float* const mean = &means[i * kColumns];
    if (place[3] == 0) continue;  // the floor
    std::printf("voxel %d %d %d: %2d points around %.2f %.2f %.2f, intensity %.1f\n", place[1],
                place[2], place[3], sizes[i], mean[0], mean[1], mean[2], mean[3]);
  }
} catch (const robocache::Error& error) {
  // One line: which argument was wrong, what it was and what was expected.
  std::fprintf(stderr, "%s: %s\n", rbcStatusName(error.status()), error.what());
  return 1;
}
