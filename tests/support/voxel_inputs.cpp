// The outputs of a case of voxelization, and its inputs.
#include "support/voxel_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/random.h"

namespace support {

std::vector<OutputSpec> VoxelizeInputs::outputs() const {
  std::vector<int64_t> batch;
  if (c.batched) batch.push_back(c.clouds);
  std::vector<int64_t> shape = batch;
  shape.insert(shape.end(), c.shape, c.shape + 3);
  if (reducesFeatures(c.mode)) shape.push_back(c.reduced());
  std::vector<OutputSpec> specs = {{"out", c.out, shape, c.layoutOf("out")}};
  if (c.dropped)
    specs.push_back({"num_points_outside", kI64, batch, c.layoutOf("num_points_outside")});
  return specs;
}

std::vector<OutputSpec> SparseInputs::outputs() const {
  const int64_t F = c.reduced();
  std::vector<int64_t> rows = points.placement().shape;
  rows.pop_back();
  std::vector<int64_t> batch;
  if (c.batched) batch.push_back(c.clouds);
  std::vector<OutputSpec> specs;
  const auto add = [&](const std::string& name, rbcDType dtype, std::vector<int64_t> shape) {
    if (wants(name)) specs.push_back({name, dtype, std::move(shape), c.layoutOf(name)});
  };
  add("coords", kI32, {capacity, 4});
  add("num_voxels", kI64, {});
  add("points_per_voxel", kI32, {capacity});
  add("features", c.out, {capacity, F});
  add("grouped", c.out, {capacity, c.max_points, F});
  add("point_to_voxel", c.rows, rows);
  add("num_points_outside", kI64, batch);
  add("num_voxels_over_capacity", kI64, {});
  add("num_points_over_capacity", kI64, {});
  add("num_points_over_group", kI64, {});
  return specs;
}

VoxelizeInputs inputsOf(const VoxelizeCase& c) {
  Random random(c.seed);
  VoxelizeInputs in;
  in.c = c;
  in.c.features = c.features && reducesFeatures(c.mode);
  static_cast<CloudInputs&>(in) = detail::makeCloud(in.c, random);
  return in;
}

SparseInputs inputsOf(const SparseCase& c) {
  Random random(c.seed);
  SparseInputs in;
  in.c = c;
  static_cast<CloudInputs&>(in) = detail::makeCloud(c, random);
  const auto voxels = static_cast<double>(countVoxels(c, in));
  in.capacity = std::max<int64_t>(1, std::llround(std::ceil(c.room * voxels)));
  return in;
}

}  // namespace support
