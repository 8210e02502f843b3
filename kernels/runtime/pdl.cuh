// How a kernel stands to the launches before and after it, where launchBlocks() launches early.
#pragma once

namespace rbc::cuda {

// Nothing that these have written may be read before, and nothing that they use may be written.
__device__ __forceinline__ void waitForLaunchesAhead() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// The next launch may set itself up from now on.
__device__ __forceinline__ void letNextLaunchBegin() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

}  // namespace rbc::cuda
