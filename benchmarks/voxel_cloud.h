// The points of a case.
#pragma once

#include <array>
#include <memory>

#include "support/arrays.h"
#include "voxel_cases.h"

namespace bench {

// All points lie in the grid. Uniform ones are random and come in no order. Sweeps are those of a
// LiDAR of 64 beams that drives through a hall with a floor, walls and boxes: kSweepPoints each,
// all beams of a direction after another, direction after direction, in the frame of the hall.
struct VoxelCloud {
  support::Array points;         // [clouds * points, columns] f32; the fourth is an intensity
  support::Array offsets;        // [clouds + 1] i64
  support::Array features;       // [clouds * points, features] f32
  std::array<double, 3> sensor;  // where the first sweep was seen from
};

// That of the last case asked for is kept, for others of the same points.
std::shared_ptr<const VoxelCloud> cloudOf(const VoxelCase& c);

}  // namespace bench
