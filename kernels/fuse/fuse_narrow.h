// Fusion of many narrow streams.
#pragma once

#include <cuda_runtime_api.h>

#include "fuse/fuse_rows_instances.h"
#include "fuse_problem.h"
#include "runtime/launch_device.h"

namespace rbc::cuda {
namespace narrow_streams {

// How a problem is cut into blocks: each does a part of a recording's queries, of a group of
// streams.
struct Plan {
  int32_t groups;
  int32_t first[rows::kManyStreams + 1];  // stream of each group, and the end
  int32_t part;                           // queries
  int32_t warps;                          // of a block
  int32_t shared;                         // bytes of a block
};

// Whether their kernel suits a problem, and pays.
bool suits(const FuseProblem& p, const LaunchDevice& device, Plan* plan);

cudaError_t launch(const Plan& plan, const FuseProblem& p, const LaunchDevice& device,
                   cudaStream_t cuda_stream);

}  // namespace narrow_streams

cudaError_t loadFuseNarrow(const LaunchDevice& device);

}  // namespace rbc::cuda
