// Windows on CUDA.

#include "runtime/cuda_state.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/suits_vecs.h"
#include "windows/rows_kernel.cuh"

namespace rbc::cuda {
namespace {

using namespace windows;
constexpr int kWarps = 4;

__global__ void __launch_bounds__(kWarp* kWarps, 8)
    windowRows(const __grid_constant__ RowsLaunch launch) {
  waitForLaunchesAhead();
  const int64_t unit = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (unit < launch.units) doRows(launch, unit);
}

}  // namespace

cudaError_t loadWindows() { return loadKernelsBeside(windowRows); }
}  // namespace rbc::cuda
