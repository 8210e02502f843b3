// The launcher of the verification of times, lengths and offsets.
#pragma once

#include <cuda_runtime_api.h>

#include "fuse_problem.h"

namespace rbc::cuda {

// Writes the first defect of a stream's times, lengths and offsets, and of the query lengths, to
// *defect, in device memory, with `keys` as scratch.
constexpr int kCheckTimesKeys = 4;
cudaError_t launchCheckTimes(const FuseProblem& problem, const FuseStream& samples,
                             unsigned long long* keys, TimesDefect* defect, cudaStream_t stream);

cudaError_t loadCheckTimes();

}  // namespace rbc::cuda
