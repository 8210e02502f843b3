// Launcher of the strided copy.
#pragma once

#include <cuda_runtime_api.h>

#include "view.h"

namespace rbc::cuda {

// Same shape and dtype, both on the device; count > 0.
cudaError_t launchCopy(const View& source, const View& destination, cudaStream_t cuda_stream);

cudaError_t loadCopy();

}  // namespace rbc::cuda
