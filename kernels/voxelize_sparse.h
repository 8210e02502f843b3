// The launcher of sparse voxelization.
#pragma once

#include <cuda_runtime_api.h>

#include "launch_device.h"
#include "voxel_problem.h"

namespace rbc::cuda {

size_t voxelizeSparseScratchBytes(const SparseProblem& problem, const LaunchDevice& device);

// Enqueues everything; scratch is as large as told, and aligned to 256 bytes.
cudaError_t launchVoxelizeSparse(const SparseProblem& problem, void* scratch,
                                 const LaunchDevice& device, cudaStream_t stream);

cudaError_t loadVoxelizeSparse();

}  // namespace rbc::cuda
