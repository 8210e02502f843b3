#include "fuse/fuse_rows_launch.cuh"

namespace rbc::cuda {
namespace rows {

template Launcher launcherOf<double>(const FuseProblem&);
template cudaError_t loadKernels<double>();

}  // namespace rows
}  // namespace rbc::cuda
