#include "device.h"
#include "launch_config.h"

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
  const LaunchConfig launch(1, 32, overlaps, stream);
  Arguments arguments = {};
  void* list[] = {&arguments};
  return cudaLaunchKernelExC(&launch.config, reinterpret_cast<const void*>(kernelOfArguments),
                             list);
}

}  // namespace bench
