// Fusion by the kernels of whole rows.
#pragma once

#include <cuda_runtime_api.h>

#include "fuse_problem.h"
#include "runtime/launch_device.h"

namespace rbc::cuda {

// One launch, nothing else.
using FuseLauncher = cudaError_t (*)(const FuseProblem& problem, const LaunchDevice& device,
                                     cudaStream_t cuda_stream);

// The launcher of the kernel that suits the problem, or null: launchFuse() does everything.
FuseLauncher rowsLauncherOf(const FuseProblem& problem);

cudaError_t loadFuseRows();

}  // namespace rbc::cuda
