// Launchers of a pass over the samples.
#pragma once

#include <cuda_runtime_api.h>

#include "statistics/select.h"

namespace rbc::cuda {
namespace statistics {

struct Found;

struct PassArguments {
  Samples samples;
  bool per_row;
  PassPlan plan;         // filled in by the launch
  Moments* moments;      // group, channel
  const void* brackets;  // Brackets<Number>: group, channel
  Found* found;          // group, channel
  void* kept;            // numbers
};

// Carries out a choice.
cudaError_t launchPass(const PassChoice& choice, PassArguments arguments,
                       const LaunchDevice& device, cudaStream_t cuda_stream);

cudaError_t loadPassFloat();
cudaError_t loadPassAnyFloat();
cudaError_t loadPassHalf();
cudaError_t loadPassDouble();

// By reader; in several files, which compile in parallel.
cudaError_t launchPassFloat(PassKind kind, PassArguments& arguments, int64_t blocks,
                            const LaunchDevice& device, cudaStream_t cuda_stream);
cudaError_t launchPassAnyFloat(PassKind kind, PassArguments& arguments, int64_t blocks,
                               const LaunchDevice& device, cudaStream_t cuda_stream);
cudaError_t launchPassHalf(PassKind kind, PassArguments& arguments, int64_t blocks,
                           const LaunchDevice& device, cudaStream_t cuda_stream);
cudaError_t launchPassDouble(PassKind kind, PassArguments& arguments, int64_t blocks,
                             const LaunchDevice& device, cudaStream_t cuda_stream);
cudaError_t launchPassAnyDouble(PassKind kind, PassArguments& arguments, int64_t blocks,
                                const LaunchDevice& device, cudaStream_t cuda_stream);

}  // namespace statistics

}  // namespace rbc::cuda
