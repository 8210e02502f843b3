#include "statistics/moments.h"

#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "statistics/write_quantiles.cuh"

namespace rbc::cuda {
namespace statistics {
namespace {

constexpr int kWordsOfMoments = sizeof(Moments) / sizeof(uint64_t);

struct ClearArguments {
  uint64_t* words;
  int64_t count;
};

constexpr int kClearThreads = 256;

__global__ void __launch_bounds__(kClearThreads) clear(const __grid_constant__ ClearArguments a) {
  waitForLaunchesAhead();
  constexpr int kMinKey = offsetof(Moments, min_key) / sizeof(uint64_t);
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kClearThreads + threadIdx.x; i < a.count;
       i += static_cast<int64_t>(gridDim.x) * kClearThreads) {
    a.words[i] = i % kWordsOfMoments == kMinKey ? ~uint64_t{0} : 0;
  }
}

struct FinishArguments {
  StatisticsProblem problem;
  const Moments* moments;
};

// Threads of one warp take the same way: even warps the mean, odd ones the deviation.
constexpr int kFinishThreads = 64;
constexpr int kWarp = 32;

__global__ void __launch_bounds__(kFinishThreads)
    finish(const __grid_constant__ FinishArguments a) {
  waitForLaunchesAhead();
  const StatisticsProblem& p = a.problem;
  const bool of_mean = threadIdx.x < kWarp;
  const int64_t channels = p.samples.channels;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x % kWarp;
       i < p.groups() * channels; i += static_cast<int64_t>(gridDim.x) * kWarp) {
    const int64_t group = i / channels;
    const int64_t channel = i - group * channels;
    const Moments& given = a.moments[i];
    if (of_mean) {
      put(p.count, group, channel, given.count);
      put(p.nonfinite, group, channel, given.nonfinite);
      put(p.min, group, channel, smallest(given));
      put(p.max, group, channel, largest(given));
    }
    if ((of_mean ? p.mean.data : p.std.data) == nullptr) continue;
    Moments m = given;
    normalizeMoments(&m);
    if (of_mean) {
      put(p.mean, group, channel, exactMean(m));
    } else {
      put(p.std, group, channel, exactStd(m, p.ddof));
    }
  }
}

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

cudaError_t clearMoments(Moments* moments, int64_t count, const LaunchDevice& device,
                         cudaStream_t cuda_stream) {
  ClearArguments arguments = {reinterpret_cast<uint64_t*>(moments), count * kWordsOfMoments};
  return launchBlocks(clear, &arguments, blocksFor(arguments.count, kClearThreads, 4096),
                      kClearThreads, device, cuda_stream);
}

cudaError_t launchFinish(const StatisticsProblem& problem, const Moments* moments,
                         const LaunchDevice& device, cudaStream_t cuda_stream) {
  FinishArguments arguments = {problem, moments};
  return launchBlocks(finish, &arguments,
                      ceilDiv(problem.groups() * problem.samples.channels, kWarp), kFinishThreads,
                      device, cuda_stream);
}

cudaError_t launchMerge(Moments* to, const Moments* from, int64_t count, const LaunchDevice& device,
                        cudaStream_t cuda_stream) {
  MergeArguments arguments = {to, from, count};
  return launchBlocks(merge, &arguments, ceilDiv(count, kWarp), kWarp, device, cuda_stream);
}

cudaError_t loadMoments() { return loadKernelsBeside(finish); }

}  // namespace statistics
}  // namespace rbc::cuda
