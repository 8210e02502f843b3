#include "fuse/fuse_rows.h"

#include "fuse/fuse_rows_launch.h"

namespace rbc::cuda {

FuseLauncher rowsLauncherOf(const FuseProblem& p) {
  return visitTime(p.time_dtype,
                   [&](auto time) { return rows::launcherOf<typename decltype(time)::type>(p); });
}

cudaError_t loadFuseRows() {
  for (const auto load :
       {rows::loadKernels<float>, rows::loadKernels<double>, rows::loadKernels<int64_t>}) {
    const cudaError_t error = load();
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace rbc::cuda
