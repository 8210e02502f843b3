#include "runtime/load_kernels.h"
#include "statistics/channel_pass.cuh"

namespace rbc::cuda {
namespace statistics {

cudaError_t launchPassFloat(PassKind kind, PassArguments& arguments, int64_t blocks,
                            const LaunchDevice& device, cudaStream_t cuda_stream) {
  return launchPassOf<PlainReader<float>>(kind, arguments, blocks, device, cuda_stream);
}

cudaError_t loadPassFloat() {
  return loadKernelsBeside(passChannels<PlainReader<float>, true, false>);
}

}  // namespace statistics
}  // namespace rbc::cuda
