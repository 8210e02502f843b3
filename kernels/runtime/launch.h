// Launches of kernels with large arguments.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "launch_choice.h"
#include "runtime/launch_device.h"
#include "runtime/tiling.h"

namespace rbc::cuda {

// The maximum size of the arguments of a launch.
inline constexpr size_t kMaxArgumentBytes = 32764;

inline dim3 gridOf(int64_t x, int64_t y = 1) {
  return dim3(static_cast<unsigned>(x), static_cast<unsigned>(y));
}

// The choice of an operation that has one kernel.
inline LaunchChoice onlyKernel(const char* kernel, int64_t blocks, int threads,
                               int shared_bytes = 0) {
  LaunchChoice choice;
  choice.kernel = kernel;
  choice.grid = std::min<int64_t>(blocks, INT32_MAX);
  choice.threads = threads;
  choice.shared_bytes = shared_bytes;
  return choice;
}

// Launches `blocks` blocks, up to the limit of a grid. With early launches the kernel may begin
// while the previous one ends: it must begin with waitForLaunchesAhead().
template <class Arguments>
cudaError_t launchBlocks(void (*kernel)(Arguments), Arguments* arguments, int64_t blocks,
                         int threads, const LaunchDevice& device, cudaStream_t cuda_stream,
                         int shared_bytes = 0) {
  static_assert(sizeof(Arguments) <= kMaxArgumentBytes);
  cudaLaunchConfig_t config = {};
  config.gridDim = gridOf(std::min<int64_t>(blocks, INT32_MAX));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<size_t>(shared_bytes);
  config.stream = cuda_stream;
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &early;
  config.numAttrs = device.early_launches ? 1 : 0;
  void* list[] = {arguments};  // by address: they may be large
  return cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), list);
}

// Launches a kernel with few arguments. Returns its own error: the last error may come from earlier
// calls of the program.
template <class... Parameters, class... Arguments>
cudaError_t launchKernel(void (*kernel)(Parameters...), dim3 grid, int threads,
                         cudaStream_t cuda_stream, const Arguments&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = cuda_stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace rbc::cuda
