// Random draws on CUDA: one sample per thread.

#include "image_draws_problem.h"
#include "runtime/cuda_state.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace {

constexpr int kThreads = 128;

struct Arguments {
  ImageDrawsProblem problem;
};

__global__ void __launch_bounds__(kThreads) drawImages(const __grid_constant__ Arguments a) {
  waitForLaunchesAhead();
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < a.problem.count;
       i += step) {
    drawImage(a.problem, i);
  }
}

cudaError_t launchDraws(const ImageDrawsProblem& p, void*, const LaunchDevice& device,
                        cudaStream_t stream, LaunchChoice* chosen) {
  Arguments arguments = {p};
  const int64_t blocks = ceilDiv(p.count, int64_t{kThreads});
  *chosen = onlyKernel("image_draws", blocks, kThreads);
  return launchBlocks(drawImages, &arguments, blocks, kThreads, device, stream);
}

}  // namespace

extern const Operation<ImageDrawsProblem> kImageDraws = {noBytes<ImageDrawsProblem>,
                                                         launchOn<ImageDrawsProblem, launchDraws>};
cudaError_t loadImageDraws(const LaunchDevice&) { return loadKernelsBeside(drawImages); }

}  // namespace rbc::cuda
