// What rbcVoxelize and rbcVoxelizeSparse must write, to the bit, worked out from the rules in their
// header and from nothing else.
//
// Points are put one by one into a map of voxels; each voxel's features are then reduced in integers
// and long double, which hold every step of the stated arithmetic exactly.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "voxel_inputs.h"

namespace support {

// Outputs by name, as a call left them: elements in row-major order.
using VoxelOutput = std::map<std::string, std::vector<uint64_t>>;

VoxelOutput expectedOf(const VoxelizeInputs& inputs);
VoxelOutput expectedOf(const SparseInputs& inputs);

// "" if the output is right, else the first element that is not, and what it should be.
std::string firstError(const VoxelizeInputs& inputs, const VoxelOutput& output);
std::string firstError(const SparseInputs& inputs, const VoxelOutput& output);

}  // namespace support
