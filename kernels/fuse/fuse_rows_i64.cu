#include "fuse/fuse_rows_kernel.cuh"

namespace rbc::cuda {
namespace rows {

template FuseLauncher launcherOf<int64_t>(int);
template cudaError_t loadKernels<int64_t>();

}  // namespace rows
}  // namespace rbc::cuda
