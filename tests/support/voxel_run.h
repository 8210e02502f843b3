// Runs cases of voxelization through the C interface.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "robocache/voxelize.h"
#include "run.h"
#include "voxel_reference.h"

namespace support {

// A cloud's tensors in a context's memory.
class PlacedCloud {
 public:
  PlacedCloud(const Context& context, const CloudInputs& in, bool cuda);

  const rbcTensor* points() const { return points_.get(); }
  const rbcTensor* features() const { return features_ ? features_->get() : nullptr; }
  template <class Params>
  void addTo(Params* params) const {
    params->lengths = lengths_ ? lengths_->get() : nullptr;
    params->batch_offsets = offsets_ ? offsets_->get() : nullptr;
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
  PlacedOutputs(const Context& context, std::vector<OutputSpec> specs, Flush flush, bool cuda);

  // Null if the case has none of this name.
  const rbcTensor* get(const std::string& name) const;

  // The outputs, and whether anything was written elsewhere.
  VoxelOutput fetch(const Context& context, bool* stray_writes);

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
                       outputs_.get("num_points_outside"), &params_);
  }
  size_t workspaceSize(const Context& context) const;
  VoxelOutput fetch(const Context& context, bool* stray_writes) {
    return outputs_.fetch(context, stray_writes);
  }

 private:
  PlacedVoxelize(const Context& context, const VoxelizeInputs& in, bool cuda);

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
  size_t workspaceSize(const Context& context) const;
  VoxelOutput fetch(const Context& context, bool* stray_writes) {
    return outputs_.fetch(context, stray_writes);
  }

 private:
  PlacedSparse(const Context& context, const SparseInputs& in, bool cuda);

  PlacedCloud cloud_;
  PlacedOutputs outputs_;
  rbcVoxelizeSparseOutputs voxels_;
  rbcVoxelizeSparseParams params_;
};

inline PlacedVoxelize placedOf(const Context& context, const VoxelizeInputs& in) {
  return PlacedVoxelize(context, in);
}
inline PlacedSparse placedOf(const Context& context, const SparseInputs& in) {
  return PlacedSparse(context, in);
}

// Changes element number i: some elements of each output, for checkReferenceTells().
bool spoilElement(VoxelOutput* output, size_t i);

}  // namespace support
