// Counts by bins: for many points in a grid of moderate size.
#pragma once

#include <cuda_runtime_api.h>

#include "points/select_voxels.h"

namespace rbc::cuda {

size_t voxelBinsScratchBytes(const CellChoice& choice, Reduction mode);

// `coherent`, if not null, receives the address of a flag on the device: if it is not 0, the output
// and `dropped` have only been cleared, and the caller must add to the grid directly, which is
// faster.
cudaError_t launchVoxelBins(const CellChoice& choice, const VoxelizeProblem& problem, void* scratch,
                            const int32_t** coherent, const LaunchDevice& device,
                            cudaStream_t cuda_stream);

cudaError_t loadVoxelBins(const LaunchDevice& device);

}  // namespace rbc::cuda
