// The points of a case of voxelization, for this program and, by --write, for peers.py.
#pragma once

#include <array>

#include "voxels.h"

namespace bench {

// All points lie in the grid. Uniform ones are random and come in no order. Sweeps are those of a
// LiDAR of 64 beams that drives through a hall with a floor, walls and boxes: 100,000 points each,
// all beams of a direction after another, direction after direction, in the frame of the hall. A
// fourth column is an intensity.
void fillPoints(const VoxelCase& c, float* points);
void fillFeatures(const VoxelCase& c, float* features);
// Where the first sweep was seen from.
std::array<double, 3> firstEye(const VoxelCase& c);

}  // namespace bench
