// The kernel of any windows, and its launch.

#include "windows/any_windows.h"

#include <algorithm>

#include "fuse/arrival_minima.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "windows/any_kernel.cuh"

namespace rbc::cuda {
namespace windows {
namespace {

constexpr int kWarps = kAnyWarps;

template <template <class> class ClockOfTime, class Launch>
__device__ __forceinline__ void doUnits(const Launch& launch) {
  __shared__ WarpMemory memory[kWarps];
  const auto warp = static_cast<int>(threadIdx.x / kWarp);
  waitForLaunchesAhead();
  const int64_t warps = static_cast<int64_t>(gridDim.x) * kWarps;
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * kWarps + warp; unit < launch.units;
       unit += warps) {
    switch (launch.problem.time_dtype) {
      case DType::F32: doAny<ClockOfTime<float>>(launch, unit, memory[warp]); break;
      case DType::F64: doAny<ClockOfTime<double>>(launch, unit, memory[warp]); break;
      default: doAny<ClockOfTime<int64_t>>(launch, unit, memory[warp]); break;
    }
  }
}

template <class Time>
using Plain = Time;

__global__ void __launch_bounds__(kWarp* kWarps, 4)
    anyWindows(const __grid_constant__ AnyLaunch launch) {
  doUnits<Plain>(launch);
}

// Where rows arrive, or methods look back only.
__global__ void __launch_bounds__(kWarp* kWarps, 3)
    causalWindows(const __grid_constant__ CausalLaunch launch) {
  doUnits<Arriving>(launch);
}

// The kernels' stack is larger than the device's initial one: the first launch waits for all work
// while memory is allocated. Therefore the first launches are made here, without any units.
template <class Launch>
cudaError_t makeRoomForStack(void (*kernel)(const Launch)) {
  Launch launch = {};
  cudaStream_t cuda_stream = nullptr;
  cudaError_t error = cudaStreamCreateWithFlags(&cuda_stream, cudaStreamNonBlocking);
  if (error != cudaSuccess) return error;
  error = launchBlocks(kernel, &launch, 1, kWarp * kWarps, LaunchDevice{}, cuda_stream);
  const cudaError_t destroyed = cudaStreamDestroy(cuda_stream);
  return error == cudaSuccess ? destroyed : error;
}

void describe(const WindowChoice& choice, const WindowProblem& p, AnyLaunch* launch) {
  const AnyPlan& plan = choice.any;
  launch->problem = p;
  launch->units = plan.units;
  std::copy_n(p.streams, p.num_streams, launch->streams);
  std::copy_n(p.segments, p.num_segments, launch->segments);
  std::copy_n(p.methods, p.num_methods, launch->methods);
  for (int32_t n = 0; n < p.num_streams; ++n) {
    const WindowStream& s = p.streams[n];
    AnyTask& task = launch->tasks[n];
    const bool copies = s.out.data != nullptr && s.values != nullptr && !isFloat(s.out.dtype);
    task.group = plan.group[n];
    task.word_bytes = copies ? sizeOf(s.out.dtype) : 0;
    task.first_unit = plan.first_unit[n];
    task.parts = FastDivmod(plan.parts[n]);
  }
}

}  // namespace

cudaError_t launchAnyWindows(const WindowChoice& choice, const WindowProblem& p, void* scratch,
                             const LaunchDevice& device, cudaStream_t cuda_stream) {
  if (choice.grid == 0) return cudaSuccess;
  if (p.causal == nullptr) {
    AnyLaunch launch;
    describe(choice, p, &launch);
    return launchBlocks(anyWindows, &launch, choice.grid, choice.threads, device, cuda_stream);
  }
  CausalLaunch launch;
  const cudaError_t error = findArrivals(p, scratch, launch.lines, device, cuda_stream);
  if (error != cudaSuccess) return error;
  describe(choice, p, &launch);
  launch.lag = p.causal->lag;
  std::copy_n(p.causal->arrivals, p.num_streams, launch.arrivals);
  std::copy_n(p.causal->ages, p.num_methods, launch.ages);
  return launchBlocks(causalWindows, &launch, choice.grid, choice.threads, device, cuda_stream);
}

cudaError_t loadAnyWindows() {
  cudaError_t error = loadKernelsBeside(anyWindows);
  if (error == cudaSuccess) error = makeRoomForStack(anyWindows);
  return error == cudaSuccess ? makeRoomForStack(causalWindows) : error;
}

}  // namespace windows
}  // namespace rbc::cuda
