// Windows on CUDA, by the kernel that select.h chooses. The kernel of rows is launched here.

#include "arrival_lines.h"
#include "runtime/cuda_state.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "windows/any_windows.h"
#include "windows/rows_kernel.cuh"
#include "windows/select.h"

namespace rbc::cuda {
namespace {

using namespace windows;

// With poses fewer warps fit: they need registers. So do divisions, which therefore have kernels of
// their own.
template <bool kPoses, bool kDivisions>
__global__ void __launch_bounds__(kWarp* kRowWarps, kPoses ? 4 : 6)
    windowRows(const __grid_constant__ RowsLaunch launch) {
  __shared__ WarpRows rows[kRowWarps];
  __shared__ float poses[kPoses ? kRowWarps : 1][kPoses ? kWarp : 1][kPosePitch];
  const auto warp = static_cast<int>(threadIdx.x / kWarp);
  const auto unit = static_cast<int32_t>(blockIdx.x * kRowWarps) + warp;
  if (unit >= launch.units) return;
  doRows<kPoses, kDivisions>(launch, unit, &rows[warp], poses[kPoses ? warp : 0]);
}

auto* rowsKernel(bool poses, bool divisions) {
  if (poses) return divisions ? windowRows<true, true> : windowRows<true, false>;
  return divisions ? windowRows<false, true> : windowRows<false, false>;
}

cudaError_t launchWindows(const WindowProblem& p, void* scratch, const LaunchDevice& device,
                          cudaStream_t cuda_stream, LaunchChoice* chosen) {
  WindowChoice choice = selectWindows(p, device);
  *chosen = choice;
  if (choice.family == WindowKernel::kAny) {
    return launchAnyWindows(choice, p, scratch, device, cuda_stream);
  }
  return launchBlocks(rowsKernel(choice.poses, choice.divisions), &choice.rows, choice.grid,
                      choice.threads, device, cuda_stream);
}

size_t bytes(const BackendState&, const WindowProblem& p) { return arrivalBytes(p); }

}  // namespace

extern const Operation<WindowProblem> kWindows = {bytes, launchOn<WindowProblem, launchWindows>};
cudaError_t loadWindows(const LaunchDevice&) {
  const cudaError_t error = loadKernelsBeside(windowRows<false, false>);
  return error == cudaSuccess ? loadAnyWindows() : error;
}

}  // namespace rbc::cuda
