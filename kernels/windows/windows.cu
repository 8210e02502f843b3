// Windows on CUDA: by the kernel of gathered rows where it suits all streams, else by that of any.

#include <algorithm>

#include "ceil_div.h"
#include "runtime/cuda_state.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "windows/any_kernel.cuh"
#include "windows/rows_kernel.cuh"
#include "windows/rows_plan.h"

namespace rbc::cuda {
namespace {

using namespace windows;

constexpr int kWarps = 4;  // of a block
static_assert(kWarps <= kMostWarps);

__global__ void __launch_bounds__(kWarp* kWarps, 5)
    windowRows(const __grid_constant__ RowsLaunch launch) {
  waitForLaunchesAhead();
  const int64_t unit = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (unit < launch.units) doRows(launch, unit);
}

__global__ void __launch_bounds__(kWarp* kWarps, 4)
    anyWindows(const __grid_constant__ AnyLaunch launch) {
  __shared__ WarpMemory memory[kWarps];
  const auto warp = static_cast<int>(threadIdx.x / kWarp);
  waitForLaunchesAhead();
  const int64_t warps = static_cast<int64_t>(gridDim.x) * kWarps;
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * kWarps + warp; unit < launch.units;
       unit += warps) {
    switch (launch.problem.time_dtype) {
      case DType::F32: doAny<float>(launch, unit, memory[warp]); break;
      case DType::F64: doAny<double>(launch, unit, memory[warp]); break;
      default: doAny<int64_t>(launch, unit, memory[warp]); break;
    }
  }
}

cudaError_t launchAny(const WindowProblem& p, const LaunchDevice& device,
                      cudaStream_t cuda_stream) {
  AnyLaunch launch;
  launch.problem = p;
  launch.units = 0;
  std::copy_n(p.streams, p.num_streams, launch.streams);
  std::copy_n(p.segments, p.num_segments, launch.segments);
  std::copy_n(p.methods, p.num_methods, launch.methods);
  for (int32_t n = 0; n < p.num_streams; ++n) {
    const WindowStream& s = p.streams[n];
    AnyTask& task = launch.tasks[n];
    // By the rule of whole windows none can be told from a part.
    const bool in_parts = s.counted == nullptr || s.rule != WindowRule::kWhole;
    int64_t parts = in_parts ? std::max<int64_t>(ceilDiv(s.num_offsets, int64_t{kWarp}), 1) : 1;
    task.group = std::max<int64_t>(in_parts ? kWarp : s.num_offsets, 1);
    if (!writes(s)) parts = 0;
    const bool copies = s.out.data != nullptr && s.values != nullptr && !isFloat(s.out.dtype);
    task.word_bytes = copies ? sizeOf(s.out.dtype) : 0;
    task.first_unit = launch.units;
    task.parts = FastDivmod(parts);
    launch.units += p.windows * parts;
  }
  if (launch.units == 0) return cudaSuccess;
  return launchBlocks(anyWindows, &launch, ceilDiv(launch.units, int64_t{kWarps}), kWarp * kWarps,
                      device, cuda_stream);
}

cudaError_t launchWindows(const WindowProblem& p, void*, const LaunchDevice& device,
                          cudaStream_t cuda_stream) {
  RowsLaunch rows;
  if (planRows(p, device, &rows)) {
    return launchBlocks(windowRows, &rows, ceilDiv(rows.units, int64_t{kWarps}), kWarp * kWarps,
                        device, cuda_stream);
  }
  return launchAny(p, device, cuda_stream);
}

}  // namespace

extern const Operation<WindowProblem> kWindows = {noBytes, launchOn<WindowProblem, launchWindows>};
cudaError_t loadWindows() { return loadKernelsBeside(windowRows); }

}  // namespace rbc::cuda
