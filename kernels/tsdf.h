// The launcher of integration into a signed distance field.
#pragma once

#include <cuda_runtime_api.h>

#include "launch_device.h"
#include "tsdf_problem.h"

namespace rbc::cuda {

size_t tsdfScratchBytes(const TsdfProblem& problem);

// Enqueues everything; scratch is as large as told, and aligned to 256 bytes.
cudaError_t launchTsdf(const TsdfProblem& problem, void* scratch, const LaunchDevice& device,
                       cudaStream_t stream);

cudaError_t loadTsdf();

}  // namespace rbc::cuda
