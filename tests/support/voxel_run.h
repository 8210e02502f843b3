// Runs cases of voxelization through the C interface.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "robocache/voxelize.h"
#include "run.h"
#include "voxel_reference.h"

namespace support {

inline rbcVoxelGrid gridOf(const CloudCase& c) {
  rbcVoxelGrid grid = {};
  for (int axis = 0; axis < 3; ++axis) {
    grid.origin[axis] = c.origin[axis];
    grid.voxel_size[axis] = c.voxel_size[axis];
    grid.shape[axis] = c.shape[axis];
  }
  return grid;
}

// A cloud's tensors where a context wants them.
class PlacedCloud {
 public:
  PlacedCloud(const Context& context, const CloudInputs& in, bool cuda)
      : points_(context, in.points, cuda) {
    const auto place = [&](std::optional<Placed>& placed, const Array& array) {
      if (array.ndim() != 0) placed.emplace(context, array, cuda);
    };
    place(features_, in.features);
    place(lengths_, in.lengths);
    place(offsets_, in.offsets);
  }

  const rbcTensor* points() const { return points_.get(); }
  const rbcTensor* features() const { return features_ ? features_->get() : nullptr; }
  template <class Params>
  void addTo(Params* params) const {
    params->lengths = lengths_ ? lengths_->get() : nullptr;
    params->offsets = offsets_ ? offsets_->get() : nullptr;
  }

 private:
  Placed points_;
  std::optional<Placed> features_;
  std::optional<Placed> lengths_;
  std::optional<Placed> offsets_;
};

// A case's outputs, poisoned.
class PlacedOutputs {
 public:
  PlacedOutputs(const Context& context, std::vector<OutputSpec> specs, Flush flush, bool cuda)
      : specs_(std::move(specs)) {
    arrays_.reserve(specs_.size());
    for (const OutputSpec& spec : specs_) {
      arrays_.emplace_back(spec.dtype, spec.shape, spec.layout, flush);
      placed_.emplace_back(context, arrays_.back(), cuda);
    }
  }

  // Null if the case has none of this name.
  const rbcTensor* get(const std::string& name) const {
    for (size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].name == name) return placed_[i].get();
    }
    return nullptr;
  }

  // What was written, and whether anything was written elsewhere.
  VoxelOutput fetch(const Context& context, bool* stray_writes) {
    VoxelOutput output;
    *stray_writes = false;
    for (size_t i = 0; i < specs_.size(); ++i) {
      const bool guards = placed_[i].fetch(context, arrays_[i]);
      *stray_writes = *stray_writes || !guards || !arrays_[i].gapsArePoison();
      output[specs_[i].name] = arrays_[i].elements();
    }
    return output;
  }

 private:
  std::vector<OutputSpec> specs_;
  std::vector<Array> arrays_;
  std::vector<Placed> placed_;
};

// ---- calls of either kind: their tensors, for any context of the device ------------------------

class PlacedVoxelize {
 public:
  PlacedVoxelize(const Context& context, const VoxelizeInputs& in)
      : PlacedVoxelize(context, in, infoOf(context).backend == RBC_BACKEND_CUDA) {}
  PlacedVoxelize(const PlacedVoxelize&) = delete;

  rbcStatus_t call(const Context& context) const {
    return rbcVoxelize(context.get(), cloud_.points(), cloud_.features(), outputs_.get("out"),
                       outputs_.get("dropped"), &params_);
  }
  size_t workspaceSize(const Context& context) const {
    size_t bytes = 0;
    require(rbcVoxelizeWorkspaceSize(context.get(), cloud_.points(), cloud_.features(),
                                     outputs_.get("out"), outputs_.get("dropped"), &params_,
                                     &bytes));
    return bytes;
  }
  VoxelOutput fetch(const Context& context, bool* stray_writes) {
    return outputs_.fetch(context, stray_writes);
  }

 private:
  PlacedVoxelize(const Context& context, const VoxelizeInputs& in, bool cuda)
      : cloud_(context, in, cuda),
        outputs_(context, in.outputs(), in.c.flush, cuda),
        params_(rbcVoxelizeParamsInit()) {
    params_.mode = in.c.mode;
    params_.empty_value = in.c.empty_value;
    params_.grid = gridOf(in.c);
    cloud_.addTo(&params_);
  }

  PlacedCloud cloud_;
  PlacedOutputs outputs_;
  rbcVoxelizeParams params_;
};

class PlacedSparse {
 public:
  PlacedSparse(const Context& context, const SparseInputs& in)
      : PlacedSparse(context, in, infoOf(context).backend == RBC_BACKEND_CUDA) {}
  PlacedSparse(const PlacedSparse&) = delete;

  rbcStatus_t call(const Context& context) const {
    return rbcVoxelizeSparse(context.get(), cloud_.points(), cloud_.features(), &voxels_, &params_);
  }
  size_t workspaceSize(const Context& context) const {
    size_t bytes = 0;
    require(rbcVoxelizeSparseWorkspaceSize(context.get(), cloud_.points(), cloud_.features(),
                                           &voxels_, &params_, &bytes));
    return bytes;
  }
  VoxelOutput fetch(const Context& context, bool* stray_writes) {
    return outputs_.fetch(context, stray_writes);
  }

 private:
  PlacedSparse(const Context& context, const SparseInputs& in, bool cuda)
      : cloud_(context, in, cuda),
        outputs_(context, in.outputs(), in.c.flush, cuda),
        voxels_(rbcSparseVoxelsInit()),
        params_(rbcVoxelizeSparseParamsInit()) {
    voxels_.coords = outputs_.get("coords");
    voxels_.num_voxels = outputs_.get("num_voxels");
    voxels_.counts = outputs_.get("counts");
    voxels_.features = outputs_.get("features");
    voxels_.grouped = outputs_.get("grouped");
    voxels_.point_to_voxel = outputs_.get("point_to_voxel");
    voxels_.dropped = outputs_.get("dropped");
    voxels_.overflow = outputs_.get("overflow");
    params_.reduce = in.c.reduce;
    params_.order = in.c.order;
    params_.grid = gridOf(in.c);
    cloud_.addTo(&params_);
  }

  PlacedCloud cloud_;
  PlacedOutputs outputs_;
  rbcSparseVoxels voxels_;
  rbcVoxelizeSparseParams params_;
};

inline PlacedVoxelize placedOf(const Context& context, const VoxelizeInputs& in) {
  return PlacedVoxelize(context, in);
}
inline PlacedSparse placedOf(const Context& context, const SparseInputs& in) {
  return PlacedSparse(context, in);
}

// Element number i of those that checkReferenceTells() changes: some of each output.
inline bool spoilElement(VoxelOutput* output, size_t i) {
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
