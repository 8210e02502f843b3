// Long lists of kept values made short by many blocks: a histogram of each, then what lies in the bins of
// the wanted ranks.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/launch_device.h"
#include "scratch_layout.h"
#include "statistics_problem.h"

namespace rbc::cuda {
namespace statistics {

struct Found;
struct LevelsOfRead;
struct Refined;

// Lists of a read: group, channel, level. With as many there is enough to do for all multiprocessors.
inline constexpr int64_t kMaxListsToRefine = 512;

struct RefineMemory {
  uint32_t* bins = nullptr;
  Refined* refined = nullptr;
  void* values = nullptr;
  size_t cleared_bytes = 0;

  // Of none if there are too many lists.
  void take(ScratchLayout& layout, int64_t lists, bool wide);
};

cudaError_t launchRefine(const StatisticsProblem& problem, const LevelsOfRead& levels,
                         const Moments* moments, const void* brackets, const Found* found,
                         const void* kept, const RefineMemory& memory, const LaunchDevice& device,
                         cudaStream_t cuda_stream);

cudaError_t loadRefineKept();

}  // namespace statistics
}  // namespace rbc::cuda
