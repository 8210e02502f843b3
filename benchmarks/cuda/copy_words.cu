#include "copies.h"
#include "launch_config.h"

namespace bench {
namespace {

constexpr int kThreads = 256;
constexpr int kWords = 4;  // of a thread, all loaded before the first is stored

__global__ void __launch_bounds__(kThreads)
    copyWords(const uint4* source, uint4* destination, int64_t words) {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  const int64_t first = int64_t{blockIdx.x} * kThreads * kWords + threadIdx.x;
  uint4 loaded[kWords];
#pragma unroll
  for (int k = 0; k < kWords; ++k) {
    const int64_t at = first + k * kThreads;
    if (at < words) loaded[k] = __ldcs(source + at);
  }
#pragma unroll
  for (int k = 0; k < kWords; ++k) {
    const int64_t at = first + k * kThreads;
    if (at < words) __stcs(destination + at, loaded[k]);
  }
}

}  // namespace

cudaError_t launchCopy(const void* source, void* destination, int64_t words, bool overlaps,
                       cudaStream_t stream) {
  constexpr int64_t kBlockWords = int64_t{kThreads} * kWords;
  const LaunchConfig launch((words + kBlockWords - 1) / kBlockWords, kThreads, overlaps, stream);
  return cudaLaunchKernelEx(&launch.config, copyWords, static_cast<const uint4*>(source),
                            static_cast<uint4*>(destination), words);
}

}  // namespace bench
