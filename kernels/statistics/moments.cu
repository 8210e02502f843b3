#include "statistics/statistics_kernels.h"

#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "statistics/write_statistics.cuh"

namespace rbc::cuda {
namespace statistics {
namespace {

struct ClearArguments {
  Moments* moments;
  int64_t count;
  LimbSpan span;
};

constexpr int kClearThreads = 256;
constexpr int kCounts = offsetof(Moments, sum) / sizeof(uint64_t);  // words before the limbs

__global__ void __launch_bounds__(kClearThreads) clear(const __grid_constant__ ClearArguments a) {
  waitForLaunchesAhead();
  constexpr int kMinKey = offsetof(Moments, min_key) / sizeof(uint64_t);
  const int words = kCounts + a.span.sums + a.span.squares;
  const int64_t all = a.count * words;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kClearThreads + threadIdx.x; i < all;
       i += static_cast<int64_t>(gridDim.x) * kClearThreads) {
    const int64_t item = i / words;
    const int word = static_cast<int>(i - item * words);
    Moments& m = a.moments[item];
    if (word < kCounts) {
      reinterpret_cast<uint64_t*>(&m)[word] = word == kMinKey ? ~uint64_t{0} : 0;
    } else if (word < kCounts + a.span.sums) {
      m.sum[a.span.first_sum + word - kCounts] = 0;
    } else {
      m.squares[a.span.first_square + word - kCounts - a.span.sums] = 0;
    }
  }
}

__global__ void __launch_bounds__(kFinishThreads)
    finish(const __grid_constant__ FinishArguments a) {
  waitForLaunchesAhead();
  const int64_t blocks = ceilDiv(a.problem.groups() * a.problem.samples.channels, kFinishChannels);
  for (int64_t i = blockIdx.x; i < blocks; i += gridDim.x) {
    finishChannels(a.problem, a.moments, a.span, i);
  }
}

constexpr int kWarp = 32;

struct MergeArguments {
  Moments* to;
  const Moments* from;
  int64_t count;
};

__global__ void __launch_bounds__(kWarp) merge(const __grid_constant__ MergeArguments a) {
  waitForLaunchesAhead();
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x; i < a.count;
       i += static_cast<int64_t>(gridDim.x) * kWarp) {
    mergeMoments(a.to + i, a.from[i]);
  }
}

}  // namespace

cudaError_t clearMoments(Moments* moments, int64_t count, const LimbSpan& span,
                         const LaunchDevice& device, cudaStream_t cuda_stream) {
  ClearArguments arguments = {moments, count, span};
  const int64_t words = count * (kCounts + span.sums + span.squares);
  return launchBlocks(clear, &arguments, blocksFor(words, kClearThreads, 4096), kClearThreads,
                      device, cuda_stream);
}

cudaError_t launchFinish(const StatisticsProblem& problem, const Moments* moments,
                         const LimbSpan& span, const LaunchDevice& device,
                         cudaStream_t cuda_stream) {
  FinishArguments arguments = {problem, moments, span};
  return launchBlocks(finish, &arguments,
                      ceilDiv(problem.groups() * problem.samples.channels, kFinishChannels),
                      kFinishThreads, device, cuda_stream);
}

cudaError_t launchMerge(Moments* to, const Moments* from, int64_t count, const LaunchDevice& device,
                        cudaStream_t cuda_stream) {
  MergeArguments arguments = {to, from, count};
  return launchBlocks(merge, &arguments, ceilDiv(count, kWarp), kWarp, device, cuda_stream);
}

cudaError_t loadMoments() { return loadKernelsBeside(finish); }

}  // namespace statistics
}  // namespace rbc::cuda
