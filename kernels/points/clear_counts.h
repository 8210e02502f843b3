// Launches the clearing of counters.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/launch_device.h"
#include "voxel_problem.h"

namespace rbc::cuda {

// Sets the i64 of an output to 0; its data may be null.
cudaError_t clearCounts(const Output<1>& counts, int64_t count, const LaunchDevice& device,
                        cudaStream_t cuda_stream);

// Counters of what a list of voxels omits: voxels over its capacity, points in these, and points
// over `grouped`. Each may be null.
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
