// The minima of arrivals, level by level: a launch for each, a warp for each block.

#include "fuse/arrival_minima.h"

#include "ceil_div.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kWarps = 8;

struct MinimaTask {
  ArrivalSource source;
  ArrivalLines lines;
  int64_t first_unit;
  int64_t blocks;  // per line, of the launch's level
};

struct MinimaLaunch {
  int64_t units;  // the blocks of all lines
  int32_t level;
  int32_t num_tasks;
  DType time_dtype;
  MinimaTask tasks[kMaxStreams];
};

// The arrival of a sample, for a block of level 1.
template <class Time>
__device__ __forceinline__ Time arrivalAt(const ArrivalSource& source, int64_t b, int64_t i) {
  if (source.mask != nullptr &&
      source.mask[b * source.mask_stride[0] + i * source.mask_stride[1]] == 0) {
    return kNeverArrives<Time>;
  }
  return *reinterpret_cast<const Time*>(source.arrivals.at(b, i, sizeof(Time)));
}

template <class Time>
__device__ __forceinline__ void findMinimum(const MinimaTask& task, int level, int64_t own) {
  using Minima = ArrivalMinima<Time>;
  const auto lane = static_cast<int>(threadIdx.x % kWarp);
  const int64_t b = own / task.blocks;
  const int64_t block = own - b * task.blocks;
  Time* to = static_cast<Time*>(task.lines.minima) + b * task.lines.line;
  const Time* below = nullptr;
  int64_t count = task.source.samples;
  for (int own_level = 1; own_level < level; ++own_level) {
    below = to;
    count = Minima::blocksOf(task.source.samples, own_level);
    to += count;
  }
  Time least = kNeverArrives<Time>;
#pragma unroll
  for (int k = 0; k < 1 << kArrivalBlockLog2; k += kWarp) {
    const int64_t i = (block << kArrivalBlockLog2) + k + lane;
    if (i >= count) continue;
    const Time found = below != nullptr ? below[i] : arrivalAt<Time>(task.source, b, i);
    least = found < least ? found : least;  // NaN does not count
  }
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const Time other = __shfl_xor_sync(0xffffffffu, least, step);
    least = other < least ? other : least;
  }
  if (lane == 0) to[block] = least;
}

__global__ void __launch_bounds__(kWarp* kWarps)
    arrivalMinima(const __grid_constant__ MinimaLaunch launch) {
  waitForLaunchesAhead();
  const int64_t warps = static_cast<int64_t>(gridDim.x) * kWarps;
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
       unit < launch.units; unit += warps) {
    int n = 0;
    while (n + 1 < launch.num_tasks && unit >= launch.tasks[n + 1].first_unit) ++n;
    const MinimaTask& task = launch.tasks[n];
    const int64_t own = unit - task.first_unit;
    switch (launch.time_dtype) {
      case DType::F32: findMinimum<float>(task, launch.level, own); break;
      case DType::F64: findMinimum<double>(task, launch.level, own); break;
      default: findMinimum<int64_t>(task, launch.level, own); break;
    }
  }
}

}  // namespace

template <class Problem>
cudaError_t findArrivals(const Problem& p, void* scratch, ArrivalLines* lines,
                         const LaunchDevice& device, cudaStream_t cuda_stream) {
  using Minima = ArrivalMinima<double>;
  for (int32_t level = 1;; ++level) {
    MinimaLaunch launch = {};
    launch.level = level;
    launch.time_dtype = p.time_dtype;
    ScratchLayout layout(scratch);
    layOutArrivals(p, &layout, [&](int n, const ArrivalSource& source, const ArrivalLines& found) {
      lines[n] = found;
      if (source.lines == 0) return;
      if (level > 1 && Minima::blocksOf(source.samples, level - 1) == 1) return;
      const int64_t blocks = Minima::blocksOf(source.samples, level);
      launch.tasks[launch.num_tasks++] = {source, found, launch.units, blocks};
      launch.units += source.lines * blocks;
    });
    if (launch.units == 0) return cudaSuccess;
    const cudaError_t error = launchBlocks(arrivalMinima, &launch, ceilDiv(launch.units, kWarps),
                                           kWarp * kWarps, device, cuda_stream);
    if (error != cudaSuccess) return error;
  }
}

template cudaError_t findArrivals(const FuseProblem&, void*, ArrivalLines*, const LaunchDevice&,
                                  cudaStream_t);
template cudaError_t findArrivals(const WindowProblem&, void*, ArrivalLines*, const LaunchDevice&,
                                  cudaStream_t);

cudaError_t loadArrivalMinima() { return loadKernelsBeside(arrivalMinima); }

}  // namespace rbc::cuda
