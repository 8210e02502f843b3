// Runs cases of voxelization as calls of the C interface.
#include "support/voxel_run.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace support {
namespace {

rbcVoxelGrid gridOf(const CloudCase& c) {
  rbcVoxelGrid grid = {};
  for (int axis = 0; axis < 3; ++axis) {
    grid.origin[axis] = c.origin[axis];
    grid.voxel_size[axis] = c.voxel_size[axis];
    grid.shape[axis] = c.shape[axis];
  }
  return grid;
}

}  // namespace

PlacedCloud::PlacedCloud(const Context& context, const CloudInputs& in, bool cuda)
    : points_(context, in.points, cuda) {
  const auto place = [&](std::optional<Placed>& placed, const Array& array) {
    if (array.ndim() != 0) placed.emplace(context, array, cuda);
  };
  place(features_, in.features);
  place(lengths_, in.lengths);
  place(offsets_, in.offsets);
}

PlacedOutputs::PlacedOutputs(const Context& context, std::vector<OutputSpec> specs, Flush flush,
                             bool cuda)
    : specs_(std::move(specs)) {
  arrays_.reserve(specs_.size());
  for (const OutputSpec& spec : specs_) {
    arrays_.emplace_back(spec.dtype, spec.shape, spec.layout, flush);
    placed_.emplace_back(context, arrays_.back(), cuda);
  }
}

const rbcTensor* PlacedOutputs::get(const std::string& name) const {
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].name == name) return placed_[i].get();
  }
  return nullptr;
}

VoxelOutput PlacedOutputs::fetch(const Context& context, bool* stray_writes) {
  VoxelOutput output;
  *stray_writes = false;
  for (size_t i = 0; i < specs_.size(); ++i) {
    const bool guards = placed_[i].fetch(context, arrays_[i]);
    *stray_writes = *stray_writes || !guards || !arrays_[i].gapsArePoison();
    output[specs_[i].name] = arrays_[i].elements();
  }
  return output;
}

// ---- calls of either kind -----------------------------------------------------------------------

PlacedVoxelize::PlacedVoxelize(const Context& context, const VoxelizeInputs& in, bool cuda)
    : cloud_(context, in, cuda),
      outputs_(context, in.outputs(), in.c.flush, cuda),
      params_(rbcVoxelizeParamsInit()) {
  params_.reduction = in.c.mode;
  params_.fill_value = in.c.fill_value;
  params_.grid = gridOf(in.c);
  cloud_.addTo(&params_);
}

size_t PlacedVoxelize::workspaceSize(const Context& context) const {
  size_t bytes = 0;
  require(rbcVoxelizeWorkspaceSize(context.get(), cloud_.points(), cloud_.features(),
                                   outputs_.get("out"), outputs_.get("num_points_outside"),
                                   &params_, &bytes));
  return bytes;
}

PlacedSparse::PlacedSparse(const Context& context, const SparseInputs& in, bool cuda)
    : cloud_(context, in, cuda),
      outputs_(context, in.outputs(), in.c.flush, cuda),
      voxels_(rbcVoxelizeSparseOutputsInit()),
      params_(rbcVoxelizeSparseParamsInit()) {
  voxels_.coords = outputs_.get("coords");
  voxels_.num_voxels = outputs_.get("num_voxels");
  voxels_.points_per_voxel = outputs_.get("points_per_voxel");
  voxels_.voxel_features = outputs_.get("features");
  voxels_.grouped = outputs_.get("grouped");
  voxels_.point_to_voxel = outputs_.get("point_to_voxel");
  voxels_.num_points_outside = outputs_.get("num_points_outside");
  voxels_.num_voxels_over_capacity = outputs_.get("num_voxels_over_capacity");
  voxels_.num_points_over_capacity = outputs_.get("num_points_over_capacity");
  voxels_.num_points_over_group = outputs_.get("num_points_over_group");
  params_.reduction = in.c.reduce;
  params_.order = in.c.order;
  params_.grid = gridOf(in.c);
  cloud_.addTo(&params_);
}

size_t PlacedSparse::workspaceSize(const Context& context) const {
  size_t bytes = 0;
  require(rbcVoxelizeSparseWorkspaceSize(context.get(), cloud_.points(), cloud_.features(),
                                         &voxels_, &params_, &bytes));
  return bytes;
}

bool spoilElement(VoxelOutput* output, size_t i) {
  for (auto& [name, elements] : *output) {
    const size_t some = (elements.size() + 36) / 37;
    if (i < some) {
      elements[37 * i] ^= 1;
      return true;
    }
    i -= some;
  }
  return false;
}

}  // namespace support
