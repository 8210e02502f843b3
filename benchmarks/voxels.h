// Cases of rbcVoxelize, rbcVoxelizeSparse and rbcVoxelizeTsdf: what becomes of clouds of points.
//
// Their names: result/points grid, such as count/32x100k 352x400x20 uniform; features beside the
// points, as in 16 features; and whether the points are uniform or the sweeps of a LiDAR.
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
  int64_t clouds = 1;    // packed if they are several
  int64_t points = 1;    // of each cloud
  int64_t features = 0;  // columns of the features beside the points; 0: none
  std::array<int64_t, 3> shape = {};
  double voxel_size = 0.1;  // metres
  bool sweeps = false;      // of a LiDAR, points in the order of firing; else uniform and random

  bool sparse() const { return result == "sparse mean"; }
  bool tsdf() const { return result == "tsdf"; }
  int64_t total() const { return clouds * points; }
  int64_t volume() const { return shape[0] * shape[1] * shape[2]; }
  // x, y, z; and an intensity where the points themselves are averaged.
  int64_t columns() const { return sparse() && features == 0 ? 4 : 3; }
  // Of what is averaged: the features beside the points, else the points' columns.
  int64_t channels() const;
  // Where voxel (0, 0, 0) begins: the ground lies above; the middle of the other axes is 0.
  double origin(size_t axis) const;
  rbcVoxelGrid grid() const;
  // A dense grid takes so much for each voxel, besides its channels.
  rbcDType dtype() const;

  int64_t roughBytes() const override;
  std::unique_ptr<const Data> load() const override;
  std::string facts() const override;
};

// The points: all lie in the grid. Uniform ones are random and come in no order. Sweeps are those of
// a LiDAR of 64 beams that drives through a hall with a floor, walls and boxes: 100,000 points each,
// all beams of a direction after another, direction after direction, in the frame of the hall. A
// fourth column is an intensity.
void fillPoints(const VoxelCase& c, float* points);
void fillFeatures(const VoxelCase& c, float* features);
// Where the first sweep was seen from.
std::array<double, 3> firstEye(const VoxelCase& c);

}  // namespace bench
