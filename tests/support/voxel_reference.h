// The expected output of rbcVoxelize and rbcVoxelizeSparse, bit by bit, computed only from the
// rules in their header.
//
// Points are inserted one by one into a map of voxels; each voxel's features are then reduced in
// integers and long double, which represent every step of the stated arithmetic exactly.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "voxel_inputs.h"

namespace support {

// Outputs of a call by name: elements in row-major order.
using VoxelOutput = std::map<std::string, std::vector<uint64_t>>;

VoxelOutput expectedOf(const VoxelizeInputs& inputs);
VoxelOutput expectedOf(const SparseInputs& inputs);

// "" if the output is right, else the first wrong element and its expected value.
std::string firstError(const VoxelizeInputs& inputs, const VoxelOutput& output);
std::string firstError(const SparseInputs& inputs, const VoxelOutput& output);

}  // namespace support
