// Converts CUDA's errors to the library's.
#pragma once

#include <cuda_runtime_api.h>

#include "status.h"

namespace rbc::cuda {

inline void checkCuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // otherwise CUB would report it later
  fail(error == cudaErrorMemoryAllocation ? RBC_STATUS_OUT_OF_MEMORY : RBC_STATUS_CUDA_ERROR,
       "CUDA: %s failed: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

}  // namespace rbc::cuda
