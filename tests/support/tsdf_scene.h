// Calls of rbcVoxelizeTsdf: points with their sensors, and a volume to integrate them into.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "robocache/tsdf.h"
#include "run.h"

namespace support {

using Vector3 = std::array<double, 3>;

// The form of clouds as tensors. Without a batch there is one cloud; padded clouds without lengths
// all have the same length.
enum class CloudForm { kUnbatched, kPadded, kLengths, kPacked };

struct TsdfScene {
  rbcVoxelGrid grid = {};
  double truncation = 1;
  double max_weight = std::numeric_limits<double>::infinity();
  int32_t weighting = RBC_VOXELIZE_TSDF_WEIGHTING_CONSTANT;
  bool carve = false;

  std::vector<std::vector<Vector3>> clouds;
  std::vector<Vector3> sensors;  // of each cloud, or one for all

  CloudForm form = CloudForm::kLengths;
  rbcDType points_dtype = kF32;
  rbcDType sensors_dtype = kF64;
  rbcDType index_dtype = kI64;
  int64_t columns = 3;
  bool dropped = true;
  Layout points_layout = Layout::kContiguous;
  Layout sensors_layout = Layout::kContiguous;
  Layout tsdf_layout = Layout::kContiguous;
  Layout weight_layout = Layout::kContiguous;
  Flush flush = Flush::kEnd;

  int64_t voxels() const { return grid.shape[0] * grid.shape[1] * grid.shape[2]; }
};

// In row-major order.
struct TsdfVolume {
  std::vector<float> tsdf;
  std::vector<float> weight;

  float tsdfAt(const TsdfScene& scene, int64_t x, int64_t y, int64_t z) const {
    return tsdf[indexOf(scene, x, y, z)];
  }
  float weightAt(const TsdfScene& scene, int64_t x, int64_t y, int64_t z) const {
    return weight[indexOf(scene, x, y, z)];
  }

 private:
  static size_t indexOf(const TsdfScene& scene, int64_t x, int64_t y, int64_t z) {
    return static_cast<size_t>((x * scene.grid.shape[1] + y) * scene.grid.shape[2] + z);
  }
};

// Without observations; the contents of tsdf are then irrelevant.
TsdfVolume newVolume(const TsdfScene& scene);

struct TsdfRun {
  rbcStatus_t status = RBC_STATUS_SUCCESS;
  std::string message;
  TsdfVolume volume;
  std::vector<int64_t> dropped;  // empty if not requested
  bool stray_writes = false;
};

// Bit by bit: NaN equals itself.
inline bool sameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
inline bool sameBits(const TsdfVolume& a, const TsdfVolume& b) {
  return sameBits(a.tsdf, b.tsdf) && sameBits(a.weight, b.weight);
}
inline bool sameBits(const TsdfRun& a, const TsdfRun& b) {
  return a.status == b.status && a.dropped == b.dropped && sameBits(a.volume, b.volume);
}

// The output of a call.
struct TsdfOutput {
  TsdfVolume volume;
  std::vector<int64_t> dropped;

  bool operator==(const TsdfOutput& other) const {
    return dropped == other.dropped && sameBits(volume, other.volume);
  }
  bool operator!=(const TsdfOutput& other) const { return !(*this == other); }
};

// The tensors of a call, for any context of the device.
class PlacedTsdf {
 public:
  PlacedTsdf(const Context& context, const TsdfScene& scene, const TsdfVolume& before)
      : PlacedTsdf(context, scene, before, infoOf(context).backend == RBC_BACKEND_CUDA) {}
  PlacedTsdf(const PlacedTsdf&) = delete;

  rbcStatus_t call(const Context& context) const {
    return rbcVoxelizeTsdf(context.get(), inputs_[0].get(), inputs_[1].get(), outputs_[0].get(),
                           outputs_[1].get(), has_dropped_ ? outputs_[2].get() : nullptr, &params_);
  }
  size_t workspaceSize(const Context& context) const;
  TsdfOutput fetch(const Context& context, bool* stray_writes);

 private:
  PlacedTsdf(const Context& context, const TsdfScene& scene, const TsdfVolume& before, bool cuda);

  bool has_dropped_;
  rbcVoxelizeTsdfParams params_;
  std::vector<Array> sources_;
  std::vector<Placed> inputs_;
  std::vector<Array> arrays_;
  std::vector<Placed> outputs_;
};

TsdfRun runTsdf(const Context& context, const TsdfScene& scene, const TsdfVolume& before);

// As above, for calls that must succeed.
TsdfRun integrate(const Context& context, const TsdfScene& scene, const TsdfVolume& before);
inline TsdfRun integrate(const Context& context, const TsdfScene& scene) {
  return integrate(context, scene, newVolume(scene));
}

}  // namespace support
