// Launchers of the resampling kernels.
#pragma once

#include <cuda_runtime_api.h>

#include "launch_device.h"
#include "resample_problem.h"

namespace rbc {

// One launch, nothing else.
cudaError_t launchResample(const ResampleProblem& problem, const LaunchDevice& device,
                           cudaStream_t stream);

// Loads every kernel of the launcher, which CUDA otherwise does on first use.
cudaError_t loadResample();

// Writes the first defect of times, lengths and offsets to *defect, in device memory, with `keys`
// as scratch.
constexpr int kResampleCheckKeys = 4;
cudaError_t launchResampleCheck(const ResampleProblem& problem, unsigned long long* keys,
                                ResampleDefect* defect, cudaStream_t stream);

}  // namespace rbc
