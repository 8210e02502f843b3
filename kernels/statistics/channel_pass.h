// Launchers of a read of the samples.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/launch_device.h"
#include "statistics/pass_plan.h"

namespace rbc::cuda {
namespace statistics {

enum class PassKind { kMoments, kMomentsAndKeep, kKeep };

// Fills in the plan.
cudaError_t launchPass(PassKind kind, PassArguments arguments, int64_t groups,
                       const LaunchDevice& device, cudaStream_t cuda_stream);

cudaError_t loadPassFloat();
cudaError_t loadPassAnyFloat();
cudaError_t loadPassHalf();
cudaError_t loadPassDouble();

// One in each file, that they compile side by side.
cudaError_t launchPassFloat(PassKind kind, PassArguments& arguments, int64_t blocks,
                            const LaunchDevice& device, cudaStream_t cuda_stream);
cudaError_t launchPassAnyFloat(PassKind kind, PassArguments& arguments, int64_t blocks,
                               const LaunchDevice& device, cudaStream_t cuda_stream);
cudaError_t launchPassHalf(PassKind kind, PassArguments& arguments, int64_t blocks,
                           const LaunchDevice& device, cudaStream_t cuda_stream);
cudaError_t launchPassDouble(PassKind kind, PassArguments& arguments, int64_t blocks,
                             const LaunchDevice& device, cudaStream_t cuda_stream);

}  // namespace statistics
}  // namespace rbc::cuda
