// The launches of the fusion kernels: each carries out a choice of select.h.
#pragma once

#include <cuda_runtime_api.h>

#include "fuse/select.h"

namespace rbc::cuda {

// Makes one launch, and nothing else.
using FuseLauncher = cudaError_t (*)(const FuseChoice& choice, const FuseProblem& problem,
                                     const LaunchDevice& device, cudaStream_t cuda_stream);

namespace narrow_streams {
cudaError_t launch(const FuseChoice& choice, const FuseProblem& p, const LaunchDevice& device,
                   cudaStream_t cuda_stream);
}  // namespace narrow_streams

namespace mixed_streams {
cudaError_t launch(const FuseChoice& choice, const FuseProblem& p, const LaunchDevice& device,
                   cudaStream_t cuda_stream);
}  // namespace mixed_streams

namespace rows {

// The launcher of a compiled instance of the kernels of whole rows. Each dtype of times has a
// separate source file, since they take long to compile.
template <class Time>
FuseLauncher launcherOf(int instance);

template <class Time>
cudaError_t loadKernels();

}  // namespace rows

// Any streams with a sample mask.
cudaError_t launchMissing(const FuseChoice& choice, const FuseProblem& p,
                          const LaunchDevice& device, cudaStream_t cuda_stream);

// Any streams where each query has samples of its own. Scratch has arrivalBytes().
cudaError_t launchCausal(const FuseProblem& p, void* scratch, const LaunchDevice& device,
                         cudaStream_t cuda_stream);

cudaError_t loadFuseCausal();
cudaError_t loadFuseMissing();
cudaError_t loadFuseMixed(const LaunchDevice& device);
cudaError_t loadFuseNarrow(const LaunchDevice& device);
cudaError_t loadFuseRows();

}  // namespace rbc::cuda
