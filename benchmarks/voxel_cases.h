// The clouds and grids that voxelization is measured on.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "robocache/tsdf.h"
#include "robocache/voxelize.h"

namespace bench {

constexpr int64_t kSweepPoints = 100'000;

struct VoxelCase {
  enum class Kind { kDense, kSparse, kTsdf };

  std::string op = "voxelize";  // the table it stands in
  std::string name;             // unique in it
  Kind kind = Kind::kDense;
  int32_t mode = RBC_VOXEL_OCCUPANCY;  // of a sparse one what its features are reduced by
  int64_t clouds = 1;                  // packed if they are several
  int64_t points = 1;                  // of each cloud
  int64_t columns = 3;                 // of points, f32
  int64_t features = 0;                // columns of the features beside the points; 0: none
  std::array<int64_t, 3> shape = {};
  double voxel_size = 0.1;  // metres
  bool sweeps = false;      // of a LiDAR, points in the order of firing; else uniform and random
  bool variant = false;     // of another case, in one thing: measured less thoroughly

  int64_t total() const { return clouds * points; }
  int64_t volume() const { return shape[0] * shape[1] * shape[2]; }
  bool reducesFeatures() const {
    return kind == Kind::kSparse || (kind == Kind::kDense && mode >= RBC_VOXEL_SUM);
  }
  // Of the features that are reduced: those beside the points, else the points' columns.
  int64_t channels() const {
    if (!reducesFeatures()) return 1;
    return features > 0 ? features : columns;
  }
  double origin(int axis) const {
    // The ground lies above the corner; the middle of the other axes is 0.
    return axis == 2 ? -1
                     : -0.5 * static_cast<double>(shape[static_cast<size_t>(axis)]) * voxel_size;
  }
};

std::vector<VoxelCase> voxelCases();

}  // namespace bench
