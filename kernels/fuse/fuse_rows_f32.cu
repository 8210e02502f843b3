#include "fuse/fuse_rows_kernel.cuh"

namespace rbc::cuda {
namespace rows {

template FuseLauncher launcherOf<float>(int);
template cudaError_t loadKernels<float>();

}  // namespace rows
}  // namespace rbc::cuda
