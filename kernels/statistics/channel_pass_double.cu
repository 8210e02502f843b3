#include "runtime/load_kernels.h"
#include "statistics/channel_pass.cuh"

namespace rbc::cuda {
namespace statistics {

cudaError_t launchPassDouble(PassKind kind, PassArguments& arguments, int64_t blocks,
                             const LaunchDevice& device, cudaStream_t cuda_stream) {
  return launchPassOf<PlainReader<double>>(kind, arguments, blocks, device, cuda_stream);
}

cudaError_t launchPassAnyDouble(PassKind kind, PassArguments& arguments, int64_t blocks,
                                const LaunchDevice& device, cudaStream_t cuda_stream) {
  return launchPassOf<AnyReader<double>>(kind, arguments, blocks, device, cuda_stream);
}

cudaError_t loadPassDouble() {
  return loadKernelsBeside(passChannels<PlainReader<double>, true, false>);
}

}  // namespace statistics
}  // namespace rbc::cuda
