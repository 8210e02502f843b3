#include "device.h"

namespace bench {
namespace {

__global__ void emptyKernel() {}

// As large as those of a call.
struct Arguments {
  char bytes[512];
};
__global__ void kernelOfArguments(const __grid_constant__ Arguments) {}

}  // namespace

cudaError_t launchEmpty(cudaStream_t stream) {
  emptyKernel<<<1, 32, 0, stream>>>();
  return cudaGetLastError();
}

cudaError_t launchArguments(cudaStream_t stream, bool overlaps) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  config.stream = stream;
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &overlap;
  config.numAttrs = overlaps ? 1 : 0;
  Arguments arguments = {};
  void* list[] = {&arguments};
  return cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernelOfArguments), list);
}

}  // namespace bench
