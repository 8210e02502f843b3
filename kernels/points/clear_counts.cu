#include "points/clear_counts.h"

#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace {

constexpr int kThreads = 256;

struct ClearArguments {
  int64_t* counts;
  int64_t stride;
  int64_t count;
};

__global__ void __launch_bounds__(kThreads) clear(const __grid_constant__ ClearArguments a) {
  waitForLaunchesAhead();
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < a.count;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    a.counts[i * a.stride] = 0;
  }
}

__global__ void __launch_bounds__(32) clearLost(const __grid_constant__ LostCounts lost) {
  waitForLaunchesAhead();
  if (threadIdx.x < 3 && lost.counts[threadIdx.x] != nullptr) *lost.counts[threadIdx.x] = 0;
}

}  // namespace

cudaError_t clearCounts(const Output<1>& counts, int64_t count, const LaunchDevice& device,
                        cudaStream_t cuda_stream) {
  if (counts.data == nullptr || count == 0) return cudaSuccess;
  ClearArguments arguments = {static_cast<int64_t*>(counts.data), counts.stride[0], count};
  return launchBlocks(clear, &arguments, blocksFor(count, kThreads, 1024), kThreads, device,
                      cuda_stream);
}

cudaError_t clearCounts(const LostCounts& lost, const LaunchDevice& device,
                        cudaStream_t cuda_stream) {
  if (!lost.any) return cudaSuccess;
  LostCounts arguments = lost;
  return launchBlocks(clearLost, &arguments, 1, 32, device, cuda_stream);
}

cudaError_t loadClearCounts() { return loadKernelsBeside(clear); }

}  // namespace rbc::cuda
