// The launches that find the minima of arrivals.
#pragma once

#include <cuda_runtime_api.h>

#include "arrival_lines.h"
#include "runtime/launch_device.h"

namespace rbc::cuda {

// Writes `lines`, one per stream, and enqueues what writes the minima that they point to: in
// scratch, of arrivalBytes(). The problem is a FuseProblem or a WindowProblem, and has arrivals.
template <class Problem>
cudaError_t findArrivals(const Problem& problem, void* scratch, ArrivalLines* lines,
                         const LaunchDevice& device, cudaStream_t cuda_stream);

cudaError_t loadArrivalMinima();

}  // namespace rbc::cuda
