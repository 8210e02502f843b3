// The launchers of the kernels of whole rows, by the dtype of times.
#pragma once

#include <cuda_runtime_api.h>

#include "fuse_problem.h"
#include "runtime/launch_device.h"

namespace rbc::cuda {
namespace rows {

using Launcher = cudaError_t (*)(const FuseProblem&, const LaunchDevice&, cudaStream_t);

// The launcher of the problem's kernel, or null if there is none.
template <class Time>
Launcher launcherOf(const FuseProblem& problem);

template <class Time>
cudaError_t loadKernels();

}  // namespace rows
}  // namespace rbc::cuda
