// The launcher of the kernel of any windows.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/launch_device.h"
#include "window_problem.h"

namespace rbc::cuda {
namespace windows {

cudaError_t launchAnyWindows(const WindowProblem& problem, const LaunchDevice& device,
                             cudaStream_t cuda_stream);
cudaError_t loadAnyWindows();

}  // namespace windows
}  // namespace rbc::cuda
