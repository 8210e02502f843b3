// A case of voxelization as arrays: the clouds, and the outputs that a call must write.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "voxel_cloud.h"

namespace support {

// Number of voxels with points, by the reference.
int64_t countVoxels(const CloudCase& c, const CloudInputs& in);

struct OutputSpec {
  std::string name;
  rbcDType dtype;
  std::vector<int64_t> shape;
  Layout layout;
};

struct VoxelizeInputs : CloudInputs {
  VoxelizeCase c;

  std::vector<OutputSpec> outputs() const;
};

struct SparseInputs : CloudInputs {
  SparseCase c;
  int64_t capacity = 1;

  bool wants(const std::string& output) const {
    if (output == "grouped" && c.max_points == 0) return false;
    return c.without.count(output) == 0;
  }

  std::vector<OutputSpec> outputs() const;
};

VoxelizeInputs inputsOf(const VoxelizeCase& c);
SparseInputs inputsOf(const SparseCase& c);

}  // namespace support
