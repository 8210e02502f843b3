// The launcher of clearing what is counted.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/launch_device.h"
#include "voxel_problem.h"

namespace rbc::cuda {

// Makes the i64 of an output 0; its data may be null.
cudaError_t clearCounts(const Output<1>& counts, int64_t count, const LaunchDevice& device,
                        cudaStream_t cuda_stream);

cudaError_t loadClearCounts();

}  // namespace rbc::cuda
