// The launches of the kernels of statistics.
#pragma once

#include <cuda_runtime_api.h>

#include "scratch_layout.h"
#include "statistics/select.h"

namespace rbc::cuda {
namespace statistics {

// ---- Moments in memory: clears them, computes results, and adds them.

// Only the limbs of this span are used.
cudaError_t clearMoments(Moments* moments, int64_t count, const LimbSpan& span,
                         const LaunchDevice& device, cudaStream_t cuda_stream);

// Writes the requested results of groups' moments, whose limbs need not be normalized.
cudaError_t launchFinish(const StatisticsProblem& problem, const Moments* moments,
                         const LimbSpan& span, const LaunchDevice& device,
                         cudaStream_t cuda_stream);

// Adds moments, whose limbs need not be normalized, to normalized ones, and normalizes the sums.
cudaError_t launchMerge(Moments* to, const Moments* from, int64_t count, const LaunchDevice& device,
                        cudaStream_t cuda_stream);

cudaError_t loadMoments();

// ---- A sorted sample of each channel of each group: gives brackets around its quantiles or, for a
// group with few samples, the quantiles themselves.

struct LevelsOfRead;

// For one pass. The first one writes the quantiles of groups with few samples, at all levels.
cudaError_t launchSample(const StatisticsProblem& problem, const LevelsOfRead& levels, bool first,
                         void* brackets, const LaunchDevice& device, cudaStream_t cuda_stream);

cudaError_t loadSampleGroups();

// ---- Shortens long lists of kept values with many blocks: a histogram of each, then the values in
// the bins of the requested ranks.

struct Found;
struct LevelsOfRead;
struct Refined;

// Lists per pass: group, channel, level. That many lists keep all multiprocessors busy anyway.
inline constexpr int64_t kMaxListsToRefine = 512;

struct RefineMemory {
  uint32_t* bins = nullptr;
  Refined* refined = nullptr;
  void* values = nullptr;
  size_t cleared_bytes = 0;

  // Takes nothing if there are too many lists.
  void take(ScratchLayout& layout, int64_t lists, bool wide);
};

cudaError_t launchRefine(const StatisticsProblem& problem, const LevelsOfRead& levels,
                         const Moments* moments, const void* brackets, const Found* found,
                         const void* kept, const RefineMemory& memory, const LaunchDevice& device,
                         cudaStream_t cuda_stream);

cudaError_t loadRefineKept();

// ---- Quantiles from the values that a pass has counted and kept or, if these are not enough, from
// all samples.

// Also finishes the moments, unless `finish` is null: it has the limbs in use.
cudaError_t launchSelect(const StatisticsProblem& problem, const LevelsOfRead& levels,
                         const Moments* moments, const void* brackets, const Found* found,
                         const void* kept, const RefineMemory& refined, const LimbSpan* finish,
                         const LaunchDevice& device, cudaStream_t cuda_stream);

cudaError_t loadSelectQuantiles();

}  // namespace statistics

}  // namespace rbc::cuda
