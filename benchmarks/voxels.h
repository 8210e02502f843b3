// Cases of rbcVoxelize, rbcVoxelizeSparse and rbcVoxelizeTsdf.
//
// Their names: result/points grid, such as count/32x100k 352x400x20 uniform; features in addition
// to points, as in 16 features; and whether the points are uniform or the sweeps of a LiDAR.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "cases.h"
#include "robocache/tsdf.h"
#include "robocache/voxelize.h"

namespace bench {

struct VoxelCase : Case {
  std::string result;    // occupancy, count, mean, sparse mean or tsdf
  int64_t clouds = 1;    // packed if more than one
  int64_t points = 1;    // per cloud
  int64_t features = 0;  // columns of the features, in addition to the points; 0: none
  std::array<int64_t, 3> shape = {};
  double voxel_size = 0.1;  // metres
  bool sweeps = false;      // of a LiDAR, points in the order of firing; else uniform and random

  bool sparse() const { return result == "sparse mean"; }
  bool tsdf() const { return result == "tsdf"; }
  int64_t total() const { return clouds * points; }
  int64_t volume() const { return shape[0] * shape[1] * shape[2]; }
  // x, y, z; and an intensity if the points themselves are averaged.
  int64_t columns() const { return sparse() && features == 0 ? 4 : 3; }
  // The averaged channels: the features, else the points' columns.
  int64_t channels() const;
  // The origin of voxel (0, 0, 0): the ground is above it; the middle of the other axes is 0.
  double origin(size_t axis) const;
  rbcVoxelGrid grid() const;
  // The dtype of a dense grid.
  rbcDType dtype() const;

  int64_t roughBytes() const override;
  std::unique_ptr<const Data> load() const override;
  std::string facts() const override;
};

// The points: all are in the grid. Uniform ones are random and unordered. Sweeps come from a
// LiDAR with 64 beams that drives through a hall with a floor, walls and boxes: 100,000 points
// each, direction by direction with all beams, in the frame of the hall. A fourth column is an
// intensity.
void fillPoints(const VoxelCase& c, float* points);
void fillFeatures(const VoxelCase& c, float* features);
// The position of the LiDAR in the first sweep.
std::array<double, 3> firstEye(const VoxelCase& c);

}  // namespace bench
