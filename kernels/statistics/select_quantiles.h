// Quantiles of what a read has counted and kept, and where that does not tell, of the samples once more.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/launch_device.h"
#include "statistics/refine_kept.h"
#include "statistics_problem.h"

namespace rbc::cuda {
namespace statistics {

// With the results of the moments beside it, unless `finish` is null: it has the limbs in use.
cudaError_t launchSelect(const StatisticsProblem& problem, const LevelsOfRead& levels,
                         const Moments* moments, const void* brackets, const Found* found,
                         const void* kept, const RefineMemory& refined, const LimbSpan* finish,
                         const LaunchDevice& device, cudaStream_t cuda_stream);

cudaError_t loadSelectQuantiles();

}  // namespace statistics
}  // namespace rbc::cuda
