#include "fuse/fuse_rows_launch.cuh"

namespace rbc::cuda {
namespace rows {

template FuseLauncher launcherOf<double>(int);
template cudaError_t loadKernels<double>();

}  // namespace rows
}  // namespace rbc::cuda
