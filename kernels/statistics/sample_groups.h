// A sorted sample of each channel of each group: brackets around its quantiles, or, of a group with
// few samples, the quantiles themselves.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/launch_device.h"
#include "statistics_problem.h"

namespace rbc::cuda {
namespace statistics {

struct LevelsOfRead;

// Groups of no more samples than this are sorted as they are.
inline constexpr int64_t kSampleOfFloats = 8192;
inline constexpr int64_t kSampleOfDoubles = 4096;

template <class Number>
inline constexpr int64_t kSampleOf = sizeof(Number) == 8 ? kSampleOfDoubles : kSampleOfFloats;

constexpr int64_t sampleSize(DType dtype) {
  switch (dtype) {
    case DType::F64:
    case DType::I32:
    case DType::U32:
    case DType::I64:
    case DType::U64: return kSampleOfDoubles;
    default: return kSampleOfFloats;
  }
}

// For one read. The first one writes the quantiles of groups with few samples, at all levels.
cudaError_t launchSample(const StatisticsProblem& problem, const LevelsOfRead& levels, bool first,
                         void* brackets, const LaunchDevice& device, cudaStream_t cuda_stream);

cudaError_t loadSampleGroups();

}  // namespace statistics
}  // namespace rbc::cuda
