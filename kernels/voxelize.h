// The launcher of dense voxelization.
#pragma once

#include <cuda_runtime_api.h>

#include "launch_device.h"
#include "voxel_problem.h"

namespace rbc::cuda {

size_t voxelizeScratchBytes(const VoxelizeProblem& problem, const LaunchDevice& device);

// Enqueues everything; scratch is as large as told, and aligned to 256 bytes.
cudaError_t launchVoxelize(const VoxelizeProblem& problem, void* scratch,
                           const LaunchDevice& device, cudaStream_t stream);

cudaError_t loadVoxelize();

}  // namespace rbc::cuda
