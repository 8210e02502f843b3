// The launcher of the kernel for any streams.
#pragma once

#include <cuda_runtime_api.h>

#include "fuse_problem.h"
#include "launch_device.h"

namespace rbc::cuda {

// One launch, nothing else.
cudaError_t launchFuse(const FuseProblem& problem, const LaunchDevice& device, cudaStream_t stream);

cudaError_t loadFuse();

}  // namespace rbc::cuda
