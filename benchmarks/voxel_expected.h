// What voxelization must give, by the plainest loops: whole outputs are held against them.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "voxel_cloud.h"

namespace bench {

// How far a tsdf reaches to both sides of a surface, in metres.
constexpr double kTsdfTruncation = 0.4;

// Found on the way.
struct VoxelTruth {
  int64_t in_range = 0;  // points in the grid
  int64_t voxels = 0;    // that hold a point; of a tsdf those that were observed
};

// Points in each voxel, on all cores.
std::vector<std::atomic<int32_t>> countPoints(const VoxelCase& c, const VoxelCloud& cloud);
// What occupancy or count is made of.
VoxelTruth truthOf(const std::vector<std::atomic<int32_t>>& counts);

// These throw if an output is wrong. Means may be off by rounding; of a tsdf one voxel in a hundred
// may differ, for a ray that touches a corner.
void checkCounts(const VoxelCase& c, const std::vector<std::atomic<int32_t>>& counts,
                 const support::Array& out);
VoxelTruth checkDenseMean(const VoxelCase& c, const VoxelCloud& cloud, const support::Array& out);
VoxelTruth checkSparseMean(const VoxelCase& c, const VoxelCloud& cloud,
                           const support::Array& coords, const support::Array& num_voxels,
                           const support::Array& features);
VoxelTruth checkTsdf(const VoxelCase& c, const VoxelCloud& cloud, const support::Array& tsdf,
                     const support::Array& weight);

}  // namespace bench
