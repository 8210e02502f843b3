// The launcher of the kernels for wide rows that are alike.
#pragma once

#include <cuda_runtime_api.h>

#include "fuse_problem.h"
#include "launch_device.h"

namespace rbc::cuda {

// Whether launchFuseRows() does it; launchFuse() does everything.
bool suitsRows(const FuseProblem& problem);

// One launch, nothing else.
cudaError_t launchFuseRows(const FuseProblem& problem, const LaunchDevice& device,
                           cudaStream_t stream);

cudaError_t loadFuseRows();

}  // namespace rbc::cuda
