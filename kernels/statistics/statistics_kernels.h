// The launches of the kernels of statistics.
#pragma once

#include <cuda_runtime_api.h>

#include "scratch_layout.h"
#include "statistics/select.h"

namespace rbc::cuda {
namespace statistics {

// ---- Moments in memory: empty ones, results of them, and sums of them.

// With limbs of this span alone.
cudaError_t clearMoments(Moments* moments, int64_t count, const LimbSpan& span,
                         const LaunchDevice& device, cudaStream_t cuda_stream);

// Writes what a problem wants of its groups' moments, whose limbs need not be normalized.
cudaError_t launchFinish(const StatisticsProblem& problem, const Moments* moments,
                         const LimbSpan& span, const LaunchDevice& device,
                         cudaStream_t cuda_stream);

// Adds moments, whose limbs need not be normalized, to some that are, and will be.
cudaError_t launchMerge(Moments* to, const Moments* from, int64_t count, const LaunchDevice& device,
                        cudaStream_t cuda_stream);

cudaError_t loadMoments();

// ---- A sorted sample of each channel of each group: brackets around its quantiles, or, of a group with
// few samples, the quantiles themselves.

struct LevelsOfRead;

// For one read. The first one writes the quantiles of groups with few samples, at all levels.
cudaError_t launchSample(const StatisticsProblem& problem, const LevelsOfRead& levels, bool first,
                         void* brackets, const LaunchDevice& device, cudaStream_t cuda_stream);

cudaError_t loadSampleGroups();

// ---- Long lists of kept values made short by many blocks: a histogram of each, then what lies in the bins of
// the wanted ranks.

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

// ---- Quantiles of what a read has counted and kept, and where that does not tell, of the samples once more.

// With the results of the moments beside it, unless `finish` is null: it has the limbs in use.
cudaError_t launchSelect(const StatisticsProblem& problem, const LevelsOfRead& levels,
                         const Moments* moments, const void* brackets, const Found* found,
                         const void* kept, const RefineMemory& refined, const LimbSpan* finish,
                         const LaunchDevice& device, cudaStream_t cuda_stream);

cudaError_t loadSelectQuantiles();

}  // namespace statistics

}  // namespace rbc::cuda
