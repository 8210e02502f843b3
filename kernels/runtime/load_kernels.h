// Loads kernels before their first use.
#pragma once

#include <cuda_runtime_api.h>

namespace rbc::cuda {

// Loads all kernels of the source file that contains the given one, including CUB's. Otherwise CUDA
// loads a kernel at its first use, which takes time, may wait for work on other streams, and is
// refused during a capture. Does nothing if the driver is older than CUDA 12.4.
cudaError_t loadKernelsBeside(const void* kernel);

template <class... Arguments>
cudaError_t loadKernelsBeside(void (*kernel)(Arguments...)) {
  return loadKernelsBeside(reinterpret_cast<const void*>(kernel));
}

}  // namespace rbc::cuda
