// The launcher of the kernel of any windows.
#pragma once

#include <cuda_runtime_api.h>

#include "windows/select.h"

namespace rbc::cuda {
namespace windows {

// Scratch has arrivalBytes().
cudaError_t launchAnyWindows(const WindowChoice& choice, const WindowProblem& problem,
                             void* scratch, const LaunchDevice& device, cudaStream_t cuda_stream);
cudaError_t loadAnyWindows();

}  // namespace windows
}  // namespace rbc::cuda
