#include "fuse/fuse_rows_kernel.cuh"

namespace rbc::cuda {
namespace rows {

template FuseLauncher launcherOf<double>(int);
template cudaError_t loadKernels<double>();

}  // namespace rows
}  // namespace rbc::cuda
