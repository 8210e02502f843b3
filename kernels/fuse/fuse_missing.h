// Fusion of any streams of which samples may be missing.
#pragma once

#include <cuda_runtime_api.h>

#include "fuse_problem.h"
#include "runtime/launch_device.h"

namespace rbc::cuda {

cudaError_t launchMissing(const FuseProblem& p, const LaunchDevice& device,
                          cudaStream_t cuda_stream);

cudaError_t loadFuseMissing();

}  // namespace rbc::cuda
