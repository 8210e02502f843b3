// The expected output of rbcVoxelizeTsdf, by the definition in its header: compares every voxel
// with every ray, in double.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tsdf_scene.h"

namespace support {

// The observations of a voxel. Rays that only graze it may be counted or not: then the average is
// unknown, and the weight is only known within limits.
struct TsdfObserved {
  double weight = 0;  // of the rays that certainly pass
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

// Returns the first error in the output of a call that began with the volume `before`, or "".
std::string firstError(const TsdfScene& scene, const TsdfReference& reference,
                       const TsdfVolume& before, const TsdfOutput& run);
std::string firstError(const TsdfScene& scene, const TsdfReference& reference,
                       const TsdfVolume& before, const TsdfRun& run);

}  // namespace support
