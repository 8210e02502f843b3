#include "runtime/load_kernels.h"
#include "statistics/channel_pass.cuh"

namespace rbc::cuda {
namespace statistics {

cudaError_t launchPassHalf(PassKind kind, PassArguments& arguments, int64_t blocks,
                           const LaunchDevice& device, cudaStream_t cuda_stream) {
  return arguments.samples.dtype == DType::BF16
             ? launchPassOf<PlainReader<bf16>>(kind, arguments, blocks, device, cuda_stream)
             : launchPassOf<PlainReader<f16>>(kind, arguments, blocks, device, cuda_stream);
}

cudaError_t loadPassHalf() {
  return loadKernelsBeside(passChannels<PlainReader<bf16>, true, false>);
}

}  // namespace statistics
}  // namespace rbc::cuda
