// The tables of voxelization cases, dense and sparse: unit tests and parity tests run on them.
#pragma once

#include <cstdint>
#include <vector>

#include "voxel_case.h"

namespace support {

std::vector<VoxelizeCase> voxelizeCases();
std::vector<SparseCase> sparseCases();

std::vector<VoxelizeCase> randomVoxelizeCases(uint64_t first, uint64_t count);
std::vector<SparseCase> randomSparseCases(uint64_t first, uint64_t count);

}  // namespace support
