// Windows on CUDA: by the kernel of gathered rows where it suits all streams, else by that of any.

#include "ceil_div.h"
#include "runtime/cuda_state.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "windows/any_windows.h"
#include "windows/rows_kernel.cuh"
#include "windows/rows_plan.h"

namespace rbc::cuda {
namespace {

using namespace windows;

__global__ void __launch_bounds__(kWarp* kRowWarps, 6)
    windowRows(const __grid_constant__ RowsLaunch launch) {
  __shared__ WarpRows rows[kRowWarps];
  const auto warp = static_cast<int>(threadIdx.x / kWarp);
  const auto unit = static_cast<int32_t>(blockIdx.x * kRowWarps) + warp;
  if (unit < launch.units) doRows(launch, unit, &rows[warp]);
}

cudaError_t launchWindows(const WindowProblem& p, void*, const LaunchDevice& device,
                          cudaStream_t cuda_stream) {
  RowsLaunch rows;
  if (planRows(p, device, &rows)) {
    return launchBlocks(windowRows, &rows, ceilDiv(rows.units, int64_t{kRowWarps}),
                        kWarp * kRowWarps, device, cuda_stream);
  }
  return launchAnyWindows(p, device, cuda_stream);
}

}  // namespace

extern const Operation<WindowProblem> kWindows = {noBytes, launchOn<WindowProblem, launchWindows>};
cudaError_t loadWindows() {
  const cudaError_t error = loadKernelsBeside(windowRows);
  return error == cudaSuccess ? loadAnyWindows() : error;
}

}  // namespace rbc::cuda
