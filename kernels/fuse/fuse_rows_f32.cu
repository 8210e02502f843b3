#include "fuse/fuse_rows_launch.cuh"

namespace rbc::cuda {
namespace rows {

template Launcher launcherOf<float>(const FuseProblem&);
template cudaError_t loadKernels<float>();

}  // namespace rows
}  // namespace rbc::cuda
