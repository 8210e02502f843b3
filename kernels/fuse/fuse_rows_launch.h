// The launchers of the kernels of whole rows, by the dtype of times: each has a source file of its own,
// as they take long to compile.
#pragma once

#include "fuse/fuse_rows.h"

namespace rbc::cuda {
namespace rows {

// Of an instance that is compiled.
template <class Time>
FuseLauncher launcherOf(int instance);

template <class Time>
cudaError_t loadKernels();

}  // namespace rows
}  // namespace rbc::cuda
