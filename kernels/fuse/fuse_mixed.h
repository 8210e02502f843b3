// Fusion of narrow streams that differ in dtype or in method.
#pragma once

#include <cuda_runtime_api.h>

#include "fuse_problem.h"
#include "runtime/launch_device.h"

namespace rbc::cuda {
namespace mixed_streams {

// How a problem is cut into blocks: each does a part of a recording's queries, of one stream.
struct Plan {
  int32_t part;     // queries
  int32_t threads;  // of a block
  int32_t shared;   // bytes of a block
};

// Whether their kernel suits a problem, and pays.
bool suits(const FuseProblem& p, const LaunchDevice& device, Plan* plan);

cudaError_t launch(const Plan& plan, const FuseProblem& p, const LaunchDevice& device,
                   cudaStream_t cuda_stream);

}  // namespace mixed_streams

cudaError_t loadFuseMixed(const LaunchDevice& device);

}  // namespace rbc::cuda
