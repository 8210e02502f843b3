#include "fuse/fuse_rows_launch.cuh"

namespace rbc::cuda {
namespace rows {

template Launcher launcherOf<int64_t>(const FuseProblem&);
template cudaError_t loadKernels<int64_t>();

}  // namespace rows
}  // namespace rbc::cuda
