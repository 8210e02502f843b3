// Moments in memory: empty ones, results of them, and sums of them.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/launch_device.h"
#include "statistics_problem.h"

namespace rbc::cuda {
namespace statistics {

// With limbs of this span alone.
cudaError_t clearMoments(Moments* moments, int64_t count, const LimbSpan& span,
                         const LaunchDevice& device, cudaStream_t cuda_stream);

// Writes what a problem wants of its groups' moments, whose limbs need not be normalized.
cudaError_t launchFinish(const StatisticsProblem& problem, const Moments* moments,
                         const LimbSpan& span, const LaunchDevice& device,
                         cudaStream_t cuda_stream);

// Adds moments, whose limbs need not be normalized, to some that are, and will be.
cudaError_t launchMerge(Moments* to, const Moments* from, int64_t count, const LaunchDevice& device,
                        cudaStream_t cuda_stream);

cudaError_t loadMoments();

}  // namespace statistics
}  // namespace rbc::cuda
