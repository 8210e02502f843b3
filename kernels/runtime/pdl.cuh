// Synchronizes a kernel with the launches before and after it, if launchBlocks() launches early.
#pragma once

namespace rbc::cuda {

// Waits for the preceding launches: before this, none of their results may be read, and no memory
// that they use may be written.
__device__ __forceinline__ void waitForLaunchesAhead() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// Allows the next launch to start its setup.
__device__ __forceinline__ void letNextLaunchBegin() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

}  // namespace rbc::cuda
