// Kernels loaded ahead of their first use.
#pragma once

#include <cuda_runtime_api.h>

namespace rbc::cuda {

// Loads all kernels of the source file that the given one is compiled in, CUB's among them. CUDA
// loads a kernel at its first use otherwise, which takes its time, may wait for the work on other
// streams, and is refused during a capture. Does nothing if the driver is older than CUDA 12.4.
cudaError_t loadKernelsBeside(const void* kernel);

template <class... Arguments>
cudaError_t loadKernelsBeside(void (*kernel)(Arguments...)) {
  return loadKernelsBeside(reinterpret_cast<const void*>(kernel));
}

}  // namespace rbc::cuda
