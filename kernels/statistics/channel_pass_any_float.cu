#include "runtime/load_kernels.h"
#include "statistics/channel_pass.cuh"

namespace rbc::cuda {
namespace statistics {

cudaError_t launchPassAnyFloat(PassKind kind, PassArguments& arguments, int64_t blocks,
                               const LaunchDevice& device, cudaStream_t cuda_stream) {
  return launchPassOf<AnyReader<float>>(kind, arguments, blocks, device, cuda_stream);
}

cudaError_t loadPassAnyFloat() {
  return loadKernelsBeside(passChannels<AnyReader<float>, true, false>);
}

}  // namespace statistics
}  // namespace rbc::cuda
