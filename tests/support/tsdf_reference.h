// What rbcVoxelizeTsdf must give, from the words of its header: every voxel is held against every
// ray, in double.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tsdf_scene.h"

namespace support {

// What a voxel observed. Of rays that do no more than graze it, none or all may count: then the
// average is not known, and the weight only between limits.
struct TsdfObserved {
  double weight = 0;  // of the rays that surely pass
  double most_weight = 0;
  double distance = 0;  // times weight
  double error = 0;     // of distance / weight

  bool certain() const { return weight == most_weight; }
};

struct TsdfReference {
  std::vector<TsdfObserved> voxels;
  std::vector<int64_t> least_dropped;
  std::vector<int64_t> most_dropped;

  double certainShare() const;
};

TsdfReference tsdfReference(const TsdfScene& scene);

// What is wrong with the output of a call that began with the volume `before`; empty if nothing is.
std::string firstError(const TsdfScene& scene, const TsdfReference& reference,
                       const TsdfVolume& before, const TsdfOutput& run);
std::string firstError(const TsdfScene& scene, const TsdfReference& reference,
                       const TsdfVolume& before, const TsdfRun& run);

}  // namespace support
