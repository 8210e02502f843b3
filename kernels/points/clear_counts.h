// The launcher of clearing what is counted.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/launch_device.h"
#include "voxel_problem.h"

namespace rbc::cuda {

// Makes the i64 of an output 0; its data may be null.
cudaError_t clearCounts(const Output<1>& counts, int64_t count, const LaunchDevice& device,
                        cudaStream_t cuda_stream);

// What a list of voxels does not hold: voxels over its capacity, points in these, and points over
// `grouped`. Each may be null.
struct LostCounts {
  int64_t* counts[3];
  bool any;
};

inline LostCounts lostCountsOf(const SparseProblem& p) {
  return {{p.voxels_over_capacity, p.points_over_capacity, p.points_over_group},
          p.voxels_over_capacity != nullptr || p.points_over_capacity != nullptr ||
              p.points_over_group != nullptr};
}

cudaError_t clearCounts(const LostCounts& lost, const LaunchDevice& device,
                        cudaStream_t cuda_stream);

cudaError_t loadClearCounts();

}  // namespace rbc::cuda
